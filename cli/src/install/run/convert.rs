//! The second half of CRDs whose objects a webhook converts: only once it is available.

use super::{Work, apply, wait};
use crate::install::args::RunArgs;
use crate::install::cluster::Cluster;
use crate::install::conversion::deployment_id;
use crate::install::display::Display;
use crate::install::kind::Stage;
use crate::install::options::Options;

/// Has the CRDs serve all versions, if the webhook is there; otherwise they go on serving the stored one.
pub(super) async fn serve_all_versions(
    cluster: &Cluster,
    options: &Options,
    args: &RunArgs,
    work: &Work,
    display: &Display,
) -> anyhow::Result<()> {
    let setup = options
        .private()
        .and_then(|private| private.conversion.as_ref());
    let Some(setup) = setup.filter(|_| !work.late.is_empty()) else {
        return Ok(());
    };
    let id = deployment_id(setup);
    if args.wait_until_available {
        let webhook: Vec<_> = work
            .steps
            .iter()
            .filter(|(object, _)| object.id == id)
            .cloned()
            .collect();
        wait::until_available(cluster, &webhook, args.timeout, display).await?;
    }
    if !wait::is_available(cluster, &id).await? {
        display.say(&format!(
            "{} CRDs serve their stored version only until {id} is available: install again then",
            work.late.len()
        ));
        return Ok(());
    }
    apply::stage(cluster, args, &work.late, Stage::Definitions, display).await?;
    wait::until_served(cluster, &work.late, args.timeout, display).await
}
