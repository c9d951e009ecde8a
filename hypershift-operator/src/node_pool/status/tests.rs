//! The status of pools, based on their machines.

use api::conditions::find;
use std::sync::Arc;

use super::*;
use crate::node_pool::{fixtures, plan, validate};

fn all(facts: &Facts) -> Conditions {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    observe(facts, &mut conditions);
    conditions
}

fn said(conditions: &Conditions, about: PoolCondition) -> (String, String, String) {
    let condition = find(conditions.list(), about).unwrap();
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    (
        condition.status.clone(),
        text(&condition.reason),
        text(&condition.message),
    )
}

#[test]
fn machines_that_are_not_ready_are_named_with_the_reason() {
    let mut facts = fixtures::facts();
    facts.workload = Some(Workload {
        available: 1,
        ..fixtures::workload(3)
    });
    facts.machines = ["a", "b"].map(fixtures::machine).into();
    facts.machines[1].ready = ObservedCondition {
        is_so: false,
        reason: "NotReady".to_owned(),
        message: "* Infrastructure is not ready".to_owned(),
    };
    let conditions = all(&facts);
    let (status, reason, message) = said(&conditions, PoolCondition::AllMachinesReady);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NotReady"));
    assert_eq!(
        message,
        "1 of 2 machines are not ready\nMachine b: NotReady: * Infrastructure is not ready"
    );
    assert_eq!(
        said(&conditions, PoolCondition::AllNodesHealthy).2,
        "2 of 2 machines are healthy"
    );
    assert_eq!(
        said(&conditions, PoolCondition::Ready).2,
        "1 of 3 nodes are ready"
    );
}

#[test]
fn a_pool_scaled_to_zero_is_ready() {
    let mut facts = fixtures::facts();
    assert_eq!(
        said(&all(&facts), PoolCondition::AllMachinesReady).1,
        "NotFound"
    );
    facts.workload = Some(fixtures::workload(0));
    let conditions = all(&facts);
    for about in [
        PoolCondition::AllMachinesReady,
        PoolCondition::AllNodesHealthy,
        PoolCondition::Ready,
    ] {
        assert_eq!(said(&conditions, about).0, "True", "{about}");
    }
}

#[test]
fn machines_of_other_platforms_are_not_evaluated() {
    let mut facts = fixtures::facts();
    facts.pool.spec.platform.type_ = api::hypershift::v1beta1::platform::PlatformType::None;
    let conditions = all(&facts);
    assert_eq!(conditions.list().len(), 1);
    assert_eq!(said(&conditions, PoolCondition::Ready).0, "True");
}

#[test]
fn auto_repair_is_reported() {
    let mut facts = fixtures::facts();
    let repair = |facts: &Facts, reached: bool| {
        let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
        conditions.set(PoolCondition::ReachedIgnitionEndpoint, reached, "a", "");
        observe(facts, &mut conditions);
        said(&conditions, PoolCondition::AutorepairEnabled)
    };
    assert_eq!(repair(&facts, true).1, "AsExpected");
    facts.pool.spec.management.auto_repair = true;
    assert_eq!(repair(&facts, false).1, "IgnitionNotReached");
    assert_eq!(repair(&facts, true).0, "True");
    // The MachineHealthCheck of the configuration before stays.
    facts.remediation = Some(ObservedCondition {
        is_so: true,
        ..ObservedCondition::default()
    });
    assert_eq!(repair(&facts, false).0, "True");
    facts.remediation = Some(ObservedCondition {
        is_so: false,
        reason: "TooManyUnhealthy".to_owned(),
        message: "3 of 3".to_owned(),
    });
    assert_eq!(
        repair(&facts, true),
        (
            "False".to_owned(),
            "TooManyUnhealthy".to_owned(),
            "3 of 3".to_owned()
        )
    );
}

/// Machines that are not repaired are the user's to repair, so the pool is not ready, however many nodes are.
#[test]
fn a_pool_whose_repair_is_suspended_is_not_ready() {
    let remediation = |is_so, reason: &str| {
        Some(ObservedCondition {
            is_so,
            reason: reason.to_owned(),
            message: "2 of 3 are unhealthy".to_owned(),
        })
    };
    for (name, found, expected) in [
        ("no health check", None, ("True", "AsExpected")),
        (
            "it has not reported yet",
            remediation(false, ""),
            ("True", "AsExpected"),
        ),
        (
            "repair",
            remediation(true, "RemediationAllowed"),
            ("True", "AsExpected"),
        ),
        (
            "no repair",
            remediation(false, "TooManyUnhealthy"),
            ("False", "TooManyUnhealthy"),
        ),
    ] {
        let mut facts = fixtures::facts();
        facts.workload = Some(fixtures::workload(3));
        facts.remediation = found;
        let (status, reason, message) = said(&all(&facts), PoolCondition::Ready);
        assert_eq!((status.as_str(), reason.as_str()), expected, "{name}");
        let is_copied = message == "2 of 3 are unhealthy";
        assert_eq!(is_copied, expected.0 == "False", "{name}: {message}");
    }
}

#[test]
fn a_conflict_of_addresses_is_reported_while_there_is_one() {
    let about = PoolCondition::ClusterNetworkCidrConflict;
    let mut facts = fixtures::facts();
    facts.machines = vec![fixtures::machine("a")];
    let mut conditions = all(&facts);
    assert!(find(conditions.list(), about).is_none());
    facts.machines[0].addresses = vec!["10.132.0.7".to_owned()];
    observe(&facts, &mut conditions);
    let (status, reason, _) = said(&conditions, about);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", "InvalidConfiguration")
    );
    facts.machines[0].addresses.push("10.0.0.7".to_owned());
    observe(&facts, &mut conditions);
    assert!(find(conditions.list(), about).is_none());
}

