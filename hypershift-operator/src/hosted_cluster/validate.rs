//! Validation of a HostedCluster: pure. Each finding says what to change.
//!
//! What the API server validates is not validated again. While there are findings, running components are not
//! changed.

mod authentication;
mod auto_node;
mod azure;
mod ibm_cloud;
mod kubevirt;
mod networks;
mod platform;
mod power_vs;
mod references;
mod release;
mod services;

pub(crate) use platform::has_private_links;
pub(crate) use release::{Gate, gate};

use crate::facts::Facts;

/// The findings of a cluster: one for each condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Findings {
    /// `ValidConfiguration`.
    pub(crate) configuration: Finding,
    /// `SupportedHostedCluster`.
    pub(crate) supported: Finding,
    /// `ValidReleaseImage`.
    pub(crate) release: Finding,
    /// `PlatformCredentialsFound`.
    pub(crate) credentials: Finding,
    /// Whether an upgrade from the running to the desired release is allowed.
    pub(crate) gate: Gate,
}

/// Whether something is as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    Good,
    Bad {
        reason: &'static str,
        message: String,
    },
}

/// Problems of a configuration: the field, and what to do.
pub(crate) type Problems = Vec<String>;

// === impl Finding ===

impl Finding {
    pub(crate) fn is_good(&self) -> bool {
        *self == Self::Good
    }

    pub(super) fn bad(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Bad { reason, message }
    }
}

// === impl Findings ===

impl Findings {
    /// Whether the desired state may be applied.
    pub(crate) fn allow_changes(&self) -> bool {
        self.configuration.is_good()
            && self.supported.is_good()
            && self.release.is_good()
            && self.gate == Gate::Open
    }
}

/// Validates everything.
pub(crate) fn validate(facts: &Facts) -> Findings {
    let release = release::finding(facts);
    Findings {
        configuration: configuration(facts),
        supported: platform::supported(facts),
        credentials: platform::credentials(facts),
        gate: gate(facts),
        release,
    }
}

fn configuration(facts: &Facts) -> Finding {
    let problems: Problems = [
        references::problems(facts),
        services::problems(facts),
        platform::problems(facts),
        networks::problems(facts),
        authentication::problems(facts),
        ibm_cloud::key_problems(facts),
    ]
    .concat();
    if problems.is_empty() {
        return Finding::Good;
    }
    Finding::bad("InvalidConfiguration", problems.join("; "))
}

#[cfg(test)]
mod tests;
