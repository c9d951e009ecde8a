//! What components are rendered to: as golden files, and compared with what is known of the same components elsewhere.

mod facts;
mod golden;
mod input;
mod parity;
mod variants;
