//! A fleet with clusters of every platform, of which some cannot migrate: the others do, and these work on as they are until
//! they are fixed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::{MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD};
use api::group::CapiTypes;
use futures::future::try_join_all;
use serde_json::json;
use testbed::audit::Mark;
use testbed::client::ApiClient;
use testbed::migration::object_snapshot::ObjectSnapshot;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::migration_fleet::deletions::Deletions;
use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::member::Member;
use crate::migration_fleet::platform::Platform;
use crate::migration_fleet::poison::Poison;
use crate::migration_fleet::same::{at_rest, stays};
use crate::migration_fleet::{commands, killed, machines};

/// How many clusters, unless the variable says another number: a healthy one of each platform beside one of each poison.
const SIZE: usize = 13;
const SIZE_VARIABLE: &str = "HYPERSHIFT_FLEET";
/// How many are made, or looked at, at a time.
const AT_A_TIME: usize = 6;
/// How many migrate at a time.
pub(crate) const CONCURRENCY: &str = "4";
/// How long one cluster of the fleet may take, on a busy machine.
pub(crate) const EACH: Duration = Duration::from_mins(1);
/// Who deletes what has lost its owners.
const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// A member, what keeps it from migrating, and what it consisted of before.
pub(crate) struct Case {
    pub(crate) member: Member,
    pub(crate) poison: Option<Poison>,
    before: Option<ObjectSnapshot>,
}

/// What must not happen while clusters migrate.
pub(crate) struct Guard {
    deletions: Deletions,
    mark: Mark,
}

pub(crate) async fn scenario(testbed: &mut Testbed, fixture: &mut Fixture) -> Result<()> {
    fixture
        .switch(&testbed.admin, &json!({ "paused": "true" }))
        .await?;
    fixture.install_legacy(testbed).await?;
    let mut cases = cases()?;
    make(testbed, fixture, &mut cases).await?;
    let guard = Guard::begin(testbed)?;
    // Without a legacy cluster, it would delete operator-legacy.
    fixture.install_private(testbed).await?;

    let step = testbed
        .progress
        .step("the healthy ones migrate, while their operator is killed");
    let open = json!({ "concurrency": CONCURRENCY });
    fixture.switch(&testbed.admin, &open).await?;
    let kills = killed::scenario(testbed, fixture, &cases).await?;
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
    fixture.legacy_goes(&testbed.admin).await?;
    guard.check(testbed, &cases)?;
    go_back(testbed, fixture, &cases).await?;
    guard.check(testbed, &cases)
}

fn cases() -> Result<Vec<Case>> {
    let size = match std::env::var(SIZE_VARIABLE) {
        Ok(size) => size.parse().context(SIZE_VARIABLE)?,
        Err(_) => SIZE,
    };
    let poisons = Poison::ALL;
    ensure!(size > poisons.len(), "{size} clusters are no fleet");
    let mut platforms = Platform::ALL.into_iter().cycle();
    let cases = (0..size).map(|number| {
        let name = format!("fleet-{number:02}");
        // The poisoned ones are the oldest: they must not hold up the others.
        match poisons.get(number) {
            Some(poison) => Case {
                poison: Some(*poison),
                ..Case::of(Member::new(name, Platform::Aws))
            },
            None => Case::of(Member::new(name, platforms.next().unwrap_or(Platform::Aws))),
        }
    });
    Ok(cases.collect())
}

pub(crate) async fn make(testbed: &Testbed, fixture: &Fixture, cases: &mut [Case]) -> Result<()> {
    let step = testbed.progress.step("operator-legacy makes a fleet");
    let admin = &testbed.admin;
    for some in cases.chunks_mut(AT_A_TIME) {
        for case in some.iter() {
            case.member.create(admin, fixture).await?;
        }
        try_join_all(some.iter_mut().map(|case| case.comes_up(admin, fixture))).await?;
    }
    step.done_with(&format!("{} clusters", cases.len()));
    Ok(())
}

