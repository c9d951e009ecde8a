//! The input of rendering a component. It is read-only.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::{HostedControlPlane, HostedControlPlaneSpec};

use super::facts::Infra;
use super::objects::Objects;
use super::release::Release;
use crate::settings::Settings;

/// Whether component predicates are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicates {
    /// A component whose predicate is false is deleted.
    Evaluated,
    /// All components are rendered. Predicates of single manifests are still evaluated.
    Ignored,
}

/// The input of rendering a component.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The hosted control plane.
    pub hcp: &'a HostedControlPlane,
    /// The release of the control plane components.
    pub release: &'a Release,
    /// The release that users see: the version of the cluster.
    pub user_release: &'a Release,
    /// Addresses of the published services.
    pub infra: &'a Infra,
    /// Existing objects of the namespace.
    pub objects: &'a Objects,
    /// Settings of the management cluster and of this operator.
    pub settings: &'a Settings,
    /// Whether component predicates are evaluated.
    pub predicates: Predicates,
}

// === impl Context ===

impl<'a> Context<'a> {
    /// The spec of the hosted control plane.
    pub fn spec(&self) -> &'a HostedControlPlaneSpec {
        &self.hcp.spec
    }

    /// The namespace of the hosted control plane, which contains all its objects.
    pub fn namespace(&self) -> &'a str {
        self.hcp.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The name of the hosted control plane, which is that of the hosted cluster.
    pub fn name(&self) -> &'a str {
        self.hcp.metadata.name.as_deref().unwrap_or_default()
    }

    /// The annotations of the hosted control plane.
    pub fn annotations(&self) -> &'a BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.hcp.metadata.annotations.as_ref().unwrap_or(&NONE)
    }

    /// An annotation of the hosted control plane.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations().get(key).map(String::as_str)
    }
}
