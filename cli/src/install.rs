//! `hypershift install`: what an operator needs, applied to a cluster or printed.
//!
//! The core is pure: `plan` makes the objects of options and surroundings, `preflight` checks them, `difference` shows
//! what they change. `observe` reads, `run` writes, and nothing is written before every check has passed. Every write is
//! a server-side apply, so that an interrupted run can be repeated.

mod admin_rbac;
mod args;
mod aws_role;
mod binding;
pub(crate) mod cluster;
mod cluster_policies;
mod control_planes;
pub mod conversion;
mod crds;
mod difference;
pub(crate) mod display;
mod external_dns;
mod ground;
mod helm;
mod image_refs;
mod images;
pub(crate) mod kind;
mod managed_service;
mod monitoring;
pub(crate) mod object;
pub(crate) mod observe;
mod oidc;
pub(crate) mod options;
mod parameters;
mod plan;
mod preflight;
mod private_links;
mod pruning;
mod rbac;
mod render;
mod rollout;
mod run;
mod scale_from_zero;
mod secret_file;
mod template;
pub(crate) mod tenant_policy;
pub(crate) mod workload;

use anyhow::Context;

pub use args::Install;
pub(crate) use args::{TargetArgs, time};
pub(crate) use images::OPERATOR;

use crate::crds::source::cluster::Access;
use options::Options;

/// Runs `hypershift install`, or what is done instead.
pub fn run(install: &Install) -> anyhow::Result<()> {
    let options = Options::resolve(&install.options)?;
    let access = install.target.access();
    runtime()?.block_on(async {
        match &install.verb {
            Some(args::Verb::Render(args)) => render::render(&options, args, &access).await,
            Some(args::Verb::Helm(args)) => helm::helm(&options, args, &access).await,
            None => run::install(&options, &install.run, &access).await,
        }
    })
}

/// What an installation with private types grants an operator: roles and their bindings, as they are rendered. `None` for a name that is no
/// operator's.
pub fn rights_of(operator: &str, namespace: &str) -> Option<Vec<serde_json::Value>> {
    let known = workload::Operator::ALL;
    let operator = known.into_iter().find(|one| one.name() == operator)?;
    let objects = rbac::objects(namespace, operator, operator.capi_types_beside_private());
    Some(objects.into_iter().map(|object| object.body).collect())
}

/// The `PriorityClass`es that control planes name, as they are rendered.
pub fn priority_classes(namespace: &str) -> Vec<serde_json::Value> {
    let objects = ground::priority_classes(namespace);
    objects.into_iter().map(|object| object.body).collect()
}

/// What verbs that talk to a cluster run on.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")
}

// === impl TargetArgs ===

impl TargetArgs {
    pub(crate) fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}
