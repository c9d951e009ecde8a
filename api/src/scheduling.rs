//! The group `scheduling.hypershift.openshift.io`: how large a hosted control plane has to be.

#![allow(
    clippy::doc_markdown,
    reason = "users read the documentation of fields as plain text, in `kubectl explain`"
)]

pub mod v1alpha1;
