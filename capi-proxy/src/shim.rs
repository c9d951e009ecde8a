//! `capi-proxy conversion-webhook`: the conversion webhook of the private CRDs, which is installed as
//! `capi-conversion-webhook-shim`.
//!
//! The API server sends a `ConversionReview` with objects of private groups. The webhook translates the names, calls a stock
//! manager in the same pod, the backend, and translates the names back. It does not know the versions themselves.
//!
//! - [`review`] reads and writes reviews, [`object`] one object in them, [`swap`] translates its names.
//! - [`check`] validates what a conversion changed; [`route`] selects the backend of a kind.
//! - [`convert`] combines them, and finds the object that fails a batch. None of these does I/O.
//! - `connections` and `memory` limit what clients use, by their `shares`; `body` reads a review within these limits.
//! - `delegate` calls backends, `serve` serves the API server; `certificates` reloads the certificates of both.

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
