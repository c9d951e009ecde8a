//! The conversion webhook as it is installed: stock managers that do nothing but convert, and the shim before them.
//!
//! - `args` are its flags, `backend` the managers that can be had.
//! - `certificates` makes and renews what the webhook shows and the API server trusts, where the cluster does not.
//! - `definitions` derives the CRDs, and holds back the versions that nobody can convert yet.
//! - `objects` is everything else; `checks` is what must hold before a CRD names the webhook.
//! - `look` asks the cluster what of it is there.

pub(crate) mod args;
mod backend;
mod certificates;
mod checks;
mod definitions;
mod look;
mod objects;

pub(crate) use backend::Backend;
pub use backend::FLAGS;
pub(crate) use checks::{Flaw, flaws};
pub(crate) use definitions::{derive, early};
pub(crate) use look::complete;
pub(crate) use objects::{deployment_id, objects};

use api::group::{GroupTable, Side};
use certificates::Serving;

/// Name of the Deployment, the Service and everything else of the webhook.
pub(crate) const NAME: &str = "capi-conversion-webhook-shim";

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
            let groups = backend.groups(&GroupTable::default(), Side::Private);
            groups.into_iter().map(move |group| (group, index))
        })
    }

    /// The name that the API server knows the webhook by.
    fn server_name(&self) -> String {
        format!("{NAME}.{}.svc", self.namespace)
    }
}
