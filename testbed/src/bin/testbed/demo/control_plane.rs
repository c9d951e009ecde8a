//! The demo without pods: stock managers as processes, each with its own proxy, before a real API server.

use anyhow::Result;
use api::group::CapiTypes;
use testbed::capi_storage;
use testbed::progress::Progress;
use testbed::testbed::Testbed;

use super::{NAME, narration, until_interrupted};
use crate::manage::{self, NAMESPACE, State};
use crate::show;

/// Starts everything, shows it, and ends it.
pub(super) async fn show(progress: &Progress, stays: bool) -> Result<()> {
    let (mut testbed, state) = manage::bring_up(NAME, progress).await?;
    let outcome = act(&mut testbed, &state, stays).await;
    testbed.finish(outcome)
}

async fn act(testbed: &mut Testbed, state: &State, stays: bool) -> Result<()> {
    let view = testbed.standard_view().await?;
    narration::comes_up(&view, &testbed.progress).await?;
    println!(
        "\n{}",
        show::both_views(&view, &testbed.admin, NAMESPACE, &show::CLUSTER).await?
    );
    let etcd = &testbed.control_plane.etcd;
    println!(
        "objects in etcd: {} in private groups, {} in standard groups",
        capi_storage::objects(etcd, CapiTypes::Private).await?.len(),
        capi_storage::objects(etcd, CapiTypes::Standard)
            .await?
            .len()
    );
    println!("{}", show::instructions(state));
    until_interrupted(stays).await;
    Ok(())
}
