//! Reloading haproxy: when (pure), and through the socket of its master process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until, timeout};

/// How long changes are collected after the last one: each reload leaves a process with the open connections.
const WINDOW: Duration = Duration::from_secs(5);
/// How long a change waits at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a reload may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest first line of an answer.
const LONGEST_LINE: u64 = 4096;
const SUCCESS: &str = "Success=1";

/// When the next reload is due.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    has_reloaded: bool,
    /// The first and the last change that were not loaded yet.
    pending: Option<(Instant, Instant)>,
}

/// The master process of haproxy.
#[derive(Debug)]
pub(super) struct Master {
    socket: PathBuf,
}

/// haproxy was not reloaded. It continues with the previous configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to connect to {path}: haproxy must run with -W -S {path}")]
    Connect { path: String, source: io::Error },
    #[error("failed to send reload to haproxy")]
    Io(#[from] io::Error),
    #[error("haproxy rejected the configuration: {0}")]
    Rejected(String),
    #[error("haproxy did not reload within {TIMEOUT:?}")]
    Timeout,
}

// === impl Schedule ===

impl Schedule {
    /// Records a change of the file.
    pub(super) fn written(&mut self, now: Instant) {
        let first = self.pending.map_or(now, |(first, _)| first);
        self.pending = Some((first, now));
    }

    /// Records a reload. A failed one is tried again.
    pub(super) fn reloaded(&mut self, is_loaded: bool, now: Instant) {
        self.has_reloaded = true;
        self.pending = (!is_loaded).then_some((now, now));
    }

    /// When to reload; none without a change.
    fn at(&self) -> Option<Instant> {
        let (first, last) = self.pending?;
        if !self.has_reloaded {
            return Some(first);
        }
        Some((last + WINDOW).min(first + LONGEST_WAIT))
    }

    /// Completes when a reload is due.
    pub(super) async fn due(&self) {
        match self.at() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

// === impl Master ===

impl Master {
    pub(super) fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Reloads, and waits for the result.
    pub(super) async fn reload(&self) -> Result<(), Error> {
        match timeout(TIMEOUT, self.request()).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout),
        }
    }

    async fn request(&self) -> Result<(), Error> {
        let stream = UnixStream::connect(&self.socket).await;
        let mut stream = stream.map_err(|source| Error::Connect {
            path: self.socket.display().to_string(),
            source,
        })?;
        stream.write_all(b"reload\n").await?;
        let mut line = String::new();
        let mut reader = BufReader::new(stream).take(LONGEST_LINE);
        reader.read_line(&mut line).await?;
        if line.trim() == SUCCESS {
            return Ok(());
        }
        let mut rest = String::new();
        // The rest says why; without it, the first line is reported.
        let _ = reader.read_to_string(&mut rest).await;
        let text = format!("{line}{rest}");
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty() && *it != "--");
        Err(Error::Rejected(
            lines.take(5).collect::<Vec<_>>().join("; "),
        ))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn changes_are_coalesced() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut schedule = Schedule::default();
        assert_eq!(schedule.at(), None);
        schedule.written(at(1));
        assert_eq!(schedule.at(), Some(at(1)), "the first is immediate");
        schedule.reloaded(true, at(1));
        assert_eq!(schedule.at(), None);
        schedule.written(at(10));
        assert_eq!(schedule.at(), Some(at(15)));
        schedule.written(at(12));
        assert_eq!(schedule.at(), Some(at(17)), "after the last change");
        for second in (14..=38).step_by(2) {
            schedule.written(at(second));
        }
        assert_eq!(
            schedule.at(),
            Some(at(40)),
            "not later than after the first"
        );
        schedule.reloaded(false, at(40));
        assert_eq!(schedule.at(), Some(at(45)), "a failed one is tried again");
        schedule.reloaded(true, at(45));
        assert_eq!(schedule.at(), None);
    }

    /// Reloads with a master that answers this.
    async fn reloaded(answer: Option<&'static str>) -> Result<(), Error> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("admin.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 7];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(&request, b"reload\n");
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                None => std::future::pending().await,
            }
        });
        Master::at(socket).reload().await
    }

    #[tokio::test(start_paused = true)]
    async fn only_success_is_success() {
        reloaded(Some("Success=1\n--\n[NOTICE] ok\n"))
            .await
            .unwrap();
        for (answer, expected) in [
            (
                Some("Success=0\n--\n[ALERT] unknown keyword\n"),
                "haproxy rejected the configuration: Success=0; [ALERT] unknown keyword",
            ),
            (Some(""), "haproxy rejected the configuration: "),
            (None, "haproxy did not reload within 5s"),
        ] {
            let error = reloaded(answer).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let absent = Master::at("/does/not/exist".into()).reload().await;
        let error = absent.unwrap_err().to_string();
        assert!(
            error.contains("haproxy must run with -W -S /does/not/exist"),
            "{error}"
        );
    }
}
