//! From the first start of the operators to the loss of permissions and CRDs, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use ownership::{Decision, ObservedGroups, Owner, Scope, decide};
use serde_json::{Value, json};
use testbed::audit::{Event, Mark};
use testbed::client::{ApiClient, Resource};
use testbed::operator::{self, Identity, NAMESPACE, Operator, Replica, SOON};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{rights, wait};

use crate::operator::fleet::{self, Member};

const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const EVENTS: Resource<'_> = Resource::new("events.k8s.io/v1", "events");
/// Label value of HostedClusters without an owner.
const OWNER_UNDECIDED: &str = "nobody";
/// How long the operators may send no request: longer than an invalid cluster waits for its next reconcile.
const REST: Duration = Duration::from_secs(20);
/// How long the deletion of all hosted clusters and their namespaces may take on a busy machine.
const DELETED: Duration = Duration::from_mins(5);

pub(crate) async fn scenario(testbed: &mut Testbed) -> Result<()> {
    let program = operator::build(&testbed.progress).await?;
    let private = Identity::create(testbed, Operator::Private, &program).await?;
    let legacy = Identity::create(testbed, Operator::Legacy, &program).await?;
    ensure_namespace(&testbed.admin, fleet::NAMESPACE).await?;
    greenfield(testbed, &private).await?;

    let members = Member::all();
    let mark = create(testbed, &members).await?;
    let mut new = private.replica(testbed, "operator-1")?;
    scan(testbed, &private, &mut new, &members, mark).await?;
    let mut old = legacy.replica(testbed, "operator-legacy-1")?;
    old.service.start().await?;
    conditions(testbed, &members).await?;
    reported(testbed, &members, &[&new, &old]).await?;
    untouched(testbed, &private, &legacy, &members, mark)?;
    counted(&new, &members).await?;
    rest(testbed, &[&private, &legacy]).await?;

    newborn(testbed).await?;
    drift(testbed).await?;
    for identity in [&private, &legacy] {
        minimal(testbed, identity).await?;
    }
    let pid = new.service.pid();
    denied(testbed, &new).await?;
    // The hosted clusters are deleted with their CRD, and their control plane namespaces before them.
    testbed.start_controller_manager().await?;
    crds(testbed, &new).await?;
    ensure!(new.service.pid() == pid, "the operator was restarted");
    new.service.check()
}

/// Without HostedClusters, operator-legacy is deleted at once.
async fn greenfield(testbed: &Testbed, private: &Identity) -> Result<()> {
    let step = testbed
        .progress
        .step("greenfield: operator-legacy is deleted");
    deploy_legacy(&testbed.admin).await?;
    let mut replica = private.replica(testbed, "operator-0")?;
    replica.service.start().await?;
    until_retired(&testbed.admin).await?;
    until_ready(&replica).await?;
    replica.service.stop().await?;
    let holder = Operator::Private.holder(&testbed.admin).await?;
    ensure!(holder.is_none(), "the lease is still held: {holder:?}");
    step.done();
    Ok(())
}

async fn deploy_legacy(admin: &ApiClient) -> Result<()> {
    let labels = json!({ "app": "operator-legacy" });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "operator-legacy", "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "operator", "image": "operator" }] },
            },
        },
    });
    admin.apply(&[deployment]).await
}

async fn is_retired(admin: &ApiClient) -> Result<bool> {
    let path = DEPLOYMENTS.named(NAMESPACE, "operator-legacy");
    Ok(admin.find(&path).await?.is_none())
}

async fn until_retired(admin: &ApiClient) -> Result<()> {
    wait::until("operator-legacy to be deleted", SOON, async || {
        ensure!(is_retired(admin).await?, "it is there");
        Ok(())
    })
    .await
}

async fn until_ready(replica: &Replica) -> Result<()> {
    let what = format!("{} to be ready", replica.service.name());
    wait::until(&what, SOON, async || replica.is_ready().await).await
}

/// Creates the HostedClusters while no operator runs, as before an upgrade.
async fn create(testbed: &Testbed, members: &[Member]) -> Result<Mark> {
    let step = testbed.progress.step("creating hosted clusters");
    deploy_legacy(&testbed.admin).await?;
    for member in members {
        member.create(&testbed.admin).await?;
    }
    step.done_with(&format!("{}", members.len()));
    testbed.control_plane.audit.mark()
}

