//! How inputs change controller manager, scheduler and etcd.

use control_plane_operator::render::Input;
use serde_json::{Value, json};

use super::{
    ETCD, MANAGER, MANAGER_PODS, MEMBERS, NETWORKING, SCHEDULER, annotation, configuration,
    networks, platform,
};
use crate::openshift_apis::{Row, check, evaluate};

#[test]
pub(crate) fn controller_manager_follows_the_hosted_control_plane() {
    let flag =
        |name: &str| format!("/spec/template/spec/containers/kube-controller-manager/args/{name}");
    let both = networks(
        &["10.1.0.0/16", "10.2.0.0/16"],
        &["172.30.0.0/16", "fd02::/112"],
    );
    let allocated = [(
        NETWORKING,
        json!({ "networkType": "Other", "allocateNodeCIDRs": "Enabled" }),
    )];
    let profiling = annotation(
        "hypershift.openshift.io/disable-profiling",
        "kube-controller-manager",
    );
    let modern = configuration(
        "apiServer",
        &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
    );
    let rows: [Row<'_>; 12] = [
        (
            "pods",
            &both,
            MANAGER_PODS,
            &flag("--cluster-cidr"),
            json!("--cluster-cidr=10.1.0.0/16"),
        ),
        (
            "Services",
            &both,
            MANAGER_PODS,
            &flag("--service-cluster-ip-range"),
            json!("--service-cluster-ip-range=172.30.0.0/16"),
        ),
        (
            "nodes get no CIDRs",
            &[],
            MANAGER_PODS,
            &flag("--allocate-node-cidrs"),
            json!("--allocate-node-cidrs=false"),
        ),
        (
            "nodes get CIDRs",
            &allocated,
            MANAGER_PODS,
            &flag("--allocate-node-cidrs"),
            json!("--allocate-node-cidrs=true"),
        ),
        (
            "cloud provider on Azure",
            &platform("Azure"),
            MANAGER_PODS,
            &flag("--cloud-provider"),
            json!("--cloud-provider=external"),
        ),
        (
            "cloud provider elsewhere",
            &[],
            MANAGER_PODS,
            &flag("--cloud-provider"),
            Value::Null,
        ),
        (
            "grace period",
            &[],
            MANAGER_PODS,
            &flag("--node-monitor-grace-period"),
            json!("--node-monitor-grace-period=50s"),
        ),
        (
            "grace period on IBM Cloud",
            &platform("IBMCloud"),
            MANAGER_PODS,
            &flag("--node-monitor-grace-period"),
            json!("--node-monitor-grace-period=55s"),
        ),
        (
            "profiling",
            &profiling,
            MANAGER_PODS,
            &flag("--profiling"),
            json!("--profiling=false"),
        ),
        (
            "TLS",
            &modern,
            MANAGER_PODS,
            &flag("--tls-min-version"),
            json!("--tls-min-version=VersionTLS13"),
        ),
        (
            "ciphers",
            &modern,
            MANAGER_PODS,
            &flag("--tls-cipher-suites"),
            Value::Null,
        ),
        (
            "no authority of Services",
            &[],
            "ConfigMap/kcm-config",
            "/data/config.json/serviceServingCert/certFile",
            json!(""),
        ),
    ];
    check(MANAGER, &rows);
    let authority = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "service-serving-ca" },
        "data": { "service-ca.crt": "" },
    });
    let file = json!("/etc/kubernetes/certs/service-ca/service-ca.crt");
    let mount = container!(
        "kube-controller-manager",
        "/volumeMounts/service-serving-ca/mountPath"
    );
    let volume = "/spec/template/spec/volumes/service-serving-ca/configMap/name";
    evaluate(
        MANAGER,
        |input| input.objects.insert(authority.clone()),
        &[
            (
                "authority",
                &[],
                "ConfigMap/kcm-config",
                "/data/config.json/serviceServingCert/certFile",
                file,
            ),
            (
                "authority",
                &[],
                MANAGER_PODS,
                mount,
                json!("/etc/kubernetes/certs/service-ca"),
            ),
            (
                "authority",
                &[],
                MANAGER_PODS,
                volume,
                json!("service-serving-ca"),
            ),
        ],
    );
}

#[test]
pub(crate) fn scheduler_follows_the_hosted_control_plane() {
    let id = "ConfigMap/kube-scheduler";
    let profile = |name: &str| configuration("scheduler", &json!({ "profile": name }));
    let at = |rest: &str| format!("/data/config.json/profiles{rest}");
    let pods = "Deployment/kube-scheduler";
    let modern = configuration(
        "apiServer",
        &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
    );
    let profiling = annotation(
        "hypershift.openshift.io/disable-profiling",
        "kube-scheduler",
    );
    let rows: [Row<'_>; 10] = [
        ("default", &[], id, &at(""), Value::Null),
        (
            "low utilization",
            &profile("LowNodeUtilization"),
            id,
            &at(""),
            Value::Null,
        ),
        (
            "high utilization",
            &profile("HighNodeUtilization"),
            id,
            &at("/0/plugins/score/enabled"),
            json!([{ "name": "NodeResourcesFit", "weight": 5 }]),
        ),
        (
            "high utilization",
            &profile("HighNodeUtilization"),
            id,
            &at("/0/plugins/score/disabled"),
            json!([{ "name": "NodeResourcesBalancedAllocation" }]),
        ),
        (
            "high utilization",
            &profile("HighNodeUtilization"),
            id,
            &at("/0/pluginConfig/NodeResourcesFit/args/scoringStrategy/type"),
            json!("MostAllocated"),
        ),
        (
            "no scores",
            &profile("NoScoring"),
            id,
            &at("/0/plugins/score/disabled"),
            json!([{ "name": "*" }]),
        ),
        (
            "no scores",
            &profile("NoScoring"),
            id,
            &at("/0/plugins/preScore/disabled"),
            json!([{ "name": "*" }]),
        ),
        (
            "name",
            &profile("NoScoring"),
            id,
            &at("/0/schedulerName"),
            json!("default-scheduler"),
        ),
        (
            "TLS",
            &modern,
            pods,
            container!("kube-scheduler", "/args/--tls-min-version"),
            json!("--tls-min-version=VersionTLS13"),
        ),
        (
            "profiling",
            &profiling,
            pods,
            container!("kube-scheduler", "/args/--profiling"),
            json!("--profiling=false"),
        ),
    ];
    check(SCHEDULER, &rows);
}

