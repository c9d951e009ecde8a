//! From the first start to the loss of rights and of CRDs, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::Side;
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
/// How long nothing may be written.
const REST: Duration = Duration::from_secs(5);

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
    rest(testbed, &[&private, &legacy], &new).await?;

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

/// Without hosted clusters operator-legacy goes at once.
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

/// Makes the fleet while no operator runs, as an upgrade finds it.
async fn create(testbed: &Testbed, members: &[Member]) -> Result<Mark> {
    let step = testbed.progress.step("creating hosted clusters");
    deploy_legacy(&testbed.admin).await?;
    for member in members {
        member.create(&testbed.admin).await?;
    }
    step.done_with(&format!("{}", members.len()));
    testbed.control_plane.audit.mark()
}

/// O01: all marks are there before anything else is written, and only those that are due.
async fn scan(
    testbed: &Testbed,
    private: &Identity,
    replica: &mut Replica,
    members: &[Member],
    mark: Mark,
) -> Result<()> {
    let step = testbed.progress.step("the scan marks what is due");
    replica.service.start().await?;
    until_ready(replica).await?;
    let mut due = 0;
    for member in members {
        let mut expected = member.annotations.clone();
        if let Decision::Annotate(mark) = decide(Scope::Private, &member.verdict()) {
            let (key, value) = mark.key_value();
            expected.insert(key.to_owned(), value.to_owned());
            due += 1;
        }
        let found = member.marks(&testbed.admin).await?;
        ensure!(
            found == expected,
            "{}: {found:?}, not {expected:?}",
            member.name
        );
    }
    let writes = writes_of(testbed, private, mark)?;
    let marks = writes.iter().take_while(|event| is_mark(event)).count();
    ensure!(
        marks == due,
        "{due} marks are due, and {marks} were written before anything else"
    );
    ensure!(
        writes.iter().filter(|event| is_mark(event)).count() == due,
        "marks were written after the scan"
    );
    step.done_with(&format!("{due} marks"));
    Ok(())
}

/// What an operator has written, its lease aside.
fn writes_of(testbed: &Testbed, identity: &Identity, since: Mark) -> Result<Vec<Event>> {
    let username = identity.username();
    let mut events = testbed.control_plane.audit.since(since)?;
    events.retain(|event| {
        event.is_write() && event.user.username == username && event.object_ref.resource != "leases"
    });
    Ok(events)
}

