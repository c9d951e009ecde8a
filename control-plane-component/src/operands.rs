//! Operands: Deployments that a component itself creates in the namespace.
//!
//! A component that has rolled out may still have to roll out its operands. They are read from the objects of the
//! context; the decisions about them are pure.

use k8s_openapi::api::apps::v1::Deployment;

use crate::context::Context;
use crate::declaration::Component;
use crate::status::lacking;

const GROUP: &str = "apps";
const KIND: &str = "Deployment";
/// Label: the component that created a Deployment.
const MANAGED_BY: &str = "hypershift.openshift.io/managed-by";
/// Annotation: the version of the release that a Deployment runs.
const VERSION: &str = "release.openshift.io/version";

/// The operands of a component.
#[derive(Debug, Clone, Copy, Default)]
pub enum Operands {
    /// It creates no Deployments.
    #[default]
    None,
    /// Those with label `hypershift.openshift.io/managed-by: <component>`. They must be annotated with the version of the
    /// release.
    Labeled,
    /// Those of these names. They must exist, and run images of the release.
    Named(fn(&Context<'_>) -> Vec<Operand>),
}

/// A Deployment with a name that is known in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Its name.
    pub deployment: &'static str,
    /// The container that is compared with the release.
    pub container: &'static str,
    /// The release's name of that container's image.
    pub image: &'static str,
}

/// Returns what the operands of a component still lack; empty once they are rolled out.
pub fn waiting(component: &Component, context: &Context<'_>) -> Vec<String> {
    match component.operands {
        Operands::None => Vec::new(),
        Operands::Labeled => labeled(component.name, context),
        Operands::Named(operands) => named(&operands(context), context),
    }
}

fn labeled(component: &str, context: &Context<'_>) -> Vec<String> {
    let found = context.objects.of_kind(GROUP, KIND);
    let found = found.filter(|(_, object)| object["metadata"]["labels"][MANAGED_BY] == component);
    found
        .filter_map(|(name, _)| {
            let live = context.objects.typed(GROUP, KIND, name)?;
            outdated(name, &live, &context.release.version)
        })
        .collect()
}

fn named(operands: &[Operand], context: &Context<'_>) -> Vec<String> {
    operands
        .iter()
        .filter_map(|operand| {
            let live = context.objects.typed(GROUP, KIND, operand.deployment);
            let image = match context.release.image(operand.image) {
                Ok(image) => image,
                Err(missing) => return Some(missing.to_string()),
            };
            operand.lacking(live.as_ref(), &image)
        })
        .collect()
}

/// What a Deployment of another version, or one that is not rolled out, lacks.
fn outdated(name: &str, live: &Deployment, version: &str) -> Option<String> {
    let annotations = live.metadata.annotations.as_ref();
    let found = annotations.and_then(|annotations| annotations.get(VERSION));
    if found.is_none_or(|found| found != version) {
        let found = found.map_or("no version", String::as_str);
        return Some(format!(
            "Deployment {name} has {found} instead of {version}"
        ));
    }
    unfinished(name, live)
}

fn unfinished(name: &str, live: &Deployment) -> Option<String> {
    lacking(live).map(|lacking| format!("Deployment {name}: {lacking}"))
}

// === impl Operand ===

impl Operand {
    /// An operand whose container has the name of the Deployment.
    pub const fn new(deployment: &'static str, image: &'static str) -> Self {
        Self {
            deployment,
            container: deployment,
            image,
        }
    }

    /// The container that is compared with the release.
    pub const fn container(mut self, container: &'static str) -> Self {
        self.container = container;
        self
    }

    /// What the live Deployment lacks.
    fn lacking(&self, live: Option<&Deployment>, image: &str) -> Option<String> {
        let name = self.deployment;
        let Some(live) = live else {
            return Some(format!("Deployment {name} does not exist"));
        };
        let container = self.container;
        match self.image_in(live) {
            None => Some(format!("Deployment {name} has no container {container}")),
            Some(found) if found != image => {
                Some(format!("Deployment {name} runs {found} instead of {image}"))
            }
            Some(_) => unfinished(name, live),
        }
    }

    fn image_in<'a>(&self, live: &'a Deployment) -> Option<&'a str> {
        let pod = live.spec.as_ref()?.template.spec.as_ref()?;
        let mut containers = pod.containers.iter();
        let container = containers.find(|it| it.name == self.container)?;
        container.image.as_deref()
    }
}

#[cfg(test)]
mod tests;
