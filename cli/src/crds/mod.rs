//! Private CRDs, derived from standard ones.
//!
//! A private CRD is its standard one under a private group: group, name and conversion stanza are changed, short names
//! and categories dropped, and nothing else. Schemas are not touched. The core is pure ([`Derivation::run`]: documents
//! in, documents out); [`source`] reads documents from modules, files, URLs and clusters, [`output`] writes them.
//!
//! ```
//! use api::group::GroupTable;
//! use serde_json::json;
//!
//! let standard = json!({
//!     "apiVersion": "apiextensions.k8s.io/v1",
//!     "kind": "CustomResourceDefinition",
//!     "metadata": {"name": "machines.cluster.x-k8s.io"},
//!     "spec": {
//!         "group": "cluster.x-k8s.io",
//!         "names": {"kind": "Machine", "plural": "machines"},
//!         "scope": "Namespaced",
//!         "versions": [{"name": "v1beta2", "served": true, "storage": true}],
//!     },
//! });
//! let private = cli::crds::derive(&GroupTable::default(), vec![standard])?;
//! assert_eq!(private[0]["metadata"]["name"], "machines.cluster.hypershift.openshift.io");
//! # Ok::<(), cli::crds::Error>(())
//! ```

pub mod command;
pub(crate) mod contract;
mod conversion;
mod derive;
mod document;
mod error;
mod kube_version;
mod metadata;
pub mod output;
pub mod plural;
mod schema;
pub mod source;
mod versions;

use api::group::GroupTable;
use serde_json::Value;

pub use contract::{ContractLabel, InvalidContractLabel};
pub use conversion::{Conversion, InvalidCa, InvalidConversion, Webhook};
pub use derive::{Derivation, Derived, Descriptions, SkipReason, Skipped, Warning};
pub use document::{Batch, Document, Origin, ParseError, parse};
pub use error::{Error, Refusal};
pub use versions::Versions;

/// Derives private CRDs that serve the storage version only and need no conversion webhook.
///
/// That is what controllers need which use the newest version of everything; [`Derivation`] has the other choices.
pub fn derive(table: &GroupTable, documents: Vec<Value>) -> Result<Vec<Value>, Error> {
    let mut derivation = Derivation::new(table.clone());
    derivation.versions = Some(Versions::Storage);
    let derived = derivation.run(vec![Batch::of_values("documents", documents)])?;
    Ok(derived.crds)
}
