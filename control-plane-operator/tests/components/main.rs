//! Rendered components, compared with golden files and with reference facts.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod availability;
mod clouds;
mod cluster_operators;
mod encryption;
mod facts;
mod golden;
mod input;
mod oauth;
mod olm;
mod openshift_apis;
mod parity;
mod pod_security;
mod roles;
mod variants;
