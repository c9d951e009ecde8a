//! The hosted clusters that a command is about, and the state of their migrations.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use api::annotations::{
    MIGRATION_ATTEMPTS, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD, MIGRATION_ROLLBACK, Protocol,
    ROLLBACK_REQUESTED,
};
use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, Patch, PatchParams};
use ownership::MigrationState;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::Usage;
use crate::hosted::{FIELD_MANAGER, Hosted, refused};
use crate::listed;

/// Which hosted clusters.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,

    /// Namespace of the hosted cluster [default: clusters; with --all, all namespaces]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// All hosted clusters to which the command applies
    #[arg(long)]
    all: bool,
}

/// One hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(rename = "standing", serialize_with = "name")]
    pub(super) state: MigrationState,
    /// The phase, or why it failed.
    pub(super) reason: String,
    pub(super) message: String,
    /// How often it failed, and when it last did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<String>,
    /// It is not migrated.
    pub(super) held: bool,
    /// A rollback is requested.
    pub(super) unwanted: bool,
}

// === impl Chosen ===

impl Chosen {
    /// The chosen clusters, untyped: what is needed of them, metadata and one condition, every version has. Choosing none is
    /// a usage error, unless all are the default.
    pub(super) async fn find(
        &self,
        hosted: &Hosted,
        all_by_default: bool,
    ) -> anyhow::Result<Vec<DynamicObject>> {
        if let Some(name) = &self.name {
            let namespace = self.namespace.as_deref().unwrap_or("clusters");
            return Ok(vec![hosted.cluster_object(namespace, name).await?]);
        }
        if !self.all && !all_by_default {
            return Err(Usage::new(&"choose hosted clusters: --name NAME, or --all").into());
        }
        let client = hosted.client().clone();
        let list = listed::objects::<HostedCluster>(client, self.namespace.as_deref()).await;
        list.map_err(|error| refused(&error).context("failed to list HostedClusters"))
    }

    /// Whether all are chosen, so that clusters to which the command does not apply are skipped.
    pub(super) fn is_all(&self) -> bool {
        self.name.is_none()
    }
}

// === impl Line ===

impl Line {
    pub(super) fn of(cluster: &DynamicObject) -> Self {
        let conditions = cluster.data["status"]["conditions"].as_array();
        let about = ClusterCondition::PrivateCapiTypes.as_str();
        let mut conditions = conditions.into_iter().flatten();
        let condition = conditions.find(|condition| condition["type"] == about);
        let text = |key: &str| {
            condition
                .and_then(|it| it[key].as_str())
                .unwrap_or_default()
        };
        Self::new(&cluster.metadata, (text("reason"), text("message")))
    }

    /// From the annotations of the cluster, and reason and message of its condition.
    fn new(metadata: &ObjectMeta, (reason, message): (&str, &str)) -> Self {
        let none = BTreeMap::new();
        let annotations = metadata.annotations.as_ref().unwrap_or(&none);
        let annotation = |key: &str| annotations.get(key).cloned();
        let protocol = Protocol::read(annotations);
        let failure = annotation(MIGRATION_FAILURE_MESSAGE);
        let state = MigrationState::by_annotations(&protocol);
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            state,
            reason: match &protocol.failed {
                Some(reason) if state == MigrationState::Failed => reason.clone(),
                Some(_) | None => reason.to_owned(),
            },
            message: failure
                .filter(|_| state == MigrationState::Failed)
                .unwrap_or_else(|| message.to_owned()),
            attempts: annotation(MIGRATION_ATTEMPTS),
            held: annotation(MIGRATION_HOLD).as_deref() == Some("true"),
            unwanted: annotation(MIGRATION_ROLLBACK).as_deref() == Some(ROLLBACK_REQUESTED),
        }
    }

    /// `namespace/name`.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The state as it is printed.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn name<S: Serializer>(state: &MigrationState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.name())
}

/// Sets and removes annotations, if the cluster is still as it was read.
pub(super) async fn annotate(
    hosted: &Hosted,
    cluster: &DynamicObject,
    annotations: &BTreeMap<&str, Option<&str>>,
) -> anyhow::Result<()> {
    let metadata = &cluster.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let patch = json!({ "metadata": {
        "resourceVersion": metadata.resource_version,
        "annotations": annotations,
    }});
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api = hosted.clusters(namespace);
    let written = api
        .patch_metadata(name, &params, &Patch::Merge(&patch))
        .await;
    match written {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            bail!("HostedCluster {namespace}/{name} was modified meanwhile: run the command again")
        }
        Err(error) => Err(refused(&error))
            .with_context(|| format!("failed to annotate HostedCluster {namespace}/{name}")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use api::annotations::{MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};

    use super::*;

    /// A cluster with these annotations.
    pub(in super::super) fn line(annotations: &[(&str, &str)]) -> Line {
        let annotations: BTreeMap<_, _> = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let metadata = ObjectMeta {
            namespace: Some("clusters".to_owned()),
            name: Some("one".to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        Line::new(&metadata, ("", ""))
    }

    #[test]
    fn a_cluster_that_does_not_deserialize_has_a_state() {
        let condition =
            json!({ "type": "PrivateCAPITypes", "reason": "LegacyTypes", "message": "m" });
        let odd = json!({
            "metadata": { "namespace": "clusters", "name": "odd", "annotations": { SCOPE: "legacy" } },
            "spec": { "release": 1 },
            "status": { "conditions": [condition] },
        });
        let odd: DynamicObject = serde_json::from_value(odd).unwrap();
        assert!(listed::typed::<HostedCluster>(&odd).is_err());
        let line = Line::of(&odd);
        assert_eq!(
            (line.id().as_str(), line.state),
            ("clusters/odd", MigrationState::Pending)
        );
        assert_eq!(
            (line.reason.as_str(), line.message.as_str()),
            ("LegacyTypes", "m")
        );
    }

    #[test]
    fn annotations_decide_the_state() {
        let legacy = (SCOPE, "legacy");
        for (annotations, state) in [
            (&[][..], MigrationState::Pending),
            (&[legacy], MigrationState::Pending),
            (
                &[legacy, (MIGRATION_IN_PROGRESS, "true")],
                MigrationState::Active,
            ),
            (
                &[legacy, (MIGRATION_FAILED, "conflict")],
                MigrationState::Failed,
            ),
            (&[(PRIVATE_CAPI_TYPES, "true")], MigrationState::Done),
            (
                &[
                    (PRIVATE_CAPI_TYPES, "true"),
                    (MIGRATION_IN_PROGRESS, "true"),
                ],
                MigrationState::Active,
            ),
        ] {
            assert_eq!(line(annotations).state, state, "{annotations:?}");
        }
        let failed = line(&[
            legacy,
            (MIGRATION_FAILED, "conflict"),
            (MIGRATION_FAILURE_MESSAGE, "Machine a/b was changed"),
        ]);
        assert_eq!(failed.reason, "conflict");
        assert_eq!(failed.message, "Machine a/b was changed");
    }
}
