//! Replicas that come and go under load (C05), and what the backends did meanwhile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::audit::Mark;
use testbed::wait;

use crate::conversion::fixture::{Fixture, NAMESPACE};
use crate::conversion::load::{Load, READERS};
use crate::conversion::reviews::{Webhook, review};
use crate::conversion::stored::{OLD, cluster};

/// Reads between two events.
const CALM: usize = 200;
/// What is read: an object that is stored at the newer version.
const READ: &str = "c-00";
const SOON: Duration = Duration::from_secs(20);

/// Each replica is replaced, as in a rolling update; then all certificates are. Returns the reads.
/// Check C05.
pub(crate) async fn reads_succeed_during_rolling_updates(fixture: &mut Fixture) -> Result<usize> {
    let admin = fixture.testbed.admin.clone();
    let load = Load::start(&admin, &OLD.named(NAMESPACE, READ));
    replace_each(fixture, &load).await?;
    calm(&load).await?;
    fixture.rotate().await?;
    all_servers_use_the_new_certificate(fixture, &fixture.next_authority()).await?;
    calm(&load).await?;
    let reads = load.end().await?.all_succeeded()?;
    one_is_killed(fixture).await?;
    Ok(reads)
}

/// Replaces each replica, as in a rolling update. Connections to it are opened again, to another one.
async fn replace_each(fixture: &mut Fixture, load: &Load) -> Result<()> {
    for number in 0..fixture.shims.replicas.len() {
        calm(load).await?;
        fixture.shims.end(number).await?;
        calm(load).await?;
        fixture.shims.begin(number).await?;
    }
    Ok(())
}

/// Reads in progress on a killed replica fail, at most one per reader, and no later ones.
async fn one_is_killed(fixture: &mut Fixture) -> Result<()> {
    let admin = fixture.testbed.admin.clone();
    let load = Load::start(&admin, &OLD.named(NAMESPACE, READ));
    calm(&load).await?;
    fixture.shims.kill(0);
    calm(&load).await?;
    let reads = load.end().await?;
    ensure!(
        reads.failures.len() <= READERS,
        "{} of {} reads failed: {:?}",
        reads.failures.len(),
        reads.all,
        reads.failures.last()
    );
    fixture.shims.begin(0).await
}

pub(crate) async fn calm(load: &Load) -> Result<()> {
    let until = load.reads() + CALM;
    wait::until("reads to go on", SOON, async || match load.reads() {
        reads if reads >= until => Ok(()),
        reads => wait::not_yet(format!("{reads} of {until}")),
    })
    .await
}

/// Waits until all of them show a certificate of this authority.
pub(crate) async fn all_servers_use_the_new_certificate(
    fixture: &Fixture,
    authority: &Path,
) -> Result<()> {
    let shims = fixture
        .shims
        .replicas
        .iter()
        .map(super::shims::Shim::server);
    let backends = fixture.backends.rest.iter().chain([&fixture.backends.core]);
    for server in shims.chain(backends.map(super::backend::Backend::url)) {
        wait::until(
            &format!("the new certificate at {server}"),
            SOON,
            async || {
                let webhook = Webhook::new(&server, authority)?;
                // Nothing to convert, so that all clients can.
                let nothing = review(&[], "cluster.hypershift.openshift.io/v1beta1");
                webhook.ask(nothing).await.map(drop)
            },
        )
        .await?;
    }
    Ok(())
}

/// They read, and never tried to write.
pub(crate) fn backends_only_read(fixture: &Fixture, mark: Mark) -> Result<()> {
    let who = fixture.backends.account.username();
    let events = fixture.testbed.control_plane.audit.since(mark)?;
    let theirs = events.iter().filter(|event| event.user.username == who);
    for event in theirs {
        let reads = ["get", "list", "watch"].contains(&event.verb.as_str());
        ensure!(reads, "a backend requested {} {}", event.verb, event.uri);
    }
    Ok(())
}

/// An object for those who need one of an older version.
pub(crate) fn old_cluster(name: &str) -> serde_json::Value {
    cluster("v1beta1", name, "KubeadmControlPlane")
}
