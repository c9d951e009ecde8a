//! VPC endpoint services of private clusters on AWS: one for each load balancer, which the role of the cluster may connect to.

mod cloud;
mod ec2;
mod endpoint_service;
mod inputs;
mod plan;
mod provider;
#[cfg(test)]
mod tests;

pub(super) use provider::{CONTROL_PLANE_FINALIZER, KIND, Provider};
