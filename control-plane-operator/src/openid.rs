//! Endpoints of identity providers that use `OpenID` Connect: what the OAuth server needs to know of them.
//!
//! ```text
//!  pass ──> inquiries (pure) ──> discovery: known endpoints at once, requests in the background
//!                                    │
//!                                    └─> network: tunnel ──> TLS ──> discovery document, password probe
//! ```
//!
//! Providers are servers of users: they may be slow, send anything, or name any URL. A request never delays a pass, is
//! limited in time and size, follows no redirect, and goes through the tunnel only.

mod discovery;
mod document;
mod error;
mod exchange;
mod inquiry;
mod network;
mod url;

pub(crate) use discovery::{Discovery, Findings};
pub(crate) use inquiry::{Inquiry, Source};
pub(crate) use network::materials;
