//! IBM Power Virtual Server.

pub(crate) mod image;
pub(crate) mod infrastructure;
pub(crate) mod machines;

use api::hypershift::v1beta1::platform::power_vs::PowerVsResourceReference;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;

/// The version of the provider's kinds.
const VERSION: &str = "v1beta2";

/// `IBMPowerVSCluster`.
fn cluster(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "IBMPowerVSCluster", "ibmpowervsclusters")
}

/// `IBMPowerVSMachine`.
fn machine(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "IBMPowerVSMachine", "ibmpowervsmachines")
}

/// `IBMPowerVSMachineTemplate`.
pub(crate) fn machine_template(capi: Capi) -> ApiResource {
    let plural = "ibmpowervsmachinetemplates";
    capi.infrastructure(VERSION, "IBMPowerVSMachineTemplate", plural)
}

/// A reference as the provider takes it: it refuses one with both an ID and a name. Nothing if it has neither.
pub(crate) fn reference(reference: &PowerVsResourceReference) -> Option<Value> {
    let PowerVsResourceReference { id, name } = reference;
    let is_set = |it: &&String| !it.is_empty();
    match (id.as_ref().filter(is_set), name.as_ref().filter(is_set)) {
        (Some(id), _) => Some(json!({ "id": id })),
        (None, Some(name)) => Some(json!({ "name": name })),
        (None, None) => None,
    }
}
