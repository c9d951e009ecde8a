//! The group `karpenter.hypershift.openshift.io`, which hosted clusters serve: nodes that Karpenter makes.

#![allow(
    clippy::doc_markdown,
    reason = "users read the documentation of fields as plain text, in `kubectl explain`"
)]

pub mod definitions;
pub mod v1;
