//! Replicas, anti-affinity, node placement, and etcd restore.

use control_plane_component::Predicates;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::input;
use crate::variants::{changed, object};

const SERVER: &str = "kube-apiserver";
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const TOPOLOGY: &str = "hypershift.openshift.io/topology";
const DEDICATED: &str = "dedicated-request-serving-components";

/// Component, replicas, whether they are spread over zones, and maxSurge and maxUnavailable.
type Row = (&'static str, i32, bool, Option<(i32, i32)>);

/// Components with several replicas. All others have one.
const HIGHLY_AVAILABLE: &[Row] = &[
    ("etcd", 3, true, None),
    ("kube-apiserver", 3, true, Some((0, 1))),
    ("oauth-openshift", 3, true, Some((0, 1))),
    ("router", 3, true, Some((0, 1))),
    ("packageserver", 3, true, Some((0, 1))),
    ("endpoint-resolver", 2, false, Some((1, 0))),
    ("ignition-server", 2, true, Some((1, 0))),
    ("ignition-server-proxy", 2, true, Some((1, 1))),
    ("konnectivity-agent", 2, true, Some((1, 0))),
    ("openshift-apiserver", 3, true, Some((0, 1))),
    ("openshift-oauth-apiserver", 3, true, Some((0, 1))),
    ("openshift-controller-manager", 2, true, Some((1, 0))),
    ("openshift-route-controller-manager", 2, true, Some((1, 0))),
    ("cluster-policy-controller", 2, true, Some((1, 0))),
    ("metrics-proxy", 2, false, Some((1, 1))),
    ("kube-controller-manager", 2, true, Some((1, 0))),
    ("kube-scheduler", 2, true, Some((1, 0))),
    ("kubevirt-cloud-controller-manager", 2, true, Some((1, 0))),
];

fn single() -> Input {
    changed(&[("/spec/controllerAvailabilityPolicy", json!("SingleReplica"))])
}

fn dedicated(annotations: &[(&str, &str)]) -> Input {
    let mut all = json!({ TOPOLOGY: DEDICATED });
    for (key, value) in annotations {
        all[key] = json!(value);
    }
    changed(&[("/metadata/annotations", all)])
}

/// Returns all Deployments and `StatefulSets`, by component.
fn workloads(input: &Input) -> Vec<(&'static str, Value)> {
    let all = components::all().iter();
    let found = all.flat_map(|component| {
        let files = input.component(component).unwrap().into_iter();
        let objects = files.map(|file| file.object);
        let kinds = [json!("Deployment"), json!("StatefulSet")];
        let selected_objects = objects.filter(move |object| kinds.contains(&object["kind"]));
        selected_objects
            .map(|object| (component.name, object))
            .collect::<Vec<_>>()
    });
    found.collect()
}

fn affinity(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["affinity"]
}

/// Returns the topology keys of required anti-affinity.
fn anti_affinity_keys(workload: &Value) -> Vec<&str> {
    let rule = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = affinity(workload)["podAntiAffinity"][rule].as_array();
    let terms = terms.into_iter().flatten();
    terms
        .map(|term| term["topologyKey"].as_str().unwrap())
        .collect()
}

#[test]
pub(crate) fn replicas_and_anti_affinity_match_the_component() {
    for (component, workload) in workloads(&input::base()) {
        let row = HIGHLY_AVAILABLE.iter().find(|row| row.0 == component);
        let (replicas, spread, replaced) =
            row.map_or((1, false, None), |row| (row.1, row.2, row.3));
        assert_eq!(workload["spec"]["replicas"], replicas, "{component}");
        let expected: &[&str] = if spread { &[ZONE, HOSTNAME] } else { &[] };
        assert_eq!(anti_affinity_keys(&workload), expected, "{component}");
        if let Some((surge, unavailable)) = replaced {
            let expected = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
            let strategy = &workload["spec"]["strategy"]["rollingUpdate"];
            assert_eq!(*strategy, expected, "{component}");
        }
    }
    crate::rows::count(HIGHLY_AVAILABLE.len());
}

#[test]
fn anti_affinity_selects_only_own_replicas() {
    let rule = "requiredDuringSchedulingIgnoredDuringExecution";
    for (component, workload) in workloads(&input::base()) {
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        let terms = affinity(&workload)["podAntiAffinity"][rule].as_array();
        for term in terms.into_iter().flatten() {
            assert_eq!(term["labelSelector"]["matchLabels"], *labels, "{component}");
        }
        let own = &labels["hypershift.openshift.io/control-plane-component"];
        assert_eq!(own, component);
    }
}

#[test]
fn single_replicas_have_no_anti_affinity() {
    for (component, workload) in workloads(&single()) {
        assert_eq!(workload["spec"]["replicas"], 1, "{component}");
        assert!(anti_affinity_keys(&workload).is_empty(), "{component}");
    }
    let members = |input: &Input| {
        let set = object(input, "etcd", "StatefulSet", "etcd");
        let containers = set["spec"]["template"]["spec"]["containers"].as_array();
        let variables = containers.unwrap()[0]["env"].as_array().unwrap().iter();
        let mut all = variables.filter(|one| one["name"] == "ETCD_INITIAL_CLUSTER");
        let value = all.next().unwrap()["value"].as_str().unwrap();
        value.split(',').count()
    };
    assert_eq!((members(&single()), members(&input::base())), (1, 3));
}

#[test]
fn pdbs_allow_draining_one_of_several_replicas() {
    for (component, budget) in [
        ("etcd", "etcd"),
        ("kube-apiserver", "kube-apiserver"),
        ("openshift-apiserver", "openshift-apiserver"),
        ("openshift-oauth-apiserver", "openshift-oauth-apiserver"),
        ("oauth-openshift", "oauth-openshift"),
        ("packageserver", "packageserver-pdb"),
        ("router", "router"),
    ] {
        let of = |input: &Input| object(input, component, "PodDisruptionBudget", budget);
        let several = of(&input::base());
        assert_eq!(several["spec"]["maxUnavailable"], 1, "{component}");
        assert_eq!(several["spec"]["minAvailable"], Value::Null, "{component}");
        let only = of(&single());
        assert_eq!(only["spec"]["minAvailable"], 1, "{component}");
        assert_eq!(only["spec"]["maxUnavailable"], Value::Null, "{component}");
        // Unready pods can always be evicted.
        let policy = &several["spec"]["unhealthyPodEvictionPolicy"];
        assert_eq!(policy, "AlwaysAllow", "{component}");
        let selected = &several["spec"]["selector"]["matchLabels"]["app"];
        let workload = workloads(&input::base());
        let (_, workload) = workload
            .iter()
            .find(|(name, _)| *name == component)
            .unwrap();
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["app"], *selected, "{component}");
    }
}

