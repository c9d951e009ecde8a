//! Roles and bindings of controllers that run in the management cluster, of nodes and of users.

use super::input::Input;
use super::object::{Desired, Object, manifest};

const MANIFEST: &str = include_str!("assets/rbac.yaml");
const INGRESS: &str = include_str!("assets/rbac-ingress.yaml");
const MANAGED_AZURE: &str = include_str!("assets/rbac-managed-azure.yaml");

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let mut add = |text| desired.extend(manifest(text).into_iter().map(Object::enforce));
    add(MANIFEST);
    if input.has_capability("Ingress") {
        add(INGRESS);
    }
    if input.is_managed_azure() {
        add(MANAGED_AZURE);
    }
}
