//! The log: one line for each event, to standard error. `docs/logging.md` has the fields and the messages.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogFormat, LogLevel, LoggingArgs};

/// The crates of this workspace: their events are logged at the level of the flag.
const CRATES: [&str; 10] = [
    "api",
    "capi_proxy",
    "capi_translate",
    "control_plane_component",
    "control_plane_operator",
    "hypershift_operator",
    "migration",
    "migration_executor",
    "ownership",
    "payload",
];

/// What the client for the API server warns of: a body that is not what it expected, the whole of it. The body may have
/// Secrets and objects of other tenants in it; that the request failed is in the error of the request.
const BODIES: &str = "kube_client::client";

/// Sets up the log. The level applies to the crates of this workspace and to `targets`; a second call has no effect.
pub fn init(args: &LoggingArgs, targets: &[&str]) {
    let filter = filter(level(args.log_level), targets);
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    // It fails only if logging is set up already.
    let _ = match args.log_format {
        LogFormat::Json => registry
            .with(
                layer
                    .json()
                    .flatten_event(true)
                    .with_target(false)
                    .with_span_list(false),
            )
            .try_init(),
        LogFormat::Text => registry
            .with(
                layer
                    .with_target(false)
                    .with_ansi(io::stderr().is_terminal()),
            )
            .try_init(),
    };
}

/// Third-party libraries log headers and bodies below info, which contain tokens and Secrets: of their events, only
/// warnings and errors pass, and of [`BODIES`] only errors. Their spans pass down to info, so that the fields of those are
/// on our events.
fn filter(
    level: LevelFilter,
    targets: &[&str],
) -> FilterFn<impl Fn(&Metadata<'_>) -> bool + use<>> {
    let ours = CRATES.iter().chain(&["support"]).chain(targets);
    let events = ours
        .fold(Targets::new(), |filter, target| {
            filter.with_target(*target, level)
        })
        .with_default(level.min(LevelFilter::WARN));
    let filter = filter_fn(move |metadata: &Metadata<'_>| {
        let is_span = metadata.is_span() && *metadata.level() <= Level::INFO;
        // Only the module itself: the modules in it warn of certificates.
        let has_body = metadata.target() == BODIES && *metadata.level() > Level::ERROR;
        is_span || !has_body && events.would_enable(metadata.target(), metadata.level())
    });
    // With it, what is below costs one comparison, without a look at the filter.
    filter.with_max_level_hint(level.max(LevelFilter::INFO))
}

fn level(level: LogLevel) -> LevelFilter {
    LevelFilter::from_level(match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use tracing_subscriber::Layer as _;

    use super::*;

    /// A log in memory.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// A subscriber that writes here, in the JSON format.
        pub(crate) fn subscriber(&self, level: LevelFilter) -> impl tracing::Subscriber + use<> {
            let log = self.clone();
            let layer = tracing_subscriber::fmt::layer()
                .with_writer(move || log.clone())
                .json()
                .flatten_event(true)
                .with_span_list(false);
            tracing_subscriber::registry().with(layer.with_filter(filter(level, &[])))
        }

        /// The events so far.
        pub(crate) fn events(&self) -> Vec<serde_json::Value> {
            let text = String::from_utf8(self.bytes().clone()).unwrap();
            let lines = text.lines();
            lines.map(|it| serde_json::from_str(it).unwrap()).collect()
        }
    }

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Check S16.
    #[test]
    fn libraries_log_nothing_below_warnings() {
        let log = Log::default();
        tracing::subscriber::with_default(log.subscriber(LevelFilter::TRACE), || {
            tracing::trace!(target: "hypershift_operator::run", "ours");
            tracing::trace!(target: "support::lease", "ours");
            tracing::trace!(target: "payload", "ours");
            tracing::info!(target: "kube_client::client", "library");
            tracing::info!(target: "hyper", "library");
            tracing::warn!(target: "rustls", "library warning");
        });
        let messages: Vec<_> = log
            .events()
            .iter()
            .map(|it| it["message"].clone())
            .collect();
        assert_eq!(messages, ["ours", "ours", "ours", "library warning"]);
    }

    /// Check S16.
    #[test]
    fn bodies_that_the_client_cannot_read_are_not_logged() {
        let log = Log::default();
        tracing::subscriber::with_default(log.subscriber(LevelFilter::TRACE), || {
            tracing::warn!(target: "kube_client::client", "{{\"data\":{{}}}}, Error");
            tracing::error!(target: "kube_client::client", "client error");
            tracing::warn!(target: "kube_client::client::tls", "client warning");
            tracing::warn!(target: "support::lease", "ours");
            tracing::warn!(target: "rustls", "library warning");
        });
        let messages: Vec<_> = log
            .events()
            .iter()
            .map(|it| it["message"].clone())
            .collect();
        let expected = ["client error", "client warning", "ours", "library warning"];
        assert_eq!(messages, expected);
    }

    #[test]
    fn spans_of_libraries_are_on_our_events() {
        let log = Log::default();
        tracing::subscriber::with_default(log.subscriber(LevelFilter::INFO), || {
            let span = tracing::info_span!(target: "library", "request", request_id = 7);
            span.in_scope(|| tracing::info!(target: "support", "Reconciled"));
            let span = tracing::debug_span!(target: "library", "request", token = "secret");
            span.in_scope(|| tracing::info!(target: "support", "Reconciled"));
        });
        let events = log.events();
        assert_eq!(events[0]["span"]["request_id"], 7);
        assert!(!events[1].to_string().contains("secret"));
    }
}
