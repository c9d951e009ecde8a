//! Common parts of the helper subcommands: async runtime, and signal handling.
//!
//! They usually run as PID 1, for which signals without a handler are ignored.

use std::io;

use kube::runtime::events::{Recorder, Reporter};
use support::args::LoggingArgs;
use support::shutdown::Signals;
use support::telemetry;

use crate::error::Failure;

/// A system call failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what}")]
pub(crate) struct System {
    what: &'static str,
    source: io::Error,
}

/// Runs a future to completion, or until a signal.
pub(crate) fn run<E>(
    logging: &LoggingArgs,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Failure>
where
    E: Into<Failure>,
{
    telemetry::init(logging, &["control_plane_operator"]);
    let refused = |what| move |source| System { what, source };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(refused("start threads"))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(refused("handle signals"))?;
        tokio::select! {
            ended = work => ended.map_err(Into::into),
            () = signals.any() => Ok(()),
        }
    })
}

/// Creates an Event recorder for a controller.
pub(crate) fn recorder(client: &kube::Client, controller: &str) -> Recorder {
    let reporter = Reporter {
        controller: controller.to_owned(),
        instance: None,
    };
    Recorder::new(client.clone(), reporter)
}

/// Filters repeated log messages.
#[derive(Debug, Default)]
pub(crate) struct LogFilter(Option<String>);

// === impl LogFilter ===

impl LogFilter {
    /// Whether the text differs from the previous one.
    pub(crate) fn is_new(&mut self, text: &str) -> bool {
        if self.0.as_deref() == Some(text) {
            return false;
        }
        self.0 = Some(text.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_messages_are_filtered() {
        let mut filter = LogFilter::default();
        assert!(filter.is_new("a"));
        assert!(!filter.is_new("a"));
        assert!(filter.is_new("b"));
        assert!(filter.is_new("a"));
    }
}
