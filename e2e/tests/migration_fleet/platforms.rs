//! A hosted cluster of every platform migrates, without a disturbance. The fleet has these platforms, too, and kills.

use anyhow::Result;
use serde_json::json;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::fleet::{CONCURRENCY, Case, EACH, Guard, make};
use crate::migration_fleet::member::Member;
use crate::migration_fleet::platform::Platform;

pub(crate) async fn scenario(testbed: &mut Testbed, fixture: &mut Fixture) -> Result<()> {
    fixture
        .switch(&testbed.admin, &json!({ "concurrency": CONCURRENCY }))
        .await?;
    fixture.install_legacy(testbed).await?;
    let mut cases = Platform::ALL.map(|platform| Case::of(Member::new(platform.name(), platform)));
    make(testbed, fixture, &mut cases).await?;
    let guard = Guard::begin(testbed)?;
    let step = testbed.progress.step("all migrate by themselves");
    fixture.install_private(testbed).await?;
    let patience = EACH * u32::try_from(cases.len())?;
    wait::until("all to have gone", patience, async || {
        fixture.adds_up().await?;
        for case in &cases {
            case.has_ended(testbed).await?;
        }
        Ok(())
    })
    .await?;
    for case in &cases {
        case.is_the_same(fixture).await?;
    }
    guard.check(testbed, &cases)?;
    fixture.legacy_goes(&testbed.admin).await?;
    step.done_with(&format!("{} clusters", cases.len()));
    Ok(())
}
