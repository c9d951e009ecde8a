//! What all components of a hosted control plane share: a pure renderer, and what is told about each component.
//!
//! ```text
//!  Component (declaration) + Context (read-only) ── render ──> Rendered { side objects, workload, deletions }
//!                                                                  │ written by the pipeline alone
//!                                                                  └─> status: ControlPlaneComponent
//! ```
//!
//! A component cannot write: it declares, and adapts manifests. [`crate::components`] teaches how to add one.
//!
//! - [`declaration`]: what a component says of itself; [`context`]: what it may look at.
//! - [`pod`]: the settings that every pod gets, in order.
//! - [`render`]: a declaration and a context become objects.
//! - [`status`], [`dependency`]: how far a component is, and what it waits for.
//! - [`sidecar`]: the proxy beside every controller that speaks Cluster API.

pub mod asset;
pub mod context;
pub mod declaration;
pub mod dependency;
pub mod error;
pub mod facts;
pub mod objects;
pub mod pod;
pub mod release;
pub mod render;
pub mod sidecar;
pub mod status;
pub mod tls;
pub mod workload;

pub use context::{Context, Predicates};
pub use declaration::{Component, Konnectivity, Minter, Prober, TokenFrom};
pub use error::{Error, Result};
pub use objects::Objects;
pub use release::Release;
pub use workload::Workload;
