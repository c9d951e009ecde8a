//! Metrics. No label is derived from client input: only verbs, codes, known resources and `other`.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use support::admin;

use capi_translate::ErrorType;

/// The prefix of all names.
const PREFIX: &str = "hypershift_api_proxy";
/// Buckets for the duration of requests.
const DURATION: [f64; 7] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];
/// Buckets for the time spent in the proxy itself.
const ADDED: [f64; 9] = [
    10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3,
];
/// Maximum number of label sets of a counter; further ones are merged.
const MAX_COUNTERS: usize = 1500;
/// Maximum number of label sets of a histogram; each has a series for every bucket.
const MAX_HISTOGRAMS: usize = 150;

/// The metrics of the proxy.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    request_sets: AtomicUsize,
    durations: Family<CallLabels, Histogram, fn() -> Histogram>,
    duration_sets: AtomicUsize,
    added: Family<VerbLabels, Histogram, fn() -> Histogram>,
    translation_errors: Family<ErrorLabels, Counter>,
    foreign_names: Counter,
    leaked_names: Counter,
    open_watches: Gauge,
    ready: Gauge<f64, AtomicU64>,
    registry: Registry,
}

/// The verb and resource of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabels {
    /// The Kubernetes verb.
    pub(crate) method: &'static str,
    pub(crate) resource: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    resource: &'static str,
    code: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    error_type: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Metrics at zero.
    pub(crate) fn new() -> Arc<Self> {
        let mut metrics = Self {
            requests: Family::default(),
            request_sets: AtomicUsize::new(0),
            durations: Family::new_with_constructor(|| Histogram::new(DURATION)),
            duration_sets: AtomicUsize::new(0),
            added: Family::new_with_constructor(|| Histogram::new(ADDED)),
            translation_errors: Family::default(),
            foreign_names: Counter::default(),
            leaked_names: Counter::default(),
            open_watches: Gauge::default(),
            ready: Gauge::default(),
            registry: Registry::with_prefix(PREFIX),
        };
        metrics.register();
        Arc::new(metrics)
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "requests",
            "Requests with a response of the API server or of the proxy",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "Time from the head of a request to the end of its response, or to the head of the response for watches",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register_with_unit(
            "added_duration",
            "Time that the proxy itself spent on a request and its response",
            Unit::Seconds,
            self.added.clone(),
        );
        registry.register(
            "translation_errors",
            "Requests and responses that were rejected because they cannot be translated",
            self.translation_errors.clone(),
        );
        registry.register(
            "foreign_names",
            "Standard group names in stored objects, written by a client that bypasses the proxy",
            self.foreign_names.clone(),
        );
        registry.register(
            "leaked_names",
            "Strings of responses with an untranslated private name, counted with --debug-leaks only",
            self.leaked_names.clone(),
        );
        registry.register(
            "open_watches",
            "Watches that are open now",
            self.open_watches.clone(),
        );
        registry.register(
            "ready",
            "Whether the API server can be reached",
            self.ready.clone(),
        );
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running program", build);
    }

    /// A request got a response.
    pub(crate) fn responded(&self, call: CallLabels, code: u16) {
        let CallLabels { method, resource } = call;
        let mut labels = RequestLabels {
            method,
            resource,
            code: code_label(code),
        };
        if self.requests.get(&labels).is_none() && is_full(&self.request_sets, MAX_COUNTERS) {
            labels = RequestLabels {
                method,
                resource: "other",
                code: code_class(code).into(),
            };
        }
        self.requests.get_or_create(&labels).inc();
    }

    /// Observes the duration of a request, and the part that was spent in the proxy.
    pub(crate) fn observe_duration(&self, call: CallLabels, total: Duration, added: Duration) {
        let mut labels = call;
        if self.durations.get(&labels).is_none() && is_full(&self.duration_sets, MAX_HISTOGRAMS) {
            labels.resource = "other";
        }
        self.durations
            .get_or_create(&labels)
            .observe(total.as_secs_f64());
        self.added
            .get_or_create(&VerbLabels {
                method: call.method,
            })
            .observe(added.as_secs_f64());
    }

    /// A body could not be translated.
    pub(crate) fn translation_error(&self, error_type: ErrorType) {
        self.translation_errors
            .get_or_create(&ErrorLabels {
                error_type: error_type.as_str(),
            })
            .inc();
    }

    /// Counts private names that remain in responses.
    pub(crate) fn leaked_names(&self, count: u64) {
        self.leaked_names.inc_by(count);
    }

    /// Counts standard names in stored objects.
    pub(crate) fn foreign_names(&self, count: u64) {
        if count > 0 {
            self.foreign_names.inc_by(count);
        }
    }

    pub(crate) fn watch_opened(&self) {
        self.open_watches.inc();
    }

    pub(crate) fn watch_closed(&self) {
        self.open_watches.dec();
    }

    pub(crate) fn ready(&self, ready: bool) {
        self.ready.set(f64::from(u8::from(ready)));
    }

    /// All metrics in the text format of `OpenMetrics`.
    pub(crate) fn render(&self) -> String {
        admin::render(&self.registry)
    }
}

