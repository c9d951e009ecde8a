//! Backups of etcd: carries out HCPEtcdBackups, which are part of the technology preview.
//!
//! ```text
//!  HCPEtcdBackup ──> observe: HostedCluster, etcd, Jobs, Secret ──> plan (pure) ──> Job in the operator's namespace
//!        ^                                                                            │ fetch-certs, snapshot, upload
//!        └── status, HostedControlPlane, HostedCluster <── URL, the termination message ┘
//! ```
//!
//! A backup belongs to a tenant, and the Job runs in the operator's namespace with credentials of the administrator.
//! Therefore the HostedCluster is found by the owner of the namespace, a Secret has to name the tenants that may use it,
//! and only the container that needs a token or the credentials has them.

mod control;
mod credentials;
mod images;
mod job;
mod manifest;
mod objects;
mod observe;
mod plan;
mod requests;
mod retention;
mod status;

use std::sync::Arc;

use api::features::FeatureSet;
use support::shutdown::Drain;

use crate::context::Context;

/// The field manager of everything that is written here.
const MANAGER: &str = "hypershift-operator-etcd-backup";

/// Reconciles until the shutdown begins, if the operator has the technology preview. Reconciles in flight are completed.
pub(crate) async fn run(ctx: &Arc<Context>, drain: Drain) {
    let preview = FeatureSet::TechPreviewNoUpgrade;
    if ctx.cloud.features.includes(preview) {
        control::run(ctx, drain).await;
    }
}
