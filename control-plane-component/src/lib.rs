//! The framework of control plane components: a component is declared, rendered without I/O, and written.
//!
//! ```text
//!  Component (declaration) + Context (read-only) ── render ──> Rendered { side objects, workload, deletions }
//!                                                                  │ written by `write` alone
//!                                                                  └─> status: ControlPlaneComponent
//! ```
//!
//! A component cannot write: it declares, and adapts manifests. The module `components` of control-plane-operator
//! shows how to add one.
//!
//! - [`declaration`]: what a component declares; [`context`]: the input of rendering.
//! - [`azure`]: certificates of managed identities and resource IDs on Azure.
//! - [`certificate`]: serving and client certificates of a component.
//! - [`proxy`], [`trust`]: proxies and CA certificates of users.
//! - [`hash`](mod@hash): the hashes by which contents are recognised.
//! - [`node_config`]: what all nodes of a cluster are configured with.
//! - [`pod`]: the common pod settings, in order.
//! - [`render`]: renders a declaration and a context to objects.
//! - [`status`], [`dependency`], [`operands`]: rollout status of a component, its dependencies, and what it creates
//!   itself.
//! - [`sidecar`]: the proxy sidecar of controllers that use Cluster API.
//! - [`write`](mod@write): applies objects that differ.

pub mod asset;
pub mod azure;
mod capi_use;
pub mod certificate;
pub mod context;
pub mod declaration;
pub mod dependency;
pub mod error;
pub mod facts;
pub mod hash;
pub mod ini;
mod monitoring;
pub mod names;
pub mod node_config;
pub mod objects;
pub mod openstack;
pub mod operands;
pub mod pod;
pub mod proxy;
pub mod release;
pub mod render;
pub mod settings;
pub mod sidecar;
pub mod status;
pub mod tls;
pub mod trust;
pub mod workload;
pub mod write;

pub use capi_use::{CapiUse, USES_CAPI, UnknownCapiUse};
pub use certificate::{Authority, Leaf};
pub use context::{Context, Predicates};
pub use declaration::{Component, Konnectivity, Metrics, Minter, Prober, Publication, TokenFrom};
pub use error::{Error, Result};
pub use objects::Objects;
pub use operands::{Operand, Operands};
pub use pod::is_reserved_label;
pub use release::Release;
pub use workload::Workload;