/// By its field manager: finalizers and defaults are written to the same objects.
fn is_mark(event: &Event) -> bool {
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
        let wanted = member.wanted();
        wait::until(
            &format!("the condition of {}", member.name),
            SOON,
            async || {
                let found = member.condition(&testbed.admin).await?;
                ensure!(found == wanted, "{found:?}, not {wanted:?}");
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
        .filter_map(|member| Some((member.name.clone(), member.verdict().invalid?.reason())))
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
        // Its owner writes a cluster's conditions, too.
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

/// Each is logged, and no other: more than once where the condition's write met another's, and was made again.
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
        ensure!(known, "logged of none that is invalid: {line}");
    }
    Ok(())
}

/// O02: no hosted cluster is written by both operators; a mark is the one thing that the new one gives to the other.
fn untouched(
    testbed: &Testbed,
    private: &Identity,
    legacy: &Identity,
    members: &[Member],
    mark: Mark,
) -> Result<()> {
    let owners: BTreeMap<_, _> = members
        .iter()
        .map(|member| (member.name.as_str(), member.verdict().owner))
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
            owner != Some(&Owner::Legacy) || is_mark(&event),
            "{}",
            event.summary()
        );
    }
    let by_legacy = of_clusters(writes_of(testbed, legacy, mark)?);
    ensure!(!by_legacy.is_empty(), "operator-legacy has written nothing");
    for event in by_legacy {
        let owner = owners.get(event.object_ref.name.as_str());
        let may = match owner {
            Some(Owner::Legacy) => !is_mark(&event),
            // It says that it has let go of a cluster that is locked, and nothing else.
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
            .filter(|member| member.verdict().owner == owner)
            .count();
        let label = match owner {
            Owner::New => "new",
            Owner::Legacy => "legacy",
            Owner::Migration => "migration",
            Owner::Undecided => "nobody",
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

/// O04 in small: evidence is looked at again and again, and nothing is written.
async fn rest(testbed: &Testbed, identities: &[&Identity], replica: &Replica) -> Result<()> {
    let step = testbed.progress.step("at rest");
    let scans = "hypershift_operator_scan_duration_seconds_count";
    let before = replica.metric(scans).await?;
    wait::until("the operators to be at rest", SOON, async || {
        let mark = testbed.control_plane.audit.mark()?;
        wait::throughout("rest", REST, async || {
            for identity in identities {
                let writes = writes_of(testbed, identity, mark)?;
                ensure!(writes.is_empty(), "{}", writes[0].summary());
            }
            Ok(())
        })
        .await
    })
    .await?;
    wait::until("observed groups to be read again", SOON, async || {
        let looks = replica.metric(scans).await? - before;
        ensure!(looks >= 2, "they were read {looks} times only");
        Ok(())
    })
    .await?;
    ensure!(
        !is_retired(&testbed.admin).await?,
        "operator-legacy was deleted"
    );
    step.done_with("0 writes");
    Ok(())
}

/// A hosted cluster that is created now is born private.
async fn newborn(testbed: &Testbed) -> Result<()> {
    let member = Member::new("newborn.example.com", "", ObservedGroups::None);
    member.create(&testbed.admin).await?;
    is(testbed, &member, "True", "PrivateTypes").await?;
    let marks = member.marks(&testbed.admin).await?;
    let expected = Member::new("", "p", ObservedGroups::None).annotations;
    ensure!(marks == expected, "{marks:?}");
    Ok(())
}

/// O06: objects that appear on the other side are noticed, reported, and forgotten when they go.
async fn drift(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("owners drift");
    let admin = &testbed.admin;
    let member = Member::new("drifter", "", ObservedGroups::Private);
    member.create(admin).await?;
    is(testbed, &member, "True", "PrivateTypes").await?;
    member.put(admin, Side::Standard).await?;
    is(testbed, &member, "Unknown", "ObjectsInBothGroups").await?;
    member.take(admin, Side::Private).await?;
    is(testbed, &member, "False", "PrivateWithStandardObjects").await?;
    member.put(admin, Side::Private).await?;
    is(testbed, &member, "Unknown", "ObjectsInBothGroups").await?;
    member.take(admin, Side::Standard).await?;
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

/// What is granted is used, and nothing of it can be spared.
async fn minimal(testbed: &Testbed, identity: &Identity) -> Result<()> {
    let step = testbed.progress.step("rights are taken away one by one");
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

/// O06: without its rights the operator says so, goes on, and recovers.
async fn denied(testbed: &Testbed, replica: &Replica) -> Result<()> {
    let step = testbed.progress.step("rights are revoked and restored");
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

/// O06: the same without the CRD of HostedClusters. With them the need for operator-legacy goes, which the operator may
/// have seen before it could not look any more; from then on it deletes nothing.
async fn crds(testbed: &Testbed, replica: &Replica) -> Result<()> {
    let step = testbed
        .progress
        .step("the CRD of HostedClusters goes and comes back");
    let crds = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let path = format!("{}/hostedclusters.hypershift.openshift.io", crds.all());
    testbed.admin.delete(&path).await?;
    until_degraded(replica, "cannot list HostedClusters").await?;
    deploy_legacy(&testbed.admin).await?;
    wait::until("the CRD to be gone", SOON, async || {
        ensure!(testbed.admin.find(&path).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    ensure!(
        !is_retired(&testbed.admin).await?,
        "operator-legacy was deleted although it is not known whether it is needed"
    );
    crate::operator::install_hosted_clusters(testbed).await?;
    until_ready(replica).await?;
    until_retired(&testbed.admin).await?;
    step.done();
    Ok(())
}

async fn until_degraded(replica: &Replica, because: &str) -> Result<()> {
    wait::until(
        "the operator to say that it is degraded",
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
