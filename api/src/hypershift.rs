//! The group `hypershift.openshift.io`.

pub mod v1beta1;
