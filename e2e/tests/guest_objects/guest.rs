//! The hosted cluster: kinds and namespaces that its release brings, and clients.

use std::cell::RefCell;

use anyhow::{Context, Result, ensure};
use control_plane_operator::hosted_cluster_config::resources::desired::{Key, Writer};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch};
use testbed::openshift::{self, Definitions};
use testbed::testbed::Testbed;
use testbed::wait;
use testbed::{crds, service_account::ensure_namespace};

use super::bootstrap::SOON;
use super::pass::Found;

/// The user of the hosted-cluster-config-operator.
const OPERATOR: &str = "system:hosted-cluster-config";
/// Namespaces of the release.
const NAMESPACES: [&str; 16] = [
    "openshift",
    "openshift-cluster-csi-drivers",
    "openshift-cluster-node-tuning-operator",
    "openshift-cluster-storage-operator",
    "openshift-config",
    "openshift-config-managed",
    "openshift-dns-operator",
    "openshift-image-registry",
    "openshift-ingress",
    "openshift-ingress-operator",
    "openshift-kube-apiserver",
    "openshift-kube-apiserver-operator",
    "openshift-marketplace",
    "openshift-monitoring",
    "openshift-network-operator",
    "openshift-controller-manager",
];

/// The hosted cluster.
pub(crate) struct Guest {
    /// The operator's client.
    pub(crate) writer: Writer,
    /// The same user.
    pub(crate) operator: ApiClient,
    /// A cluster administrator.
    pub(crate) user: ApiClient,
    /// What is not as it should be: all of it is reported.
    problems: RefCell<Vec<String>>,
}

// === impl Guest ===

impl Guest {
    /// Installs what the release brings.
    pub(crate) async fn prepare(testbed: &Testbed) -> Result<Self> {
        let step = testbed
            .progress
            .step("installing the kinds of the release's operators");
        let mut definitions = Definitions::read().await?.operators()?;
        definitions.extend(openshift::others().await?);
        crds::install(&testbed.admin, &definitions).await?;
        for namespace in NAMESPACES {
            ensure_namespace(&testbed.admin, namespace).await?;
        }
        step.done_with(&format!("{} CRDs", definitions.len()));
        let kubeconfig = testbed.kubeconfig_of(OPERATOR, None)?;
        let operator = ApiClient::from_kubeconfig(&kubeconfig).await?;
        Ok(Self {
            writer: Writer::new(operator.kube().clone(), "hosted-cluster-config-operator"),
            operator,
            user: testbed.admin.clone(),
            problems: RefCell::default(),
        })
    }

    /// Records that something is not as it should be.
    pub(crate) fn complain(&self, problem: impl Into<String>) {
        self.problems.borrow_mut().push(problem.into());
    }

    /// Records the problem of a check that failed.
    pub(crate) fn check(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.complain(format!("{error:#}"));
        }
    }

    /// Fails with all problems.
    pub(crate) fn finish(&self) -> Result<()> {
        let problems = self.problems.borrow();
        ensure!(problems.is_empty(), "\n{}", problems.join("\n"));
        Ok(())
    }

    /// Deletes the objects of a profile, but for namespaces: without controllers, they would stay for ever.
    pub(crate) async fn clean_up(&self, found: &[Found]) -> Result<()> {
        for Found { value, .. } in found.iter().rev() {
            if value["kind"] == "Namespace" {
                // Users have added labels since it was found.
                let now = self.read(&Key::of(value)).await?.unwrap_or_default();
                let labels = now["metadata"]["labels"].as_object();
                let own = labels.into_iter().flatten();
                let own = own.filter(|(key, _)| *key != "kubernetes.io/metadata.name");
                let none = own.map(|(key, _)| (key.clone(), Value::Null)).collect();
                self.patch(
                    value,
                    json!({ "metadata": { "labels": Value::Object(none) } }),
                )
                .await?;
                continue;
            }
            self.delete(value).await?;
        }
        Ok(())
    }

    /// Changes an object as the operator.
    async fn patch(&self, object: &Value, change: Value) -> Result<Value> {
        let path = self.operator.path_of(object).await?;
        self.operator.patch(&path, Patch::Merge, &change).await
    }

    /// Deletes an object, and its finalizers first.
    pub(crate) async fn delete(&self, object: &Value) -> Result<()> {
        let key = Key::of(object);
        let Ok(path) = self.operator.path_of(object).await else {
            // Its kind is gone.
            return Ok(());
        };
        if object["metadata"]["finalizers"].is_array() {
            let none = json!({ "metadata": { "finalizers": null } });
            self.operator.patch(&path, Patch::Merge, &none).await?;
        }
        self.operator.delete(&path).await?;
        if key.kind == "APIService" {
            // The API server creates those of its own groups again.
            return Ok(());
        }
        wait::until(&format!("{key} to be gone"), SOON, async || {
            match self.writer.read(&key).await? {
                None => Ok(()),
                Some(_) => wait::not_yet("it is there"),
            }
        })
        .await
    }

    /// Reads an object.
    pub(crate) async fn read(&self, key: &Key) -> Result<Option<Value>> {
        let found = self.writer.read(key).await;
        found.with_context(|| format!("cannot read {key}"))
    }
}
