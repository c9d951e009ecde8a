//! What somebody at a terminal sees and does.

use anyhow::{Result, ensure};
use api::group::{self, Side};
use e2e::migration::portrait::Portrait;
use e2e::migration::raised;
use e2e::sides;
use e2e::testbed::Testbed;

use crate::migration_fleet::ground::Ground;
use crate::migration_fleet::member::Member;

/// M15: `migrate plan` lists what there is, and writes nothing.
pub(crate) async fn plan_writes_nothing(
    testbed: &Testbed,
    ground: &Ground,
    member: &Member,
) -> Result<()> {
    let step = testbed.progress.step("hypershift migrate plan");
    let portrait = member.portrait(ground).await?;
    let mark = testbed.control_plane.audit.mark()?;
    let said = ground.does(&["migrate", "plan", "--all"]).await?;
    for key in portrait.moved.keys().chain(portrait.others.keys()) {
        let name = key.rsplit('/').next().unwrap_or(key);
        ensure!(said.contains(name), "m15: {key} is not in the plan");
    }
    let asked = testbed.control_plane.audit.since(mark)?.into_iter();
    let own: Vec<_> = asked
        .filter(|event| event.user.username == ground.sre())
        .collect();
    ensure!(!own.is_empty(), "m15: it has asked for nothing");
    let written = own.iter().filter(|event| {
        // A question about rights is asked by creating it, and nothing is stored.
        event.is_write() && event.object_ref.api_group != "authorization.k8s.io"
    });
    let written: Vec<_> = written.map(e2e::audit::Event::summary).collect();
    ensure!(written.is_empty(), "m15: {written:?}");
    status_says(ground, "0 done, 1 pending, 0 active, 0 failed").await?;
    step.done();
    Ok(())
}

/// `migrate status` begins with these counts.
pub(crate) async fn status_says(ground: &Ground, counts: &str) -> Result<()> {
    let (_, said) = ground.hypershift(&["migrate", "status"]).await?;
    ensure!(said.contains(counts), "not {counts:?}: {said}");
    Ok(())
}

/// `migrate groups` moves what no hosted cluster owns.
pub(crate) async fn groups(testbed: &Testbed, ground: &Ground) -> Result<()> {
    let step = testbed.progress.step("hypershift migrate groups");
    let namespace = "elsewhere";
    raised::raise(&testbed.admin, namespace, "its-own", 2).await?;
    let before = Portrait::of(&ground.client, namespace).await?;
    let (from, to) = (group::core(Side::Standard), group::core(Side::Private));
    let words = ["migrate", "groups", "--from", &from, "--to", &to];
    let rest = ["--namespace", namespace, "--controllers-are-stopped"];
    let mut words: Vec<_> = words.into_iter().chain(rest).collect();
    words.extend(["--calm", "1s"]);
    ground.does(&words).await?;
    let after = Portrait::of(&ground.client, namespace).await?;
    before.same_as(&after)?;
    let within = format!("/{namespace}/");
    let left = sides::objects(&testbed.control_plane.etcd, Side::Standard).await?;
    let left: Vec<_> = left.iter().filter(|key| key.contains(&within)).collect();
    ensure!(left.is_empty(), "m20a: {left:?} are left");
    step.done_with(&format!("{} objects", before.moved.len()));
    Ok(())
}