/// Check O01: the scan writes all missing ownership annotations before anything else, and no others.
async fn scan(
    testbed: &Testbed,
    private: &Identity,
    replica: &mut Replica,
    members: &[Member],
    mark: Mark,
) -> Result<()> {
    let step = testbed.progress.step("the scan annotates HostedClusters");
    replica.service.start().await?;
    until_ready(replica).await?;
    let mut due = 0;
    for member in members {
        let mut expected = member.annotations.clone();
        if let Decision::Annotate(annotation) = decide(Scope::Private, &member.evaluation()) {
            let (key, value) = annotation.key_value();
            expected.insert(key.to_owned(), value.to_owned());
            due += 1;
        }
        let found = member.annotations(&testbed.admin).await?;
        ensure!(
            found == expected,
            "{}: {found:?}, not {expected:?}",
            member.name
        );
    }
    let writes = writes_of(testbed, private, mark)?;
    let annotated = writes
        .iter()
        .take_while(|event| is_annotation(event))
        .count();
    ensure!(
        annotated == due,
        "{due} annotations are missing, and {annotated} were written before anything else"
    );
    ensure!(
        writes.iter().filter(|event| is_annotation(event)).count() == due,
        "annotations were written after the scan"
    );
    step.done_with(&format!("{due} annotations"));
    Ok(())
}

/// All writes of an operator except those of its Lease.
fn writes_of(testbed: &Testbed, identity: &Identity, since: Mark) -> Result<Vec<Event>> {
    let username = identity.username();
    let mut events = testbed.control_plane.audit.since(since)?;
    events.retain(|event| {
        event.is_write() && event.user.username == username && event.object_ref.resource != "leases"
    });
    Ok(events)
}

/// Whether a write is an ownership annotation, by its field manager: finalizers and defaults have others.
fn is_annotation(event: &Event) -> bool {
    event.object_ref.resource == "hostedclusters"
        && event.object_ref.subresource.is_empty()
        && event.uri.contains("fieldManager=hypershift-operator-scope")
}

fn is_acknowledgement(event: &Event) -> bool {
    event.object_ref.subresource.is_empty()
        && event
            .uri
            .contains("fieldManager=hypershift-operator-migration")
}

/// Each cluster has a condition that names its owner, which its owner writes.
async fn conditions(testbed: &Testbed, members: &[Member]) -> Result<()> {
    let step = testbed.progress.step("owners write their conditions");
    for member in members {
        let expected_condition = member.expected_condition();
        wait::until(
            &format!("the condition of {}", member.name),
            SOON,
            async || {
                let found = member.condition(&testbed.admin).await?;
                ensure!(
                    found == expected_condition,
                    "{found:?}, not {expected_condition:?}"
                );
                Ok(())
            },
        )
        .await?;
    }
    step.done();
    Ok(())
}

/// Invalid states are reported in an Event on the object, in the log, and in a counter.
async fn reported(testbed: &Testbed, members: &[Member], replicas: &[&Replica]) -> Result<()> {
    let mut expected: Vec<_> = members
        .iter()
        .filter_map(|member| Some((member.name.clone(), member.evaluation().invalid?.reason())))
        .collect();
    expected.sort_unstable();
    let reasons: BTreeSet<_> = expected.iter().map(|(_, reason)| *reason).collect();
    let events = testbed.admin.list(&EVENTS.within(fleet::NAMESPACE)).await?;
    let text = |event: &Value, pointer: &str| {
        let text = event.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut found: Vec<_> = events
        .iter()
        .map(|event| (text(event, "/regarding/name"), text(event, "/reason")))
        // The owner of a HostedCluster sends other Events, too.
        .filter(|(_, reason)| reasons.contains(reason.as_str()))
        .collect();
    found.sort_unstable();
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| found.0 == expected.0 && found.1 == expected.1);
    ensure!(same, "Events: {found:?}, not {expected:?}");
    logged(&expected, replicas)
}

/// Each invalid state is logged, and no other; more than once if the write of the condition had a conflict.
fn logged(expected: &[(String, &str)], replicas: &[&Replica]) -> Result<()> {
    let mut lines = Vec::new();
    for replica in replicas {
        lines.extend(replica.logged("Invalid annotation state detected")?);
    }
    let is_of = |line: &str, (name, reason): &(String, &str)| {
        line.contains(&format!("name=\"{name}\"")) && line.contains(reason)
    };
    for one in expected {
        let reported = lines.iter().any(|line| is_of(line, one));
        ensure!(reported, "{one:?} is invalid, and no operator logged it");
    }
    for line in &lines {
        let known = expected.iter().any(|one| is_of(line, one));
        ensure!(known, "logged for a valid HostedCluster: {line}");
    }
    Ok(())
}

