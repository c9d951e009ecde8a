//! KubeVirt where machines are made: on this management cluster, or on another one that a user's kubeconfig leads to.
//!
//! A user's kubeconfig is data and no more: one that would have this process run a program or read a file is refused.

use std::collections::HashMap;
use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use support::error::chain;
use support::reconcile::is_missing;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::context::Context;
use crate::hosted_cluster::facts::{Facts, Virtualization};
use crate::platform::kubevirt::infrastructure::external;

/// How long an answer is believed.
const BELIEVED: Duration = Duration::from_mins(1);
/// How long a cluster may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The longest version that is told of.
const LONGEST: usize = 64;
/// The group in which KubeVirt tells of itself.
const KUBEVIRT: &str = "/apis/subresources.kubevirt.io";

/// Which cluster: that of a Secret's key in this version, or this one.
type Place = Option<(String, String)>;

/// What clusters have told.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    answers: Mutex<HashMap<Place, (Instant, Virtualization)>>,
}

/// What is there for a cluster on KubeVirt. Where its kubeconfig is not there, nothing is asked: that is told with all
/// references.
pub(super) async fn find(facts: &Facts, ctx: &Context) -> Option<Virtualization> {
    if facts.cluster.spec.platform.type_ != PlatformType::KubeVirt {
        return None;
    }
    let (place, kubeconfig) = match external(facts) {
        None => (None, None),
        Some((name, key)) => {
            let secret = facts.secret(name)?;
            let kubeconfig = secret.data.as_ref()?.get(key)?;
            let uid = secret.metadata.uid.clone().unwrap_or_default();
            let version = secret.metadata.resource_version.clone();
            let place = (format!("{uid}/{key}"), version.unwrap_or_default());
            (Some(place), Some(&kubeconfig.0))
        }
    };
    let cache = &ctx.virtualization;
    if let Some(known) = cache.known(&place).await {
        return Some(known);
    }
    let found = match kubeconfig {
        None => answer(&ctx.client).await,
        Some(bytes) => elsewhere(bytes).await,
    };
    // What has to be mended is looked at again, and so is what could not be asked.
    if matches!(found, Virtualization::Found { .. }) {
        cache.keep(place, found.clone()).await;
    }
    Some(found)
}

// === impl Cache ===

impl Cache {
    async fn known(&self, place: &Place) -> Option<Virtualization> {
        let answers = self.answers.lock().await;
        let (at, known) = answers.get(place)?;
        (at.elapsed() < BELIEVED).then(|| known.clone())
    }

    async fn keep(&self, place: Place, found: Virtualization) {
        let mut answers = self.answers.lock().await;
        answers.retain(|_, (at, _)| at.elapsed() < BELIEVED);
        answers.insert(place, (Instant::now(), found));
    }
}

/// Another cluster's, by a kubeconfig.
async fn elsewhere(kubeconfig: &[u8]) -> Virtualization {
    let kubeconfig = match read(kubeconfig) {
        Ok(kubeconfig) => kubeconfig,
        Err(why) => return Virtualization::Unusable(why),
    };
    let options = KubeConfigOptions::default();
    // The library's own words could quote what is in it.
    let unusable = || Virtualization::Unusable(WITHOUT_CONTEXT.to_owned());
    let Ok(config) = Config::from_custom_kubeconfig(kubeconfig, &options).await else {
        return unusable();
    };
    match Client::try_from(config) {
        Ok(client) => answer(&client).await,
        Err(_) => unusable(),
    }
}

const WITHOUT_CONTEXT: &str = "cannot be used: its current context has to name a cluster with a server and its \
                               certificate-authority-data, and a user with a token or a certificate in base64";

/// Reads a kubeconfig that somebody else has written.
fn read(bytes: &[u8]) -> Result<Kubeconfig, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is no text".to_owned())?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| "is no kubeconfig".to_owned())?;
    match outside(&kubeconfig) {
        None => Ok(kubeconfig),
        Some(field) => Err(format!(
            "has {field}, which leads out of it: put the data itself there, in base64"
        )),
    }
}

/// A field by which the process that reads it would run a program or read a file of its own.
fn outside(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let clusters = kubeconfig.clusters.iter();
    let mut clusters = clusters.filter_map(|it| it.cluster.as_ref());
    if clusters.any(|it| it.certificate_authority.is_some()) {
        return Some("certificate-authority");
    }
    let users = kubeconfig.auth_infos.iter();
    users.filter_map(|it| it.auth_info.as_ref()).find_map(|it| {
        let fields = [
            ("exec", it.exec.is_some()),
            ("auth-provider", it.auth_provider.is_some()),
            ("tokenFile", it.token_file.is_some()),
            ("client-certificate", it.client_certificate.is_some()),
            ("client-key", it.client_key.is_some()),
        ];
        let found = fields.into_iter().find(|(_, is_there)| *is_there);
        found.map(|(field, _)| field)
    })
}

