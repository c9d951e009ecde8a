//! The differential test: the proxy in front of private types responds like a server with standard types.
//!
//! One script of raw requests is sent directly to a server with standard CRDs, and through the proxy to one with private
//! CRDs. Status, headers and bodies must be equal, but for the differences that `docs/differential.md` lists. Then
//! `kubectl` and `clusterctl` do the same, and last the platform's own CRDs arrive on the private server.

mod allowed;
mod beside;
mod compare;
mod json;
mod leaks;
mod programs;
mod protobuf;
mod run;
mod script;
mod side;
mod steps;
mod stored;
mod text;

use anyhow::Result;
use api::group::CapiTypes as Names;
use testbed::progress::Progress;

use crate::differential::leaks::LeakCheck;
use crate::differential::programs::Programs;
use crate::differential::run::{Report, Sides};
use crate::differential::side::Side;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_responses_equal_those_for_standard_types() -> Result<()> {
    let progress = Progress::detect();
    let (direct, proxied) = tokio::try_join!(
        Side::start(Names::Standard, progress.clone()),
        Side::start(Names::Private, progress.clone())
    )?;
    let mut sides = Sides { direct, proxied };
    let outcome = scenario(&mut sides, &progress).await;
    let Sides { direct, proxied } = sides;
    direct.testbed.finish(proxied.testbed.finish(outcome))
}

async fn scenario(sides: &mut Sides, progress: &Progress) -> Result<()> {
    let mut report = Report::default();
    let leaks = LeakCheck::new();
    let programs = Programs::ensure(progress).await?;

    let step = progress.step("the script");
    for request in steps::all(&sides.direct.testbed.admin).await? {
        sides.run(&request, &leaks, &mut report).await;
    }
    step.done_with(&report.score());

    let step = progress.step("kubectl and clusterctl");
    for command in programs::commands()? {
        programs.run(&command, sides, &leaks, &mut report).await;
    }
    step.done_with(&report.score());
    report.check()?;
    stored::is_private(&sides.proxied.testbed.control_plane.etcd).await?;

    let step = progress.step("the platform's types arrive");
    beside::platform_types_arrive(&mut sides.proxied).await?;
    step.done();
    Ok(())
}
