//! Installing: look, check, apply by stage, wait. Only here is anything written.

mod apply;
mod convert;
mod look;
mod wait;

use anyhow::bail;

use super::args::{Outputs, RunArgs};
use super::cluster::{Cluster, message};
use super::conversion;
use super::difference::Outcome;
use super::display::{Display, print};
use super::kind::Stage;
use super::object::Object;
use super::options::Options;
use super::plan::{LeftOut, Plan};
use super::preflight::{Facts, Installed, findings};
use super::render;
use crate::Usage;
use crate::crds::source::cluster::Access;
use look::Snapshot;

/// What was found out, and is to be done.
#[derive(Debug)]
struct Work {
    /// Each object, with what applying it does.
    steps: Vec<(Object, Outcome)>,
    /// The same, but for CRDs that serve one version until the conversion webhook is there.
    first: Vec<(Object, Outcome)>,
    /// Those CRDs, as they are to be then.
    late: Vec<(Object, Outcome)>,
    /// What an earlier installation made, and this one does not want.
    pruned: Vec<Object>,
    left_out: Vec<LeftOut>,
}

/// Installs.
pub(super) async fn install(
    options: &Options,
    args: &RunArgs,
    access: &Access,
) -> anyhow::Result<()> {
    if args.wait_until_crds_established && !args.install_scope.crds() {
        let message = "--wait-until-crds-established: --install-scope=resources installs no CRDs";
        return Err(Usage::new(&message).into());
    }
    let display = Display::new(args.quiet);
    let cluster = Cluster::connect(access).await?;
    let work = prepare(options, args, access, &cluster, &display).await?;
    if args.dry_run {
        return print(&work.summary());
    }
    for left_out in &work.left_out {
        display.say(&format!("left out: {left_out}"));
    }
    for stage in [Stage::Definitions, Stage::Ground, Stage::Workloads] {
        apply::stage(&cluster, args, &work.first, stage, &display).await?;
        if stage == Stage::Definitions {
            wait::until_served(&cluster, &work.steps, args.timeout, &display).await?;
        }
    }
    convert::serve_all_versions(&cluster, options, args, &work, &display).await?;
    apply::prune(&cluster, &work.pruned, &display).await?;
    if args.wait_until_available {
        wait::until_available(&cluster, &work.steps, args.timeout, &display).await?;
    }
    display.say("installed");
    Ok(())
}

/// Looks and checks. Nothing is written.
async fn prepare(
    options: &Options,
    args: &RunArgs,
    access: &Access,
    cluster: &Cluster,
    display: &Display,
) -> anyhow::Result<Work> {
    let step = display.step("looking at the cluster");
    let mut facts = Facts {
        installation: options.namespace.clone(),
        take_over: args.take_over,
        wanted: match options.private() {
            Some(_) => Installed::Private,
            None => Installed::Standard,
        },
        ..Facts::default()
    };
    look::read_permissions(&mut facts, options, args.install_scope, cluster).await?;
    refuse(&facts)?;
    let surroundings = look::at_surroundings(options, cluster).await?;
    let options = &conversion::complete(options, Some(cluster)).await?;
    let definitions = render::definitions(options, access).await?;
    let mut plan = Plan::make(options, args.install_scope, &definitions, &surroundings)?;
    look::at_grants(&mut facts, options, args.install_scope, cluster).await?;
    let Snapshot { after } =
        look::at_objects(&mut facts, options, &mut plan.objects, cluster).await?;
    refuse(&facts)?;
    let steps = plan
        .objects
        .into_iter()
        .zip(&facts.observed)
        .zip(after)
        .map(|((object, observed), after)| {
            let outcome = match after {
                Some(after) => Outcome::of(object.id.kind, observed.live.as_ref(), &after),
                None => Outcome::Create,
            };
            (object, outcome)
        })
        .collect::<Vec<_>>();
    let (first, late) = conversion::early(&steps, &facts.observed);
    let pruned = match args.install_scope {
        Outputs::All | Outputs::Resources => look::prunable(cluster, options, &steps).await?,
        Outputs::Crds => Vec::new(),
    };
    step.done(&format!(
        "{} objects, all preflight checks passed",
        steps.len()
    ));
    Ok(Work {
        steps,
        first,
        late,
        pruned,
        left_out: plan.left_out,
    })
}

fn refuse(facts: &Facts) -> anyhow::Result<()> {
    let findings = findings(facts);
    if findings.is_empty() {
        return Ok(());
    }
    bail!("nothing was changed, because{}", listed(findings))
}

// === impl Work ===

impl Work {
    /// What would be done, one line per object.
    fn summary(&self) -> String {
        let steps = self
            .steps
            .iter()
            .map(|(object, outcome)| format!("{}: {outcome}", object.id));
        let pruned = self
            .pruned
            .iter()
            .map(|object| format!("{}: remove, no longer wanted", object.id));
        let left_out = self
            .left_out
            .iter()
            .map(|left_out| format!("left out: {left_out}"));
        let lines: Vec<String> = steps.chain(pruned).chain(left_out).collect();
        lines.join("\n") + "\n"
    }
}

/// Items, one a line, to follow a sentence.
fn listed(items: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let lines: Vec<String> = items
        .into_iter()
        .map(|item| format!("\n  - {item}"))
        .collect();
    lines.concat()
}

/// An error of the API server, as one line.
fn said(error: &kube::Error) -> String {
    message(error).replace('\n', " ")
}
