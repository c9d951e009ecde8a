//! `hypershift install render`: the objects as text, the same bytes for the same arguments.

use std::fs;

use anyhow::Context;
use serde_json::Value;

use super::args::{Assumption, RenderArgs};
use super::display::{Display, print};
use super::options::Options;
use super::parameters::Parameters;
use super::plan::{Definitions, Plan, Surroundings};
use super::template::template;
use super::{conversion, crds};
use crate::crds::output;
use crate::crds::source::cluster::Access;

/// Prints what would be installed.
pub(super) async fn render(
    options: &Options,
    args: &RenderArgs,
    access: &Access,
) -> anyhow::Result<()> {
    let options = &conversion::complete(options, None).await?;
    let definitions = definitions(options, access).await?;
    let surroundings = surroundings(&args.assume);
    let mut options = options.clone();
    let parameters = if args.template {
        Some(Parameters::extract(&mut options)?)
    } else {
        None
    };
    let mut plan = Plan::make(&options, args.outputs, &definitions, &surroundings)?;
    if !args.render_sensitive {
        plan.without_secrets();
    }
    let display = Display::new(false);
    for left_out in &plan.left_out {
        display.say(&format!("left out: {left_out}"));
    }
    let objects: Vec<Value> = match parameters {
        Some(parameters) => vec![template(plan.objects, &parameters, options.replicas)],
        None => plan.objects.into_iter().map(|object| object.body).collect(),
    };
    let text = output::stream(&objects, args.format)?;
    match &args.output_file {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => print(&text),
    }
}

/// The CRDs, from where the options say. The roles need the private ones, too, since they name each kind.
pub(super) async fn definitions(options: &Options, access: &Access) -> anyhow::Result<Definitions> {
    Ok(Definitions {
        own: crds::own(options.features),
        private: match options.private() {
            Some(private) => crds::private(private, access).await?,
            None => Vec::new(),
        },
    })
}

/// What a cluster is assumed to have.
pub(super) fn surroundings(assumed: &[Assumption]) -> Surroundings {
    let mut surroundings = Surroundings::default();
    for assumption in assumed {
        match assumption {
            Assumption::Monitoring => surroundings.monitoring = true,
            Assumption::Console => surroundings.console = true,
            Assumption::Legacy => surroundings.legacy.push("assumed".to_owned()),
            Assumption::Routes => surroundings.dns.routes = true,
            Assumption::DnsEndpoints => surroundings.dns.endpoints = true,
        }
    }
    surroundings
}
