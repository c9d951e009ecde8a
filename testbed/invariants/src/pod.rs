//! Pods, and the templates of pods in workloads: both must hold the same.

use serde_json::Value;

use crate::{Finding, Invariant, Observed, items, text};

/// The label with the component that a pod belongs to.
const COMPONENT: &str = "hypershift.openshift.io/control-plane-component";
/// Where kinds of workloads have the template of their pods.
const TEMPLATES: [(&str, &str); 4] = [
    ("Deployment", "/spec/template"),
    ("StatefulSet", "/spec/template"),
    ("Job", "/spec/template"),
    ("CronJob", "/spec/jobTemplate/spec/template"),
];
/// Apps whose name is not that of their Deployment.
const APPS: [(&str, &str); 1] = [("capi-provider-controller-manager", "capi-provider")];
/// Pods of virtual machines: workers, which are in the namespace of the control plane and no part of it.
const MACHINES: [&str; 2] = ["virt-launcher", "vmi-console-debug"];

/// A pod, or the template of a workload's pods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pod<'a> {
    kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) metadata: &'a Value,
    pub(crate) spec: &'a Value,
    /// Null for a template.
    pub(crate) status: &'a Value,
}

/// A container and how it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) value: &'a Value,
    /// Whether it runs as long as its pod: a main container or a native sidecar.
    pub(crate) stays: bool,
    /// Whether it is a main container.
    pub(crate) is_main: bool,
}

/// Whether a pod is no part of the control plane in whose namespace it is.
pub fn is_exempt(pod: &Value) -> bool {
    Pod::of(pod).is_some_and(|pod| MACHINES.contains(&pod.component()))
}

// === impl Pod ===

impl<'a> Pod<'a> {
    fn of(object: &'a Value) -> Option<Self> {
        let kind = text(&object["kind"]);
        let name = text(&object["metadata"]["name"]);
        if kind == "Pod" {
            return Some(Self {
                kind,
                name,
                metadata: &object["metadata"],
                spec: &object["spec"],
                status: &object["status"],
            });
        }
        let (_, path) = TEMPLATES.iter().find(|(of, _)| *of == kind)?;
        let template = object.pointer(path)?;
        Some(Self {
            kind,
            name,
            metadata: &template["metadata"],
            spec: &template["spec"],
            status: &Value::Null,
        })
    }

    pub(crate) fn object(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    pub(crate) fn is_template(&self) -> bool {
        self.kind != "Pod"
    }

    pub(crate) fn label(&self, key: &str) -> &'a str {
        text(&self.metadata["labels"][key])
    }

    /// The component that it belongs to, by its labels; its own name if they do not say.
    pub(crate) fn component(&self) -> &'a str {
        // Pods of virtual machines have all labels of their machine, a name among them.
        let labels = [COMPONENT, "kubevirt.io", "app", "name", "k8s-app"];
        let found = labels.iter().map(|key| self.label(key));
        let name = found
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or(self.name);
        let app = APPS.iter().find(|(app, _)| *app == name);
        app.map_or(name, |(_, component)| component)
    }

    /// All containers, init containers first.
    pub(crate) fn containers(&self) -> impl Iterator<Item = Container<'a>> {
        let first = items(&self.spec["initContainers"]).iter();
        let first = first.map(|value| Container {
            value,
            stays: value["restartPolicy"] == "Always",
            is_main: false,
        });
        let main = items(&self.spec["containers"]).iter();
        first.chain(main.map(|value| Container {
            value,
            stays: true,
            is_main: true,
        }))
    }

    /// A finding about the pod.
    pub(crate) fn finding(&self, invariant: Invariant, problem: impl Into<String>) -> Finding {
        Finding {
            names: vec![self.component().to_owned(), self.name.to_owned()],
            ..Finding::new(invariant, self.object(), problem)
        }
    }

    /// A finding about one of its containers.
    pub(crate) fn finding_in(
        &self,
        container: &str,
        invariant: Invariant,
        problem: impl AsRef<str>,
    ) -> Finding {
        let problem = format!("container {container}: {}", problem.as_ref());
        let mut finding = self.finding(invariant, problem);
        finding.names.push(container.to_owned());
        finding
    }
}

// === impl Container ===

impl<'a> Container<'a> {
    pub(crate) fn name(&self) -> &'a str {
        text(&self.value["name"])
    }
}

// === impl Observed ===

impl Observed {
    /// The name of the control plane's namespace.
    pub(crate) fn namespace(&self) -> &str {
        text(&self.namespace["metadata"]["name"])
    }

    /// Pods and templates of the control plane.
    pub(crate) fn pods(&self) -> impl Iterator<Item = Pod<'_>> {
        let pods = self.objects.iter().filter_map(Pod::of);
        pods.filter(|pod| !MACHINES.contains(&pod.component()))
    }

    /// Pods of the operators.
    pub(crate) fn operators(&self) -> impl Iterator<Item = Pod<'_>> {
        self.operator_pods.iter().filter_map(Pod::of)
    }

    /// The objects of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects
            .iter()
            .filter(move |object| object["kind"] == kind)
    }

    /// Checks each container of each pod.
    pub(crate) fn each_container(
        &self,
        invariant: Invariant,
        problem: impl Fn(&Pod<'_>, &Container<'_>) -> Option<String>,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for pod in self.pods() {
            for container in pod.containers() {
                if let Some(problem) = problem(&pod, &container) {
                    findings.push(pod.finding_in(container.name(), invariant, problem));
                }
            }
        }
        findings
    }

    /// Checks each pod.
    pub(crate) fn each_pod(
        &self,
        invariant: Invariant,
        problem: impl Fn(&Pod<'_>) -> Option<String>,
    ) -> Vec<Finding> {
        let found = self
            .pods()
            .filter_map(|pod| Some(pod.finding(invariant, problem(&pod)?)));
        found.collect()
    }
}
