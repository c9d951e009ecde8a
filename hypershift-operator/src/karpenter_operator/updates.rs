//! The update service, which has the release image of a version.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use payload::Version;
use serde::Deserialize;
use support::outbound::Http;
use tokio::time::Instant;

/// The service that hosted clusters ask for updates, unless they name another one.
const DEFAULT: &str = "https://api.openshift.com/api/upgrades_info/v1/graph";
/// How long an answer counts.
const BELIEVED: Duration = Duration::from_hours(1);
/// How long the absence of an answer counts.
const FAILED: Duration = Duration::from_mins(1);
/// The largest answer: that of a channel has all its versions, and the risks of updates between them.
const LARGEST: usize = 16 << 20;
/// Answers that are kept: users choose the versions.
const MOST: usize = 256;

/// Which version of which channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// URL of the service; none for the default one.
    pub(super) service: Option<String>,
    pub(super) channel: String,
    /// `multi`, or one architecture.
    pub(super) arch: &'static str,
    pub(super) version: Version,
}

/// The image, or why there is none.
type Answer = Result<String, String>;

/// Asks the service, and remembers its answers.
#[derive(Debug, Default)]
pub(super) struct Updates {
    http: Http,
    known: Mutex<HashMap<Question, (Instant, Answer)>>,
}

/// What the service knows.
#[derive(Debug, Deserialize)]
struct Graph {
    #[serde(default)]
    nodes: Vec<Node>,
}

/// A release.
#[derive(Debug, Deserialize)]
struct Node {
    version: String,
    payload: String,
}

/// The channel of a cluster that has none: that of its minor version.
pub(super) fn default_channel(version: &Version) -> String {
    let version = version.as_semver();
    format!("stable-{}.{}", version.major, version.minor)
}

// === impl Updates ===

impl Updates {
    /// The release image of a version.
    pub(super) async fn image(&self, question: &Question) -> Answer {
        if let Some(known) = self.known(question) {
            return known;
        }
        let answer = self.ask(question).await;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, answer)| is_fresh(at.elapsed(), answer));
        if known.len() < MOST {
            known.insert(question.clone(), (Instant::now(), answer.clone()));
        }
        answer
    }

    fn known(&self, question: &Question) -> Option<Answer> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, answer) = known.get(question)?;
        is_fresh(at.elapsed(), answer).then(|| answer.clone())
    }

    async fn ask(&self, question: &Question) -> Answer {
        let url = question.url()?;
        let host = url.host().unwrap_or_default().to_owned();
        let failed = |problem: String| format!("update service {host}: {problem}");
        let request = Request::get(url.clone())
            .header("accept", "application/json")
            .body(bytes::Bytes::new())
            .map_err(|error| failed(error.to_string()))?;
        let response = self.http.attempt_within(request, LARGEST).await;
        let response = response.map_err(|error| failed(error.to_string()))?;
        if response.status() != StatusCode::OK {
            return Err(failed(format!("it responds with {}", response.status())));
        }
        // The error may quote the response, which is not repeated.
        let graph: Graph = serde_json::from_slice(response.body())
            .map_err(|_| failed("its response is no graph of releases".to_owned()))?;
        question.image(graph).map_err(failed)
    }
}

fn is_fresh(age: Duration, answer: &Answer) -> bool {
    age < answer.as_ref().map_or(FAILED, |_| BELIEVED)
}

// === impl Question ===

impl Question {
    /// The URL that is asked. Only TLS: the answer decides what nodes run.
    fn url(&self) -> Result<Uri, String> {
        let Self {
            service,
            channel,
            arch,
            version: _,
        } = self;
        let service = service.as_deref().unwrap_or(DEFAULT);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if channel.is_empty() || !channel.bytes().all(is_plain) {
            return Err(format!(
                "spec.channel of the HostedCluster is {channel:?}, which is not a channel (for example stable-4.20)"
            ));
        }
        let separator = if service.contains('?') { '&' } else { '?' };
        let url = format!("{service}{separator}channel={channel}&arch={arch}");
        let url: Option<Uri> = url.parse().ok();
        url.filter(|it| it.scheme_str() == Some("https") && it.host().is_some())
            .ok_or_else(|| {
                "spec.updateService of the HostedCluster is not a URL with https: correct it"
                    .to_owned()
            })
    }

    /// The image in an answer.
    fn image(&self, graph: Graph) -> Answer {
        let Self {
            service: _,
            channel,
            arch,
            version,
        } = self;
        let text = version.to_string();
        let mut nodes = graph.nodes.into_iter();
        let found = nodes.find(|it| it.version == text);
        found.map(|it| it.payload).ok_or_else(|| {
            format!(
                "channel {channel} has no release {version} for {arch}: choose a version of it, or change spec.channel of \
                 the HostedCluster"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(service: Option<&str>, channel: &str) -> Question {
        Question {
            service: service.map(str::to_owned),
            channel: channel.to_owned(),
            arch: "multi",
            version: "4.20.1".parse().unwrap(),
        }
    }

    #[test]
    fn only_channels_of_services_with_tls_are_asked() {
        for (service, channel, expected) in [
            (
                None,
                "stable-4.20",
                Ok(format!("{DEFAULT}?channel=stable-4.20&arch=multi")),
            ),
            (
                Some("https://updates.example.com/graph?a=b"),
                "fast-4.20",
                Ok("https://updates.example.com/graph?a=b&channel=fast-4.20&arch=multi".to_owned()),
            ),
            (
                Some("http://updates.example.com"),
                "stable-4.20",
                Err("not a URL with https"),
            ),
            (Some("/graph"), "stable-4.20", Err("not a URL with https")),
            (None, "", Err("which is not a channel")),
            (None, "a&arch=amd64", Err("which is not a channel")),
        ] {
            match (question(service, channel).url(), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.to_string(), expected),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                (found, _) => panic!("{service:?} {channel}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_image_of_a_version_is_found() {
        let graph = || {
            let text = r#"{ "nodes": [
                { "version": "4.20.0", "payload": "images.example.com/a@sha256:1" },
                { "version": "4.20.1", "payload": "images.example.com/a@sha256:2", "metadata": {} }
            ], "edges": [[0, 1]] }"#;
            serde_json::from_str::<Graph>(text).unwrap()
        };
        let mut question = question(None, "stable-4.20");
        let image = question.image(graph());
        assert_eq!(image.as_deref(), Ok("images.example.com/a@sha256:2"));
        question.version = "4.20.2".parse().unwrap();
        let problem = question.image(graph()).unwrap_err();
        assert!(
            problem.contains("channel stable-4.20 has no release 4.20.2"),
            "{problem}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_remembered_and_failures_for_a_short_time() {
        let updates = Updates::default();
        let question = question(None, "stable-4.20");
        let set = |answer: Answer| {
            let mut known = updates.known.lock().unwrap();
            known.insert(question.clone(), (Instant::now(), answer));
        };
        set(Err("no".to_owned()));
        tokio::time::advance(FAILED).await;
        assert_eq!(updates.known(&question), None);
        set(Ok("image".to_owned()));
        tokio::time::advance(FAILED).await;
        assert_eq!(updates.known(&question), Some(Ok("image".to_owned())));
        tokio::time::advance(BELIEVED).await;
        assert_eq!(updates.known(&question), None);
    }
}
