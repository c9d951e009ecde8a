//! Whether a hosted cluster can be as it is wanted: pure. What speaks against it says what to change.
//!
//! What the API server refuses by itself is not looked at again. What runs is left alone while something speaks
//! against it.

mod authentication;
mod kubevirt;
mod networks;
mod platform;
mod references;
mod release;
mod services;

pub(crate) use platform::private_access;
pub(crate) use release::{Gate, gate};

use super::facts::Facts;

/// What was found of a cluster: one verdict for each condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdicts {
    /// `ValidConfiguration`.
    pub(crate) configuration: Verdict,
    /// `SupportedHostedCluster`.
    pub(crate) supported: Verdict,
    /// `ValidReleaseImage`.
    pub(crate) release: Verdict,
    /// `PlatformCredentialsFound`, on platforms that have some.
    pub(crate) credentials: Option<Verdict>,
    /// Whether the wanted release may follow the one that runs.
    pub(crate) gate: Gate,
}

/// Whether something is as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Bad {
        reason: &'static str,
        message: String,
    },
}

/// What speaks against a configuration: the field, and what to do.
pub(crate) type Problems = Vec<String>;

// === impl Verdict ===

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        *self == Self::Good
    }

    pub(super) fn bad(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Bad { reason, message }
    }
}

// === impl Verdicts ===

impl Verdicts {
    /// Whether the cluster may be made, or changed, as it is wanted.
    pub(crate) fn allow_changes(&self) -> bool {
        self.configuration.is_good()
            && self.supported.is_good()
            && self.release.is_good()
            && self.gate == Gate::Open
    }
}

/// Looks at everything.
pub(crate) fn validate(facts: &Facts) -> Verdicts {
    let release = release::verdict(facts);
    Verdicts {
        configuration: configuration(facts),
        supported: platform::supported(facts),
        credentials: platform::credentials(facts),
        gate: gate(facts),
        release,
    }
}

fn configuration(facts: &Facts) -> Verdict {
    let problems: Problems = [
        references::problems(facts),
        services::problems(facts),
        platform::problems(facts),
        networks::problems(facts),
        authentication::problems(facts),
    ]
    .concat();
    if problems.is_empty() {
        return Verdict::Good;
    }
    Verdict::bad("InvalidConfiguration", problems.join("; "))
}

#[cfg(test)]
mod tests;
