//! The group `scheduling.hypershift.openshift.io`: how large a hosted control plane has to be.

pub mod v1alpha1;
