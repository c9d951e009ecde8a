//! The release payload: one image that names, by digest, every other image of an OpenShift release.
//!
//! [`Releases::get`] reads one from a registry, with a pull secret. The result, a [`Release`], contains which image a
//! component has, its version, its boot images and its architectures. [`skew`] says which release may follow which, and
//! [`operator_image`] which image a hosted cluster's control-plane-operator runs.
//!
//! A registry may be slow, or hostile, and its tenant must not delay others: [`Limits`] bound each request, each read,
//! what each tenant reads at once, and the memory of what was read. See [`Releases::for_tenant`].
//!
//! [`extract`] writes files of any image to a directory, for those who run the programs of a release.
//!
//! This crate reads and decides: it pulls nothing to a node, and writes nothing to a cluster.

pub mod args;
pub mod boot_images;
pub mod capabilities;
mod contents;
pub mod error;
pub mod extract;
mod flights;
pub mod image_references;
mod layers;
mod limits;
mod memory;
pub mod mirrors;
pub mod operator_image;
pub mod operators;
pub mod pull_secret;
pub mod reference;
mod registry;
pub mod release;
pub mod releases;
pub mod skew;
mod tenants;
pub mod version;

pub use boot_images::Stream;
pub use capabilities::{Capabilities, Capability};
pub use error::{Error, Reason};
pub use limits::Limits;
pub use memory::Held;
pub use mirrors::{Mirrors, Overrides};
pub use operator_image::{Compatibility, OperatorImages};
pub use operators::{InvalidOverrides, OperatorOverrides};
pub use pull_secret::PullSecret;
pub use reference::Reference;
pub use registry::InvalidAuthorities;
pub use release::{MissingImage, MissingStream, Release};
pub use releases::{Options, Releases};
pub use version::{Minor, Version};
