//! The group `hypershift.openshift.io`.

#![allow(
    clippy::doc_markdown,
    reason = "users read the documentation of fields as plain text, in `kubectl explain`"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "each `printcolumn` has a type, and several have the same"
)]

pub mod v1beta1;
