//! What every long-running program of the system stands on.
//!
//! - [`args`]: flags that all programs share, to be flattened into theirs.
//! - [`telemetry`], [`admin`], [`health`]: the log; `/livez`, `/readyz` and `/metrics`; what makes a program unready.
//! - [`shutdown`]: signals, and how the end is made known to all that must end before it.
//! - [`lease`], [`fence`]: leader election, and a client that refuses to write for a leader whose time is up.
//! - [`client`], [`apply`]: the way to the API server, and the writes that carry a precondition.
//! - [`watch`]: what a watch that failed means for readiness.
//! - [`reconcile`]: what an error of a controller must tell: its reason, its object, when to try again.
//! - [`error`]: exit codes, and an error with its causes on one line.
//! - `testing` (feature of that name): an API server of expected calls.
//!
//! Nothing here knows a hosted cluster.

#![deny(missing_docs)]

pub mod admin;
pub mod apply;
pub mod args;
pub mod client;
pub mod error;
pub mod fence;
pub mod health;
pub mod lease;
pub mod reconcile;
pub mod shutdown;
pub mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod watch;
