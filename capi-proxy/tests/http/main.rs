//! Tests of the real binary over real sockets, against an API server that a test controls.
//!
//! Numbers of checks are those of docs/checks.md. Tests that need a real API server are in `e2e`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod bodies;
mod conversion;
mod credentials;
mod faults;
mod framing;
mod harness;
mod lifecycle;
mod load;
mod observability;
mod security;
mod upgrades;
mod watches;
