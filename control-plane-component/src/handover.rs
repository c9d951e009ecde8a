//! The components of a control plane that write Cluster API objects: a migration stops them, and starts them again.
//!
//! hypershift-operator migrates clusters without knowing what their control planes are made of: this is what it is told.
//! A test of control-plane-operator holds the list to what the components declare.

/// Those with the proxy beside them on private types.
pub const PROXIED: [&str; 2] = ["cluster-autoscaler", "machine-approver"];
/// Those that use the private groups by themselves.
pub const DIRECT: [&str; 1] = ["hosted-cluster-config-operator"];
