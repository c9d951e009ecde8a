//! Nodes that somebody else brings: there is nothing to make them with.

use crate::hosted_cluster::facts::Facts;
use crate::platform::{ClusterIs, Infrastructure};

/// No infrastructure.
#[derive(Debug)]
pub(crate) struct None;

// === impl None ===

impl Infrastructure for None {
    fn cluster(&self, _: &Facts) -> ClusterIs {
        ClusterIs::Absent
    }

    fn provider_image(&self, _: &Facts) -> Result<Option<String>, String> {
        Ok(Option::None)
    }
}
