//! Replicas that come and go under load (C05), and what the backends did meanwhile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::audit::Mark;
use e2e::wait;

use crate::conversion::ground::{Ground, NAMESPACE};
use crate::conversion::load::{Load, READERS};
use crate::conversion::reviews::{Webhook, review};
use crate::conversion::stored::{OLD, cluster};

/// Reads between two events.
const CALM: usize = 200;
/// What is read: an object that is stored at the newer version.
const READ: &str = "c-00";
const SOON: Duration = Duration::from_secs(20);

/// Each replica is replaced, as in a rolling update; then everybody's certificates are. Gives the reads.
/// Check C05.
pub(crate) async fn reads_succeed_during_rolling_updates(ground: &mut Ground) -> Result<usize> {
    let admin = ground.testbed.admin.clone();
    let load = Load::start(&admin, &OLD.named(NAMESPACE, READ));
    replace_each(ground, &load).await?;
    calm(&load).await?;
    ground.rotate().await?;
    everybody_shows_the_new_certificate(ground, &ground.next_authority()).await?;
    calm(&load).await?;
    let reads = load.end().await?.all_succeeded()?;
    one_is_killed(ground).await?;
    Ok(reads)
}

/// Replaces each replica, as in a rolling update. Connections to it are opened again, to another one.
async fn replace_each(ground: &mut Ground, load: &Load) -> Result<()> {
    for number in 0..ground.shims.replicas.len() {
        calm(load).await?;
        ground.shims.end(number).await?;
        calm(load).await?;
        ground.shims.begin(number).await?;
    }
    Ok(())
}

/// Reads that a killed replica is answering are lost, one a reader at most, and none after them.
async fn one_is_killed(ground: &mut Ground) -> Result<()> {
    let admin = ground.testbed.admin.clone();
    let load = Load::start(&admin, &OLD.named(NAMESPACE, READ));
    calm(&load).await?;
    ground.shims.kill(0);
    calm(&load).await?;
    let reads = load.end().await?;
    ensure!(
        reads.failures.len() <= READERS,
        "{} of {} reads failed: {:?}",
        reads.failures.len(),
        reads.all,
        reads.failures.last()
    );
    ground.shims.begin(0).await
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
pub(crate) async fn everybody_shows_the_new_certificate(
    ground: &Ground,
    authority: &Path,
) -> Result<()> {
    let shims = ground.shims.replicas.iter().map(super::shims::Shim::server);
    let backends = ground.backends.rest.iter().chain([&ground.backends.core]);
    for server in shims.chain(backends.map(super::backend::Backend::url)) {
        wait::until(
            &format!("the new certificate at {server}"),
            SOON,
            async || {
                let webhook = Webhook::new(&server, authority)?;
                // Nothing to convert, so that everybody can.
                let nothing = review(&[], "cluster.hypershift.openshift.io/v1beta1");
                webhook.ask(nothing).await.map(drop)
            },
        )
        .await?;
    }
    Ok(())
}

/// They read, and never tried to write.
pub(crate) fn backends_only_read(ground: &Ground, mark: Mark) -> Result<()> {
    let who = ground.backends.account.username();
    let events = ground.testbed.control_plane.audit.since(mark)?;
    let theirs = events.iter().filter(|event| event.user.username == who);
    for event in theirs {
        let reads = ["get", "list", "watch"].contains(&event.verb.as_str());
        ensure!(reads, "a backend asked to {} {}", event.verb, event.uri);
    }
    Ok(())
}

/// An object for those who need one of an older version.
pub(crate) fn old_cluster(name: &str) -> serde_json::Value {
    cluster("v1beta1", name, "KubeadmControlPlane")
}
