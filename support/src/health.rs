//! What makes a program unready: named checks, each passed or failed with a reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// All checks of a program.
#[derive(Debug, Default)]
pub struct Health {
    /// The problem of each check; without one it is passed.
    checks: Mutex<BTreeMap<&'static str, Option<String>>>,
    passed: Family<CheckLabels, Gauge>,
}

/// One check, to be passed and failed by whoever knows; it counts no more when this is dropped.
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
    /// No checks: ready. The gauge `ready` tells of each check.
    pub fn new(registry: &mut Registry) -> Arc<Self> {
        let health = Self::default();
        registry.register(
            "ready",
            "Whether a check of readiness is passed (1) or not (0)",
            health.passed.clone(),
        );
        Arc::new(health)
    }

    /// Adds a check, which is failed until it is passed.
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

    /// What is wrong: a line for each check that is not passed.
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
            Some(problem) => tracing::warn!(check = name, problem, "Not ready"),
        }
        *known = problem;
    }
}

// === impl Check ===

impl Check {
    /// All is well.
    pub fn pass(&self) {
        self.health.set(self.name, None);
    }

    /// Something is wrong, and this is what.
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
    fn a_program_is_ready_when_every_check_is_passed() {
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
