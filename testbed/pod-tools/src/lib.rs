//! What the programs of the testbed's pods have in common: a small HTTP server on ports that speak TLS and plain alike.

pub mod serve;
pub mod tls;
