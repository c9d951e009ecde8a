//! Endpoints of clusters on Google Cloud: addresses with forwarding rules of Private Service Connect, and zones of Cloud DNS.
//!
//! ```text
//! service attachment ──> address and forwarding rule ──> zone <cluster>.hypershift.local
//!                                                   └──> zones of the base domain
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
