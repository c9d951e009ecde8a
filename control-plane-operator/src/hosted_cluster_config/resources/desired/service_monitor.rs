//! Metrics of the API server, for Prometheus in the cluster.

use super::input::Input;
use super::object::{Desired, Object, manifest};

const MANIFEST: &str = include_str!("assets/kube-apiserver-servicemonitor.yaml");

pub(super) fn build(_: &Input<'_>, desired: &mut Desired) {
    desired.extend(manifest(MANIFEST).into_iter().map(Object::merge));
}