#[test]
fn pods_tolerate_control_plane_and_cluster_taints() {
    for (component, workload) in workloads(&input::base()) {
        let pod = &workload["spec"]["template"]["spec"];
        let tolerations = pod["tolerations"].as_array().unwrap();
        for (key, value) in [
            ("hypershift.openshift.io/control-plane", "true"),
            ("hypershift.openshift.io/cluster", "hcp-namespace"),
        ] {
            let taint =
                json!({ "key": key, "operator": "Equal", "value": value, "effect": "NoSchedule" });
            assert!(tolerations.contains(&taint), "{component}: {tolerations:?}");
        }
        let serving = "hypershift.openshift.io/request-serving-component";
        let serves = |toleration: &Value| toleration["key"] == serving;
        assert!(!tolerations.iter().any(serves), "{component}");
    }
}

#[test]
fn dedicated_nodes_run_only_request_serving_components() {
    let selector = "hypershift.openshift.io/request-serving-node-additional-selector";
    let input = dedicated(&[(selector, "size=large")]);
    let serving = "hypershift.openshift.io/request-serving-component";
    let serves = [
        "kube-apiserver",
        "oauth-openshift",
        "router",
        "ignition-server-proxy",
        "metrics-proxy",
    ];
    for (component, workload) in workloads(&input) {
        let rule = "requiredDuringSchedulingIgnoredDuringExecution";
        let required = &affinity(&workload)["nodeAffinity"][rule];
        let pod = &workload["spec"]["template"]["spec"];
        let tolerations = pod["tolerations"].as_array().unwrap();
        let tolerates = tolerations.iter().any(|one| one["key"] == serving);
        assert_eq!(tolerates, serves.contains(&component), "{component}");
        if !serves.contains(&component) {
            assert_eq!(*required, Value::Null, "{component}");
            continue;
        }
        assert_eq!(workload["spec"]["replicas"], 2, "{component}");
        let is =
            |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
        let all = json!([
            is(serving, "true"),
            is("hypershift.openshift.io/cluster", "hcp-namespace"),
            is("size", "large"),
        ]);
        assert_eq!(
            required["nodeSelectorTerms"],
            json!([{ "matchExpressions": all }])
        );
    }
}

