//! One cluster with its controllers migrates to private types, back, and again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::annotations::MIGRATION_HOLD;
use api::group::CapiTypes;
use serde_json::json;
use testbed::client::Patch;
use testbed::conditions::{is_true, untrue};
use testbed::testbed::Testbed;
use testbed::wait;

use crate::migration_fleet::commands;
use crate::migration_fleet::controllers::Controllers;
use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::member::Member;
use crate::migration_fleet::platform::Platform;
use crate::migration_fleet::same::{at_rest, stays};

/// How long one thing may take. Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(3);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) async fn scenario(testbed: &mut Testbed, fixture: &mut Fixture) -> Result<()> {
    let member = Member::new("one", Platform::Aws);
    let mut controllers = Controllers::new(fixture, &member);
    fixture.install_legacy(testbed).await?;
    comes_up(testbed, fixture, &member, &mut controllers).await?;
    commands::plan_writes_nothing(testbed, fixture, &member).await?;

    let before = at_rest(fixture, &member).await?;
    let mark = fixture.trail.mark();
    let step = testbed.progress.step("it migrates by itself");
    fixture.install_private(testbed).await?;
    until_on(
        testbed,
        fixture,
        &member,
        &mut controllers,
        CapiTypes::Private,
    )
    .await?;
    fixture.trail.is_one_migration(mark, &member.name)?;
    stays(fixture, &member, &before).await?;
    fixture.legacy_goes(&testbed.admin).await?;
    step.done();
    works(testbed, &member, &mut controllers, CapiTypes::Private, 2).await?;
    commands::status_says(fixture, "1 done, 0 pending, 0 active, 0 failed").await?;

    back_and_there(testbed, fixture, &member, &mut controllers).await
}

/// M12: the way back is a migration of its own, and the cluster is held until a user requests the migration again.
async fn back_and_there(
    testbed: &mut Testbed,
    fixture: &mut Fixture,
    member: &Member,
    controllers: &mut Controllers,
) -> Result<()> {
    let before = at_rest(fixture, member).await?;
    let step = testbed.progress.step("it is rolled back on request");
    let words = ["migrate", "rollback", "--name", member.name.as_str()];
    fixture.does(&words).await?;
    fixture.install_legacy(testbed).await?;
    until_on(testbed, fixture, member, controllers, CapiTypes::Standard).await?;
    stays(fixture, member, &before).await?;
    let held = member.annotation(&testbed.admin, MIGRATION_HOLD).await?;
    ensure!(held.as_deref() == Some("true"), "it is not held: {held:?}");
    fixture.has_legacy(&testbed.admin).await?;
    step.done();
    works(testbed, member, controllers, CapiTypes::Standard, 3).await?;
    commands::status_says(fixture, "0 done, 1 pending, 0 active, 0 failed").await?;

    let step = testbed.progress.step("it migrates again");
    let before = at_rest(fixture, member).await?;
    let mark = fixture.trail.mark();
    let words = ["migrate", "retry", "--name", member.name.as_str()];
    fixture.does(&words).await?;
    until_on(testbed, fixture, member, controllers, CapiTypes::Private).await?;
    fixture.trail.is_one_migration(mark, &member.name)?;
    stays(fixture, member, &before).await?;
    fixture.legacy_goes(&testbed.admin).await?;
    step.done();
    works(testbed, member, controllers, CapiTypes::Private, 1).await
}

/// operator-legacy makes it, its control-plane-operator rolls it out, and stock Cluster API makes its machines.
async fn comes_up(
    testbed: &mut Testbed,
    fixture: &Fixture,
    member: &Member,
    controllers: &mut Controllers,
) -> Result<()> {
    let step = testbed.progress.step("a cluster on standard types starts");
    let admin = testbed.admin.clone();
    member.create(&admin, fixture).await?;
    let started = Instant::now();
    loop {
        controllers.follow(testbed).await?;
        let cluster = member.seen(&admin).await?;
        let machines = member.machines(&admin, CapiTypes::Standard).await?;
        if is_true(&cluster, "Available") && machines == 1 {
            break;
        }
        ensure!(
            started.elapsed() < WITHIN * 2,
            "it has {machines} machines, and says {}",
            untrue(&cluster)
        );
        tokio::time::sleep(LOOK).await;
    }
    step.done();
    Ok(())
}

/// Waits until it is with given types for good, while its controllers follow their Deployments.
async fn until_on(
    testbed: &mut Testbed,
    fixture: &Fixture,
    member: &Member,
    controllers: &mut Controllers,
    capi_types: CapiTypes,
) -> Result<()> {
    let started = Instant::now();
    loop {
        controllers.follow(testbed).await?;
        fixture.adds_up().await?;
        let Err(not_yet) = is_over(testbed, member, capi_types).await else {
            break;
        };
        ensure!(
            started.elapsed() < WITHIN,
            "waited {} for {} to be on the {capi_types:?} side: {not_yet:#}; it said {:#?}",
            wait::seconds(started.elapsed()),
            member.name,
            fixture.trail.since(0, &member.name)
        );
        tokio::time::sleep(LOOK).await;
    }
    controllers.follow(testbed).await?;
    let runs = controllers.running();
    ensure!(
        runs == (true, Some(capi_types)),
        "of its controllers run {runs:?}"
    );
    Ok(())
}

async fn is_over(testbed: &Testbed, member: &Member, capi_types: CapiTypes) -> Result<()> {
    member.is_on(testbed, capi_types).await?;
    member.is_at_rest(testbed).await
}

/// Scaled to another number of nodes, it has as many machines: all of its controllers work.
async fn works(
    testbed: &mut Testbed,
    member: &Member,
    controllers: &mut Controllers,
    capi_types: CapiTypes,
    nodes: u32,
) -> Result<()> {
    let step = testbed.progress.step("it is scaled");
    controllers.follow(testbed).await?;
    member.works(&testbed.admin, capi_types, nodes).await?;
    wait::until("as many machines", WITHIN, async || {
        let found = member.machines(&testbed.admin, capi_types).await?;
        ensure!(
            found == usize::try_from(nodes)?,
            "there are {found} machines"
        );
        Ok(())
    })
    .await?;
    // Looked at again, nothing is created again.
    let looked = json!({ "metadata": { "annotations": { "example.com/looked": "at" } } });
    testbed
        .admin
        .patch(&member.path(), Patch::Merge, &looked)
        .await?;
    step.done();
    Ok(())
}
