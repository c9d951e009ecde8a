//! A cluster of which everything holds, and one that breaks each invariant.

mod broken;
mod healthy;

use serde_json::json;

use super::*;
use broken::*;
use healthy::*;

fn said(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    let found = findings(&healthy());
    assert!(found.is_empty(), "{:#?}", said(&found));
}

/// Only a private link has conditions: another private connection has none, and neither has a public cluster.
#[test]
fn private_links_on_azure_have_conditions() {
    for (topology, type_, expected) in [
        ("Private", "PrivateLink", 5),
        ("PublicAndPrivate", "PrivateLink", 5),
        ("Public", "PrivateLink", 0),
        ("Private", "Swift", 0),
    ] {
        let mut observed = healthy();
        *cluster(&mut observed) = private_on_azure();
        let found = findings(&observed);
        assert!(found.is_empty(), "{:#?}", said(&found));
        let azure = &mut cluster(&mut observed)["spec"]["platform"]["azure"];
        azure["topology"] = json!(topology);
        azure["private"]["type"] = json!(type_);
        cluster(&mut observed)["status"] = hosted_cluster()["status"].clone();
        let found = findings(&observed);
        let missing = found.iter().filter(|it| it.to_string().contains("Azure"));
        assert_eq!(missing.count(), expected, "{topology} {type_}");
    }
}

#[test]
fn repair_of_a_pool_without_nodes_may_have_to_wait() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    set_condition(&mut observed.node_pools[0], "AutorepairEnabled", "False");
    let found = findings(&observed);
    let mut of_pools = found
        .iter()
        .filter(|it| it.invariant == Invariant::PoolConditions);
    assert!(of_pools.next().is_none(), "{:#?}", said(&found));
}

/// Check T23.
#[test]
fn broken_objects_are_found() {
    for row in ROWS {
        let mut observed = healthy();
        (row.broken)(&mut observed);
        let found = findings(&observed);
        let expected = format!("{:?}: {}", row.invariant, row.reported);
        assert!(
            said(&found).contains(&expected),
            "{}: {:#?}",
            row.name,
            said(&found)
        );
        let others = found.iter().filter(|it| it.invariant != row.invariant);
        assert_eq!(others.count(), 0, "{}: {:#?}", row.name, said(&found));
    }
}

#[test]
fn every_invariant_has_a_broken_object() {
    for invariant in Invariant::ALL {
        let has_row = ROWS.iter().any(|row| row.invariant == invariant);
        assert!(has_row, "{invariant:?}");
    }
}

#[test]
fn what_was_not_read_is_not_judged() {
    assert!(findings(&Observed::default()).is_empty());
}

#[test]
fn exceptions_cover_pods_and_templates() {
    let mut observed = healthy();
    observed.objects[0] = deployment("csi-snapshot-controller", &json!({}));
    without(container(&mut observed), "securityContext");
    *the_pod(&mut observed) = pod("csi-snapshot-controller");
    without(
        &mut the_pod(&mut observed)["spec"]["containers"][0],
        "securityContext",
    );
    let found = findings(&observed);
    assert!(found.is_empty(), "{:#?}", said(&found));
}

#[test]
fn virtual_machines_are_no_part_of_the_control_plane() {
    let mut machine =
        json!({ "kind": "Pod", "metadata": { "name": "virt-launcher-1" }, "spec": {} });
    machine["metadata"]["labels"] = json!({ "kubevirt.io": "virt-launcher", "name": "worker-1" });
    let mut observed = healthy();
    observed.objects.push(machine);
    assert!(findings(&observed).is_empty());
}

#[test]
fn restarts_of_replicas_that_lost_their_lease_are_forgiven() {
    let mut observed = healthy();
    the_pod(&mut observed)["status"]["containerStatuses"][0]["restartCount"] = json!(1);
    let key = ("kube-scheduler-1".to_owned(), "main".to_owned());
    for (log, forgiven) in [("E1 leaderelection lost", true), ("panic", false)] {
        observed.previous_logs.insert(key.clone(), log.to_owned());
        assert_eq!(findings(&observed).is_empty(), forgiven, "{log}");
    }
}

