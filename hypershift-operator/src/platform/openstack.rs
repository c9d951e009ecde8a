//! OpenStack: part of the technology preview.

mod credentials;
pub(crate) mod image;
pub(crate) mod infrastructure;
pub(crate) mod machines;
mod security_groups;

use kube::api::ApiResource;

use crate::capi::Capi;

/// The version of the provider's kinds.
const VERSION: &str = "v1beta1";

/// `OpenStackCluster`.
fn cluster(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "OpenStackCluster", "openstackclusters")
}

/// `OpenStackMachine`.
fn machine(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "OpenStackMachine", "openstackmachines")
}

/// `OpenStackMachineTemplate`.
pub(crate) fn machine_template(capi: Capi) -> ApiResource {
    let plural = "openstackmachinetemplates";
    capi.infrastructure(VERSION, "OpenStackMachineTemplate", plural)
}

/// `OpenStackServer`, by which the provider creates a machine.
fn server(capi: Capi) -> ApiResource {
    capi.infrastructure("v1alpha1", "OpenStackServer", "openstackservers")
}