/// Check O02: no HostedCluster is written by both operators, except that the private one writes ownership annotations.
fn untouched(
    testbed: &Testbed,
    private: &Identity,
    legacy: &Identity,
    members: &[Member],
    mark: Mark,
) -> Result<()> {
    let owners: BTreeMap<_, _> = members
        .iter()
        .map(|member| (member.name.as_str(), member.evaluation().owner))
        .collect();
    let of_clusters = |events: Vec<Event>| {
        let clusters = events
            .into_iter()
            .filter(|event| event.object_ref.resource == "hostedclusters");
        clusters.collect::<Vec<_>>()
    };
    for event in of_clusters(writes_of(testbed, private, mark)?) {
        let owner = owners.get(event.object_ref.name.as_str());
        ensure!(
            owner != Some(&Owner::Legacy) || is_annotation(&event),
            "{}",
            event.summary()
        );
    }
    let by_legacy = of_clusters(writes_of(testbed, legacy, mark)?);
    ensure!(!by_legacy.is_empty(), "operator-legacy has written nothing");
    for event in by_legacy {
        let owner = owners.get(event.object_ref.name.as_str());
        let may = match owner {
            Some(Owner::Legacy) => !is_annotation(&event),
            // It acknowledges the migration lock of a HostedCluster, and writes nothing else.
            Some(Owner::Migration) => is_acknowledgement(&event),
            _ => false,
        };
        ensure!(may, "{}", event.summary());
    }
    Ok(())
}

async fn counted(replica: &Replica, members: &[Member]) -> Result<()> {
    for owner in Owner::ALL {
        let expected = members
            .iter()
            .filter(|member| member.evaluation().owner == owner)
            .count();
        let label = match owner {
            Owner::New => "new",
            Owner::Legacy => "legacy",
            Owner::Migration => "migration",
            Owner::Undecided => OWNER_UNDECIDED,
        };
        let series = format!("hypershift_operator_hostedclusters{{owner=\"{label}\"}}");
        wait::until(&series, SOON, async || {
            let found = replica.metric(&series).await?;
            ensure!(found == u64::try_from(expected)?, "{found}, not {expected}");
            Ok(())
        })
        .await?;
    }
    let needed = replica.metric("hypershift_operator_legacy_needed").await?;
    ensure!(needed == 1, "operator-legacy is not needed: {needed}");
    Ok(())
}

/// Check O04 with few HostedClusters: the operators send no request while nothing changes.
async fn rest(testbed: &Testbed, identities: &[&Identity]) -> Result<()> {
    let step = testbed.progress.step("at rest");
    wait::until("the operators to be at rest", SOON, async || {
        let mark = testbed.control_plane.audit.mark()?;
        wait::throughout("rest", REST, async || {
            for identity in identities {
                let requests = requests_of(testbed, identity, mark)?;
                ensure!(requests.is_empty(), "{}", requests[0].summary());
            }
            Ok(())
        })
        .await
    })
    .await?;
    ensure!(
        !is_retired(&testbed.admin).await?,
        "operator-legacy was deleted"
    );
    step.done_with("0 requests");
    Ok(())
}

/// All requests of an operator but watches and those for its Lease.
fn requests_of(testbed: &Testbed, identity: &Identity, since: Mark) -> Result<Vec<Event>> {
    let username = identity.username();
    let mut events = testbed.control_plane.audit.since(since)?;
    events.retain(|event| {
        event.user.username == username
            && event.verb != "watch"
            && event.object_ref.resource != "leases"
    });
    Ok(events)
}

/// A HostedCluster that is created now gets private types.
async fn newborn(testbed: &Testbed) -> Result<()> {
    let member = Member::new("newborn.example.com", "", ObservedGroups::None);
    member.create(&testbed.admin).await?;
    is(testbed, &member, "True", "PrivateTypes").await?;
    let found = member.annotations(&testbed.admin).await?;
    let expected = Member::new("", "p", ObservedGroups::None).annotations;
    ensure!(found == expected, "{found:?}");
    Ok(())
}