/// Nodes take a while to join, and conditions about them to follow.
#[test]
fn workers_are_judged_once_they_have_settled() {
    let mut observed = healthy();
    observed.has_settled = false;
    observed.guest.as_mut().unwrap().nodes.clear();
    set_condition(&mut observed.node_pools[0], "AllNodesHealthy", "False");
    let kinds = [
        "ClusterVersionAvailable",
        "ClusterVersionSucceeding",
        "ControlPlaneConnectionAvailable",
        "DataPlaneConnectionAvailable",
    ];
    for kind in kinds {
        set_condition(cluster(&mut observed), kind, "False");
    }
    assert!(findings(&observed).is_empty());
    observed.has_settled = true;
    assert_eq!(findings(&observed).len(), kinds.len() + 2);
    observed.has_settled = false;
    set_condition(cluster(&mut observed), "EtcdAvailable", "False");
    assert_eq!(findings(&observed).len(), 1);
}

/// Where no ClusterVersion is written, the conditions follow the components, which do not need workers.
#[test]
fn versions_of_components_do_not_need_workers() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    observed.guest.as_mut().unwrap().nodes.clear();
    let conditions = cluster(&mut observed)["status"]["conditions"].as_array_mut();
    for condition in conditions.unwrap() {
        let kind = condition["type"].as_str().unwrap().to_owned();
        if kind.starts_with("ClusterVersion") {
            condition["reason"] = json!("FromControlPlaneComponents");
        }
        if kind.ends_with("ConnectionAvailable") {
            condition["status"] = json!("Unknown");
        }
    }
    assert!(findings(&observed).is_empty());
    set_condition(cluster(&mut observed), "ClusterVersionAvailable", "False");
    assert_eq!(findings(&observed).len(), 1);
}

/// Conditions that no controller writes yet may be missing, and must be right once they are there.
#[test]
fn conditions_that_the_cloud_cannot_confirm_may_be_missing_or_unknown() {
    let mut observed = healthy();
    let of = |observed: &mut Observed| {
        let conditions = cluster(observed)["status"]["conditions"].as_array_mut();
        let all = conditions.unwrap().clone();
        let rest = all
            .into_iter()
            .filter(|it| it["type"] != "ValidOIDCConfiguration");
        cluster(observed)["status"]["conditions"] = rest.collect();
    };
    set_condition(cluster(&mut observed), "ValidOIDCConfiguration", "False");
    assert_eq!(findings(&observed).len(), 1);
    set_condition(cluster(&mut observed), "ValidOIDCConfiguration", "Unknown");
    assert!(findings(&observed).is_empty());
    of(&mut observed);
    assert!(findings(&observed).is_empty());
}

/// Without workers, no operator of the release runs in the cluster, and the tunnel has no end.
#[test]
fn clusters_without_workers_have_other_conditions() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    observed.guest.as_mut().unwrap().nodes.clear();
    for (kind, status) in [
        ("ClusterVersionAvailable", "False"),
        ("ClusterVersionSucceeding", "False"),
        ("ClusterVersionProgressing", "True"),
        ("ControlPlaneConnectionAvailable", "Unknown"),
        ("DataPlaneConnectionAvailable", "Unknown"),
    ] {
        let found = said(&findings(&observed));
        assert!(
            found.iter().any(|it| it.contains(kind)),
            "{kind}: {found:#?}"
        );
        set_condition(cluster(&mut observed), kind, status);
    }
    assert!(findings(&observed).is_empty());
}

#[test]
fn metrics_of_a_deleted_cluster_are_left() {
    let pools = ["workers".to_owned()];
    let left = |name: &str| metrics_left(&metrics(), "clusters", name, &pools).len();
    assert_eq!((left("one"), left("two")), (6, 2));
    assert!(metrics_left(&metrics(), "others", "one", &pools).is_empty());
    let none = metrics_left(
        "hypershift_nodepools{platform=\"AWS\"} 1",
        "clusters",
        "one",
        &pools,
    );
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn attempts_change_what_is_there() {
    let configurations = [
        json!({}),
        json!({ "spec": { "audit": { "profile": "None" }, "disableAllDefaultSources": true } }),
        json!({ "status": { "clusterNetworkMTU": 1300 } }),
    ];
    for change in Change::ALL {
        for live in &configurations {
            let patch = change.patch(live);
            let (part, fields) = patch.as_object().unwrap().iter().next().unwrap();
            let field = fields.as_object().unwrap().keys().next().unwrap();
            assert_ne!(patch[part][field], live[part][field], "{change:?} {live}");
        }
    }
}