/// What a cluster tells, as long as one waits.
async fn answer(client: &Client) -> Virtualization {
    match timeout(ANSWER, ask(client)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Virtualization::Unreachable(told(&error)),
        Err(_) => Virtualization::Unreachable(format!("it has not answered within {ANSWER:?}")),
    }
}

/// An error without what the server has sent: whoever may name a server here may not read everything that it says.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("it answers with status {}", status.code),
        kube::Error::SerdeError(_) => "its answer is not that of an API server".to_owned(),
        error => chain(error),
    }
}

async fn ask(client: &Client) -> kube::Result<Virtualization> {
    let kubernetes = client.apiserver_version().await?.git_version;
    let group = match client.request::<APIGroup>(get(KUBEVIRT)?).await {
        Ok(group) => group,
        Err(error) if is_missing(&error) => return Ok(Virtualization::Absent),
        Err(error) => return Err(error),
    };
    let version = group
        .preferred_version
        .or_else(|| group.versions.into_iter().next());
    let Some(version) = version else {
        return Ok(Virtualization::Absent);
    };
    let told = get(&format!("/apis/{}/version", version.group_version))?;
    let told: Value = client.request(told).await?;
    let kubevirt = told["gitVersion"].as_str().unwrap_or_default();
    Ok(Virtualization::Found {
        kubernetes: cut(&kubernetes),
        kubevirt: cut(kubevirt),
    })
}

/// A version, and not what else a server may call one.
fn cut(version: &str) -> String {
    version.chars().take(LONGEST).collect()
}

fn get(path: &str) -> kube::Result<Request<Vec<u8>>> {
    Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const VERSION: &str = "/apis/subresources.kubevirt.io/v1/version";

    /// A server of Kubernetes that answers the question about KubeVirt so.
    async fn answers(calls: Vec<Expect>) -> Virtualization {
        let version = json!({
            "major": "1", "minor": "33", "gitVersion": "v1.33.5", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        });
        let server = Expect::get("/version").answer(Answer::ok(&version));
        let scenario = Scenario::new([server].into_iter().chain(calls));
        let found = answer(&scenario.client()).await;
        scenario.finish();
        found
    }

    #[tokio::test]
    async fn versions_are_those_that_the_servers_tell() {
        let version = json!({ "groupVersion": "subresources.kubevirt.io/v1", "version": "v1" });
        let group = json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "subresources.kubevirt.io",
            "versions": [version],
            "preferredVersion": version,
        });
        let group = || Expect::get(KUBEVIRT).answer(Answer::ok(&group));
        let own = Expect::get(VERSION).answer(Answer::ok(&json!({ "gitVersion": "v1.6.0" })));
        let found = Virtualization::Found {
            kubernetes: "v1.33.5".to_owned(),
            kubevirt: "v1.6.0".to_owned(),
        };
        assert_eq!(answers(vec![group(), own]).await, found);
        let missing = Expect::get(KUBEVIRT).answer(Answer::error(404, "NotFound"));
        assert_eq!(answers(vec![missing]).await, Virtualization::Absent);
        for (code, reason) in [(403, "Forbidden"), (503, "ServiceUnavailable")] {
            let refused = Expect::get(VERSION).answer(Answer::error(code, reason));
            let found = answers(vec![group(), refused]).await;
            let expected = format!("it answers with status {code}");
            assert_eq!(found, Virtualization::Unreachable(expected));
        }
    }

    fn kubeconfig(cluster: &Value, user: &Value) -> Vec<u8> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "x",
        });
        config.to_string().into_bytes()
    }

    #[test]
    fn a_kubeconfig_of_a_user_leads_to_no_program_and_to_no_file() {
        let server = json!({ "server": "https://192.0.2.1:6443" });
        let token = json!({ "token": "t" });
        for (cluster, user, expected) in [
            (server.clone(), token.clone(), None),
            (
                json!({ "server": "https://192.0.2.1", "certificate-authority": "/etc/passwd" }),
                token,
                Some("certificate-authority"),
            ),
            (
                server.clone(),
                json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true" } }),
                Some("exec"),
            ),
            (
                server.clone(),
                json!({ "auth-provider": { "name": "oidc", "config": {} } }),
                Some("auth-provider"),
            ),
            (
                server.clone(),
                json!({ "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token" }),
                Some("tokenFile"),
            ),
            (
                server.clone(),
                json!({ "client-certificate": "/a", "client-key": "/b" }),
                Some("client-certificate"),
            ),
            (server, json!({ "client-key": "/b" }), Some("client-key")),
        ] {
            let found = read(&kubeconfig(&cluster, &user));
            match expected {
                None => assert!(found.is_ok(), "{user}"),
                Some(field) => {
                    let told = found.unwrap_err();
                    assert!(told.contains(field), "{told}");
                }
            }
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_told_without_its_content() {
        for bytes in [
            &b"\xff"[..],
            b"s3cret",
            b"clusters: s3cret",
            b"{current-context: s3cret}",
        ] {
            let Virtualization::Unusable(told) = elsewhere(bytes).await else {
                unreachable!("{bytes:?}");
            };
            assert!(!told.contains("s3cret"), "{told}");
        }
    }
}
