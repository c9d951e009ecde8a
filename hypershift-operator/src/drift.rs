//! Looks at all evidence again and again: no watch tells when objects appear in the groups of the other operator, when
//! a CRD goes or when a right is revoked. Reads only; what has changed is reconciled by `control`.

use std::collections::HashSet;
use std::time::Duration;

use ownership::Scope;
use support::error::chain;
use support::health::Check;
use support::reconcile::Report as _;
use support::shutdown::Drain;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::Id;
use crate::legacy;
use crate::migration;
use crate::survey;

/// The pause after a failure, unless the usual one is shorter.
const RETRY: Duration = Duration::from_secs(5);

/// Looks until the process is to end.
pub(crate) async fn run(
    ctx: &Context,
    drifted: mpsc::Sender<Id>,
    period: Duration,
    check: &Check,
    mut drain: Drain,
) {
    loop {
        let pause = tokio::select! {
            biased;
            () = drain.begun() => return,
            looked = look(ctx, &drifted) => match looked {
                Ok(()) => {
                    check.pass();
                    period
                }
                Err(error) => {
                    failed(ctx, &error, check);
                    period.min(RETRY)
                }
            },
        };
        tokio::select! {
            biased;
            () = drain.begun() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn look(ctx: &Context, drifted: &mpsc::Sender<Id>) -> Result<(), Error> {
    let running = match ctx.scope {
        Scope::Private => legacy::running(ctx).await,
        Scope::Legacy | Scope::All => Ok(None),
    };
    // Whoever may read neither hears first of the clusters.
    let judged = survey::classify(ctx).await?;
    let running = running?;
    let ids: HashSet<_> = judged.iter().map(|one| one.id.clone()).collect();
    ctx.fleet.keep(&ids);
    ctx.migrations.surveyed(&judged);
    for one in &judged {
        if one.untold || ctx.fleet.differs(&one.id, one.verdict) {
            // Whoever should hear of it has ended otherwise.
            let _ = drifted.send(one.id.clone()).await;
        }
    }
    let is_wanted_back = judged
        .iter()
        .any(|one| migration::is_wanted_back(&one.metadata));
    let verdicts = judged.iter().map(|one| one.verdict);
    legacy::tend(ctx, running, verdicts, is_wanted_back).await
}

fn failed(ctx: &Context, error: &Error, check: &Check) {
    ctx.metrics.error(error.step(), error.reason());
    let problem = chain(error);
    tracing::debug!(problem, "Evidence cannot be read");
    check.fail(problem);
}
