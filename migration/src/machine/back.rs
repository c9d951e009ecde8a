//! Back: every phase undone, last first.

use super::{Observation, Step};
use crate::groups::Groups;
use crate::journal::{Failure, Journal};

pub(super) fn next(_: &Groups, _: &Journal, failure: &Failure, _: &Observation<'_>) -> Step {
    Step::RolledBack(failure.clone())
}
