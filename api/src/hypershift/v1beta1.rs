//! Hosted clusters, node pools, hosted control planes, and what they are made of.
//!
//! # How a kind is added
//!
//! 1. A file of its own, `<kind>.rs`, and a directory next to it for a large kind.
//!    Fields that several kinds share are in [`common`].
//! 2. The spec derives what [`NodePoolSpec`] derives. `#[kube(schema = "disabled", ...)]` and the two `crates` are always
//!    the same: the schema is not made by kube's derive but by `crate::schema`, which knows list types, rules and enums.
//! 3. The kind implements `crds::Kind` (its description; what `#[kube]` has no attribute for) and gets a line in `crds::ALL`.
//! 4. Every field has a doc comment: `kubectl explain` shows it, so write it for users, without links to Rust items.
//! 5. `tests/data/parity/<crd name>.tsv` says what every property must be like, and `tests/parity.rs` compares.
//!    Each rule has accepted and refused objects in `tests/data/rules/`, with one to begin from in `base/`, and
//!    `tests/types.rs` reads and writes those that are accepted.
//! 6. `cargo xtask codegen` writes the manifest and the reference page.
//!
//! A kind of the technology preview has `Crd::preview` in `crds::ALL`. What the preview adds has its facts in
//! `tests/data/parity/tech_preview/` and its objects in `tests/data/rules/tech_preview/`.
//!
//! # How a property is written
//!
//! | what | how |
//! |---|---|
//! | optional | `Option<T>`, or a `Vec` or map, with `#[serde(default, skip_serializing_if = "...")]` |
//! | required | without `default`, and not an `Option` |
//! | a default | `#[serde(default = "function")]`; where the field is an `Option`, `#[schemars(extend("default" = ...))]` |
//! | an enum | a Rust enum with doc comments on its variants |
//! | bounds | `#[schemars(length(min = 1, max = 9))]`, `range(...)`, `regex(pattern = "...")`, `inner(length(...))` for items |
//! | a rule | `#[schemars(transform = rule("CEL", "what to do"))]`, on a field or a type; several add up |
//! | immutable | `#[schemars(transform = immutable("what to do"))]` |
//! | a merge strategy | `#[schemars(transform = atomic_list)]`, `set`, `list_map(["key"])` |
//! | `minProperties` and the like | `#[schemars(transform = with("minProperties", 1))]` |
//! | technology preview | `#[schemars(transform = tech_preview)]` on an optional field or a variant; `preview_rule` for rules about such fields |
//! | another crate's type | `#[schemars(with = "Vec<schema::Condition>")]`, a marker that has its shape |
//!
//! # How objects are read
//!
//! Objects of older or newer versions may hold what these types do not take, and a `spec` may be absent.
//! Controllers read them through `kube::core::DeserializeGuard`, so that one object never hides the others.

pub mod auto_node;
pub mod autoscaling;
pub mod aws_endpoint_service;
pub mod azure_client_id;
pub mod azure_private_link_service;
pub mod capabilities;
pub mod certificate_signing_request_approval;
pub mod cluster_status;
pub mod common;
pub mod configuration;
pub mod control_plane_component;
pub mod dns;
pub mod etcd;
pub mod gcp_private_service_connect;
pub mod hcp_etcd_backup;
pub mod hosted_cluster;
pub mod hosted_control_plane;
pub mod image_content_source;
pub mod monitoring;
pub mod networking;
pub mod node_pool;
pub mod operator_configuration;
pub mod platform;
pub mod references;
pub mod secret_encryption;
pub mod services;
pub mod versions;

pub use aws_endpoint_service::{
    AwsEndpointService, AwsEndpointServiceSpec, AwsEndpointServiceStatus,
};
pub use azure_private_link_service::{
    AzurePrivateLinkService, AzurePrivateLinkServiceSpec, AzurePrivateLinkServiceStatus,
};
pub use certificate_signing_request_approval::CertificateSigningRequestApproval;
pub use control_plane_component::{
    ControlPlaneComponent, ControlPlaneComponentSpec, ControlPlaneComponentStatus,
};
pub use gcp_private_service_connect::{
    GcpPrivateServiceConnect, GcpPrivateServiceConnectSpec, GcpPrivateServiceConnectStatus,
};
pub use hcp_etcd_backup::{HcpEtcdBackup, HcpEtcdBackupSpec, HcpEtcdBackupStatus};
pub use hosted_cluster::{HostedCluster, HostedClusterSpec, status::HostedClusterStatus};
pub use hosted_control_plane::{
    HostedControlPlane, HostedControlPlaneSpec, status::HostedControlPlaneStatus,
};
pub use node_pool::{NodePool, NodePoolSpec, NodePoolStatus};
