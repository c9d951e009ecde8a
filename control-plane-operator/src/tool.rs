//! What the helper subcommands have in common: a runtime, and an end by signal.
//!
//! They often are the first process of a container, where a signal without a handler does nothing.

use std::io;

use kube::runtime::events::{Recorder, Reporter};
use support::args::LoggingArgs;
use support::shutdown::Signals;
use support::telemetry;

use crate::error::Failure;

/// The system refuses something that every program needs.
#[derive(Debug, thiserror::Error)]
#[error("the system does not let this program {what}")]
pub(crate) struct System {
    what: &'static str,
    source: io::Error,
}

/// Works until done, or until a signal comes.
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

/// Where Events of a controller go.
pub(crate) fn recorder(client: &kube::Client, controller: &str) -> Recorder {
    let reporter = Reporter {
        controller: controller.to_owned(),
        instance: None,
    };
    Recorder::new(client.clone(), reporter)
}

/// Filters a text that repeats, for logs.
#[derive(Debug, Default)]
pub(crate) struct Once(Option<String>);

// === impl Once ===

impl Once {
    /// Whether this is news.
    pub(crate) fn is_news(&mut self, text: &str) -> bool {
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
    fn news_are_told_once() {
        let mut once = Once::default();
        assert!(once.is_news("a"));
        assert!(!once.is_news("a"));
        assert!(once.is_news("b"));
        assert!(once.is_news("a"));
    }
}