/// Check O06: objects of the other types are detected and reported; after their deletion the report is cleared.
async fn drift(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("owners drift");
    let admin = &testbed.admin;
    let member = Member::new("drifter", "", ObservedGroups::Private);
    member.create(admin).await?;
    is(testbed, &member, "True", "PrivateTypes").await?;
    member.put(admin, CapiTypes::Standard).await?;
    is(testbed, &member, "Unknown", "ObjectsInBothGroups").await?;
    member.take(admin, CapiTypes::Private).await?;
    is(testbed, &member, "False", "PrivateWithStandardObjects").await?;
    member.put(admin, CapiTypes::Private).await?;
    is(testbed, &member, "Unknown", "ObjectsInBothGroups").await?;
    member.take(admin, CapiTypes::Standard).await?;
    is(testbed, &member, "True", "PrivateTypes").await?;
    step.done();
    Ok(())
}

async fn is(testbed: &Testbed, member: &Member, status: &str, reason: &str) -> Result<()> {
    let what = format!("{} to be {status}, {reason}", member.name);
    wait::until(&what, SOON, async || {
        let found = member.condition(&testbed.admin).await?;
        let (found_status, found_reason) = found.context("no condition")?;
        ensure!(
            found_status == status && found_reason == reason,
            "{found_status}, {found_reason}"
        );
        Ok(())
    })
    .await
}

/// Each granted permission is used and required.
async fn minimal(testbed: &Testbed, identity: &Identity) -> Result<()> {
    let step = testbed.progress.step("permissions are removed one by one");
    let account = rights::Account {
        username: &identity.username(),
        granted: &identity.operator.rights()?,
        audit: &testbed.control_plane.audit,
        admin: &testbed.admin,
    };
    rights::judge(&account, rights::USUAL).await?;
    step.done();
    Ok(())
}

/// Check O06: an operator without permissions reports that, continues, and recovers.
async fn denied(testbed: &Testbed, replica: &Replica) -> Result<()> {
    let step = testbed
        .progress
        .step("permissions are revoked and restored");
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-operator";
    let mut binding = testbed.admin.get(path).await?;
    testbed.admin.delete(path).await?;
    let counted = "hypershift_operator_reconcile_errors_total{step=\"list\",reason=\"Forbidden\"}";
    until_degraded(replica, "forbidden").await?;
    wait::until("the denial to be counted", SOON, async || {
        ensure!(replica.metric(counted).await? >= 1, "it was not counted");
        Ok(())
    })
    .await?;
    binding["metadata"] = json!({ "name": binding["metadata"]["name"] });
    testbed.admin.apply(&[binding]).await?;
    until_ready(replica).await?;
    step.done();
    Ok(())
}

/// Check O06: the same without the CRD of HostedClusters. Their deletion ends the need for operator-legacy, which the
/// operator may see before its lists fail; from then on it deletes nothing.
async fn crds(testbed: &Testbed, replica: &Replica) -> Result<()> {
    let step = testbed
        .progress
        .step("the CRD of HostedClusters is deleted and installed again");
    let crds = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let path = format!("{}/hostedclusters.hypershift.openshift.io", crds.all());
    testbed.admin.delete(&path).await?;
    // The API server keeps serving the kind until the operator has deleted all hosted clusters.
    wait::until("the hosted clusters to be gone", DELETED, async || {
        ensure!(
            testbed.admin.find(&path).await?.is_none(),
            "the CRD is there"
        );
        Ok(())
    })
    .await?;
    until_degraded(replica, "failed to list HostedClusters").await?;
    deploy_legacy(&testbed.admin).await?;
    wait::throughout("operator-legacy is kept", REST, async || {
        ensure!(
            !is_retired(&testbed.admin).await?,
            "operator-legacy was deleted although it is not known whether it is needed"
        );
        Ok(())
    })
    .await?;
    crate::operator::install_hosted_clusters(testbed).await?;
    until_ready(replica).await?;
    until_retired(&testbed.admin).await?;
    step.done();
    Ok(())
}

async fn until_degraded(replica: &Replica, because: &str) -> Result<()> {
    wait::until(
        "the operator to report that it is degraded",
        SOON,
        async || match replica.is_ready().await {
            Ok(()) => wait::not_yet("it is ready"),
            Err(error) => {
                ensure!(format!("{error:#}").contains(because), "{error:#}");
                Ok(())
            }
        },
    )
    .await
}
