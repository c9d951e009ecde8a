//! What a user at a terminal sees and does.

use anyhow::{Context, Result, ensure};
use api::group::{self, CapiTypes};
use testbed::capi_storage;
use testbed::migration::object_snapshot::ObjectSnapshot;
use testbed::migration::raised;
use testbed::testbed::Testbed;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::member::Member;

/// M15: `migrate plan` lists what there is, and writes nothing.
pub(crate) async fn plan_writes_nothing(
    testbed: &Testbed,
    fixture: &Fixture,
    member: &Member,
) -> Result<()> {
    let step = testbed.progress.step("hypershift migrate plan");
    let object_snapshot = member.object_snapshot(fixture).await?;
    let mark = testbed.control_plane.audit.mark()?;
    let said = fixture.does(&["migrate", "plan", "--all"]).await?;
    for key in object_snapshot
        .moved
        .keys()
        .chain(object_snapshot.others.keys())
    {
        let name = key.rsplit('/').next().unwrap_or(key);
        ensure!(said.contains(name), "m15: {key} is not in the plan");
    }
    let requested = testbed.control_plane.audit.since(mark)?.into_iter();
    let own: Vec<_> = requested
        .filter(|event| event.user.username == fixture.sre())
        .collect();
    ensure!(!own.is_empty(), "m15: it has sent no request");
    let written = own.iter().filter(|event| {
        // An access review is a create request that stores nothing.
        event.is_write() && event.object_ref.api_group != "authorization.k8s.io"
    });
    let written: Vec<_> = written.map(testbed::audit::Event::summary).collect();
    ensure!(written.is_empty(), "m15: {written:?}");
    status_says(fixture, "0 done, 1 pending, 0 active, 0 failed").await?;
    step.done();
    Ok(())
}

/// `migrate status` begins with these counts.
pub(crate) async fn status_says(fixture: &Fixture, counts: &str) -> Result<()> {
    let (_, said) = fixture.hypershift(&["migrate", "status"]).await?;
    ensure!(said.contains(counts), "not {counts:?}: {said}");
    Ok(())
}

/// `migrate groups` moves what no hosted cluster owns.
pub(crate) async fn groups(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    let step = testbed.progress.step("hypershift migrate groups");
    let namespace = "elsewhere";
    raised::raise(&testbed.admin, namespace, "its-own", 2).await?;
    let before = ObjectSnapshot::of(&fixture.client, namespace).await?;
    move_groups(testbed, fixture, namespace, CapiTypes::Private).await?;
    let after = ObjectSnapshot::of(&fixture.client, namespace).await?;
    before.same_as(&after)?;
    step.done_with(&format!("{} objects", before.moved.len()));
    Ok(())
}

/// Moves the objects of a namespace, and checks that none is left.
async fn move_groups(
    testbed: &Testbed,
    fixture: &Fixture,
    namespace: &str,
    to: CapiTypes,
) -> Result<()> {
    let [source, target] = [to.other(), to].map(group::core);
    let words = ["migrate", "groups", "--from", &source, "--to", &target];
    let rest = ["--namespace", namespace, "--controllers-are-stopped"];
    let mut words: Vec<_> = words.into_iter().chain(rest).collect();
    words.extend(["--calm", "1s"]);
    fixture.does(&words).await?;
    let stored = capi_storage::within(&testbed.control_plane.etcd, namespace).await?;
    stored.are_only_on(to).context("m20a")
}