// === impl Guard ===

impl Guard {
    pub(crate) fn begin(testbed: &Testbed) -> Result<Self> {
        Ok(Self {
            deletions: Deletions::watch(&testbed.admin),
            mark: testbed.control_plane.audit.mark()?,
        })
    }

    /// No provider would have deleted anything, and nothing has lost its owners.
    pub(crate) fn check(&self, testbed: &Testbed, cases: &[Case]) -> Result<()> {
        self.deletions.are_none()?;
        let namespaces: Vec<_> = cases.iter().map(|case| case.member.namespace()).collect();
        let events = testbed.control_plane.audit.since(self.mark)?.into_iter();
        let collected = events.filter(|event| {
            event.verb == "delete"
                && event.user.username == GARBAGE_COLLECTOR
                && namespaces.contains(&event.object_ref.namespace)
        });
        let collected: Vec<_> = collected.map(|event| event.summary()).collect();
        ensure!(collected.is_empty(), "m04: {collected:#?}");
        Ok(())
    }
}

// === impl Case ===

impl Case {
    pub(crate) fn of(member: Member) -> Self {
        Self {
            member,
            poison: None,
            before: None,
        }
    }

    /// Comes up with a machine, is poisoned, and is remembered.
    async fn comes_up(&mut self, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
        let Self {
            member,
            poison,
            before,
        } = self;
        let made = async {
            member.comes_up(admin).await?;
            machines::come_up(admin, member).await?;
            if let Some(poison) = poison {
                let given = poison.give(admin, member).await;
                given.with_context(|| format!("{poison:?}"))?;
            }
            at_rest(fixture, member).await
        };
        let made = made.await;
        *before = Some(made.with_context(|| format!("{} ({:?})", member.name, member.platform))?);
        Ok(())
    }

    /// Fails unless it is on private types for good, or stays on standard types and says why.
    pub(crate) async fn has_ended(&self, testbed: &Testbed) -> Result<()> {
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

    /// It is what it was, and all owners are there.
    pub(crate) async fn is_the_same(&self, fixture: &Fixture) -> Result<()> {
        let Member { name, platform } = &self.member;
        let before = self.before.as_ref().context("it was never whole")?;
        let stays = stays(fixture, &self.member, before).await;
        stays.with_context(|| format!("m02: {name} ({platform:?})"))?;
        self.member.has_its_owners(fixture).await
    }

    /// Fails unless it is on standard types again for good, and held there.
    async fn is_back(&self, testbed: &Testbed) -> Result<()> {
        self.member.is_on(testbed, CapiTypes::Standard).await?;
        self.member.is_at_rest(testbed).await?;
        let held = self
            .member
            .annotation(&testbed.admin, MIGRATION_HOLD)
            .await?;
        ensure!(held.as_deref() == Some("true"), "it is not held: {held:?}");
        Ok(())
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
    commands::status_says(fixture, &counts).await
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

/// M12: a cluster of each platform migrates to standard types, as it was.
async fn go_back(testbed: &Testbed, fixture: &mut Fixture, cases: &[Case]) -> Result<()> {
    let step = testbed
        .progress
        .step("one of each platform is rolled back on request");
    let of = |platform: &Platform| cases.iter().find(|it| it.member.platform == *platform);
    let chosen: Vec<_> = Platform::ALL.iter().filter_map(of).collect();
    for case in &chosen {
        let words = ["migrate", "rollback", "--name", case.member.name.as_str()];
        fixture.does(&words).await?;
    }
    fixture.install_legacy(testbed).await?;
    let patience = EACH * u32::try_from(chosen.len())?;
    wait::until("all to be back", patience, async || {
        for case in &chosen {
            case.is_back(testbed).await?;
        }
        Ok(())
    })
    .await?;
    for case in &chosen {
        case.is_the_same(fixture).await?;
    }
    step.done_with(&format!("{} clusters", chosen.len()));
    Ok(())
}
