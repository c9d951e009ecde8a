//! The conversion webhook before a real API server, with the stock managers as its backends.
//!
//! One ordered scenario on one testbed, because starting the managers takes most of its time. What it shows:
//!
//! 1. Objects keep uid, count, order and metadata (C01), and one that cannot be converted is named, while the others
//!    can still be read (C02).
//! 2. Every kind makes a round trip, byte for byte as the stock backend converts it (C04).
//! 3. The platform's own Cluster API, of another version and with an unreachable webhook, changes nothing (C03).
//! 4. No read fails while replicas come and go and certificates change (C05), and what failed while all replicas were
//!    away is made up for by itself (C07).
//! 5. The backends do nothing else: they write nothing, and their rights let them write nothing.

pub(crate) mod backend;
mod fixture;
mod install;
mod load;
mod outage;
mod platform;
mod random;
mod renewal;
mod replicas;
mod reviews;
mod round_trip;
pub(crate) mod shims;
mod stored;

use anyhow::{Result, ensure};
use testbed::progress::Progress;

use fixture::Fixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversion_equals_that_of_cluster_api() -> Result<()> {
    let mut fixture = Fixture::start(Progress::detect()).await?;
    let outcome = scenario(&mut fixture).await;
    let Fixture { testbed, .. } = fixture;
    testbed.finish(outcome)
}

async fn scenario(fixture: &mut Fixture) -> Result<()> {
    let mark = fixture.testbed.control_plane.audit.mark()?;
    let step = fixture
        .testbed
        .progress
        .step("C04: every kind there and back");
    let compared = round_trip::of_every_kind(fixture, &fixture.standard).await?;
    ensure!(compared.kinds >= 15, "only {compared:?}");
    step.done_with(&format!("{compared:?}"));

    let step = fixture.testbed.progress.step("C01: counts and versions");
    stored::conversion_keeps_counts_and_versions(fixture).await?;
    stored::lists_are_converted_by_the_api_server(fixture).await?;
    step.done();
    let step = fixture
        .testbed
        .progress
        .step("C02: one that cannot be converted");
    stored::one_invalid_object_is_named(fixture).await?;
    step.done();

    let step = fixture.testbed.progress.step("C03: the platform's own");
    platform::the_platform_has_its_own_webhook(fixture).await?;
    step.done();

    let step = fixture
        .testbed
        .progress
        .step("C05: replicas come and go, certificates change");
    let reads = replicas::reads_succeed_during_rolling_updates(fixture).await?;
    step.done_with(&format!("{reads} reads, none failed"));
    let step = fixture.testbed.progress.step("C07: all replicas away");
    let recovered = outage::garbage_collection_recovers_after_an_outage(fixture).await?;
    step.done_with(&format!("recovered {recovered:.1?} after they returned"));

    replicas::backends_only_read(fixture, mark)?;
    fixture.backends.check()
}

/// Check T07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_webhook_certificate_is_renewed_without_a_failed_read() -> Result<()> {
    let mut fixture = renewal::start(Progress::detect()).await?;
    let outcome = renewal::scenario(&mut fixture).await;
    let Fixture { testbed, .. } = fixture;
    testbed.finish(outcome)
}
