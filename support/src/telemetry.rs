//! The log: one line an event, to standard error.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogFormat, LogLevel, LoggingArgs};

/// Begins to log. The level holds for `targets` and for this crate; a second call changes nothing.
pub fn init(args: &LoggingArgs, targets: &[&str]) {
    let filter = filter(level(args.log_level), targets);
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    // It fails only where logging has been set up already.
    let _ = match args.log_format {
        LogFormat::Json => registry
            .with(layer.json().flatten_event(true).with_target(false))
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

/// Libraries log headers and bodies below info, and those hold tokens and Secrets.
fn filter(level: LevelFilter, targets: &[&str]) -> Targets {
    let libraries = level.min(LevelFilter::WARN);
    targets
        .iter()
        .chain(&["support"])
        .fold(Targets::new(), |filter, target| {
            filter.with_target(*target, level)
        })
        .with_default(libraries)
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
mod tests {
    use super::*;

    #[test]
    fn s16_libraries_never_log_what_they_send() {
        let filter = filter(LevelFilter::TRACE, &["hypershift_operator"]);
        assert!(filter.would_enable("hypershift_operator::run", &Level::TRACE));
        assert!(filter.would_enable("support::lease", &Level::TRACE));
        for library in ["kube_client::client", "hyper", "rustls", "tower"] {
            assert!(!filter.would_enable(library, &Level::INFO), "{library}");
        }
    }
}
