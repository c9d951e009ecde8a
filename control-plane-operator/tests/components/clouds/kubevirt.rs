//! KubeVirt: cloud controllers and storage, on this cluster and on another one.

use serde_json::{Value, json};

use super::*;

const CLOUD: &str = "ConfigMap/kubevirt-cloud-config";
const DRIVER: &str = "ConfigMap/driver-config";
const ENFORCEMENT: &str = "/data/infraStorageClassEnforcement#";

fn kubevirt(settings: Value) -> Changes {
    vec![("/spec/platform/kubevirt", settings)]
}

/// Virtual machines run on another cluster.
pub(super) fn external() -> Changes {
    kubevirt(json!({ "credentials": {
        "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
        "infraNamespace": "machines",
    } }))
}

fn storage(driver: Value) -> Changes {
    let mut settings = json!({});
    settings["storageDriver"] = driver;
    kubevirt(settings)
}

fn infra_id() -> Changes {
    vec![("/spec/infraID", json!("dev-x7k2p"))]
}

#[test]
pub(crate) fn config_names_the_cluster_of_the_machines() {
    let unnamed = || kubevirt(json!({ "credentials": { "infraNamespace": "" } }));
    let namespace = "/data/cloud-config#/namespace";
    let kubeconfig = "/data/cloud-config#/kubeconfig";
    let file = "/etc/kubernetes/infra-kubeconfig/kubeconfig";
    let labels = "/data/cloud-config#/infraLabels";
    let injected = vec![("/spec/infraID", json!("a\nnamespace: b"))];
    verify(&[
        row(
            KUBEVIRT,
            vec![],
            CLOUD,
            namespace,
            Is(json!("hcp-namespace")),
        ),
        row(KUBEVIRT, vec![], CLOUD, kubeconfig, Is(json!(""))),
        row(
            KUBEVIRT,
            external(),
            CLOUD,
            namespace,
            Is(json!("machines")),
        ),
        row(KUBEVIRT, external(), CLOUD, kubeconfig, Is(json!(file))),
        row(
            KUBEVIRT,
            unnamed(),
            CLOUD,
            namespace,
            Is(json!("hcp-namespace")),
        ),
        row(KUBEVIRT, unnamed(), CLOUD, kubeconfig, Is(json!(file))),
        row(
            KUBEVIRT,
            infra_id(),
            CLOUD,
            labels,
            Is(json!({ "hypershift.openshift.io/infra-id": "dev-x7k2p" })),
        ),
        row(
            KUBEVIRT,
            vec![],
            CLOUD,
            "/data/cloud-config#/loadBalancer",
            Is(json!({ "enabled": true, "creationPollInterval": 0, "selectorless": true })),
        ),
        row(
            KUBEVIRT,
            vec![],
            CLOUD,
            "/data/cloud-config#/instancesV2",
            Is(json!({ "enabled": true, "zoneAndRegionEnabled": false })),
        ),
        // Check T16: a line break does not add settings.
        row(
            KUBEVIRT,
            injected,
            CLOUD,
            namespace,
            Is(json!("hcp-namespace")),
        ),
    ]);
}

#[test]
pub(crate) fn manager_gets_cluster_name_and_kubeconfig_of_the_machines() {
    let args = "/containers/cloud-controller-manager/args";
    let mount = "/containers/cloud-controller-manager/volumeMounts/infra-kubeconfig/mountPath";
    let secret = "/volumes/infra-kubeconfig/secret/secretName";
    let named = json!({ "cluster.x-k8s.io/cluster-name": "dev-x7k2p" });
    let named = vec![("/metadata/labels", named)];
    verify(&[
        pod(KUBEVIRT, vec![], args, Has("--cluster-name=cluster_name")),
        pod(KUBEVIRT, named, args, Has("--cluster-name=dev-x7k2p")),
        pod(KUBEVIRT, vec![], secret, Is(Value::Null)),
        pod(KUBEVIRT, vec![], mount, Is(Value::Null)),
        pod(
            KUBEVIRT,
            external(),
            secret,
            Is(json!("kubevirt-infra-credentials")),
        ),
        pod(
            KUBEVIRT,
            external(),
            mount,
            Is(json!("/etc/kubernetes/infra-kubeconfig")),
        ),
        pod(KUBEVIRT, vec![], "/serviceAccountName", Is(json!(KUBEVIRT))),
        pod(
            KUBEVIRT,
            vec![],
            "/automountServiceAccountToken",
            Is(json!(true)),
        ),
    ]);
    let unlabelled = vec![("/metadata/labels", json!({}))];
    let error = error(KUBEVIRT, &changed(&unlabelled));
    assert!(error.contains("cluster.x-k8s.io/cluster-name"), "{error}");
}

