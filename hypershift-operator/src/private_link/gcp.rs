//! Service attachments of clusters on Google Cloud, in the project of the management cluster: one for each internal load
//! balancer, which the project of the cluster may connect to by Private Service Connect.
//!
//! ```text
//! Service ── its address, its name ──> forwarding rule ──> service attachment ── NAT subnet
//! ```

mod attachment;
mod client;
mod plan;
mod provider;
#[cfg(test)]
mod tests;

pub(super) use provider::{CONTROL_PLANE_FINALIZER, KIND, Provider};
