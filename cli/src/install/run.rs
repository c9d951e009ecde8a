//! Installing: look, check, apply by stage, wait. Only here is anything written.

mod apply;
mod look;
mod wait;

use anyhow::bail;

use super::args::{Outputs, RunArgs};
use super::cluster::{Cluster, message};
use super::difference::Outcome;
use super::display::{Display, print};
use super::kind::Stage;
use super::object::Object;
use super::options::Options;
use super::plan::{LeftOut, Plan};
use super::preflight::{Facts, Finding, Installed, findings};
use super::render;
use crate::crds::source::cluster::Access;
use look::Sight;

/// What was found out, and is to be done.
#[derive(Debug)]
struct Work {
    /// Each object, with what applying it does.
    steps: Vec<(Object, Outcome)>,
    /// What an earlier installation made, and this one does not want.
    surplus: Vec<Object>,
    left_out: Vec<LeftOut>,
}

/// Installs.
pub(super) async fn install(
    options: &Options,
    args: &RunArgs,
    access: &Access,
) -> anyhow::Result<()> {
    let display = Display::new(args.quiet);
    let cluster = Cluster::connect(access).await?;
    let work = prepare(options, args, access, &cluster, &display).await?;
    if args.dry_run {
        return print(&work.told());
    }
    for left_out in &work.left_out {
        display.say(&format!("left out: {left_out}"));
    }
    for stage in [Stage::Definitions, Stage::Ground, Stage::Workloads] {
        apply::stage(&cluster, args, &work.steps, stage, &display).await?;
        if stage == Stage::Definitions {
            wait::until_served(&cluster, &work.steps, args.timeout, &display).await?;
        }
    }
    apply::remove_surplus(&cluster, &work.surplus, &display).await?;
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
    look::at_rights(&mut facts, options, args.install_scope, cluster).await?;
    refuse(&facts)?;
    let surroundings = look::at_surroundings(cluster).await?;
    let definitions = render::definitions(options, access).await?;
    let plan = Plan::make(options, args.install_scope, &definitions, &surroundings)?;
    look::at_grants(
        &mut facts,
        options,
        &definitions,
        &surroundings,
        args.install_scope,
        cluster,
    )
    .await?;
    let Sight { after } = look::at_objects(&mut facts, options, &plan.objects, cluster).await?;
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
    let surplus = match args.install_scope {
        Outputs::All | Outputs::Resources => look::for_surplus(cluster, options, &steps).await?,
        Outputs::Crds => Vec::new(),
    };
    step.done(&format!(
        "{} objects, nothing speaks against them",
        steps.len()
    ));
    Ok(Work {
        steps,
        surplus,
        left_out: plan.left_out,
    })
}

fn refuse(facts: &Facts) -> anyhow::Result<()> {
    let findings = findings(facts);
    if findings.is_empty() {
        return Ok(());
    }
    bail!("nothing was changed, because{}", listed(&findings))
}

fn listed(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(|finding| format!("\n  - {finding}"))
        .collect()
}

// === impl Work ===

impl Work {
    /// What would be done, a line an object.
    fn told(&self) -> String {
        let mut text = String::new();
        for (object, outcome) in &self.steps {
            text.push_str(&format!("{}: {outcome}\n", object.id));
        }
        for object in &self.surplus {
            text.push_str(&format!("{}: remove, no longer wanted\n", object.id));
        }
        for left_out in &self.left_out {
            text.push_str(&format!("left out: {left_out}\n"));
        }
        text
    }
}

/// An error of the API server, as one line.
fn said(error: &kube::Error) -> String {
    message(error).replace('\n', " ")
}
