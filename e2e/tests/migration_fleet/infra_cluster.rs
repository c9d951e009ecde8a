//! The cluster that virtual machines of KubeVirt run on, as far as the operator sends requests to it: it has KubeVirt, allows
//! everything, and remembers objects. No virtual machine is there.

use std::collections::BTreeMap;

use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};
use testbed::kubeconfig::whole;
use testbed::testbed::Testbed;

use crate::providers::cloud::server::{Answer, Api, Server};

/// It, while it runs.
#[derive(Debug)]
pub(crate) struct InfraCluster {
    kubeconfig: String,
    _server: Server,
}

// === impl InfraCluster ===

impl InfraCluster {
    pub(crate) async fn start(testbed: &Testbed) -> Result<Self> {
        let server = Server::start(Objects::default()).await?;
        let control_plane = &testbed.control_plane;
        // Clients want certificates in a kubeconfig, even where they are not used.
        let certificate = control_plane.authority.client("infra", "infra", None)?;
        let mut kubeconfig = whole(&control_plane.endpoint(), &certificate)?;
        kubeconfig["clusters"][0]["cluster"]["server"] = json!(server.url());
        Ok(Self {
            kubeconfig: kubeconfig.to_string(),
            _server: server,
        })
    }

    /// The kubeconfig of its user, on one line.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }
}

/// Objects, by their paths.
#[derive(Debug, Default)]
struct Objects(BTreeMap<String, Value>);

// === impl Objects ===

impl Api for Objects {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        if method == "GET"
            && let Some(known) = known(path)
        {
            return Some(Answer::ok(known));
        }
        let key = path.join("/");
        match method {
            "GET" => Some(Answer::found(self.0.get(&key).cloned())),
            "PATCH" => {
                self.0.insert(key, body.clone());
                Some(Answer::ok(body.clone()))
            }
            "POST" if path.ends_with(&["selfsubjectaccessreviews"]) => {
                let mut review = body.clone();
                review["status"] = json!({ "allowed": true });
                Some(Answer::new(StatusCode::CREATED, review))
            }
            _ => None,
        }
    }
}

/// What does not change.
fn known(path: &[&str]) -> Option<Value> {
    match path {
        ["version"] => Some(json!({
            "major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        })),
        ["apis", "subresources.kubevirt.io"] => {
            let version = json!({ "groupVersion": "subresources.kubevirt.io/v1", "version": "v1" });
            Some(json!({
                "kind": "APIGroup",
                "apiVersion": "v1",
                "name": "subresources.kubevirt.io",
                "versions": [version],
                "preferredVersion": version,
            }))
        }
        ["apis", "subresources.kubevirt.io", "v1", "version"] => {
            Some(json!({ "gitVersion": "v1.6.0" }))
        }
        ["apis", "config.openshift.io", "v1", "networks", "cluster"] => {
            Some(json!({ "metadata": { "name": "cluster" }, "spec": {} }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_remembered_and_everything_is_allowed() {
        let mut objects = Objects::default();
        let path = ["apis", "networking.k8s.io", "v1", "networkpolicies", "a"];
        let policy = json!({ "metadata": { "name": "a" } });
        let mut answer = |method: &str, path: &[&str], body: &Value| {
            let answer = objects.answer(method, path, body).unwrap();
            (answer.status, answer.body)
        };
        let (status, _) = answer("GET", &path, &Value::Null);
        assert_eq!(status, StatusCode::NOT_FOUND);
        answer("PATCH", &path, &policy);
        let (status, found) = answer("GET", &path, &Value::Null);
        assert_eq!((status, found), (StatusCode::OK, policy));
        let review = [
            "apis",
            "authorization.k8s.io",
            "v1",
            "selfsubjectaccessreviews",
        ];
        let (_, reviewed) = answer("POST", &review, &json!({}));
        assert_eq!(reviewed["status"]["allowed"], true);
    }
}
