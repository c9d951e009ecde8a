//! The objects: Backup, Schedule and Restore of Velero, and a ConfigMap with a policy for volumes. Pure.

use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use api::names::control_plane_namespace;
use serde_json::{Value, json};

use super::args::{BackupArgs, CommonArgs, ContentArgs, RestoreArgs, ScheduleArgs};
use super::names;
use super::resources::{Data, included};

/// The group and version of Velero's kinds.
pub(super) const API_VERSION: &str = "velero.io/v1";
/// The key of the policy in its ConfigMap.
pub(super) const POLICY_KEY: &str = "policies.yaml";
const LOCATION: &str = "velero.io/storage-location";
/// Label of volumes with images of the operating system, which need no backup.
const IS_IMAGE: &str = "hypershift.openshift.io/is-kubevirt-rhcos";
const CLUSTER: &str = "hypershift.openshift.io/hosted-cluster";
const CLUSTER_NAMESPACE: &str = "hypershift.openshift.io/hosted-cluster-namespace";
const SNAPSHOT_TIMEOUT: Duration = Duration::from_mins(10);
/// How long a backup waits for the snapshot of etcd.
const OPERATION_TIMEOUT: Duration = Duration::from_hours(4);

/// What is never restored.
const NEVER: [&str; 6] = [
    "nodes",
    "events",
    "events.events.k8s.io",
    "backups.velero.io",
    "restores.velero.io",
    "resticrepositories.velero.io",
];
/// What is not restored with volumes.
const NEVER_WITH_VOLUMES: [&str; 3] = [
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "backuprepositories.velero.io",
];

/// Where the content of a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Backup,
    Schedule,
}

/// The objects of a backup, in the order in which they are created.
pub(super) fn backup(args: &BackupArgs, platform: PlatformType, name: &str) -> Vec<Value> {
    let BackupArgs { common, content } = args;
    let mut objects: Vec<Value> = policy(common, platform).into_iter().collect();
    objects.push(json!({
        "apiVersion": API_VERSION,
        "kind": "Backup",
        "metadata": {
            "name": name,
            "namespace": common.oadp_namespace,
            "labels": { LOCATION: content.storage_location },
        },
        "spec": spec(common, content, platform, Of::Backup),
    }));
    objects
}

/// The objects of a schedule, in the order in which they are created.
pub(super) fn schedule(args: &ScheduleArgs, platform: PlatformType, name: &str) -> Vec<Value> {
    let ScheduleArgs {
        common,
        content,
        schedule,
        paused,
        use_owner_references,
        skip_immediately,
    } = args;
    let mut objects: Vec<Value> = policy(common, platform).into_iter().collect();
    objects.push(json!({
        "apiVersion": API_VERSION,
        "kind": "Schedule",
        "metadata": {
            "name": name,
            "namespace": common.oadp_namespace,
            "labels": {
                LOCATION: content.storage_location,
                CLUSTER: common.hc_name,
                CLUSTER_NAMESPACE: common.hc_namespace,
            },
        },
        "spec": {
            "schedule": schedule,
            "paused": paused,
            "useOwnerReferencesInBackup": use_owner_references,
            "skipImmediately": skip_immediately,
            "template": spec(common, content, platform, Of::Schedule),
        },
    }));
    objects
}

/// The object of a restore.
pub(super) fn restore(args: &RestoreArgs, name: &str) -> Value {
    let common = &args.common;
    let volumes: &[&str] = match data(common) {
        Data::Volumes => &NEVER_WITH_VOLUMES,
        Data::EtcdSnapshot => &[],
    };
    let excluded: Vec<&str> = NEVER.iter().chain(volumes).copied().collect();
    let mut spec = json!({
        "includedNamespaces": namespaces(common),
        "excludedResources": excluded,
        "existingResourcePolicy": args.existing_resource_policy.as_str(),
        "preserveNodePorts": args.preserve_node_ports,
        "restorePVs": !common.use_etcd_snapshot && args.restore_pvs.unwrap_or(true),
    });
    if let Some(backup) = &args.from_backup {
        spec["backupName"] = json!(backup);
    }
    if let Some(schedule) = &args.from_schedule {
        spec["scheduleName"] = json!(schedule);
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "Restore",
        "metadata": { "name": name, "namespace": common.oadp_namespace },
        "spec": spec,
    })
}

