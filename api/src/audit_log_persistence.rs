//! The group `auditlogpersistence.hypershift.openshift.io`: audit logs that outlive the pods that write them.

pub mod v1alpha1;
