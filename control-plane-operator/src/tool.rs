//! Common parts of the helper subcommands: async runtime, and signal handling.
//!
//! They usually run as PID 1, for which signals without a handler are ignored.

use std::io;
use std::time::Duration;

use kube::runtime::events::{Recorder, Reporter};
use support::args::LoggingArgs;
use support::shutdown::{self, Drain, Signals};
use support::telemetry;
use tokio::runtime::Runtime;

use crate::error::Failure;

/// How long open connections may continue after a signal. Pods are killed after 30 seconds by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// A system call failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what}")]
pub(crate) struct System {
    what: &'static str,
    source: io::Error,
}

/// A signal ended a program that has a result.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by a signal")]
pub(crate) struct Interrupted;

/// Runs a future to completion. A signal is a failure: otherwise, a Job that was killed would have succeeded.
pub(crate) fn complete<E>(
    logging: &LoggingArgs,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Failure>
where
    E: Into<Failure>,
{
    start(logging)?.block_on(async {
        let mut signals = signals()?;
        complete_unless(work, signals.any()).await
    })
}

async fn complete_unless<E: Into<Failure>>(
    work: impl Future<Output = Result<(), E>>,
    signal: impl Future<Output = ()>,
) -> Result<(), Failure> {
    tokio::select! {
        ended = work => ended.map_err(Into::into),
        () = signal => Err(Interrupted.into()),
    }
}

/// Runs a future to completion, or until a signal.
pub(crate) fn run<E>(
    logging: &LoggingArgs,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Failure>
where
    E: Into<Failure>,
{
    start(logging)?.block_on(async {
        let mut signals = signals()?;
        tokio::select! {
            ended = work => ended.map_err(Into::into),
            () = signals.any() => Ok(()),
        }
    })
}

/// Runs a server. After a signal it has time to end what holds its drain.
pub(crate) fn serve<W>(logging: &LoggingArgs, work: impl FnOnce(Drain) -> W) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>>,
{
    serve_within(DRAIN_TIMEOUT, logging, work)
}

/// The same with another time to drain.
pub(crate) fn serve_within<W>(
    drain_timeout: Duration,
    logging: &LoggingArgs,
    work: impl FnOnce(Drain) -> W,
) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>>,
{
    start(logging)?.block_on(async {
        let mut signals = signals()?;
        serve_until(drain_timeout, work, signals.any()).await
    })
}

async fn serve_until<W>(
    drain_timeout: Duration,
    work: impl FnOnce(Drain) -> W,
    signal: impl Future<Output = ()>,
) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>>,
{
    let (shutdown, drain) = shutdown::channel();
    let mut work = std::pin::pin!(work(drain));
    tokio::select! {
        ended = &mut work => return ended,
        () = signal => {}
    }
    tracing::info!("Shutting down");
    shutdown.begin();
    let ending = async {
        work.await?;
        shutdown.all_ended().await;
        Ok(())
    };
    let Ok(ended) = tokio::time::timeout(drain_timeout, ending).await else {
        tracing::info!("Closed the connections that were still open");
        return Ok(());
    };
    ended
}

fn start(logging: &LoggingArgs) -> Result<Runtime, System> {
    telemetry::init(logging, &["control_plane_operator"]);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(failed_to("start threads"))
}

fn signals() -> Result<Signals, System> {
    Signals::new().map_err(failed_to("handle signals"))
}

fn failed_to(what: &'static str) -> impl FnOnce(io::Error) -> System {
    move |source| System { what, source }
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
    use tokio::time::Instant;

    use super::*;

    /// Serves until the drain begins; what remains takes this long.
    async fn served(drain_timeout: Duration, remaining: Duration) -> Duration {
        let begun = Instant::now();
        let work = async |mut drain: Drain| {
            let connection = drain.clone();
            tokio::spawn(async move {
                tokio::time::sleep(remaining).await;
                drop(connection);
            });
            drain.begun().await;
            Ok(())
        };
        let signal = async {};
        serve_until(drain_timeout, work, signal).await.unwrap();
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_ends_with_its_connections_or_after_the_drain_timeout() {
        for timeout in [DRAIN_TIMEOUT, DRAIN_TIMEOUT * 2] {
            let short = timeout / 4;
            assert_eq!(served(timeout, short).await, short);
            assert_eq!(served(timeout, timeout * 10).await, timeout);
        }
    }

    #[tokio::test]
    async fn errors_at_the_start_end_the_program() {
        let work = async |_: Drain| -> Result<(), Failure> { Err("no port".into()) };
        let ended = serve_until(DRAIN_TIMEOUT, work, std::future::pending()).await;
        assert_eq!(ended.unwrap_err().to_string(), "no port");
    }

    #[tokio::test]
    async fn a_signal_fails_a_program_with_a_result() {
        let never = std::future::pending::<Result<(), Failure>>();
        let ended = complete_unless(never, async {}).await;
        assert_eq!(ended.unwrap_err().to_string(), "interrupted by a signal");
        let done = async { Ok::<_, Failure>(()) };
        complete_unless(done, std::future::pending()).await.unwrap();
    }

    #[test]
    fn repeated_messages_are_filtered() {
        let mut filter = LogFilter::default();
        assert!(filter.is_new("a"));
        assert!(!filter.is_new("a"));
        assert!(filter.is_new("b"));
        assert!(filter.is_new("a"));
    }
}
