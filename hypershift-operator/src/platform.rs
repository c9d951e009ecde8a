//! Infrastructures that nodes run on: what differs between them, one directory each.
//!
//! To add one: a directory with `infrastructure.rs` that implements [`Infrastructure`], and a line in [`infrastructure`].

pub(crate) mod agent;
pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod kubevirt;
pub(crate) mod none;
pub(crate) mod power_vs;

use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::Value;

use crate::hosted_cluster::facts::Facts;
use crate::hosted_cluster::wanted::Wanted;

/// What a platform needs for a hosted cluster: pure.
pub(crate) trait Infrastructure: Sync {
    /// The object that stands for the cluster's network and the like, once all that it needs is known. A platform
    /// without one has no Cluster in Cluster API.
    fn cluster(&self, facts: &Facts) -> ClusterIs;

    /// The image of its controllers, if it has any. An error says where to give one.
    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String>;

    /// What is missing of its credentials. `None` for a platform that has none.
    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let _ = facts;
        None
    }

    /// Secrets with its credentials, for the control plane's namespace.
    fn secrets(&self, facts: &Facts) -> Vec<Wanted> {
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

    /// Objects outside of the control plane's namespace. They are deleted with the cluster.
    fn elsewhere(&self, facts: &Facts) -> Vec<Wanted> {
        let _ = facts;
        Vec::new()
    }
}

/// The image of controllers that no release has: of the annotation, else of the flag.
fn image_given(
    facts: &Facts,
    annotation: &str,
    flag: Option<&String>,
    platform: &str,
) -> Result<Option<String>, String> {
    let given = facts.annotations().get(annotation);
    given.or(flag).cloned().map(Some).ok_or_else(|| {
        format!(
            "there is no image of Cluster API's provider for {platform}: run the operator with \
             --{}-capi-provider-image, or set the annotation {annotation}",
            platform.to_ascii_lowercase()
        )
    })
}

/// The object that stands for a cluster on its infrastructure.
#[derive(Debug)]
pub(crate) enum ClusterIs {
    /// As it is wanted.
    Wanted(Box<Wanted>),
    /// It comes when something is known that is not yet.
    Later,
    /// There is none.
    Absent,
}

/// A platform that this operator cannot run clusters on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.platform.type is {name}, which this operator cannot run: create the cluster on AWS, Agent, KubeVirt or None"
)]
pub(crate) struct Unsupported {
    name: String,
}

/// The code for a platform.
pub(crate) fn infrastructure(
    platform: PlatformType,
) -> Result<&'static dyn Infrastructure, Unsupported> {
    match platform {
        PlatformType::Aws => Ok(&aws::infrastructure::Aws),
        PlatformType::Agent => Ok(&agent::infrastructure::Agent),
        PlatformType::KubeVirt => Ok(&kubevirt::infrastructure::Kubevirt),
        PlatformType::None => Ok(&none::infrastructure::None),
        PlatformType::Azure | PlatformType::IbmCloud | PlatformType::PowerVs => Err(Unsupported {
            name: format!("{platform:?}"),
        }),
    }
}

/// Adds items to a list that may not be there, in the form of the API.
pub(crate) fn add<T: serde::de::DeserializeOwned>(list: &mut Option<Vec<T>>, items: Value) {
    let items: Vec<T> = serde_json::from_value(items)
        .expect("invariant: the items are written here, in the form that the API has");
    list.get_or_insert_default().extend(items);
}
