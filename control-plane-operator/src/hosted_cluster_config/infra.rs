//! The cluster that runs the virtual machines on KubeVirt: the management cluster, or the one of a user's kubeconfig.
//!
//! Other hosted clusters may have objects in the same namespace of it, so an object is only changed if its label names this
//! hosted cluster.

use std::path::Path;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{self, Applier};
use support::kubeconfig;
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;

/// Label with the infrastructure ID of the hosted cluster that an object belongs to.
pub(super) const INFRA_ID: &str = "hypershift.openshift.io/infra-id";
/// Field manager.
const MANAGER: &str = "hosted-cluster-config-operator";
/// Timeout of connections to, and of responses from, another cluster.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The cluster, and the namespace of the virtual machines in it.
pub(super) struct Infra {
    client: Client,
    namespace: String,
    id: String,
}

// === impl Infra ===

impl Infra {
    /// The infrastructure cluster of a HostedControlPlane. None on other platforms.
    pub(super) async fn of(ctx: &Context, hcp: &DynamicObject) -> Result<Option<Self>, Error> {
        let spec = &hcp.data["spec"];
        if spec["platform"]["type"] != "KubeVirt" {
            return Ok(None);
        }
        let infra_id = spec["infraID"].as_str().unwrap_or_default().to_owned();
        let credentials = &spec["platform"]["kubevirt"]["credentials"];
        let (client, namespace) = match credentials["infraNamespace"].as_str() {
            None => (ctx.management.clone(), ctx.namespace.clone()),
            Some(namespace) => {
                let path = ctx.infra_kubeconfig.as_deref();
                let path = path.ok_or_else(|| Error::waiting("--kubevirt-infra-kubeconfig"))?;
                (external(path).await?, namespace.to_owned())
            }
        };
        Ok(Some(Self {
            client,
            namespace,
            id: infra_id,
        }))
    }

    #[cfg(test)]
    pub(super) fn for_tests(client: Client) -> Self {
        Self {
            client,
            namespace: "machines".to_owned(),
            id: "a-x7k2p".to_owned(),
        }
    }

    pub(super) fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, resource)
    }

    /// The value of the label of this cluster's objects.
    pub(super) fn infra_id(&self) -> &str {
        &self.id
    }

    /// The metadata of an object of this cluster.
    pub(super) fn metadata(&self, name: &str) -> Value {
        json!({ "name": name, "namespace": self.namespace, "labels": { INFRA_ID: self.id } })
    }

    /// Applies an object, unless one of its name belongs to another owner: what has no label does unless `is_own` says
    /// otherwise.
    pub(super) async fn apply(
        &self,
        resource: &ApiResource,
        object: Value,
        is_own: impl Fn(&DynamicObject) -> bool,
    ) -> Result<(), Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("{} {}/{name}", resource.kind, self.namespace);
        let found = self.api(resource).get_opt(name).await;
        let found = found.map_err(Error::client(format!("get {what} for virtual machines")))?;
        if let Some(found) = found
            && !self.owns(&found)
            && !is_own(&found)
        {
            return Err(Error::Form {
                object: what,
                problem: format!(
                    "it exists, and its label {INFRA_ID} is not {}: delete it, or give the HostedCluster another \
                     infrastructure namespace",
                    self.id
                ),
            });
        }
        Applier::new(self.client.clone(), MANAGER)
            .ensure_value(resource, object)
            .await?;
        Ok(())
    }

    /// Deletes an object of this cluster. Others of its name are left alone.
    pub(super) async fn delete(&self, resource: &ApiResource, name: &str) -> Result<(), Error> {
        let api = self.api(resource);
        let what = format!(
            "{} {}/{name} for virtual machines",
            resource.kind, self.namespace
        );
        let found = match api.get_opt(name).await {
            Err(error) if is_missing(&error) => None,
            found => found.map_err(Error::client(format!("get {what}")))?,
        };
        let Some(found) = found.filter(|it| self.owns(it)) else {
            return Ok(());
        };
        match apply::delete(&api, &found.metadata).await {
            Err(error) if !is_missing(&error) && !is_conflict(&error) => {
                Err(Error::client(format!("delete {what}"))(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether the label of an object names this hosted cluster.
    pub(super) fn owns(&self, object: &DynamicObject) -> bool {
        let label = object.labels().get(INFRA_ID);
        !self.id.is_empty() && label == Some(&self.id)
    }
}

/// A client of another cluster. Its kubeconfig is a user's.
async fn external(path: &Path) -> Result<Client, Error> {
    let invalid = |problem: String| Error::Form {
        object: format!("kubeconfig {}", path.display()),
        problem: format!("it {problem}"),
    };
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let mut config = kubeconfig::untrusted(&bytes).await.map_err(invalid)?;
    config.connect_timeout = Some(TIMEOUT);
    config.read_timeout = Some(TIMEOUT);
    config.write_timeout = Some(TIMEOUT);
    kubeconfig::client(config).map_err(|_| invalid(kubeconfig::UNUSABLE.to_owned()))
}

/// A kind of the infrastructure cluster.
pub(super) fn kind(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/api/v1/namespaces/machines/services/s";

    fn service(labels: &Value) -> Value {
        let metadata = json!({
            "name": "s", "namespace": "machines", "uid": "u", "resourceVersion": "1", "labels": labels,
        });
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata })
    }

    /// Check T01: another hosted cluster may have the same infrastructure namespace.
    #[tokio::test]
    async fn objects_of_others_are_neither_written_nor_deleted() {
        let services = kind("v1", "Service", "services");
        for labels in [json!({}), json!({ INFRA_ID: "b-x7k2p" })] {
            let get = || Expect::get(PATH).answer(Answer::ok(&service(&labels)));
            let scenario = Scenario::new([get(), get()]);
            let infra = Infra::for_tests(scenario.client());
            let object = json!({ "metadata": infra.metadata("s") });
            let error = infra.apply(&services, object, |_| false).await.unwrap_err();
            assert!(error.to_string().contains("is not a-x7k2p"), "{error}");
            infra.delete(&services, "s").await.unwrap();
            scenario.finish();
        }
        let own = service(&json!({ INFRA_ID: "a-x7k2p" }));
        let delete = Expect::delete(PATH).body(json!({ "preconditions": { "uid": "u" } }));
        let scenario = Scenario::new([Expect::get(PATH).answer(Answer::ok(&own)), delete]);
        let infra = Infra::for_tests(scenario.client());
        infra.delete(&services, "s").await.unwrap();
        scenario.finish();
    }
}