#[test]
pub(crate) fn driver_names_the_cluster_of_the_machines() {
    let namespace = "/data/infraClusterNamespace";
    let args = "/containers/csi-driver/args";
    let flag = "--infra-cluster-kubeconfig=/var/run/secrets/infracluster/kubeconfig";
    let secret = "/volumes/infracluster/secret/secretName";
    let mount = "/containers/csi-driver/volumeMounts/infracluster/mountPath";
    // Without a kubeconfig, the machines are on this cluster.
    let incomplete = || kubevirt(json!({ "credentials": { "infraNamespace": "machines" } }));
    let unnamed = || {
        let secret = json!({ "name": "infra", "key": "kubeconfig" });
        let credentials = json!({ "infraKubeConfigSecret": secret, "infraNamespace": "" });
        kubevirt(json!({ "credentials": credentials }))
    };
    verify(&[
        row(CSI, vec![], DRIVER, namespace, Is(json!("hcp-namespace"))),
        row(CSI, external(), DRIVER, namespace, Is(json!("machines"))),
        row(
            CSI,
            incomplete(),
            DRIVER,
            namespace,
            Is(json!("hcp-namespace")),
        ),
        row(
            CSI,
            unnamed(),
            DRIVER,
            namespace,
            Is(json!("hcp-namespace")),
        ),
        row(
            CSI,
            infra_id(),
            DRIVER,
            "/data/infraClusterLabels",
            Is(json!("hypershift.openshift.io/infra-id=dev-x7k2p")),
        ),
        pod(CSI, vec![], args, Lacks("--infra-cluster-kubeconfig")),
        pod(CSI, incomplete(), args, Lacks("--infra-cluster-kubeconfig")),
        pod(CSI, external(), args, Has(flag)),
        pod(
            CSI,
            external(),
            secret,
            Is(json!("kubevirt-infra-credentials")),
        ),
        pod(
            CSI,
            external(),
            mount,
            Is(json!("/var/run/secrets/infracluster")),
        ),
        pod(CSI, vec![], secret, Is(Value::Null)),
    ]);
}

#[test]
fn driver_offers_the_configured_storage_classes() {
    let class = |name: &str, group: Option<&str>| json!({ "infraStorageClassName": name, "guestStorageClassName": "g", "group": group });
    let snapshot = |name: &str, group: Option<&str>| json!({ "infraVolumeSnapshotClassName": name, "guestVolumeSnapshotClassName": "g", "group": group });
    let manual = |storage_classes: Value, snapshot_classes: Value| {
        storage(json!({ "type": "Manual", "manual": {
            "storageClassMapping": storage_classes, "volumeSnapshotClassMapping": snapshot_classes,
        } }))
    };
    let group = |storage: Value, snapshots: Value| json!({ "storageClasses": storage, "volumeSnapshotClasses": snapshots });
    let listed = |classes: Value, mapping: Value| {
        Is(json!({
            "allowAll": false, "allowList": classes, "storageSnapshotMapping": mapping,
        }))
    };
    let of =
        |changes: Changes, expected: Expected| row(CSI, changes, DRIVER, ENFORCEMENT, expected);
    let default = || Is(json!({ "allowDefault": true, "allowAll": false }));
    let fast = || class("fast", Some("b"));
    verify(&[
        of(vec![], default()),
        of(kubevirt(json!({})), default()),
        of(storage(json!({ "type": "Default" })), default()),
        of(
            storage(json!({ "type": "None" })),
            Is(json!({ "allowDefault": false, "allowAll": false })),
        ),
        of(
            storage(json!({ "type": "Manual" })),
            listed(json!([]), json!([])),
        ),
        of(
            manual(
                json!([class("slow", None), class("archive", None)]),
                json!([]),
            ),
            listed(
                json!(["archive", "slow"]),
                json!([group(json!(["archive", "slow"]), Value::Null)]),
            ),
        ),
        // Groups are sorted, those with snapshots only come last.
        of(
            manual(
                json!([fast(), class("slow", Some("c"))]),
                json!([
                    snapshot("s2", Some("b")),
                    snapshot("s1", Some("b")),
                    snapshot("s0", Some("a")),
                ]),
            ),
            listed(
                json!(["fast", "slow"]),
                json!([
                    group(json!(["fast"]), json!(["s1", "s2"])),
                    group(json!(["slow"]), Value::Null),
                    group(Value::Null, json!(["s0"])),
                ]),
            ),
        ),
        // Check T16: a name cannot add settings.
        of(
            manual(json!([class("a]\nallowAll: true\nb: [c", None)]), json!([])),
            listed(
                json!(["a]\nallowAll: true\nb: [c"]),
                json!([group(json!(["a]\nallowAll: true\nb: [c"]), Value::Null)]),
            ),
        ),
    ]);
}

#[test]
fn driver_runs_unless_storage_is_off() {
    for (driver, expected) in [
        (json!({}), true),
        (json!({ "storageDriver": { "type": "Default" } }), true),
        (json!({ "storageDriver": { "type": "Manual" } }), true),
        (json!({ "storageDriver": { "type": "None" } }), false),
    ] {
        let changes = [on_platform("KubeVirt"), kubevirt(driver)].concat();
        let runs = runs(&interruptible(&changes), CSI);
        assert_eq!(runs, expected, "{changes:?}");
    }
}

#[test]
fn all_containers_of_the_driver_use_the_service_account_of_the_guest() {
    let deployment = object(&changed(&[]), CSI, "Deployment", CSI);
    let pod = &deployment["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 6);
    for container in containers {
        let path = "/volumeMounts/service-account-kubeconfig/mountPath";
        let mounted = lookup(container, path);
        assert_eq!(mounted, "/var/run/secrets/tenantcluster", "{container:#}");
    }
    let secret = lookup(pod, "/volumes/service-account-kubeconfig/secret/secretName");
    assert_eq!(secret, "kubevirt-csi-controller-service-account-kubeconfig");
}
