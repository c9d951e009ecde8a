//! Rendered components, compared with golden files and with reference facts.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod availability;
mod clouds;
mod cluster_operators;
mod encryption;
mod errors;
mod facts;
mod golden;
mod input;
mod invariants;
mod kubernetes;
mod metrics_sets;
mod oauth;
mod olm;
mod openshift_apis;
mod parity;
mod pod_security;
mod program;
mod roles;
mod rows;
mod statements;
mod variants;
