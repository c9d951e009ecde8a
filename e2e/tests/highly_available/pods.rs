//! The pods of a control plane, and how they end.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::client::ApiClient;
use testbed::hosted::PODS;
use testbed::namespaces::Groups;
use testbed::node::{NodeTestbed, condition};
use testbed::wait;

/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(4);

/// A pod as it was when it was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) node: String,
    uid: String,
    labels: BTreeMap<String, String>,
    is_ready: bool,
    is_leaving: bool,
    /// Its quality-of-service class, which determines its control group.
    class: String,
    /// What runs of it.
    containers: Vec<String>,
}

// === impl Pod ===

impl Pod {
    fn of(object: &Value) -> Self {
        let text = |at: &str| {
            let value = object.pointer(at).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let labels = object["metadata"]["labels"].as_object();
        let labels = labels.into_iter().flatten();
        let containers = object["status"]["containerStatuses"].as_array();
        let containers = containers.into_iter().flatten();
        Self {
            name: text("/metadata/name"),
            node: text("/spec/nodeName"),
            uid: text("/metadata/uid"),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            is_ready: condition(object, "Ready").is_ok(),
            is_leaving: !object["metadata"]["deletionTimestamp"].is_null(),
            class: text("/status/qosClass").to_lowercase(),
            containers: containers
                .map(|one| one["containerID"].as_str().unwrap_or_default().to_owned())
                .collect(),
        }
    }

    /// Whether it serves, and is to continue.
    pub(crate) fn serves(&self) -> bool {
        self.is_ready && !self.is_leaving
    }

    /// Whether a selector means it.
    pub(crate) fn has(&self, labels: &serde_json::Map<String, Value>) -> bool {
        let mut all = labels.iter();
        all.all(|(key, value)| {
            self.labels
                .get(key)
                .is_some_and(|own| value == own.as_str())
        })
    }

    /// The name of its component.
    pub(crate) fn component(&self) -> &str {
        let label = "hypershift.openshift.io/control-plane-component";
        self.labels.get(label).map_or("", String::as_str)
    }

    /// Its control group.
    fn group(&self) -> String {
        let class = match self.class.as_str() {
            "guaranteed" => String::new(),
            other => format!("{other}/"),
        };
        format!("{}/kubepods/{class}pod{}", self.node, self.uid)
    }
}

/// All of a control plane.
pub(crate) async fn all(admin: &ApiClient, namespace: &str) -> Result<Vec<Pod>> {
    let mut found: Vec<Pod> = admin
        .list(&PODS.within(namespace))
        .await?
        .iter()
        .filter(|object| object["status"]["phase"] != "Succeeded")
        .map(Pod::of)
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Those of a component.
pub(crate) async fn of(admin: &ApiClient, namespace: &str, component: &str) -> Result<Vec<Pod>> {
    let mut found = all(admin, namespace).await?;
    found.retain(|pod| pod.component() == component);
    Ok(found)
}

/// Ends all processes of a pod at once, and waits until its node has seen that.
pub(crate) async fn crash(testbed: &NodeTestbed, namespace: &str, pod: &Pod) -> Result<()> {
    kill(&testbed.namespaces().groups(), pod)?;
    let what = format!("the node to see that {} has crashed", pod.name);
    wait::until(&what, WITHIN, async || {
        let object = testbed.admin.get(&PODS.named(namespace, &pod.name)).await?;
        let now = Pod::of(&object);
        ensure!(
            !now.is_ready || now.containers != pod.containers,
            "it still runs"
        );
        Ok(())
    })
    .await
}

fn kill(groups: &Groups, pod: &Pod) -> Result<()> {
    let processes = groups.processes(&pod.group())?;
    ensure!(!processes.is_empty(), "nothing runs in {}", pod.group());
    for pid in processes.into_iter().filter_map(Pid::from_raw) {
        // Those that hang on another one go with it.
        let _ = kill_process(pid, Signal::KILL);
    }
    Ok(())
}

/// Deletes pods, without the time that they would like to have, and waits until they are gone.
pub(crate) async fn delete(testbed: &NodeTestbed, namespace: &str, pods: &[Pod]) -> Result<()> {
    for pod in pods {
        let path = PODS.named(namespace, &pod.name);
        let at_once = format!("{path}?gracePeriodSeconds=1");
        testbed.admin.delete(&at_once).await?;
    }
    for pod in pods {
        is_gone(testbed, namespace, pod).await?;
    }
    Ok(())
}

/// Waits until a pod is gone. Another one may have its name.
async fn is_gone(testbed: &NodeTestbed, namespace: &str, pod: &Pod) -> Result<()> {
    let path = PODS.named(namespace, &pod.name);
    wait::until(&format!("the end of {}", pod.name), WITHIN, async || {
        let found = testbed.admin.find(&path).await?;
        let same = found.filter(|found| found["metadata"]["uid"] == pod.uid.as_str());
        ensure!(same.is_none(), "it is there");
        Ok(())
    })
    .await
}

/// Removes the data of an etcd member, as if its disk were new.
pub(crate) async fn empty(testbed: &NodeTestbed, namespace: &str, member: &Pod) -> Result<()> {
    let name = member.name.as_str();
    let command = ["rm", "-rf", "/var/lib/data"];
    let args = ["-n", namespace, "exec", name, "-c", "etcd", "--"];
    testbed
        .kubectl_says(args.into_iter().chain(command))
        .await
        .context("cannot remove the data of a member")?;
    crash(testbed, namespace, member).await
}
