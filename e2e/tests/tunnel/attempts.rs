//! Requests through the tunnel, sent again and again while a part of it fails: which of them fail, with which errors, and
//! when.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::json;
use testbed::client::Resource;
use testbed::hosted::{Fixture, Guest};
use testbed::wait::seconds;
use tokio::time::timeout;

use crate::tunnel::extension;
use crate::tunnel::kubectl::Kubectl;

/// Between two attempts.
const EVERY: Duration = Duration::from_millis(250);
/// For one attempt. Longer than konnectivity-server takes to notice that an agent is silent, so that the error of the
/// API server is seen.
const PATIENCE: Duration = Duration::from_secs(65);
/// How many different errors are shown.
const MOST_ERRORS: usize = 6;
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");

/// A request that reaches its end through the tunnel only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// A command in a pod.
    Exec(&'a str),
    /// The creation of an object, which a webhook in the hosted cluster reviews.
    Webhook,
    /// Figures of nodes, from an aggregated API.
    Top,
}

/// Who sends requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client<'a> {
    kubectl: Kubectl<'a>,
    guest: &'a Guest,
}

/// What became of the attempts of one request.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    attempts: usize,
    failures: usize,
    /// The begin of the first attempt that failed.
    first: Option<Duration>,
    /// The end of the last one.
    last: Duration,
    /// How long an attempt took that failed, at most.
    longest: Duration,
    errors: BTreeMap<String, usize>,
}

/// What became of the attempts of all requests.
#[derive(Debug)]
pub(crate) struct Outcome<'a>(Vec<(Request<'a>, Seen)>);

/// Sends each request again and again while something is done. Attempts that are under way at its end count, too.
pub(crate) async fn while_doing<'a>(
    client: Client<'_>,
    requests: &[Request<'a>],
    work: impl Future<Output = Result<()>>,
) -> Result<Outcome<'a>> {
    let ended = AtomicBool::new(false);
    let begin = Instant::now();
    let work = async {
        let done = work.await;
        ended.store(true, Ordering::SeqCst);
        done
    };
    let attempts = requests.iter().map(|&request| {
        let ended = &ended;
        async move { (request, client.repeat(request, ended, begin).await) }
    });
    let (done, seen) = tokio::join!(work, join_all(attempts));
    done?;
    Ok(Outcome(seen))
}

// === impl Request ===

impl<'a> Request<'a> {
    /// A command in each of some pods.
    pub(crate) fn in_each(pods: &'a [String]) -> Vec<Self> {
        pods.iter().map(|pod| Self::Exec(pod)).collect()
    }
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec(pod) => write!(f, "exec in {pod}"),
            Self::Webhook => f.write_str("create, with a webhook"),
            Self::Top => f.write_str("top nodes"),
        }
    }
}

// === impl Client ===

impl<'a> Client<'a> {
    /// The administrator of a hosted cluster.
    pub(crate) fn of(fixture: &'a Fixture, guest: &'a Guest) -> Self {
        Self {
            kubectl: Kubectl::of(fixture, guest),
            guest,
        }
    }

    /// Sends a request once.
    pub(crate) async fn send(self, request: Request<'_>) -> Result<()> {
        match request {
            Request::Exec(pod) => {
                let words = ["exec", pod, "--container=echo", "--", "true"];
                self.kubectl.says_within(&words, PATIENCE).await.map(drop)
            }
            Request::Webhook => timeout(PATIENCE, self.create())
                .await
                .context("the creation of a ConfigMap did not end in time")?,
            Request::Top => {
                let words = ["top", "nodes"];
                self.kubectl.says_within(&words, PATIENCE).await.map(drop)
            }
        }
    }

    /// Nothing is stored, but the webhook is asked.
    async fn create(self) -> Result<()> {
        let path = format!("{}?dryRun=All", CONFIG_MAPS.within("default"));
        let body = extension::config_map("reviewed", &json!({}));
        self.guest.client.create(&path, &body).await.map(drop)
    }

    async fn repeat(self, request: Request<'_>, ended: &AtomicBool, begin: Instant) -> Seen {
        let mut seen = Seen::default();
        while !ended.load(Ordering::SeqCst) {
            let sent = begin.elapsed();
            let outcome = self.send(request).await;
            seen.record(outcome, sent, begin.elapsed());
            tokio::time::sleep(EVERY).await;
        }
        seen
    }
}

// === impl Outcome ===

impl Outcome<'_> {
    /// Shows it.
    pub(crate) fn show(&self, fixture: &Fixture, what: &str) {
        let mut text = what.to_owned();
        for (request, seen) in &self.0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n  {request}: {seen}");
        }
        fixture.testbed.progress.note(&text);
    }

    /// Some request failed.
    pub(crate) fn some_failed(&self) -> Result<()> {
        let mut all = self.0.iter();
        ensure!(
            all.any(|(_, seen)| seen.failures > 0),
            "no request needed what was taken away"
        );
        Ok(())
    }

    /// Each kind of request failed.
    pub(crate) fn each_failed(&self) -> Result<()> {
        for (request, seen) in &self.0 {
            ensure!(seen.failures > 0, "{request} needs no tunnel: {seen}");
        }
        Ok(())
    }

    /// Some request succeeded.
    pub(crate) fn some_succeeded(&self) -> Result<()> {
        let mut all = self.0.iter();
        ensure!(
            all.any(|(_, seen)| seen.failures < seen.attempts),
            "nothing worked meanwhile"
        );
        Ok(())
    }
}

// === impl Seen ===

impl Seen {
    fn record(&mut self, outcome: Result<()>, begun: Duration, ended: Duration) {
        self.attempts += 1;
        let Err(error) = outcome else { return };
        self.failures += 1;
        self.first.get_or_insert(begun);
        self.last = ended;
        self.longest = self.longest.max(ended.saturating_sub(begun));
        *self.errors.entry(format!("{error:#}")).or_default() += 1;
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} attempts failed", self.failures, self.attempts)?;
        if let Some(first) = self.first {
            let (first, last, longest) =
                (seconds(first), seconds(self.last), seconds(self.longest));
            write!(f, ", from {first} to {last}, the longest took {longest}")?;
        }
        for (error, count) in self.errors.iter().take(MOST_ERRORS) {
            write!(f, "\n    {count} times: {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn failed_attempts_are_counted_from_begin_to_end() {
        let at = Duration::from_secs;
        let mut seen = Seen::default();
        assert_eq!(seen.to_string(), "0 of 0 attempts failed");
        seen.record(Ok(()), at(0), at(1));
        seen.record(Err(anyhow!("no tunnel")), at(1), at(3));
        seen.record(Err(anyhow!("no tunnel")), at(4), at(9));
        seen.record(Ok(()), at(9), at(10));
        assert_eq!(
            seen.to_string(),
            "2 of 4 attempts failed, from 1.0 s to 9.0 s, the longest took 5.0 s\n    2 times: no tunnel"
        );
    }
}
