//! What `cargo xtask bench proxy` measures with, apart from the peers themselves.
//!
//! One program with three commands, each run as a process of its own and built with optimisations:
//!
//! - `load upstream`: a fast, fake API server ([`upstream`]). It does next to nothing, so that the cost of the peers is visible.
//! - `load relay`: copies bytes between two TCP connections ([`relay`]): the least that any proxy costs.
//! - `load work`: does the jobs of [`wire`] that arrive on standard input ([`work`]), each over [`http1`] connections.
//!
//! What is sent and what must return is known to the byte ([`fixture`]), and every response is compared ([`body`]).
//! This crate starts no process and evaluates no figure: crate `e2e` does both.

#[cfg(feature = "programs")]
pub mod body;
pub mod clock;
#[cfg(feature = "programs")]
pub mod fixture;
#[cfg(feature = "programs")]
pub mod http1;
#[cfg(feature = "programs")]
pub mod relay;
#[cfg(feature = "programs")]
pub mod tls;
#[cfg(feature = "programs")]
pub mod upstream;
pub mod wire;
#[cfg(feature = "programs")]
pub mod work;
