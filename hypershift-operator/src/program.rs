//! Common parts of the programs beside `run`: async runtime, log, and signals.

use support::args::LoggingArgs;
use support::shutdown::Signals;
use support::telemetry;

use crate::error::Fatal;

/// What SIGTERM and SIGINT mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The end of a program that runs until then.
    Ends,
    /// A failure of a program that has a result: otherwise, a Job that was killed would have succeeded.
    Fails,
}

/// A signal ended a program that has a result.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by a signal")]
struct Interrupted;

/// Runs a future to completion, or until SIGTERM or SIGINT.
pub(crate) fn run(
    logging: &LoggingArgs,
    signal: Signal,
    work: impl Future<Output = Result<(), Fatal>>,
) -> Result<(), Fatal> {
    telemetry::init(logging, &["hypershift_operator"]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Fatal::system("start a runtime"))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(Fatal::system("handle signals"))?;
        tokio::select! {
            ended = work => ended,
            () = signals.any() => match signal {
                Signal::Ends => Ok(()),
                Signal::Fails => Err(Fatal::Program(Box::new(Interrupted))),
            },
        }
    })
}
