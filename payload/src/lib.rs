//! The release payload: one image that names, by digest, every other image of an OpenShift release.
//!
//! [`Releases::get`] reads one from a registry, with the pull secret of whoever asks. What it gives, a [`Release`], answers
//! which image a component has, which version it is of, which boot images belong to it, and for which architectures it is.
//! What may follow what is in [`skew`].
//!
//! Reading is done here, and judging: nothing is pulled to a node, and nothing is written to a cluster.

pub mod boot_images;
mod cache;
pub mod capabilities;
mod contents;
pub mod error;
pub mod image_references;
mod layers;
pub mod mirrors;
pub mod operators;
pub mod pull_secret;
pub mod reference;
mod registry;
pub mod release;
pub mod releases;
pub mod skew;
pub mod version;

pub use boot_images::Stream;
pub use capabilities::{Capabilities, Capability};
pub use error::{Error, Reason};
pub use mirrors::{Mirrors, Overrides};
pub use operators::{InvalidOverrides, OperatorOverrides};
pub use pull_secret::PullSecret;
pub use reference::Reference;
pub use registry::InvalidAuthorities;
pub use release::{MissingImage, Release};
pub use releases::{Options, Releases};
pub use version::{Minor, Version};
