//! A fleet of which some cannot migrate: the others do, and these work on as they are until they are fixed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::{MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE};
use api::group::CapiTypes;
use futures::future::try_join_all;
use serde_json::json;
use testbed::migration::object_snapshot::ObjectSnapshot;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::killed;
use crate::migration_fleet::member::Member;
use crate::migration_fleet::poison::Poison;
use crate::migration_fleet::same::same;

/// How many clusters, unless the variable says another number: healthy ones beside one of each poison.
const SIZE: usize = 9;
const SIZE_VARIABLE: &str = "HYPERSHIFT_FLEET";
/// How many are made, or looked at, at a time.
const AT_A_TIME: usize = 6;
/// How many migrate at a time.
const CONCURRENCY: &str = "4";
/// How long one cluster of the fleet may take, on a busy machine.
const EACH: Duration = Duration::from_secs(30);

/// A member, what keeps it from migrating, and what it consisted of before.
pub(crate) struct Case {
    pub(crate) member: Member,
    pub(crate) poison: Option<Poison>,
    before: Option<ObjectSnapshot>,
}

pub(crate) async fn scenario(testbed: &mut Testbed, fixture: &mut Fixture) -> Result<()> {
    fixture
        .switch(&testbed.admin, &json!({ "paused": "true" }))
        .await?;
    fixture.install_legacy(testbed).await?;
    let mut cases = cases()?;
    make(testbed, fixture, &mut cases).await?;
    // Without a legacy cluster, it would delete operator-legacy.
    fixture.install_private(testbed).await?;

    let step = testbed
        .progress
        .step("the healthy ones migrate, while their operator is killed");
    let open = json!({ "concurrency": CONCURRENCY });
    fixture.switch(&testbed.admin, &open).await?;
    let kills = killed::scenario(fixture, &cases).await?;
    let patience = EACH * u32::try_from(cases.len())?;
    wait::until(
        "each to have gone or to say why not",
        patience,
        async || {
            fixture.adds_up().await?;
            for case in &cases {
                case.has_ended(testbed).await?;
            }
            Ok(())
        },
    )
    .await?;
    step.done_with(&kills.to_string());
    migration_metrics_add_up(fixture, &cases).await?;
    poisoned_ones_work(testbed, fixture, &cases).await?;
    fixed(testbed, fixture, &mut cases).await?;
    fixture.legacy_goes(&testbed.admin).await
}

fn cases() -> Result<Vec<Case>> {
    let size = match std::env::var(SIZE_VARIABLE) {
        Ok(size) => size.parse().context(SIZE_VARIABLE)?,
        Err(_) => SIZE,
    };
    let poisons = Poison::ALL;
    ensure!(size > poisons.len(), "{size} clusters are no fleet");
    let cases = (0..size).map(|number| Case {
        member: Member::new(format!("fleet-{number:02}")),
        // The poisoned ones are the oldest: they must not hold up the others.
        poison: poisons.get(number).copied(),
        before: None,
    });
    Ok(cases.collect())
}

async fn make(testbed: &Testbed, fixture: &Fixture, cases: &mut [Case]) -> Result<()> {
    let step = testbed.progress.step("operator-legacy makes a fleet");
    let admin = &testbed.admin;
    for some in cases.chunks_mut(AT_A_TIME) {
        for case in some.iter() {
            case.member.create(admin, fixture).await?;
        }
        try_join_all(some.iter().map(|case| case.member.comes_up(admin))).await?;
        for case in some {
            if let Some(poison) = case.poison {
                let given = poison.give(admin, &case.member).await;
                given.with_context(|| format!("{poison:?}"))?;
            }
            case.before = Some(case.member.object_snapshot(fixture).await?);
        }
    }
    step.done_with(&format!("{} clusters", cases.len()));
    Ok(())
}

// === impl Case ===

impl Case {
    /// Fails unless it is on private types for good, or stays on standard types and says why.
    async fn has_ended(&self, testbed: &Testbed) -> Result<()> {
        let Some(poison) = self.poison else {
            self.member.is_on(testbed, CapiTypes::Private).await?;
            return self.member.is_at_rest(testbed).await;
        };
        let admin = &testbed.admin;
        let (reason, word) = poison.reason();
        let failed = self.member.annotation(admin, MIGRATION_FAILED).await?;
        let message = self
            .member
            .annotation(admin, MIGRATION_FAILURE_MESSAGE)
            .await?;
        let message = message.unwrap_or_default();
        ensure!(
            failed.as_deref() == Some(reason.name()) && message.contains(word),
            "{} has {poison:?}, and says {failed:?}: {message}",
            self.member.name
        );
        self.member.is_on(testbed, CapiTypes::Standard).await
    }

    /// It is what it was.
    async fn is_the_same(&self, fixture: &Fixture) -> Result<()> {
        let before = self.before.as_ref().context("it was never whole")?;
        let after = self.member.object_snapshot(fixture).await?;
        same(before, &after).with_context(|| format!("m02: {}", self.member.name))
    }
}

/// M20: the metrics say what there is.
/// Check M20.
async fn migration_metrics_add_up(fixture: &Fixture, cases: &[Case]) -> Result<()> {
    let failed = cases.iter().filter(|case| case.poison.is_some()).count();
    let done = cases.len() - failed;
    wait::until("m20: the metrics", EACH, async || {
        let found = (
            fixture.counted("done").await?,
            fixture.counted("failed").await?,
        );
        let expected = (u64::try_from(done)?, u64::try_from(failed)?);
        ensure!(
            found == expected,
            "{found:?} are done and failed, not {expected:?}"
        );
        Ok(())
    })
    .await?;
    let counts = format!("{done} done, 0 pending, 0 active, {failed} failed");
    crate::migration_fleet::commands::status_says(fixture, &counts).await
}

/// M19: clusters that cannot migrate stay with operator-legacy.
async fn poisoned_ones_work(testbed: &Testbed, fixture: &Fixture, cases: &[Case]) -> Result<()> {
    let step = testbed
        .progress
        .step("the others are what they were, and work");
    fixture.has_legacy(&testbed.admin).await?;
    for case in cases {
        case.is_the_same(fixture).await?;
    }
    for case in cases.iter().filter(|case| case.poison.is_some()) {
        case.member
            .works(&testbed.admin, CapiTypes::Standard, 2)
            .await?;
    }
    step.done();
    Ok(())
}

/// With their causes fixed, they are tried again and migrate.
async fn fixed(testbed: &Testbed, fixture: &Fixture, cases: &mut [Case]) -> Result<()> {
    let step = testbed.progress.step("fixed, they are tried again");
    for case in cases.iter_mut() {
        if let Some(poison) = case.poison.take() {
            poison.fix(&testbed.admin, &case.member).await?;
            case.before = Some(case.member.object_snapshot(fixture).await?);
        }
    }
    fixture.does(&["migrate", "retry", "--all"]).await?;
    let patience = EACH * u32::try_from(cases.len())?;
    wait::until("all to have gone", patience, async || {
        fixture.adds_up().await?;
        for case in cases.iter() {
            case.has_ended(testbed).await?;
        }
        Ok(())
    })
    .await?;
    for case in cases.iter() {
        case.is_the_same(fixture).await?;
    }
    let said = fixture.does(&["migrate", "status"]).await?;
    ensure!(said.contains(" 0 failed"), "{said}");
    step.done();
    Ok(())
}
