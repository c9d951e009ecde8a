//! Health of a program: named readiness checks, and liveness by the age of what runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::watchdog::Watchdog;

/// All checks of a program.
#[derive(Debug, Default)]
pub struct Health {
    /// The failure message of each check, or none if it passes.
    checks: Mutex<BTreeMap<&'static str, Option<String>>>,
    passed: Family<CheckLabels, Gauge>,
    watchdog: Arc<Watchdog>,
}

/// One readiness check. It is removed when this is dropped.
#[derive(Debug)]
pub struct Check {
    name: &'static str,
    health: Arc<Health>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    check: &'static str,
}

// === impl Health ===

impl Health {
    /// No checks: ready and alive. The gauge `ready` has each check.
    pub fn new(registry: &mut Registry) -> Arc<Self> {
        let health = Self {
            watchdog: Watchdog::new(registry),
            ..Self::default()
        };
        registry.register(
            "ready",
            "Whether a check of readiness is passed (1) or not (0)",
            health.passed.clone(),
        );
        Arc::new(health)
    }

    /// The running reconciles: one that hangs fails liveness.
    pub fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }

    /// Adds a check, which fails until it passes for the first time.
    pub fn check(self: &Arc<Self>, name: &'static str, pending: &str) -> Check {
        self.checks().insert(name, Some(pending.to_owned()));
        self.passed
            .get_or_create(&CheckLabels { check: name })
            .set(0);
        Check {
            name,
            health: Arc::clone(self),
        }
    }

    /// A line for each readiness check that fails.
    pub fn problems(&self) -> Vec<String> {
        let checks = self.checks();
        let failed = checks
            .iter()
            .filter_map(|(name, problem)| Some((name, problem.as_ref()?)));
        failed
            .map(|(name, problem)| format!("{name}: {problem}"))
            .collect()
    }

    fn checks(&self) -> MutexGuard<'_, BTreeMap<&'static str, Option<String>>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &'static str, problem: Option<String>) {
        let gauge = self.passed.get_or_create(&CheckLabels { check: name });
        gauge.set(i64::from(problem.is_none()));
        let mut checks = self.checks();
        let known = checks.entry(name).or_default();
        if *known == problem {
            return;
        }
        match &problem {
            None => tracing::info!(check = name, "Ready"),
            Some(problem) => tracing::warn!(check = name, error = problem, "Not ready"),
        }
        *known = problem;
    }
}

// === impl Check ===

impl Check {
    /// The running reconciles in the program of this check.
    pub fn watchdog(&self) -> &Arc<Watchdog> {
        &self.health.watchdog
    }

    /// The check passes.
    pub fn pass(&self) {
        self.health.set(self.name, None);
    }

    /// The check fails with this message.
    pub fn fail(&self, problem: impl Into<String>) {
        self.health.set(self.name, Some(problem.into()));
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        self.health.checks().remove(self.name);
        let labels = CheckLabels { check: self.name };
        self.health.passed.remove(&labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_ready_when_all_checks_pass() {
        let health = Health::new(&mut Registry::default());
        assert!(health.problems().is_empty());
        let scan = health.check("scan", "has not begun");
        let lease = health.check("lease", "has not been read");
        scan.pass();
        assert_eq!(health.problems(), ["lease: has not been read"]);
        lease.pass();
        assert!(health.problems().is_empty());
        scan.fail("denied");
        assert_eq!(health.problems(), ["scan: denied"]);
        drop(scan);
        assert!(health.problems().is_empty());
    }
}
