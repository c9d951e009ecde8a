//! Private links of hosted clusters on AWS, in the account of the management cluster.
//!
//! ```text
//! AWSEndpointService ── owner, Service, NodePools ──> desired (pure) ──> VPC endpoint service ──> status, subnets
//!    ^ control-plane-operator: load balancer, tags                          │ its name
//!    └── endpoint, security group, DNS records in the account of the cluster <┘
//! ```
//!
//! The control-plane-operator creates AWSEndpointServices for the load balancers of the private router and of the API server.
//! This controller makes a VPC endpoint service of each, and permits the role of the cluster to connect to it.

mod cloud;
mod control;
mod ec2;
mod endpoint_service;
mod inputs;
mod plan;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use control::{CONTROL_PLANE_FINALIZER, resource, run};
