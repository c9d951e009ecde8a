//! Asks every API server of the hosted cluster whether it accepts certificates of a signer.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::config::AuthInfo;
use serde_json::{Value, json};
use support::error::chain;

use super::issue::Pair;
use super::revocation::Expect;
use super::x509::Certificate;
use crate::components::kubeconfig::base64;

/// The Deployment of the API server, and the label `app` of its pods.
pub(super) const API_SERVER: &str = "kube-apiserver";
/// The server name in its certificate for clients inside the management cluster.
const SERVER_NAME: &str = "kube-apiserver";
/// The name of its port for clients.
const PORT: &str = "client";
const TIMEOUT: Duration = Duration::from_secs(10);
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A pod of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) pod: String,
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// What an API server does with a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evaluation {
    Accepted,
    Refused,
    /// It gave no answer, or another one.
    Unknown(String),
}

/// The answers of one replica, for the new and the old signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) pod: String,
    pub(super) new: Evaluation,
    /// None if there was no old signer.
    pub(super) old: Option<Evaluation>,
}

/// Selects all replicas, if the Deployment is rolled out: a pod that is starting or ending may trust another bundle.
///
/// A pod that is ending counts until its grace period has passed. After that its node is gone.
pub(super) fn replicas(
    deployment: &Deployment,
    pods: &[Pod],
    now: Timestamp,
) -> Result<Vec<Replica>, String> {
    let desired = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let desired = usize::try_from(desired).unwrap_or_default();
    let mut replicas = Vec::new();
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if let Some(end) = &pod.metadata.deletion_timestamp {
            if end.0 > now {
                return Err(format!("Pod {name} is terminating"));
            }
            continue;
        }
        if !is_ready(pod) {
            return Err(format!("Pod {name} is not ready"));
        }
        let replica =
            replica(pod).ok_or_else(|| format!("Pod {name} has no address or no port {PORT}"))?;
        replicas.push(replica);
    }
    if desired == 0 || replicas.len() != desired {
        let found = replicas.len();
        return Err(format!(
            "Deployment {API_SERVER} has {found} of {desired} pods"
        ));
    }
    Ok(replicas)
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn replica(pod: &Pod) -> Option<Replica> {
    let containers = pod.spec.as_ref()?.containers.iter();
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(PORT))?;
    Some(Replica {
        pod: pod.metadata.name.clone()?,
        address: pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?,
        port: u16::try_from(port.container_port).ok()?,
    })
}

/// Whether all answers are as expected; otherwise which is not.
pub(super) fn evaluate(expect: Expect, answers: &[Answers]) -> Result<(), String> {
    for Answers { pod, new, old } in answers {
        check(pod, "new", new, &Evaluation::Accepted)?;
        let expected = match expect {
            Expect::Both => Evaluation::Accepted,
            Expect::OnlyNew => Evaluation::Refused,
        };
        if let Some(old) = old {
            check(pod, "previous", old, &expected)?;
        }
    }
    Ok(())
}

fn check(pod: &str, which: &str, found: &Evaluation, expected: &Evaluation) -> Result<(), String> {
    match found {
        found if found == expected => Ok(()),
        Evaluation::Accepted => Err(format!(
            "Pod {pod} still accepts certificates of the {which} signer"
        )),
        Evaluation::Refused => Err(format!("Pod {pod} does not trust the {which} signer yet")),
        Evaluation::Unknown(problem) => Err(format!("Pod {pod} gave no answer: {problem}")),
    }
}

/// Makes a request with a client certificate, on a connection of its own.
pub(super) async fn ask(replica: &Replica, authorities: &[Certificate], user: &Pair) -> Evaluation {
    match tokio::time::timeout(TIMEOUT, review(replica, authorities, user)).await {
        Ok(Ok(review)) => accepted(&review, &user.certificate.common_name),
        Ok(Err(kube::Error::Api(status))) if status.code == 401 => Evaluation::Refused,
        Ok(Err(error)) => Evaluation::Unknown(chain(&error)),
        Err(_) => Evaluation::Unknown(format!("no response within {}s", TIMEOUT.as_secs())),
    }
}

async fn review(
    replica: &Replica,
    authorities: &[Certificate],
    user: &Pair,
) -> kube::Result<Value> {
    let host = match replica.address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let url = format!("https://{host}:{}", replica.port);
    let url = url
        .parse()
        .map_err(|error: http::uri::InvalidUri| kube::Error::Service(error.into()))?;
    let mut config = kube::Config::new(url);
    config.tls_server_name = Some(SERVER_NAME.to_owned());
    config.root_cert = Some(authorities.iter().map(|one| one.der.clone()).collect());
    config.connect_timeout = Some(TIMEOUT);
    config.default_retry = false;
    config.auth_info = AuthInfo {
        client_certificate_data: Some(base64(user.certificate.pem().as_bytes())),
        client_key_data: Some(base64(&user.key).into()),
        ..AuthInfo::default()
    };
    let client = support::client::connect(&config)?;
    let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = http::Request::post(REVIEWS)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(|error| kube::Error::Service(error.into()))?;
    client.request(request).await
}

