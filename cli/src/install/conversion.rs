//! The conversion webhook as it is installed: stock managers that do nothing but convert, and the shim before them.
//!
//! - `args` are its flags, `backend` the managers that can be had.
//! - `definitions` derives the CRDs, and holds back the versions that cannot be converted yet.
//! - `objects` is everything else; `checks` is what must hold before a CRD names the webhook.
//! - `look` asks the cluster what of it is there.

pub(crate) mod args;
mod backend;
mod checks;
mod definitions;
mod look;
mod objects;

pub(crate) use backend::Backend;
pub use backend::FLAGS;
pub(crate) use checks::{Flaw, flaws};
pub(crate) use definitions::{derive, early, keep_trust};
pub(crate) use look::complete;
pub(crate) use objects::{deployment_id, objects, renewal};

use api::group::{CapiTypes, GroupTable};
use control_plane_component::sidecar;
use conversion_certificates::Serving;
use serde_json::Value;

use super::kind::Kind;
use super::object::{Id, Object};

/// Name of the Deployment, the Service and everything else of the webhook.
pub(crate) const NAME: &str = conversion_certificates::WEBHOOK;

/// What the names of its roles have in common.
const ROLE: &str = "capi-conversion";

/// The webhook that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) namespace: String,
    /// The managers, each with its image.
    pub(crate) backends: Vec<(Backend, String)>,
    pub(crate) trust: Trust,
}

/// How the API server comes to trust the webhook.
#[derive(Debug, Clone)]
pub(crate) enum Trust {
    /// The cluster has not been asked yet.
    Undecided(args::Certificates),
    /// OpenShift's service CA issues the certificate and writes its authority into the CRDs.
    ServiceCa,
    /// We do.
    Own(Serving),
}

/// Whether a CRD has its objects converted by an installed webhook of ours.
pub(crate) fn names_ours(crd: &Value) -> bool {
    let conversion = &crd["spec"]["conversion"];
    conversion["strategy"] == "Webhook"
        && conversion["webhook"]["clientConfig"]["service"]["name"] == NAME
}

/// Whether an object is a part of the webhook.
pub(crate) fn is_part(object: &Object) -> bool {
    let Id { kind, name, .. } = &object.id;
    let is_role = matches!(
        kind,
        Kind::ClusterRole | Kind::ClusterRoleBinding | Kind::RoleBinding
    );
    let is_kubeconfig = *kind == Kind::ConfigMap && name == sidecar::NAME;
    name.starts_with(NAME) || is_kubeconfig || is_role && name.contains(ROLE)
}

// === impl Setup ===

impl Setup {
    /// Whether one of the backends converts a kind of a private group.
    pub(crate) fn converts(&self, group: &str) -> bool {
        self.routes().any(|(served, _)| served == group)
    }

    /// Each private group with the backend that converts it, by its place.
    fn routes(&self) -> impl Iterator<Item = (String, usize)> {
        let backends = self.backends.iter().enumerate();
        backends.flat_map(|(index, (backend, _))| {
            let groups = backend.groups(&GroupTable::default(), CapiTypes::Private);
            groups.into_iter().map(move |group| (group, index))
        })
    }

    /// The name that the API server knows the webhook by.
    fn server_name(&self) -> String {
        conversion_certificates::server_name(&self.namespace)
    }
}
