//! Alerts on the use of the API server.

use super::input::Input;
use super::object::{Desired, Object, manifest};

const MANIFEST: &str = include_str!("assets/alerts.yaml");

pub(super) fn build(_: &Input<'_>, desired: &mut Desired) {
    desired.extend(manifest(MANIFEST).into_iter().map(Object::enforce));
}
