//! What a component may look at while it is rendered. All of it is read-only.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::{HostedControlPlane, HostedControlPlaneSpec};

use super::facts::Infra;
use super::objects::Objects;
use super::release::Release;
use crate::settings::Settings;

/// Whether components are asked if they are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicates {
    /// A component that is not wanted is deleted.
    Asked,
    /// All components are made. Single manifests are still asked.
    Ignored,
}

/// What a component may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The hosted control plane.
    pub hcp: &'a HostedControlPlane,
    /// The release of what runs in the control plane.
    pub release: &'a Release,
    /// The release of what users see: its versions are those of the cluster.
    pub user_release: &'a Release,
    /// Under which addresses the services can be reached.
    pub infra: &'a Infra,
    /// Objects of the namespace that are there.
    pub objects: &'a Objects,
    /// What is known of the management cluster and of this program.
    pub settings: &'a Settings,
    /// Whether components are asked if they are wanted.
    pub predicates: Predicates,
}

// === impl Context ===

impl<'a> Context<'a> {
    /// The spec of the hosted control plane.
    pub fn spec(&self) -> &'a HostedControlPlaneSpec {
        &self.hcp.spec
    }

    /// The namespace of the hosted control plane, where all its objects are.
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
