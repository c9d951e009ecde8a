//! Another infrastructure cluster, as its user sees one: a namespace of the testbed's own API server, and a kubeconfig whose
//! user has rights in it and nowhere else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::certs::write;
use crate::client::ApiClient;
use crate::crds;
use crate::fixtures;
use crate::kubeconfig::whole;
use crate::node::NodeTestbed;
use crate::wait;

/// How long the API server may take until it serves the kind Network.
const WITHIN: Duration = Duration::from_secs(30);

/// The namespace, and the kubeconfig.
#[derive(Debug)]
pub struct ExternalInfra {
    admin: ApiClient,
    namespace: String,
    user: String,
    kubeconfig: PathBuf,
}

// === impl ExternalInfra ===

impl ExternalInfra {
    /// Writes the kubeconfig of a user who may do nothing yet.
    pub fn new(testbed: &NodeTestbed, namespace: &str) -> Result<Self> {
        let user = format!("{namespace}-user");
        let file = testbed.path().join(format!("{namespace}.kubeconfig"));
        let control_plane = &testbed.control_plane;
        let certificate = control_plane.authority.client(&user, &user, None)?;
        let kubeconfig = whole(&control_plane.endpoint(), &certificate)?;
        write(&file, &kubeconfig.to_string())?;
        Ok(Self {
            admin: testbed.admin.clone(),
            namespace: namespace.to_owned(),
            user,
            kubeconfig: file,
        })
    }

    /// The namespace of the virtual machines.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The file with the kubeconfig, which refers to no other file.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Has the namespace, in which the user may do all that virtual machines need, but for these resources.
    pub async fn allow_all_but(&self, resources: &[&str]) -> Result<()> {
        let values = [
            ("NAMESPACE", self.namespace.as_str()),
            ("USER", self.user.as_str()),
        ];
        let mut objects = fixtures::render("kubevirt/infrastructure", &values)?;
        withhold(&mut objects, resources);
        self.admin.apply(&objects).await
    }

    /// Has the user read the networks of the infrastructure cluster: its Services, and the pods of the testbed's last node,
    /// where virtual machines are.
    pub async fn show_networks(&self, testbed: &NodeTestbed) -> Result<()> {
        let group = "config.openshift.io";
        let kind = crds::of_any_object(group, "v1", "Network", "networks", "Cluster");
        crds::install(&self.admin, &[kind]).await?;
        let subnets = testbed.namespaces().subnets();
        let last = u8::try_from(testbed.nodes.len()).context("nodes")?;
        let (pods, services) = (subnets.pods_of(last), subnets.services());
        let values = [
            ("PODS", pods.as_str()),
            ("SERVICES", services.as_str()),
            ("USER", self.user.as_str()),
        ];
        let objects = fixtures::render("kubevirt/networks", &values)?;
        wait::until("the networks of OpenShift", WITHIN, async || {
            self.admin.apply(&objects).await
        })
        .await
    }
}

/// Takes resources out of all rules.
fn withhold(objects: &mut [Value], resources: &[&str]) {
    for object in objects {
        let rules = object.get_mut("rules").and_then(Value::as_array_mut);
        let Some(rules) = rules else {
            continue;
        };
        for rule in rules.iter_mut() {
            if let Some(list) = rule["resources"].as_array_mut() {
                list.retain(|one| !resources.iter().any(|name| one == name));
            }
        }
        // A rule has to have resources.
        rules.retain(|rule| rule["resources"] != json!([]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(objects: &[Value]) -> Vec<String> {
        let rules = objects.iter().filter_map(|one| one["rules"].as_array());
        let listed = rules.flatten().filter_map(|it| it["resources"].as_array());
        let names = listed.flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn rights_are_withheld_and_others_are_kept() {
        let values = [("NAMESPACE", "n"), ("USER", "u")];
        let all = fixtures::render("kubevirt/infrastructure", &values).unwrap();
        for withheld in [&[][..], &["services"], &["datavolumes", "networkpolicies"]] {
            let mut objects = all.clone();
            withhold(&mut objects, withheld);
            let mut expected = resources(&all);
            let before = expected.len();
            expected.retain(|name| !withheld.contains(&name.as_str()));
            assert_eq!(before - expected.len(), withheld.len(), "{withheld:?}");
            assert_eq!(resources(&objects), expected);
            let rules = objects.iter().filter_map(|one| one["rules"].as_array());
            assert!(rules.flatten().all(|rule| rule["resources"][0].is_string()));
            assert_eq!(objects.len(), all.len());
            assert!(objects[0].get("rules").is_none(), "{}", objects[0]);
        }
    }
}
