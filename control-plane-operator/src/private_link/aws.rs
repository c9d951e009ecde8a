//! Endpoints of private clusters on AWS: VPC endpoints with their security groups, and records of Route 53.
//!
//! What decides is pure; [`cloud::Cloud`] is AWS, or a fake of it.

mod calls;
mod cloud;
mod endpoint;
mod objects;
mod plan;
mod provider;
mod records;
mod status;
#[cfg(test)]
mod tests;

pub(super) use provider::Provider;
