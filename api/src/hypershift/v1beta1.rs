//! Hosted clusters, node pools, hosted control planes, and what they are made of.
//!
//! # How a kind is added
//!
//! 1. A file of its own, `<kind>.rs`, and a directory beside it when that grows past a screen or two.
//!    Fields that several kinds share are in [`common`].
//! 2. The spec derives what [`NodePoolSpec`] derives. `#[kube(schema = "disabled", ...)]` and the two `crates` are always
//!    the same: the schema is not made by kube's derive but by `crate::schema`, which knows list types, rules and enums.
//! 3. The kind implements `crds::Kind` (what it is; what `#[kube]` has no word for) and gets a line in `crds::ALL`.
//! 4. Every field has a doc comment: `kubectl explain` shows it, so it speaks to users, without links to Rust items.
//! 5. `tests/data/parity/<crd name>.tsv` is listed in `tests/parity.rs`: it says what every property must be like.
//!    Each rule has accepted and refused objects in `tests/data/rules/<crd name>/`.
//! 6. `cargo xtask codegen` writes the manifest and the reference page.
//!
//! # How a property is written
//!
//! | what | how |
//! |---|---|
//! | optional | `Option<T>`, or a `Vec` or map, with `#[serde(default, skip_serializing_if = "...")]` |
//! | required | without `default`, and not an `Option` |
//! | a default | `#[serde(default = "function")]`; where the field is an `Option`, `#[schemars(extend("default" = ...))]` |
//! | an enum | a Rust enum whose variants have doc comments |
//! | bounds | `#[schemars(length(min = 1, max = 9))]`, `range(...)`, `regex(pattern = "...")`, `inner(length(...))` for items |
//! | a rule | `#[schemars(transform = rule("CEL", "what to do"))]`, on a field or a type; several add up |
//! | immutable | `#[schemars(transform = immutable("what to do"))]` |
//! | a merge strategy | `#[schemars(transform = atomic_list)]`, `set`, `list_map(["key"])`, `atomic_map` |
//! | `minProperties` and the like | `#[schemars(transform = with("minProperties", 1))]` |
//! | another crate's type | `#[schemars(with = "Vec<schema::Condition>")]`, a marker that has its shape |
//!
//! # How objects are read
//!
//! Objects of older or newer versions may hold what these types do not take, and a `spec` may be absent.
//! Controllers read them through `kube::core::DeserializeGuard`, so that one object never hides the others.

pub mod common;
pub mod node_pool;

pub use node_pool::{NodePool, NodePoolSpec, NodePoolStatus};
