//! Ages of running reconciles: a metric, and a liveness check.
//!
//! A reconcile has a deadline, at which it is dropped. One that runs past its limit does not yield, or waits for something
//! that no deadline covers: only a restart helps, so it fails liveness.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

/// The age of a reconcile that fails liveness. Requests end long before.
pub const HANG_LIMIT: Duration = Duration::from_mins(10);

/// The running reconciles in a process.
#[derive(Debug, Default)]
pub struct Watchdog {
    state: Mutex<State>,
}

/// A reconcile that runs. It has ended when this is dropped.
#[derive(Debug)]
pub struct Pass {
    id: u64,
    watchdog: Arc<Watchdog>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, Running>,
    /// The controllers that have reconciled: idle ones have the age 0.
    controllers: BTreeSet<&'static str>,
}

#[derive(Debug)]
struct Running {
    controller: &'static str,
    /// None for a loop that is not a controller.
    object: Option<String>,
    begun: Instant,
    limit: Duration,
}

/// Exposes ages when metrics are scraped.
#[derive(Debug)]
struct Ages(Arc<Watchdog>);

// === impl Watchdog ===

impl Watchdog {
    /// A watchdog whose ages are in the registry.
    pub fn new(registry: &mut Registry) -> Arc<Self> {
        let watchdog = Arc::new(Self::default());
        registry.register_collector(Box::new(Ages(Arc::clone(&watchdog))));
        watchdog
    }

    /// A reconcile of an object begins, or a pass of a loop without one. Liveness fails if it runs for longer than the limit.
    pub fn begin(
        self: &Arc<Self>,
        controller: &'static str,
        object: Option<&str>,
        limit: Duration,
    ) -> Pass {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.controllers.insert(controller);
        let running = Running {
            controller,
            object: object.map(str::to_owned),
            begun: Instant::now(),
            limit,
        };
        state.running.insert(id, running);
        Pass {
            id,
            watchdog: Arc::clone(self),
        }
    }

    /// A line for each reconcile that has run past its limit.
    pub fn hung(&self) -> Vec<String> {
        let state = self.state();
        let hung = state.running.values().filter(|pass| pass.is_hung());
        hung.map(Running::to_string).collect()
    }

    /// The age of the oldest reconcile of each controller; 0 if it is idle.
    pub fn ages(&self) -> BTreeMap<&'static str, Duration> {
        let state = self.state();
        let mut ages: BTreeMap<_, _> = state
            .controllers
            .iter()
            .map(|controller| (*controller, Duration::ZERO))
            .collect();
        for pass in state.running.values() {
            let age = ages.entry(pass.controller).or_default();
            *age = pass.begun.elapsed().max(*age);
        }
        ages
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Running ===

impl Running {
    fn is_hung(&self) -> bool {
        self.begun.elapsed() > self.limit
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: reconcile", self.controller)?;
        if let Some(object) = &self.object {
            write!(f, " of {object}")?;
        }
        write!(
            f,
            " has been running for {}s (limit {}s)",
            self.begun.elapsed().as_secs(),
            self.limit.as_secs()
        )
    }
}

// === impl Pass ===

impl Drop for Pass {
    fn drop(&mut self) {
        self.watchdog.state().running.remove(&self.id);
    }
}

// === impl Ages ===

impl Collector for Ages {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(
            "oldest_reconcile_age",
            "Age of the oldest reconcile that is running, by controller",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (controller, age) in self.0.ages() {
            let labels = [("controller", controller)];
            let encoder = family.encode_family(&labels)?;
            ConstGauge::new(age.as_secs_f64()).encode(encoder)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_mins(1);

    /// Check T03.
    #[tokio::test(start_paused = true)]
    async fn a_pass_past_its_limit_is_hung_until_it_ends() {
        let watchdog = Arc::new(Watchdog::default());
        let pass = watchdog.begin("hostedcluster", Some("clusters/a"), LIMIT);
        tokio::time::advance(LIMIT).await;
        assert!(watchdog.hung().is_empty());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            watchdog.hung(),
            ["hostedcluster: reconcile of clusters/a has been running for 61s (limit 60s)"]
        );
        drop(pass);
        assert!(watchdog.hung().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_metric_is_the_age_of_the_oldest_pass() {
        let mut registry = Registry::default();
        let watchdog = Watchdog::new(&mut registry);
        let _first = watchdog.begin("nodepool", Some("clusters/a"), LIMIT);
        tokio::time::advance(Duration::from_secs(2)).await;
        let _second = watchdog.begin("nodepool", Some("clusters/b"), LIMIT);
        drop(watchdog.begin("hostedcluster", Some("clusters/a"), LIMIT));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "oldest_reconcile_age_seconds{controller=\"nodepool\"} 2.0",
            "oldest_reconcile_age_seconds{controller=\"hostedcluster\"} 0.0",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
    }
}