#[test]
fn members_restore_the_same_snapshot() {
    let url = "https://backups.example.com/snapshot.db";
    let storage = json!({ "type": "PersistentVolume", "restoreSnapshotURL": [url] });
    let etcd = json!({ "managementType": "Managed", "managed": { "storage": storage } });
    let set = object(
        &changed(&[("/spec/etcd", etcd)]),
        "etcd",
        "StatefulSet",
        "etcd",
    );
    let init = set["spec"]["template"]["spec"]["initContainers"].as_array();
    let names: Vec<_> = init.unwrap().iter().map(|one| &one["name"]).collect();
    // A member checks for an existing cluster before it restores the snapshot.
    assert_eq!(names, ["ensure-dns", "reset-member", "etcd-init"]);
    let restorer = &init.unwrap()[2];
    let variables = restorer["env"].as_array().unwrap();
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.unwrap()["value"].clone()
    };
    assert_eq!(value("RESTORE_URL_ETCD"), url);
    let members = value("ETCD_INITIAL_CLUSTER");
    let etcd = &set["spec"]["template"]["spec"]["containers"][0]["env"];
    let own = etcd.as_array().unwrap().iter();
    let mut own = own.filter(|variable| variable["name"] == "ETCD_INITIAL_CLUSTER");
    assert_eq!(own.next().unwrap()["value"], members);
    let mounts = restorer["volumeMounts"].as_array().unwrap();
    let state = json!({ "name": "cluster-state", "mountPath": "/etc/etcd/clusterstate" });
    assert!(mounts.contains(&state), "{mounts:?}");
}

#[test]
fn unmanaged_etcd_is_used_and_not_rendered() {
    let endpoint = "https://etcd.example.com:2379";
    let etcd = json!({ "managementType": "Unmanaged", "unmanaged": {
        "endpoint": endpoint, "tls": { "clientSecret": { "name": "etcd-client" } },
    } });
    let mut input = changed(&[("/spec/etcd", etcd)]);
    let config = object(&input, SERVER, "ConfigMap", "kas-config");
    let config: Value =
        serde_json::from_str(config["data"]["config.json"].as_str().unwrap()).unwrap();
    assert_eq!(
        config["apiServerArguments"]["etcd-servers"],
        json!([endpoint])
    );
    let server = object(&input, SERVER, "Deployment", SERVER);
    let init = server["spec"]["template"]["spec"]["initContainers"].as_array();
    let mut init = init.unwrap().iter();
    assert!(!init.any(|container| container["name"] == "wait-for-etcd"));
    input.predicates = Predicates::Evaluated;
    let made = workloads(&input);
    assert!(
        made.iter().all(|(component, _)| *component != "etcd"),
        "{made:?}"
    );
}