/// What is backed up, and how.
fn spec(common: &CommonArgs, content: &ContentArgs, platform: PlatformType, of: Of) -> Value {
    let resources = if content.included_resources.is_empty() {
        included(platform, data(common))
    } else {
        content.included_resources.clone()
    };
    let has_volumes = !common.use_etcd_snapshot;
    let moved = content.snapshot_move_data.unwrap_or(of == Of::Backup);
    let files = content.default_volumes_to_fs_backup.unwrap_or(false);
    let mut spec = json!({
        "includedNamespaces": namespaces(common),
        "includedResources": resources,
        "storageLocation": content.storage_location,
        "ttl": written(content.ttl),
        "csiSnapshotTimeout": written(SNAPSHOT_TIMEOUT),
        "snapshotMoveData": has_volumes && moved,
        "defaultVolumesToFsBackup": has_volumes && files,
        "dataMover": "velero",
        "snapshotVolumes": has_volumes,
    });
    if common.use_etcd_snapshot {
        spec["excludedResources"] = json!([]);
        spec["itemOperationTimeout"] = json!(written(OPERATION_TIMEOUT));
    }
    if platform == PlatformType::KubeVirt {
        let without = json!({ "key": IS_IMAGE, "operator": "DoesNotExist" });
        spec["labelSelector"] = json!({ "matchExpressions": [without] });
        spec["resourcePolicy"] = json!({ "kind": "configmap", "name": policy_name(common) });
    }
    spec
}

fn data(common: &CommonArgs) -> Data {
    if common.use_etcd_snapshot {
        Data::EtcdSnapshot
    } else {
        Data::Volumes
    }
}

/// The namespaces of the hosted cluster and of its control plane, and those that the user names.
pub(super) fn namespaces(common: &CommonArgs) -> Vec<String> {
    let CommonArgs {
        hc_name: name,
        hc_namespace: namespace,
        ..
    } = common;
    let mut namespaces = vec![namespace.clone(), control_plane_namespace(namespace, name)];
    for namespace in &common.include_additional_namespaces {
        if !namespaces.contains(namespace) {
            namespaces.push(namespace.clone());
        }
    }
    namespaces
}

/// The ConfigMap by which Velero skips volumes with images of the operating system.
fn policy(common: &CommonArgs, platform: PlatformType) -> Option<Value> {
    if platform != PlatformType::KubeVirt {
        return None;
    }
    let policies = format!(
        "version: v1\nvolumePolicies:\n- conditions:\n    pvcLabels:\n      {IS_IMAGE}: \"true\"\n  action:\n    type: skip\n"
    );
    Some(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": policy_name(common),
            "namespace": common.oadp_namespace,
            "labels": {
                CLUSTER: common.hc_name,
                CLUSTER_NAMESPACE: common.hc_namespace,
            },
        },
        "data": { POLICY_KEY: policies },
    }))
}

/// All backups of a cluster have the same policy.
fn policy_name(common: &CommonArgs) -> String {
    let (namespace, name) = (&common.hc_namespace, &common.hc_name);
    names::of_cluster(namespace, name, &names::stable(namespace, name))
}

/// A time as the API server writes it, for example `2h0m0s`.
fn written(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_by_the_api_server() {
        for (seconds, expected) in [
            (1, "1s"),
            (90, "1m30s"),
            (600, "10m0s"),
            (7200, "2h0m0s"),
            (2_592_000, "720h0m0s"),
        ] {
            assert_eq!(written(Duration::from_secs(seconds)), expected);
        }
    }
}
