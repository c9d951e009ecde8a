//! The etcd members: peer discovery, storage, and restore from a snapshot.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::etcd::ManagedEtcdStorageSpec;
use control_plane_component::{Context, Result, Workload};
use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, PodSpec, ResourceRequirements,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::has_several_members;
use crate::components::edit::{args, container, env, pod};

/// Condition of a hosted control plane whose etcd has been restored: the snapshot is ignored from then on.
const RESTORED: &str = "EtcdSnapshotRestored";
const RESTORE: &str = include_str!("restore.sh");

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let tls = context.tls();
    let spec = pod(workload);
    for name in ["etcd", "reset-member"] {
        let container = container(spec, name)?;
        env(container, "ETCD_INITIAL_CLUSTER", initial_cluster(context));
    }
    let etcd = container(spec, "etcd")?;
    env(etcd, "ETCD_TLS_MIN_VERSION", tls.etcd_version());
    if !tls.ciphers.is_empty() {
        env(etcd, "ETCD_CIPHER_SUITES", tls.ciphers.join(","));
    }
    let metrics = container(spec, "etcd-metrics")?;
    args(
        metrics,
        [format!("--tls-min-version={}", tls.etcd_version())],
    );
    args(metrics, tls.cipher_flag("--listen-cipher-suites"));
    let health = container(spec, "healthz")?;
    args(
        health,
        [format!("--listen-tls-min-version={}", tls.etcd_version())],
    );
    args(health, tls.cipher_flag("--listen-cipher-suites"));
    if listens_on_ipv6(context) {
        listen_on_ipv6(spec)?;
    }
    if has_several_members(context) {
        spec.containers.push(defrag_container());
    }
    let storage = context
        .spec()
        .etcd
        .managed
        .as_ref()
        .map(|managed| &managed.storage);
    if let Some(url) = storage.and_then(|storage| snapshot(context, storage)) {
        let init = spec.init_containers.get_or_insert_default();
        init.push(restore_container(context, url));
    }
    if let (Some(storage), Workload::StatefulSet(set)) = (storage, workload) {
        data(storage, set.spec.get_or_insert_default());
    }
    Ok(())
}

/// Whether pods have IPv6 addresses first.
fn listens_on_ipv6(context: &Context<'_>) -> bool {
    let networks = context.cluster_cidrs();
    networks.first().is_some_and(|cidr| cidr.contains(':'))
}

/// Replaces the IPv4 addresses of the manifest.
fn listen_on_ipv6(spec: &mut PodSpec) -> Result<()> {
    let etcd = container(spec, "etcd")?;
    for (name, url) in [
        ("ETCD_LISTEN_PEER_URLS", "https://[$(POD_IP)]:2380"),
        (
            "ETCD_LISTEN_CLIENT_URLS",
            "https://[$(POD_IP)]:2379,https://localhost:2379",
        ),
        ("ETCD_LISTEN_METRICS_URLS", "https://[::]:2382"),
    ] {
        env(etcd, name, url);
    }
    let metrics = container(spec, "etcd-metrics")?;
    for flag in metrics.args.iter_mut().flatten() {
        match flag.split_once('=') {
            Some(("--listen-addr", _)) => "--listen-addr=[::1]:2383".clone_into(flag),
            Some(("--metrics-addr", _)) => "--metrics-addr=https://[::]:2381".clone_into(flag),
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// The initial cluster: all members with their peer URLs.
fn initial_cluster(context: &Context<'_>) -> String {
    let members = if context.is_single_replica() { 1 } else { 3 };
    let namespace = context.namespace();
    let members: Vec<_> = (0..members)
        .map(|member| {
            format!("etcd-{member}=https://etcd-{member}.etcd-discovery.{namespace}.svc:2380")
        })
        .collect();
    members.join(",")
}

/// Sets size and storage class of the volumes. They are immutable after creation.
fn data(storage: &ManagedEtcdStorageSpec, set: &mut StatefulSetSpec) {
    let Some(volume) = &storage.persistent_volume else {
        return;
    };
    for claim in set.volume_claim_templates.iter_mut().flatten() {
        let spec = claim.spec.get_or_insert_default();
        spec.storage_class_name
            .clone_from(&volume.storage_class_name);
        let requests = spec
            .resources
            .get_or_insert_default()
            .requests
            .get_or_insert_default();
        requests.insert("storage".to_owned(), volume.size.clone().into());
    }
}

/// URL of the snapshot to restore, until it is restored.
fn snapshot<'a>(context: &Context<'_>, storage: &'a ManagedEtcdStorageSpec) -> Option<&'a str> {
    let conditions = context
        .hcp
        .status
        .iter()
        .flat_map(|status| &status.conditions);
    let restored = conditions
        .into_iter()
        .any(|condition| condition.type_ == RESTORED && condition.status == "True");
    if restored {
        return None;
    }
    storage.restore_snapshot_url.first().map(String::as_str)
}

/// The container that defragments etcd.
fn defrag_container() -> Container {
    Container {
        name: "etcd-defrag".to_owned(),
        image: Some("controlplane-operator".to_owned()),
        command: Some(vec![
            "/usr/bin/control-plane-operator".to_owned(),
            "etcd-defrag-controller".to_owned(),
        ]),
        env: Some(pod_identity_env()),
        resources: Some(ResourceRequirements {
            requests: Some(requests("10m", "50Mi")),
            ..ResourceRequirements::default()
        }),
        volume_mounts: Some(vec![
            mount("client-tls", "/etc/etcd/tls/client"),
            mount("etcd-ca", "/etc/etcd/tls/etcd-ca"),
        ]),
        ..Container::default()
    }
}

/// The init container that restores a snapshot to an empty data directory.
fn restore_container(context: &Context<'_>, url: &str) -> Container {
    let mut container = Container {
        name: "etcd-init".to_owned(),
        image: Some("etcd".to_owned()),
        command: Some(vec!["/bin/bash".to_owned()]),
        args: Some(vec!["-ce".to_owned(), RESTORE.to_owned()]),
        env: Some(pod_identity_env()),
        volume_mounts: Some(vec![
            mount("data", "/var/lib"),
            mount("cluster-state", "/etc/etcd/clusterstate"),
        ]),
        ..Container::default()
    };
    env(
        &mut container,
        "ETCD_INITIAL_CLUSTER",
        initial_cluster(context),
    );
    env(&mut container, "RESTORE_URL_ETCD", url);
    container
}

/// Environment variables with the pod's name and namespace.
fn pod_identity_env() -> Vec<EnvVar> {
    let variable = |name: &str, path: &str| EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                api_version: None,
            }),
            ..EnvVarSource::default()
        }),
    };
    vec![
        variable("NAMESPACE", "metadata.namespace"),
        variable("HOSTNAME", "metadata.name"),
    ]
}

fn requests(cpu: &str, memory: &str) -> BTreeMap<String, Quantity> {
    [("cpu", cpu), ("memory", memory)]
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .into()
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}
