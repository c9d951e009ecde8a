//! Hosted clusters as migrations see them: which are meant, and where each stands.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use api::annotations::{
    MIGRATION_ATTEMPTS, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD, MIGRATION_ROLLBACK, Protocol,
    ROLLBACK_REQUESTED,
};
use api::conditions::{ClusterCondition, find};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use ownership::MigrationState;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::Usage;
use crate::hosted::{FIELD_MANAGER, Hosted, refused};

/// Which hosted clusters are meant.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,

    /// Namespace of the hosted cluster [default: clusters; with --all, all namespaces]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// All hosted clusters for which it makes sense
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
    /// It is left alone.
    pub(super) held: bool,
    /// The way back is asked for.
    pub(super) unwanted: bool,
}

// === impl Chosen ===

impl Chosen {
    /// The clusters that are meant. Naming none is wrong usage, unless `all` is the default.
    pub(super) async fn find(
        &self,
        hosted: &Hosted,
        all_by_default: bool,
    ) -> anyhow::Result<Vec<HostedCluster>> {
        if let Some(name) = &self.name {
            let namespace = self.namespace.as_deref().unwrap_or("clusters");
            return Ok(vec![hosted.cluster(namespace, name).await?]);
        }
        if !self.all && !all_by_default {
            return Err(Usage::new(&"say which: --name NAME, or --all").into());
        }
        let client = hosted.client().clone();
        let api: Api<HostedCluster> = match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let list = api.list(&ListParams::default()).await;
        Ok(list
            .map_err(|error| refused(&error).context("cannot list HostedClusters"))?
            .items)
    }

    /// Whether all are meant, so that those for which it makes no sense are passed over.
    pub(super) fn is_all(&self) -> bool {
        self.name.is_none()
    }
}

// === impl Line ===

impl Line {
    pub(super) fn of(cluster: &HostedCluster) -> Self {
        let status = cluster.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice());
        let condition = find(
            conditions.unwrap_or_default(),
            ClusterCondition::PrivateCapiTypes,
        );
        let told = condition.map(|it| (it.reason.as_str(), it.message.as_str()));
        Self::new(&cluster.metadata, told.unwrap_or_default())
    }

    /// From what the cluster is annotated with, and reason and message of its condition.
    fn new(metadata: &ObjectMeta, (reason, message): (&str, &str)) -> Self {
        let none = BTreeMap::new();
        let annotations = metadata.annotations.as_ref().unwrap_or(&none);
        let annotation = |key: &str| annotations.get(key).cloned();
        let protocol = Protocol::read(annotations);
        let told = annotation(MIGRATION_FAILURE_MESSAGE);
        let state = MigrationState::by_annotations(&protocol);
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            state,
            reason: match &protocol.failed {
                Some(reason) if state == MigrationState::Failed => reason.clone(),
                Some(_) | None => reason.to_owned(),
            },
            message: told
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
    cluster: &HostedCluster,
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
            bail!("HostedCluster {namespace}/{name} was changed meanwhile: try again")
        }
        Err(error) => Err(refused(&error))
            .with_context(|| format!("cannot annotate HostedCluster {namespace}/{name}")),
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
