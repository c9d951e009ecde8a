//! ConfigMaps with what machines are configured with, apart from their pool's own configuration. The NodePool controller
//! and the ignition server read them, so they are written before the components. Pure.

mod manifests;
mod server;

use control_plane_component::render::{Identity, adopt, hashed};
use control_plane_component::{Context, Error};
use serde_json::{Value, json};

pub(crate) use server::NAME;

/// What to write, and what to delete.
#[derive(Debug, Default)]
pub(crate) struct Desired {
    /// ConfigMaps to apply.
    pub(crate) objects: Vec<Value>,
    /// ConfigMaps that must not exist.
    pub(crate) deletions: Vec<Identity>,
    /// Why a ConfigMap cannot be built. Then it stays as it is.
    pub(crate) problem: Option<Error>,
}

/// The ConfigMaps of a control plane.
pub(crate) fn desired(context: &Context<'_>) -> Desired {
    let mut desired = Desired::default();
    for (name, manifest) in manifests::all(context) {
        match manifest {
            Ok(Some(manifest)) => desired
                .objects
                .push(manifests::object(context, name, &manifest)),
            Ok(None) => desired
                .deletions
                .push(Identity::new("v1", "ConfigMap", name)),
            Err(problem) => desired.problem = Some(problem),
        }
    }
    match server::object(context) {
        Ok(object) => desired.objects.push(object),
        Err(problem) => desired.problem = Some(problem),
    }
    desired
}

fn config_map(context: &Context<'_>, metadata: &Value, data: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data,
    });
    adopt(&mut object, context);
    hashed(object)
}

#[cfg(test)]
mod tests;
