//! Endpoints of private clusters on Azure: private endpoints, and records of private DNS zones.
//!
//! ```text
//! alias of the private link service ──> private endpoint ──> its address ──> zone <cluster>.hypershift.local
//!                                                                       └──> zone of the base domain
//! ```

mod client;
mod dns;
mod endpoint;
mod plan;
mod provider;
mod status;
#[cfg(test)]
mod tests;

pub(super) use provider::Provider;
