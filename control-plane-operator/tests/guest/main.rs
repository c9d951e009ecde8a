//! Objects of the hosted cluster, compared with reference facts, and by input.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod compare;
mod facts;
mod modes;
mod parity;
mod profiles;
mod values;
mod variants;
