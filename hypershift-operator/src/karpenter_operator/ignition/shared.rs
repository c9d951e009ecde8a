//! What the configurations of all classes have in common: read once for all of them.

use std::sync::Arc;

use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use payload::{Capabilities, PullSecret, Release, Releases};

use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::karpenter_operator::classes::{MANAGED, of_pool};
use crate::karpenter_operator::context::Context;
use crate::karpenter_operator::control_plane::{completed, hosted_cluster, node_release, region};
use crate::karpenter_operator::error::Error;
use crate::karpenter_operator::version;

/// ConfigMaps of the control plane with what all nodes have in common.
const CORE: &str = "hypershift.openshift.io/core-ignition-config=true";
/// The key of their manifests.
const CORE_KEY: &str = "config";
/// The Secret with the certificate authority of the ignition server.
const IGNITION_CA: &str = "ignition-server-ca-cert";
/// Copies of what the HostedCluster refers to.
const SSH_KEY: &str = "ssh-key";
const TRUST_BUNDLE: &str = "user-ca-bundle";

/// The inputs.
pub(super) struct Shared {
    pub(super) cluster: HostedCluster,
    pub(super) types: CapiTypes,
    pub(super) region: String,
    pub(super) channel: Option<String>,
    pub(super) update_service: Option<String>,
    pub(super) namespace: ControlPlaneNamespace,
    /// Reads releases as nodes see them.
    pub(super) releases: Releases,
    pub(super) release: Arc<Release>,
    pub(super) versions: version::Cluster,
    pub(super) capabilities: Capabilities,
    pub(super) operator_image: String,
    pub(super) pull_secret: PullSecret,
    pub(super) pull_secret_bytes: Vec<u8>,
    pub(super) trust_bundle: Option<String>,
    pub(super) ssh_key: Option<String>,
    pub(super) ignition_ca: Option<Vec<u8>>,
    pub(super) core: Vec<(String, Option<String>)>,
    pub(super) secrets: Vec<Secret>,
    pub(super) now: Timestamp,
}

// === impl Shared ===

impl Shared {
    pub(super) async fn read(
        ctx: &Context,
        hcp: &HostedControlPlane,
        namespace: ControlPlaneNamespace,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let spec = &hcp.spec;
        let (pull_secret, pull_secret_bytes) = ctx.pull_secret().await?;
        let all_releases = ctx.releases(hcp);
        let labels = all_releases
            .labels(&ctx.settings.own_image, &pull_secret)
            .await;
        let capabilities = match labels {
            Ok(labels) => Capabilities::of_labels(&labels),
            Err(error) if error.is_in_progress() => return Err(Error::Release(error)),
            Err(_) => Capabilities::unknown(),
        };
        let releases = all_releases.for_user();
        let release = releases.get(node_release(hcp), &pull_secret).await;
        let release = release.map_err(Error::Release)?;
        let core = ctx.config_maps(CORE).await?;
        let networking = spec.networking.as_ref();
        Ok(Self {
            cluster: hosted_cluster(hcp, &ctx.ignition_endpoint)?,
            types: ctx.capi.types(),
            region: region(hcp).to_owned(),
            channel: spec.channel.clone().filter(|it| !it.is_empty()),
            update_service: spec.update_service.clone().filter(|it| !it.is_empty()),
            versions: version::Cluster {
                release: release.version.clone(),
                completed: completed(hcp),
                network: networking.map(|it| it.network_type).unwrap_or_default(),
            },
            trust_bundle: match &spec.additional_trust_bundle {
                Some(_) => {
                    let found = ctx.get::<ConfigMap>(TRUST_BUNDLE).await?;
                    found.and_then(|it| it.data?.remove("ca-bundle.crt"))
                }
                None => None,
            },
            ssh_key: if spec.ssh_key.name.is_empty() {
                None
            } else {
                let key = ctx.key(SSH_KEY, "id_rsa.pub").await?;
                key.and_then(|it| String::from_utf8(it).ok())
            },
            ignition_ca: ctx.key(IGNITION_CA, "tls.crt").await?,
            core: core.into_iter().map(source).collect(),
            secrets: secrets(ctx).await?,
            namespace,
            releases,
            release,
            capabilities,
            operator_image: ctx.settings.own_image.clone(),
            pull_secret,
            pull_secret_bytes,
            now,
        })
    }
}

/// A ConfigMap's name and its manifests.
fn source(map: ConfigMap) -> (String, Option<String>) {
    let name = map.name_any();
    (name, map.data.and_then(|mut it| it.remove(CORE_KEY)))
}

/// The Secrets of classes, and of others the names: those of NodePools are called alike.
async fn secrets(ctx: &Context) -> Result<Vec<Secret>, Error> {
    let (label, value) = MANAGED;
    let mut secrets = ctx.secrets(&format!("{label}={value}")).await?;
    secrets.retain(|it| is_ours(it.annotations().get(NODE_POOL.key()), &ctx.namespace));
    let api: Api<Secret> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(Error::read(format!("Secrets of {}", ctx.namespace)))?;
    let others = listed
        .items
        .into_iter()
        .filter(|it| !is_ours(it.annotations().get(NODE_POOL.key()), &ctx.namespace));
    secrets.extend(others.map(|it| Secret {
        metadata: it.metadata,
        ..Secret::default()
    }));
    Ok(secrets)
}

fn is_ours(reference: Option<&String>, namespace: &str) -> bool {
    reference.is_some_and(|it| of_pool(it, namespace).is_some())
}
