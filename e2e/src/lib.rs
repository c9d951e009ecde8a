//! Tests of the product on a real management cluster. What they stand on is the crate `testbed`, which they use by way
//! of this one.

pub use ::testbed::*;