/// Another user would mean that something between has answered.
fn accepted(review: &Value, user: &str) -> Evaluation {
    let found = &review["status"]["userInfo"]["username"];
    if found == user {
        return Evaluation::Accepted;
    }
    Evaluation::Unknown(format!("the user is {found}"))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::at;
    use super::*;

    fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Pod {
        let mut pod = json!({
            "metadata": { "name": name },
            "spec": { "containers": [
                { "name": "other", "ports": [{ "name": "metrics", "containerPort": 1 }] },
                { "name": "kube-apiserver", "ports": [{ "name": "client", "containerPort": 6443 }] },
            ] },
            "status": { "podIP": "10.0.0.1", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        change(&mut pod);
        serde_json::from_value(pod).unwrap()
    }

    fn selected(count: i32, pods: &[Pod]) -> Result<Vec<String>, String> {
        let deployment = serde_json::from_value(json!({
            "spec": { "replicas": count, "selector": {}, "template": {} },
        }));
        let replicas = replicas(&deployment.unwrap(), pods, at(1))?;
        Ok(replicas
            .iter()
            .map(|it| format!("{}={}:{}", it.pod, it.address, it.port))
            .collect())
    }

    #[test]
    fn all_replicas_are_asked_once_they_are_ready() {
        let ready = |name| pod(name, |_| {});
        let one = "a=10.0.0.1:6443".to_owned();
        let terminating = |hour| {
            pod("b", |it| {
                it["metadata"]["deletionTimestamp"] = at(hour).to_string().into()
            })
        };
        let error = |text: &str| Err(text.to_owned());
        for (count, pods, expected) in [
            (1, vec![ready("a")], Ok(vec![one.clone()])),
            (
                2,
                vec![ready("a"), ready("b")],
                Ok(vec![one.clone(), "b=10.0.0.1:6443".to_owned()]),
            ),
            (
                2,
                vec![ready("a")],
                error("Deployment kube-apiserver has 1 of 2 pods"),
            ),
            (
                1,
                vec![ready("a"), ready("b")],
                error("Deployment kube-apiserver has 2 of 1 pods"),
            ),
            (
                0,
                vec![],
                error("Deployment kube-apiserver has 0 of 0 pods"),
            ),
            (
                1,
                vec![ready("a"), terminating(2)],
                error("Pod b is terminating"),
            ),
            (1, vec![ready("a"), terminating(1)], Ok(vec![one])),
            (
                1,
                vec![pod("a", |it| {
                    it["status"]["conditions"][0]["status"] = "False".into()
                })],
                error("Pod a is not ready"),
            ),
            (
                1,
                vec![pod("a", |it| it["status"]["podIP"] = Value::Null)],
                error("Pod a has no address or no port client"),
            ),
            (
                1,
                vec![pod("a", |it| {
                    it["spec"]["containers"][1]["ports"] = Value::Null
                })],
                error("Pod a has no address or no port client"),
            ),
        ] {
            assert_eq!(selected(count, &pods), expected);
        }
    }

    #[test]
    fn every_replica_must_answer_as_expected() {
        use Evaluation::{Accepted, Refused, Unknown};
        let unknown = || Unknown("reset".to_owned());
        let rows = [
            (Expect::Both, Accepted, Some(Accepted), Ok(())),
            (Expect::Both, Accepted, None, Ok(())),
            (
                Expect::Both,
                Refused,
                Some(Accepted),
                Err("Pod b does not trust the new signer yet"),
            ),
            (
                Expect::Both,
                Accepted,
                Some(Refused),
                Err("Pod b does not trust the previous signer yet"),
            ),
            (Expect::OnlyNew, Accepted, Some(Refused), Ok(())),
            (Expect::OnlyNew, Accepted, None, Ok(())),
            (
                Expect::OnlyNew,
                Accepted,
                Some(Accepted),
                Err("Pod b still accepts certificates of the previous signer"),
            ),
            (
                Expect::OnlyNew,
                Refused,
                Some(Refused),
                Err("Pod b does not trust the new signer yet"),
            ),
            (
                Expect::OnlyNew,
                Accepted,
                Some(unknown()),
                Err("Pod b gave no answer: reset"),
            ),
            (
                Expect::Both,
                unknown(),
                Some(Accepted),
                Err("Pod b gave no answer: reset"),
            ),
        ];
        for (expect, new, old, expected) in rows {
            let good = match expect {
                Expect::Both => Accepted,
                Expect::OnlyNew => Refused,
            };
            let first = Answers {
                pod: "a".to_owned(),
                new: Accepted,
                old: Some(good),
            };
            let second = Answers {
                pod: "b".to_owned(),
                new,
                old,
            };
            let found = evaluate(expect, &[first, second.clone()]);
            assert_eq!(
                found,
                expected.map_err(str::to_owned),
                "{expect:?} {second:?}"
            );
        }
    }

    #[test]
    fn only_the_user_of_the_certificate_counts_as_accepted() {
        let review = |name: &str| json!({ "status": { "userInfo": { "username": name } } });
        assert_eq!(accepted(&review("a"), "a"), Evaluation::Accepted);
        assert!(matches!(
            accepted(&review("system:anonymous"), "a"),
            Evaluation::Unknown(_)
        ));
        assert!(matches!(accepted(&json!({}), "a"), Evaluation::Unknown(_)));
    }
}
