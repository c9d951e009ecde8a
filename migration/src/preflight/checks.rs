//! The checks.

use super::{Case, Severity};

type Check = fn(&Case<'_>) -> Vec<(Severity, String)>;

/// All checks, by the name that findings carry.
pub(super) const ALL: [(&str, Check); 0] = [];
