//! The objects of the hosted cluster on a real API server with OpenShift's real CRDs: they are the reference's, field by
//! field, a second pass writes nothing, changes of users are taken back or kept, and deletions happen.
//!
//! etcd and the API server of the testbed are the hosted cluster. Its first objects come as in the API server's pod:
//! `render` of the release, then `kas-bootstrap`. `OAuthClients` have a stand-in of their kind: its server is not available.

mod bootstrap;
mod changes;
mod deletions;
mod guest;
mod oauth;
mod pass;
mod settings;

// The input and the facts are those of the tests of the control-plane-operator.
#[path = "../../../control-plane-operator/tests/guest/compare.rs"]
#[expect(clippy::unwrap_used, reason = "tests may panic")]
#[expect(dead_code, reason = "some functions are for other tests")]
mod compare;
#[path = "../../../control-plane-operator/tests/guest/facts.rs"]
#[expect(clippy::unwrap_used, reason = "tests may panic")]
#[expect(dead_code, reason = "some functions are for other tests")]
mod facts;
#[path = "../../../control-plane-operator/tests/guest/profiles.rs"]
#[expect(clippy::unwrap_used, reason = "tests may panic")]
#[expect(dead_code, reason = "some functions are for other tests")]
mod profiles;
#[path = "../../../control-plane-operator/tests/guest/values.rs"]
mod values;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use testbed::progress::Progress;
use testbed::testbed::Testbed;

use guest::Guest;
use profiles::{PLATFORMS, Profile};

/// Numbers of objects of the profiles, in their order.
const COUNTS: [usize; 3] = [133, 123, 134];

#[tokio::test]
async fn guest_objects_are_those_of_the_reference() -> Result<()> {
    let testbed = Testbed::start("guest-objects", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    bootstrap::run(testbed).await?;
    let guest = Guest::prepare(testbed).await?;
    let facts = compare::theirs();
    let mut deleted = BTreeSet::new();
    for ((name, platform), count) in PLATFORMS.into_iter().zip(COUNTS) {
        let step = testbed
            .progress
            .step(format!("writing the objects of platform {platform}"));
        let mut profile = Profile::new(platform);
        let expected = compare::of_profile(&facts, name);
        ensure!(expected.len() == count, "{platform}: {}", expected.len());
        let mut found = oauth::objects(&guest, &profile).await?;
        pass::run(&guest, &mut profile).await?;
        found.extend(pass::objects(&guest, &profile).await?);
        guest.check(pass::compare(platform, &facts, &expected, &found));
        pass::run(&guest, &mut profile).await?;
        let again = pass::objects(&guest, &profile).await?;
        pass::unchanged(&guest, &found, &again);
        step.done_with(&format!("{} objects", found.len()));

        let step = testbed.progress.step("changing objects as a user");
        let changed = changes::run(&guest, &mut profile).await?;
        step.done_with(&format!(
            "{} taken back, {} kept",
            changed.taken_back, changed.kept
        ));
        let step = testbed.progress.step("deleting objects");
        let gone = deletions::run(&guest, &mut profile).await?;
        step.done_with(&format!("{} objects", gone.len()));
        deleted.extend(gone);
        guest.clean_up(&found).await?;
    }
    let step = testbed
        .progress
        .step("writing the objects of a cluster with many settings");
    let count = settings::run(&guest).await?;
    step.done_with(&format!("{count} objects"));
    guest.check(deletions::are_complete(&facts, &deleted));
    guest.finish()
}
