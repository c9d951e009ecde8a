//! The group `certificates.hypershift.openshift.io`: access to hosted clusters in an emergency.

#![allow(
    clippy::doc_markdown,
    reason = "users read the documentation of fields as plain text, in `kubectl explain`"
)]

pub mod v1alpha1;
