//! Platforms: what differs between them, one directory each.
//!
//! To add one: a directory with `infrastructure.rs` that implements [`Infrastructure`], and a line in [`infrastructure`].

pub(crate) mod agent;
pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod capacity;
pub(crate) mod gcp;
pub(crate) mod ibm_cloud;
pub(crate) mod kubevirt;
pub(crate) mod machines;
pub(crate) mod none;
pub(crate) mod openstack;
pub(crate) mod power_vs;
mod release_image;
#[cfg(test)]
mod tests;

use api::hypershift::v1beta1::platform::PlatformType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use serde_json::Value;

use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;

/// What differs between platforms of a HostedCluster: pure.
pub(crate) trait Infrastructure: Sync {
    /// The infrastructure cluster object, once all that it needs is known. A platform
    /// without one has no Cluster in Cluster API.
    fn cluster(&self, facts: &Facts) -> ClusterIs;

    /// Whether its provider leaves the infrastructure cluster object alone. Then nothing has to be created for it, and it
    /// is ready as soon as it exists.
    fn is_external(&self) -> bool {
        true
    }

    /// The kinds of Cluster API's groups that its controllers watch. `None` for a platform without controllers.
    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>>;

    /// The image of its provider, if it has one. An error has the way to configure it.
    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String>;

    /// Problems of its credentials. `None` for a platform without credentials.
    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let _ = facts;
        None
    }

    /// Secrets and other objects with its credentials, for the control plane's namespace.
    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let _ = facts;
        Vec::new()
    }

    /// Has the pod of its controllers be as they need it: command, arguments, credentials.
    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let _ = (facts, pod);
    }

    /// Rules that its controllers need beside those of Cluster API.
    fn rules(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The kinds of its objects beside machines that its controllers clean up on the infrastructure. A deletion waits for them
    /// while these controllers still run.
    fn cleaned_up(&self, capi: Capi) -> Vec<ApiResource> {
        let _ = capi;
        Vec::new()
    }

    /// The finalizer that its controllers leave on Secrets of the control plane's namespace. A deletion removes it after
    /// [`cleaned_up`](Self::cleaned_up): these controllers stop before the namespace is deleted.
    fn secret_finalizer(&self) -> Option<&'static str> {
        None
    }

    /// Machines that are given up while the cluster is deleted, if there are such.
    fn orphans(&self, facts: &Facts) -> Option<Orphans> {
        let _ = facts;
        None
    }

    /// Objects outside of the control plane's namespace. They are deleted with the cluster.
    fn external_objects(&self, facts: &Facts) -> Vec<Desired> {
        let _ = facts;
        Vec::new()
    }

    /// What earlier versions created in the place of [`external_objects`](Self::external_objects). It is deleted once these
    /// are applied, and with the cluster.
    fn outdated_objects(&self, facts: &Facts) -> Vec<Outside> {
        let _ = facts;
        Vec::new()
    }
}

/// Machines that their provider cannot delete, because the credentials of the cluster are not valid any more.
#[derive(Debug, Clone)]
pub(crate) struct Orphans {
    /// The kind of the machines.
    pub(crate) resource: ApiResource,
    /// The finalizer of the provider.
    pub(crate) finalizer: &'static str,
    /// Whether a machine is one, by its metadata and its other fields.
    pub(crate) is_orphaned: fn(&ObjectMeta, &Value, Timestamp) -> bool,
}

/// An object outside of the control plane's namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outside {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The image of a provider that is not part of the release: from the annotation, or else from the flag.
fn image_given(
    facts: &Facts,
    annotation: &str,
    flag: Option<&String>,
    platform: &str,
) -> Result<Option<String>, String> {
    let given = facts.annotations().get(annotation);
    given.or(flag).cloned().map(Some).ok_or_else(|| {
        format!(
            "no image of the {platform} Cluster API provider is configured: run the operator with \
             --{}-capi-provider-image, or set the annotation {annotation}",
            platform.to_ascii_lowercase()
        )
    })
}

/// Resources that a container requests, and nothing that limits it.
fn requests(amounts: [(&str, &str); 2]) -> ResourceRequirements {
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    ResourceRequirements {
        requests: Some(amounts.into()),
        ..ResourceRequirements::default()
    }
}

/// The infrastructure cluster object.
#[derive(Debug)]
pub(crate) enum ClusterIs {
    /// The desired object.
    Desired(Box<Desired>),
    /// It is not known yet.
    Later,
    /// There is none.
    Absent,
}

/// The code for a platform.
pub(crate) fn infrastructure(platform: PlatformType) -> &'static dyn Infrastructure {
    match platform {
        PlatformType::Aws => &aws::infrastructure::Aws,
        PlatformType::Agent => &agent::infrastructure::Agent,
        PlatformType::Azure => &azure::infrastructure::Azure,
        PlatformType::Gcp => &gcp::infrastructure::Gcp,
        PlatformType::IbmCloud => &ibm_cloud::infrastructure::IbmCloud,
        PlatformType::KubeVirt => &kubevirt::infrastructure::Kubevirt,
        PlatformType::None => &none::infrastructure::None,
        PlatformType::OpenStack => &openstack::infrastructure::OpenStack,
        PlatformType::PowerVs => &power_vs::infrastructure::PowerVs,
    }
}

/// Appends items to an optional list.
pub(crate) fn add<T: serde::de::DeserializeOwned>(list: &mut Option<Vec<T>>, items: Value) {
    let items: Vec<T> = serde_json::from_value(items)
        .expect("invariant: the items are literals in the form of the API");
    list.get_or_insert_default().extend(items);
}
