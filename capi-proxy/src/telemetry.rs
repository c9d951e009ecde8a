//! The log: one line an event, to standard error.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogFormat, LogLevel, LoggingArgs};

/// Begins to log. A second call changes nothing.
pub(crate) fn init(args: &LoggingArgs) {
    let level = level(args.log_level);
    // Libraries log headers below info, and headers hold tokens.
    let filter = Targets::new()
        .with_target("capi_proxy", level)
        .with_default(level.min(LevelFilter::INFO));
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

fn level(level: LogLevel) -> LevelFilter {
    LevelFilter::from_level(match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    })
}