/// Counts one more label set, unless the limit is reached.
fn is_full(sets: &AtomicUsize, max: usize) -> bool {
    let counted = sets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sets| {
        (sets < max).then_some(sets + 1)
    });
    counted.is_err()
}

fn code_label(code: u16) -> Cow<'static, str> {
    match code {
        200 => "200".into(),
        201 => "201".into(),
        404 => "404".into(),
        409 => "409".into(),
        _ => code.to_string().into(),
    }
}

fn code_class(code: u16) -> &'static str {
    match code / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check S17.
    #[test]
    fn metric_series_are_bounded() {
        let metrics = Metrics::new();
        let resources: Vec<&'static str> = (0..100)
            .map(|index| &*format!("resource{index}").leak())
            .collect();
        for resource in resources {
            for code in 100..600 {
                metrics.responded(
                    CallLabels {
                        method: "get",
                        resource,
                    },
                    code,
                );
            }
            metrics.observe_duration(
                CallLabels {
                    method: "get",
                    resource,
                },
                Duration::ZERO,
                Duration::ZERO,
            );
            metrics.observe_duration(
                CallLabels {
                    method: "list",
                    resource,
                },
                Duration::ZERO,
                Duration::ZERO,
            );
        }
        let text = metrics.render();
        for name in ["requests_total", "request_duration_seconds"] {
            let series = text
                .lines()
                .filter(|line| line.starts_with(&format!("{PREFIX}_{name}")))
                .count();
            assert!((1000..=2000).contains(&series), "{name}: {series} series");
        }
        assert!(text.contains("{method=\"get\",resource=\"other\",code=\"4xx\"}"));
    }

    #[test]
    fn metric_names_are_those_of_the_dashboards() {
        let metrics = Metrics::new();
        let call = CallLabels {
            method: "list",
            resource: "machines",
        };
        metrics.responded(call, 200);
        metrics.observe_duration(call, Duration::from_millis(20), Duration::from_micros(20));
        metrics.translation_error(ErrorType::Malformed);
        metrics.foreign_names(2);
        metrics.watch_opened();
        let text = metrics.render();
        for line in [
            "hypershift_api_proxy_requests_total{method=\"list\",resource=\"machines\",code=\"200\"} 1",
            "hypershift_api_proxy_request_duration_seconds_bucket{le=\"0.05\",method=\"list\",resource=\"machines\"} 1",
            "hypershift_api_proxy_added_duration_seconds_bucket{le=\"0.000025\",method=\"list\"} 1",
            "hypershift_api_proxy_translation_errors_total{error_type=\"malformed\"} 1",
            "hypershift_api_proxy_foreign_names_total 2",
            "hypershift_api_proxy_open_watches 1",
            "hypershift_api_proxy_ready 0",
            "hypershift_api_proxy_build_info{version=",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
