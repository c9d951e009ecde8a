//! What components are rendered to: as golden files, and compared with what is known of the same components elsewhere.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, which is all it has to do"
)]

mod availability;
mod encryption;
mod facts;
mod golden;
mod input;
mod parity;
mod variants;
