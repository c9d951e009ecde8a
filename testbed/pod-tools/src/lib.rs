//! What the programs of the testbed's pods have in common: a small HTTP server on ports that serve both TLS and plain HTTP,
//! and what stand-ins of operators create.

pub mod operands;
pub mod serve;
pub mod tls;
