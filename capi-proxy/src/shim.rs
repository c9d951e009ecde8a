//! `capi-proxy conversion-webhook`: converts objects of the private groups by stock Cluster API.
//!
//! The API server sends a `ConversionReview` whose objects are of private groups. The names are swapped, a stock manager
//! that runs beside us converts, and the names are swapped back. Nothing about the versions themselves is known here.
//!
//! - [`review`] reads and writes reviews, [`object`] one object in them, [`swap`] swaps its names.
//! - [`check`] holds an answer to what conversion may change; [`route`] says which backend converts a kind.
//! - [`convert`] puts them together, and finds the object that a batch fails on. None of these does I/O.
//! - `connections` and `memory` limit what clients use, by their `shares`; `body` reads a review within these limits.
//! - `delegate` asks a backend, `serve` answers the API server; `certificates` reloads what both show and trust.

pub(crate) mod args;
mod body;
mod certificates;
mod check;
mod connections;
mod convert;
mod delegate;
mod expiry;
mod memory;
mod metrics;
mod object;
mod probe;
mod review;
mod route;
mod serve;
mod shares;
mod source;
mod swap;
#[cfg(test)]
mod tests;

pub(crate) use serve::run;