#[test]
pub(crate) fn etcd_follows_the_hosted_control_plane() {
    let policy = |name: &str| [("/spec/controllerAvailabilityPolicy", json!(name))];
    let (single, several) = (policy("SingleReplica"), policy("HighlyAvailable"));
    let modern = configuration(
        "apiServer",
        &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
    );
    let storage = [(
        "/spec/etcd",
        json!({ "managementType": "Managed", "managed": { "storage": {
        "type": "PersistentVolume", "persistentVolume": { "size": "16Gi", "storageClassName": "fast" },
    } } }),
    )];
    let env = |name: &str| format!("/spec/template/spec/containers/etcd/env/{name}/value");
    let member = |number: u8| {
        format!("etcd-{number}=https://etcd-{number}.etcd-discovery.hcp-namespace.svc:2380")
    };
    let all = [member(0), member(1), member(2)].join(",");
    let claim = "/spec/volumeClaimTemplates/0/spec";
    let metrics = container!("etcd-metrics", "/args/--tls-min-version");
    let health = container!("healthz", "/args/--listen-tls-min-version");
    let defrag = container!("etcd-defrag", "/name");
    let rows: [Row<'_>; 16] = [
        (
            "one member",
            &single,
            MEMBERS,
            &env("ETCD_INITIAL_CLUSTER"),
            json!(member(0)),
        ),
        (
            "three members",
            &several,
            MEMBERS,
            &env("ETCD_INITIAL_CLUSTER"),
            json!(all),
        ),
        ("one replica", &single, MEMBERS, "/spec/replicas", json!(1)),
        (
            "three replicas",
            &several,
            MEMBERS,
            "/spec/replicas",
            json!(3),
        ),
        (
            "default TLS",
            &[],
            MEMBERS,
            &env("ETCD_TLS_MIN_VERSION"),
            json!("TLS1.2"),
        ),
        (
            "modern TLS",
            &modern,
            MEMBERS,
            &env("ETCD_TLS_MIN_VERSION"),
            json!("TLS1.3"),
        ),
        (
            "modern ciphers",
            &modern,
            MEMBERS,
            &env("ETCD_CIPHER_SUITES"),
            Value::Null,
        ),
        (
            "modern TLS of metrics",
            &modern,
            MEMBERS,
            metrics,
            json!("--tls-min-version=TLS1.3"),
        ),
        (
            "modern TLS of probes",
            &modern,
            MEMBERS,
            health,
            json!("--listen-tls-min-version=TLS1.3"),
        ),
        (
            "modern ciphers of metrics",
            &modern,
            MEMBERS,
            container!("etcd-metrics", "/args/--listen-cipher-suites"),
            Value::Null,
        ),
        (
            "size",
            &storage,
            MEMBERS,
            &format!("{claim}/resources/requests/storage"),
            json!("16Gi"),
        ),
        (
            "class",
            &storage,
            MEMBERS,
            &format!("{claim}/storageClassName"),
            json!("fast"),
        ),
        (
            "several members are defragmented",
            &several,
            MEMBERS,
            defrag,
            json!("etcd-defrag"),
        ),
        ("one member is not", &single, MEMBERS, defrag, Value::Null),
        (
            "Role of several members",
            &several,
            "Role/etcd-defrag-controller",
            "/kind",
            json!("Role"),
        ),
        (
            "Role of one member",
            &single,
            "Role/etcd-defrag-controller",
            "/kind",
            Value::Null,
        ),
    ];
    check(ETCD, &rows);
}

#[test]
pub(crate) fn etcd_restores_a_snapshot_once() {
    let etcd = [(
        "/spec/etcd",
        json!({ "managementType": "Managed", "managed": { "storage": {
        "type": "PersistentVolume", "restoreSnapshotURL": ["https://backups.example.com/snapshot.db"],
    } } }),
    )];
    let init = "/spec/template/spec/initContainers/etcd-init/name";
    for (status, expected) in [("False", json!("etcd-init")), ("True", Value::Null)] {
        let restored = |input: &mut Input| {
            let condition = json!({
                "type": "EtcdSnapshotRestored", "status": status, "reason": "AsExpected", "message": "",
                "lastTransitionTime": "2030-01-31T12:00:00Z",
            });
            let status = json!({ "ready": true, "initialized": true, "conditions": [condition] });
            input.hosted_control_plane.status = serde_json::from_value(status).unwrap();
        };
        evaluate(ETCD, restored, &[(status, &etcd, MEMBERS, init, expected)]);
    }
}
