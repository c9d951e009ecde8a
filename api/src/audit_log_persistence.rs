//! The group `auditlogpersistence.hypershift.openshift.io`: audit logs that outlive the pods that write them.

#![allow(
    clippy::doc_markdown,
    reason = "users read the documentation of fields as plain text, in `kubectl explain`"
)]

pub mod v1alpha1;
