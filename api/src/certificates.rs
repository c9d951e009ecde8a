//! The group `certificates.hypershift.openshift.io`: access to hosted clusters in an emergency.

pub mod v1alpha1;
