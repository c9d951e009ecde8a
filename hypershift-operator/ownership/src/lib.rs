//! Who reconciles a hosted cluster: decided from its annotations and the API groups that hold its Cluster API objects.
//!
//! ```text
//! annotations ────────┐
//! observed groups ────┴─> evaluate ─> Evaluation ─> decide(scope) ─> Decision
//! Namespace metadata ──> ControlPlaneNamespaceState ─> ControlPlaneNamespace, the proof of ownership
//! ```
//!
//! Pure: nothing is read here. The crate `ownership-reader` reads what is decided on, for the operator and for the
//! command line, which therefore report what the operator does.

#![deny(missing_docs)]

mod capi_types;
mod decision;
mod evaluation;
mod invalid;
mod legacy_operator;
mod migration_state;
mod namespace;
mod observed_groups;

pub use capi_types::capi_types;
pub use decision::{Decision, Scope, decide, may_reconcile};
pub use evaluation::{Evaluation, Owner, OwnershipAnnotation, evaluate, expected_types};
pub use invalid::Invalid;
pub use legacy_operator::needs_legacy_operator;
pub use migration_state::MigrationState;
pub use namespace::{CLUSTER_ANNOTATION, ControlPlaneNamespace, Namespace, Namespaces, owner};
pub use observed_groups::ObservedGroups;
