//! Private links of a hosted cluster on AWS, in the account of the cluster.
//!
//! ```text
//! Service with a load balancer ──> AWSEndpointService ── hypershift-operator ──> VPC endpoint service
//!                                         │                                              │ its name
//!              DNS records <── VPC endpoint <── security group <─────────────────────────┘
//! ```
//!
//! Nodes reach the private router and the API server by an endpoint in their own network, under names of the private zone
//! `<cluster>.hypershift.local`. What decides is pure; [`cloud::Cloud`] is AWS, or a fake of it.

mod aws;
mod cloud;
mod control;
mod endpoint;
mod error;
mod objects;
mod plan;
mod records;
mod requests;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use control::{View, run};
