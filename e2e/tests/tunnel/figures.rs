//! How fast the tunnel is, next to an API server that dials nodes itself: that of the management cluster, whose node is on
//! the same machine. Figures are shown and not judged.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use testbed::hosted::{Fixture, Guest};
use testbed::wait::seconds;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::tunnel::commands;
use crate::tunnel::kubectl::Kubectl;

/// Environment variable: `HYPERSHIFT_TUNNEL_FIGURES=full` measures with more.
const VARIABLE: &str = "HYPERSHIFT_TUNNEL_FIGURES";
/// For one measurement.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often each way is measured, in turn.
const ROUNDS: usize = 3;

/// What is measured.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Commands at once.
    commands: usize,
    /// Size of a stream in MiB.
    stream: usize,
}

/// A way to a pod.
#[derive(Debug, Clone, Copy)]
struct Way<'a> {
    kubectl: Kubectl<'a>,
    pod: &'a str,
}

/// What one round took.
#[derive(Debug, Clone, Copy)]
struct Round {
    tunnel: Duration,
    direct: Duration,
}

/// Measures and shows.
pub(crate) async fn show(fixture: &Fixture, guest: &Guest, pods: &[String]) -> Result<()> {
    let size = Size::of_environment();
    let nodes = fixture.testbed.nodes.len();
    let direct = commands::pods(fixture, &fixture.testbed.admin, nodes).await?;
    let tunnel = Way {
        kubectl: Kubectl::of(fixture, guest),
        pod: &pods[0],
    };
    let direct = Way {
        kubectl: Kubectl::of_management(fixture),
        pod: &direct[0],
    };
    let commands = rounds(tunnel, direct, async |way: Way<'_>| {
        way.commands_at_once(size.commands).await
    });
    let what = format!("{} commands at once", size.commands);
    let text = compared(&what, &commands.await?);
    fixture.testbed.progress.note(&text);
    let streams = rounds(tunnel, direct, async |way: Way<'_>| {
        way.stream(size.stream).await
    });
    let what = format!("a stream of {} MiB", size.stream);
    let text = compared(&what, &streams.await?);
    fixture.testbed.progress.note(&text);
    Ok(())
}

/// Measures both ways in turn, so that other work on the machine meets both. Each is the first one in some rounds.
async fn rounds<'a>(
    tunnel: Way<'a>,
    direct: Way<'a>,
    measure: impl AsyncFn(Way<'a>) -> Result<Duration>,
) -> Result<Vec<Round>> {
    let mut all = Vec::new();
    for number in 0..ROUNDS {
        let round = if number.is_multiple_of(2) {
            let tunnel = measure(tunnel).await?;
            let direct = measure(direct).await?;
            Round { tunnel, direct }
        } else {
            let direct = measure(direct).await?;
            let tunnel = measure(tunnel).await?;
            Round { tunnel, direct }
        };
        all.push(round);
    }
    Ok(all)
}

fn compared(what: &str, rounds: &[Round]) -> String {
    let sum = |of: fn(&Round) -> Duration| rounds.iter().map(of).sum::<Duration>();
    let all = Round {
        tunnel: sum(|round| round.tunnel),
        direct: sum(|round| round.direct),
    };
    let each: Vec<_> = rounds
        .iter()
        .map(|round| format!("{:.2}", round.ratio()))
        .collect();
    format!(
        "{what}, {} rounds: {} through the tunnel, {} directly, ratio {:.2} ({})",
        rounds.len(),
        seconds(all.tunnel),
        seconds(all.direct),
        all.ratio(),
        each.join(", ")
    )
}

// === impl Size ===

impl Size {
    fn of_environment() -> Self {
        if std::env::var(VARIABLE).is_ok_and(|value| value == "full") {
            return Self {
                commands: 100,
                stream: 1024,
            };
        }
        Self {
            commands: 20,
            stream: 64,
        }
    }
}

// === impl Round ===

impl Round {
    fn ratio(self) -> f64 {
        self.tunnel.as_secs_f64() / self.direct.as_secs_f64()
    }
}

// === impl Way ===

impl Way<'_> {
    async fn commands_at_once(self, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        let words = ["exec", self.pod, "--container=echo", "--", "echo", "done"];
        let each = (0..count).map(|_| self.kubectl.says_within(&words, PATIENCE));
        let said = try_join_all(each).await?;
        ensure!(said.iter().all(|said| said == "done\n"), "{said:?}");
        Ok(begin.elapsed())
    }

    /// All of the stream arrives: its bytes are counted. The command ends when they have, because the API server may lose the
    /// last bytes of a command that ends at once (kubernetes/kubernetes#124571).
    async fn stream(self, size: usize) -> Result<Duration> {
        let begin = Instant::now();
        let bytes = (size << 20).to_string();
        let script = format!("busybox head -c {bytes} /dev/zero; exec busybox cat");
        let words = ["exec", "--stdin", self.pod, "--container=echo", "--"];
        let program = ["busybox", "sh", "-c", &script];
        let mut command = self.kubectl.command(&[&words[..], &program].concat());
        command.stdin(Stdio::piped());
        let mut child = command.spawn().context("cannot start kubectl")?;
        let stdin = child.stdin.take().context("no input")?;
        let mut stdout = child.stdout.take().context("no output")?;
        let mut sink = tokio::io::sink();
        let arrived = async {
            let mut stream = (&mut stdout).take((size as u64) << 20);
            let counted = tokio::io::copy(&mut stream, &mut sink).await?;
            drop(stdin);
            let more = tokio::io::copy(&mut stdout, &mut sink).await?;
            anyhow::Ok(counted + more)
        };
        let counted = timeout(PATIENCE, arrived).await;
        let counted = counted.context("the stream did not end in time")??;
        let output = child.wait_with_output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && counted.to_string() == bytes,
            "{counted} of {bytes} bytes arrived from {}, {}: {said}",
            self.pod,
            output.status
        );
        Ok(begin.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_all_rounds_and_of_each() {
        let round = |tunnel, direct| Round {
            tunnel: Duration::from_secs(tunnel),
            direct: Duration::from_secs(direct),
        };
        assert_eq!(
            compared("a stream", &[round(3, 2), round(1, 2)]),
            "a stream, 2 rounds: 4.0 s through the tunnel, 4.0 s directly, ratio 1.00 (1.50, 0.50)"
        );
    }
}
