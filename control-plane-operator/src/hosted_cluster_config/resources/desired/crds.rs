//! Definitions of kinds whose operator does not run in the hosted cluster.

use super::input::Input;
use super::object::{Desired, Object, manifest};

const MANIFEST: &str = include_str!("assets/apirequestcounts.yaml");

pub(super) fn build(_: &Input<'_>, desired: &mut Desired) {
    desired.extend(manifest(MANIFEST).into_iter().map(Object::enforce));
}
