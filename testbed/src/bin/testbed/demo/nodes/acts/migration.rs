//! A hosted cluster migrates: its user's traffic on one side, the status of the migration on the other.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::annotations::MIGRATION_IN_PROGRESS;
use api::group::CapiTypes;
use serde_json::Value;
use testbed::conditions::find;
use testbed::hosted::{Cluster, Identities, Load, OPERATORS, Seen};

use super::hosted::cluster;
use crate::demo::nodes::Stage;

/// By which migrations are held back, beside the operator.
const SETTINGS: &str = "private-capi-migration";
/// How often the migration is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How long nothing is printed while nothing changes.
const SILENCE: Duration = Duration::from_secs(5);
/// How long it may take. Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(10);
/// Widths of the columns, as far as another one follows.
const TRAFFIC: usize = 40;
const OBJECTS: usize = 26;
/// The longest account of a phase.
const ACCOUNT: usize = 90;

/// Private types are installed, and the cluster migrates by itself while its user reads and writes all the time.
pub(super) async fn live(stage: &Stage) -> Result<()> {
    let cluster = cluster(stage);
    let guest = cluster.guest().await?;
    let before = Identities::of_workers(&cluster, &guest).await?;
    let progress = &stage.fixture.testbed.progress;
    progress.note("from now on, its user writes an object and reads it back, ten times a second");
    let load = Load::start(&guest.client).await?;
    progress.note("migrations are held back at first, so that all of this one is seen");
    let held = ["kubectl", "-n", OPERATORS];
    let create = [
        "create",
        "configmap",
        SETTINGS,
        "--from-literal=paused=true",
    ];
    stage.types(&[&held[..], &create].concat()).await?;
    super::install(stage, CapiTypes::Private).await?;
    let delete = ["delete", "configmap", SETTINGS];
    stage.types(&[&held[..], &delete].concat()).await?;
    print_progress(&cluster, &load).await?;
    stage.fixture.legacy_goes().await?;
    stage.types(&["hypershift", "migrate", "status"]).await?;
    cluster.is_on_its_side().await?;
    before.are_the_same(&Identities::of_workers(&cluster, &guest).await?)?;
    let seen = load.ends().await?;
    println!("\nits user saw {seen}; its nodes and the cloud's instances are the ones from before");
    Ok(())
}

/// Prints both until it is complete.
async fn print_progress(cluster: &Cluster<'_>, load: &Load) -> Result<()> {
    let start = Instant::now();
    println!("\n{}", head());
    let mut reported: Option<(Instant, State)> = None;
    loop {
        let state = State::of(cluster).await?;
        let is_news = reported
            .as_ref()
            .is_none_or(|(at, before)| before.phase() != state.phase() || at.elapsed() > SILENCE);
        if is_news {
            println!("{}", row(start.elapsed(), &load.so_far(), &state));
            reported = Some((Instant::now(), state.clone()));
        }
        if state.is_complete {
            return Ok(());
        }
        ensure!(
            !state.has_failed && start.elapsed() < WITHIN,
            "the migration is not complete: {state}"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn head() -> String {
    format!(
        "{:>8}  {:<TRAFFIC$}{:<OBJECTS$}ITS MIGRATION",
        "", "ITS USER", "CLUSTER API OBJECTS"
    )
}

fn row(at: Duration, seen: &Seen, state: &State) -> String {
    let traffic = format!(
        "{} rounds, {} errors, longest {:.2} s",
        seen.rounds,
        seen.errors.len(),
        seen.longest.as_secs_f64()
    );
    let objects = format!("standard {}, private {}", state.standard, state.private);
    let at = format!("{:.1} s", at.as_secs_f64());
    format!("{at:>8}  {traffic:<TRAFFIC$}{objects:<OBJECTS$}{state}")
}

/// How far a migration is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// The phase, by the reason of the condition.
    phase: String,
    /// Its condition.
    reported: String,
    /// How many objects there are in standard groups.
    standard: usize,
    /// How many objects there are in private groups.
    private: usize,
    is_complete: bool,
    has_failed: bool,
}

// === impl State ===

impl State {
    /// What does not turn while a phase lasts.
    fn phase(&self) -> (&str, usize, usize) {
        (&self.phase, self.standard, self.private)
    }

    async fn of(cluster: &Cluster<'_>) -> Result<Self> {
        let seen = cluster.seen().await?;
        // An operator without private types reports no owner, and the new one has to become the leader first.
        let found = find(&seen, "PrivateCAPITypes").unwrap_or(&Value::Null);
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let is_locked = !seen["metadata"]["annotations"][MIGRATION_IN_PROGRESS].is_null();
        let stored = cluster.stored().await?;
        Ok(Self {
            phase: text("reason").to_owned(),
            reported: text("message").to_owned(),
            standard: stored.standard.len(),
            private: stored.private.len(),
            is_complete: text("status") == "True" && !is_locked,
            has_failed: text("reason") == "MigrationFailed",
        })
    }
}

/// The condition in a line.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.phase.is_empty() {
            return f.write_str("waiting for the operator to report it");
        }
        let line = self.reported.lines().next().unwrap_or_default();
        let short: String = line.chars().take(ACCOUNT).collect();
        write!(f, "{}: {short}", self.phase)?;
        if short.len() < self.reported.len() {
            f.write_str("...")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(reported: &str) -> State {
        State {
            phase: "Copy".to_owned(),
            reported: reported.to_owned(),
            standard: 9,
            private: 4,
            is_complete: false,
            has_failed: false,
        }
    }

    #[test]
    fn both_columns_are_below_their_headings() {
        let seen = Seen {
            rounds: 77,
            longest: Duration::from_millis(120),
            errors: vec!["refused".to_owned()],
        };
        let line = row(Duration::from_millis(7_340), &seen, &state("4 of 9"));
        let head = head();
        for (heading, cell) in [
            ("ITS USER", "77 rounds, 1 errors, longest 0.12 s"),
            ("CLUSTER API OBJECTS", "standard 9, private 4"),
            ("ITS MIGRATION", "Copy: 4 of 9"),
        ] {
            assert_eq!(head.find(heading), line.find(cell), "{head}\n{line}");
        }
        assert!(line.starts_with("   7.3 s  "), "{line}");
    }

    #[test]
    fn a_long_text_is_truncated_to_a_line() {
        assert_eq!(state("read").to_string(), "Copy: read");
        assert_eq!(state("read\nmore").to_string(), "Copy: read...");
        let long = state(&"é".repeat(ACCOUNT + 1)).to_string();
        assert_eq!(long, format!("Copy: {}...", "é".repeat(ACCOUNT)));
    }
}
