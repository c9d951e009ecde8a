//! The proxy as its users meet it: the real binary, real sockets, and an API server that does what a test tells it to.
//!
//! Each test is named after the check that it shows. What needs a real API server is shown in `e2e`.

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
