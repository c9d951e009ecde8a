//! What the programs of the testbed's pods have in common: a small HTTP server on ports that serve both TLS and plain HTTP.

pub mod serve;
pub mod tls;
