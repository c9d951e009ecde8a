//! HostedClusters with every combination of annotations and observed API groups.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use api::annotations::{
    MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, Protocol, SCOPE,
};
use api::group::CapiTypes;
use ownership::{Evaluation, ObservedGroups, Owner, evaluate};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::conditions;
use testbed::fixtures;
use testbed::service_account::ensure_control_plane_namespace;

/// Namespace of the hosted clusters.
pub(crate) const NAMESPACE: &str = "clusters";
pub(crate) const HOSTED_CLUSTERS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedclusters");

/// A HostedCluster as it is created, and the API groups of its objects.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) observed_groups: ObservedGroups,
}

// === impl Member ===

impl Member {
    /// Annotations by letters: `p`rivate, `l`egacy, `i`n progress, `f`ailed.
    pub(crate) fn new(name: &str, letters: &str, observed_groups: ObservedGroups) -> Self {
        let known = [
            ('p', PRIVATE_CAPI_TYPES, "true"),
            ('l', SCOPE, "legacy"),
            ('i', MIGRATION_IN_PROGRESS, "true"),
            ('f', MIGRATION_FAILED, "quiesce-timeout"),
        ];
        let annotations = known
            .iter()
            .filter(|(letter, ..)| letters.contains(*letter))
            .map(|(_, key, value)| ((*key).to_owned(), (*value).to_owned()));
        Self {
            name: name.to_owned(),
            annotations: annotations.collect(),
            observed_groups,
        }
    }

    /// All 16 combinations of annotations with all observed API groups.
    pub(crate) fn all() -> Vec<Self> {
        let observed_groups = [
            ("none", ObservedGroups::None),
            ("standard", ObservedGroups::Standard),
            ("private", ObservedGroups::Private),
            ("both", ObservedGroups::Both),
        ];
        let letters = (0..16_u8).map(|bits| {
            let chosen = "plif".chars().enumerate();
            let chosen = chosen.filter(|(bit, _)| bits & (1 << bit) != 0);
            chosen.map(|(_, letter)| letter).collect::<String>()
        });
        letters
            .flat_map(|letters| {
                observed_groups.map(|(name, observed_groups)| {
                    Self::new(&format!("x{letters}-{name}"), &letters, observed_groups)
                })
            })
            .collect()
    }

    /// The evaluation that operators should get.
    pub(crate) fn evaluation(&self) -> Evaluation {
        evaluate(&Protocol::read(&self.annotations), self.observed_groups)
    }

    pub(crate) fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, &self.name)
    }

    /// Creates the objects of its control plane, then the HostedCluster.
    pub(crate) async fn create(&self, admin: &ApiClient) -> Result<()> {
        let types: &[CapiTypes] = match self.observed_groups {
            ObservedGroups::None => &[],
            ObservedGroups::Standard => &[CapiTypes::Standard],
            ObservedGroups::Private => &[CapiTypes::Private],
            ObservedGroups::Both => &[CapiTypes::Standard, CapiTypes::Private],
        };
        for capi_types in types {
            self.put(admin, *capi_types).await?;
        }
        let cluster = json!({
            "apiVersion": HOSTED_CLUSTERS.api_version,
            "kind": "HostedCluster",
            "metadata": { "name": self.name, "annotations": self.annotations },
            "spec": example()?,
        });
        admin
            .create(&HOSTED_CLUSTERS.within(NAMESPACE), &cluster)
            .await?;
        Ok(())
    }

    /// Creates a CAPI Cluster in its control plane namespace.
    pub(crate) async fn put(&self, admin: &ApiClient, capi_types: CapiTypes) -> Result<()> {
        let namespace = ensure_control_plane_namespace(admin, NAMESPACE, &self.name).await?;
        let object = json!({
            "apiVersion": group(capi_types),
            "kind": "Cluster",
            "metadata": { "name": self.name, "namespace": namespace },
            "spec": {
                "infrastructureRef": {
                    "apiGroup": format!("infrastructure.{}", group(capi_types).trim_end_matches("/v1beta2")),
                    "kind": "AWSCluster",
                    "name": self.name,
                },
            },
        });
        let path = Resource::new(group(capi_types), "clusters").within(&namespace);
        admin.create(&path, &object).await?;
        Ok(())
    }

    /// Deletes that Cluster.
    pub(crate) async fn take(&self, admin: &ApiClient, capi_types: CapiTypes) -> Result<()> {
        let namespace = format!("{NAMESPACE}-{}", self.name);
        let path = Resource::new(group(capi_types), "clusters").named(&namespace, &self.name);
        admin.delete(&path).await
    }

    /// Its annotations now.
    pub(crate) async fn annotations(&self, admin: &ApiClient) -> Result<BTreeMap<String, String>> {
        let found = admin.get(&self.path()).await?;
        let annotations = found["metadata"]["annotations"].clone();
        Ok(serde_json::from_value(annotations).unwrap_or_default())
    }

    /// Status and reason of its condition now, if it has one.
    pub(crate) async fn condition(&self, admin: &ApiClient) -> Result<Option<(String, String)>> {
        let found = admin.get(&self.path()).await?;
        let Some(condition) = conditions::find(&found, "PrivateCAPITypes") else {
            return Ok(None);
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let status = text(&condition["status"]).context("no status")?;
        let reason = text(&condition["reason"]).context("no reason")?;
        Ok(Some((status, reason)))
    }

    /// The condition that its owner should set.
    pub(crate) fn expected_condition(&self) -> Option<(String, String)> {
        let evaluation = self.evaluation();
        let status = match evaluation.owner {
            Owner::New => "True",
            Owner::Legacy => "False",
            Owner::Migration | Owner::Undecided => "Unknown",
        };
        let failed = self.annotations.contains_key(MIGRATION_FAILED);
        let reason = match (evaluation.invalid, evaluation.owner) {
            (Some(invalid), _) => invalid.reason(),
            (None, Owner::New) => "PrivateTypes",
            (None, Owner::Legacy) if failed => "MigrationFailed",
            (None, Owner::Legacy) => "LegacyTypes",
            (None, Owner::Migration | Owner::Undecided) => return None,
        };
        Some((status.to_owned(), reason.to_owned()))
    }
}

/// The spec of the HostedCluster in the examples.
fn example() -> Result<Value> {
    let file = fixtures::install_manifests().join("../examples/hosted-cluster.yaml");
    let objects = fixtures::load(&file)?;
    let cluster = objects
        .into_iter()
        .find(|object| object["kind"] == "HostedCluster");
    Ok(cluster.context("no example of a HostedCluster")?["spec"].clone())
}

fn group(capi_types: CapiTypes) -> &'static str {
    match capi_types {
        CapiTypes::Standard => "cluster.x-k8s.io/v1beta2",
        CapiTypes::Private => "cluster.hypershift.openshift.io/v1beta2",
    }
}