#[test]
fn virtual_machines_that_cannot_move_are_named() {
    let report = |is_so| {
        Some(ObservedCondition {
            is_so,
            reason: if is_so { "" } else { "DisksNotLiveMigratable" }.to_owned(),
            message: "a volume is not shared".to_owned(),
        })
    };
    let about = PoolCondition::KubeVirtNodesLiveMigratable;
    for (name, reports, expected) in [
        ("no report", [None, None], None),
        (
            "all",
            [report(true), None],
            Some((
                "True",
                "AsExpected",
                "virtual machines can be live-migrated",
            )),
        ),
        (
            "one of two",
            [report(true), report(false)],
            Some((
                "False",
                "DisksNotLiveMigratable",
                "1 of 2 virtual machines cannot be live-migrated\nMachine b: a volume is not shared",
            )),
        ),
    ] {
        let mut facts = fixtures::facts();
        facts.machines = ["a", "b"].map(fixtures::machine).into();
        for (machine, report) in facts.machines.iter_mut().zip(reports) {
            machine.live_migration = report;
        }
        let conditions = all(&facts);
        let found = find(conditions.list(), about).map(|_| said(&conditions, about));
        let found = found
            .as_ref()
            .map(|(status, reason, message)| (status.as_str(), reason.as_str(), message.as_str()));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn nodes_are_counted_by_version() {
    let mut facts = fixtures::facts();
    facts.machines = ["a", "b", "c", "d"].map(fixtures::machine).into();
    let release = api::annotations::node_pool::RELEASE_VERSION.key();
    facts.machines[0]
        .annotations
        .insert(release.to_owned(), "4.22.0".to_owned());
    facts.machines[1].healthy.is_so = false;
    facts.machines[2].kubelet = Some("v1.34.1".to_owned());
    facts.machines[3].node = None;
    let info = nodes_info(&facts, Some("4.22.0")).unwrap();
    let versions: Vec<_> = info
        .node_versions
        .iter()
        .map(|it| {
            (
                it.kubelet_version.as_str(),
                it.ready_node_count,
                it.unready_node_count,
            )
        })
        .collect();
    assert_eq!(versions, [("v1.34.1", 1, 0), ("v1.35.4", 1, 1)]);
    facts.machines.clear();
    assert_eq!(nodes_info(&facts, None), None);
}

#[test]
fn the_version_changes_after_all_nodes_are_upgraded() {
    let mut facts = fixtures::facts();
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, _) = validate::validate(&facts, &mut conditions);
    let planned = plan::plan(&facts, &found, &conditions, "a-token").unwrap();
    assert!(!is_rolled_out(&facts, &planned));
    assert_eq!(status(&facts, &found, &conditions, false).version, None);

    let template = planned.machines.as_ref().unwrap().template.1.name.clone();
    let user_data = planned.user_data.metadata.name.clone().unwrap();
    facts.workload = Some(Workload {
        user_data,
        template,
        ..fixtures::workload(2)
    });
    assert!(is_rolled_out(&facts, &planned));
    // While the old MachineSet has machines, the counts include them.
    let owner = Some(facts.name().to_owned());
    for (replicas, expected) in [(2, false), (0, true)] {
        facts.machine_sets = vec![Workload {
            user_data: "user-data-older".to_owned(),
            owner: owner.clone(),
            replicas,
            ..fixtures::workload(replicas)
        }];
        assert_eq!(is_rolled_out(&facts, &planned), expected, "{replicas}");
    }
    let done = status(&facts, &found, &conditions, true);
    assert_eq!(
        (done.version.as_deref(), done.replicas),
        (Some("4.22.0"), Some(2))
    );
    let remembered = bookkeeping(&facts, &found, &planned, true);
    assert_eq!(remembered.len(), 3);

    // The next release: annotations stay until all nodes have it.
    let annotations = remembered
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    facts.pool.metadata.annotations = Some(annotations.collect());
    facts.pool.status = Some(done);
    facts.release = Ok(Arc::new(fixtures::release("4.22.1")));
    facts.cluster_version = Some("4.22.1".parse().unwrap());
    let (found, _) = validate::validate(&facts, &mut conditions);
    let planned = plan::plan(&facts, &found, &conditions, "a-token").unwrap();
    assert!(!is_rolled_out(&facts, &planned));
    assert!(bookkeeping(&facts, &found, &planned, false).is_empty());
    assert_eq!(
        status(&facts, &found, &conditions, false)
            .version
            .as_deref(),
        Some("4.22.0")
    );
    assert_eq!(bookkeeping(&facts, &found, &planned, true).len(), 1);
}

#[test]
fn in_place_upgrades_complete_with_the_machine_set() {
    let mut facts = fixtures::facts();
    facts.pool.spec.management.upgrade_type = UpgradeType::InPlace;
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, _) = validate::validate(&facts, &mut conditions);
    let planned = plan::plan(&facts, &found, &conditions, "a-token").unwrap();
    for (current, expected) in [("older", false), (planned.hash.as_str(), true)] {
        let annotations = [
            (CURRENT_CONFIG_VERSION.key().to_owned(), current.to_owned()),
            (TARGET_CONFIG_VERSION.key().to_owned(), planned.hash.clone()),
        ];
        facts.workload = Some(Workload {
            annotations: annotations.into(),
            ..fixtures::workload(2)
        });
        assert_eq!(is_rolled_out(&facts, &planned), expected, "{current}");
    }
}
