//! Nodes that users add themselves: there is no provider.

use kube::api::ApiResource;

use crate::capi::Capi;
use crate::facts::Facts;
use crate::platform::{ClusterIs, Infrastructure};

/// No infrastructure.
#[derive(Debug)]
pub(crate) struct None;

// === impl None ===

impl Infrastructure for None {
    fn cluster(&self, _: &Facts) -> ClusterIs {
        ClusterIs::Absent
    }

    fn kinds(&self, _: Capi) -> Option<Vec<ApiResource>> {
        Option::None
    }

    fn provider_image(&self, _: &Facts) -> Result<Option<String>, String> {
        Ok(Option::None)
    }
}
