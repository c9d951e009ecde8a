//! What all components of a hosted control plane share.

pub mod sidecar;
