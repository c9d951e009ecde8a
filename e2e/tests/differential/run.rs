//! Runs the script with both types and reports what differs.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::wait;

use crate::differential::compare::{clipped, differences};
use crate::differential::leaks::LeakCheck;
use crate::differential::script::{Patience, Step};
use crate::differential::side::{Received, Side};

/// How long controllers and publishers may take.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

/// The checks that the script and the programs show between them.
const SHOWN: [&str; 34] = [
    "R01", "R03", "R04", "R05", "R06", "R07", "R08", "R09", "R10", "R11", "R12", "R13", "R14",
    "R15", "R16", "R17", "R18", "R19", "R20", "R21", "R22", "R23", "R24", "R25", "R26", "R27",
    "R28", "R29", "R31", "R32", "R33", "S10", "W01", "W04",
];

/// What the whole run has shown.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Requests on each side.
    pub(crate) requests: usize,
    /// Those without a difference.
    pub(crate) equal: usize,
    /// The checks that were shown.
    pub(crate) checks: BTreeSet<String>,
    problems: Vec<String>,
}

/// Both sides.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) direct: Side,
    pub(crate) proxied: Side,
}

// === impl Report ===

impl Report {
    /// Notes what one comparison has found.
    pub(crate) fn note(&mut self, what: &str, found: &[String]) {
        self.requests += 1;
        if found.is_empty() {
            self.equal += 1;
        } else {
            self.problems
                .push(format!("{what}\n    {}", found.join("\n    ")));
        }
    }

    /// A summary line.
    pub(crate) fn score(&self) -> String {
        format!("{} of {} equal", self.equal, self.requests)
    }

    /// Fails when anything differed that may not, or something was not shown that should be.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.problems.is_empty(),
            "{} of {} comparisons differ:\n\n{}",
            self.problems.len(),
            self.requests,
            self.problems.join("\n\n")
        );
        let missing: Vec<_> = SHOWN
            .iter()
            .filter(|check| !self.checks.contains(**check))
            .collect();
        ensure!(missing.is_empty(), "no step shows {missing:?}");
        Ok(())
    }
}

// === impl Sides ===

impl Sides {
    /// Runs one step.
    pub(crate) async fn run(&mut self, step: &Step, leaks: &LeakCheck, report: &mut Report) {
        let found = match self.settled(step, leaks).await {
            Ok(found) => found,
            Err(error) => vec![format!("{error:#}")],
        };
        if found.is_empty() {
            report.checks.extend(step.checks.iter().cloned());
        }
        let request = format!(
            "{}\n    {} {}",
            step.name(),
            step.method,
            clipped(&step.path)
        );
        report.note(&request, &found);
    }

    /// Repeats the requests until the responses are as the step says, or until the timeout; returns what is wrong.
    async fn settled(&mut self, step: &Step, leaks: &LeakCheck) -> Result<Vec<String>> {
        let (direct, proxied) = match step.patience {
            Patience::Once => self.ask(step).await?,
            Patience::Until(_) | Patience::Settles => {
                wait::until(&step.title, SETTLED_WITHIN, async || {
                    let (direct, proxied) = self.ask(step).await?;
                    is_settled(step, &direct, &proxied, leaks)?;
                    Ok((direct, proxied))
                })
                .await?
            }
        };
        let found = compare_responses(step, &direct, &proxied, leaks);
        if found.is_empty() && step.refusal.is_none() {
            self.direct.save(step, &direct)?;
            self.proxied.save(step, &proxied)?;
        }
        Ok(found)
    }

    async fn ask(&self, step: &Step) -> Result<(Received, Received)> {
        tokio::try_join!(self.direct.ask(step), self.proxied.ask(step))
    }
}

/// Fails while there is more to wait for.
fn is_settled(step: &Step, direct: &Received, proxied: &Received, leaks: &LeakCheck) -> Result<()> {
    match &step.patience {
        Patience::Once => {}
        Patience::Until(pointer) => {
            for (name, response) in [("direct", direct), ("proxied", proxied)] {
                let ready = is_ready(step, pointer.as_deref(), response);
                ensure!(
                    ready,
                    "{name}: {} {}",
                    response.status,
                    clipped(&response.text())
                );
            }
        }
        Patience::Settles => {
            let found = compare_responses(step, direct, proxied, leaks);
            ensure!(found.is_empty(), "{}", found.join("\n    "));
        }
    }
    Ok(())
}

fn is_ready(step: &Step, pointer: Option<&str>, response: &Received) -> bool {
    let has = |pointer: &str| {
        let json = response.json().unwrap_or_default();
        json.pointer(pointer).is_some_and(|value| !value.is_null())
    };
    response.status == step.status && pointer.is_none_or(has)
}

/// What is wrong with the two responses.
fn compare_responses(
    step: &Step,
    direct: &Received,
    proxied: &Received,
    leaks: &LeakCheck,
) -> Vec<String> {
    let mut found = Vec::new();
    if let Some((_, code)) = &step.refusal {
        refusal(step, *code, direct, proxied, &mut found);
    } else {
        if direct.status != step.status {
            let (expected, status) = (step.status, direct.status);
            found.push(format!(
                "the script expects {expected}, the server says {status}"
            ));
        }
        found.extend(differences(step, direct, proxied));
    }
    found.extend(leaks.of(step, proxied));
    if !found.is_empty() {
        for (name, response) in [("direct", direct), ("proxied", proxied)] {
            found.push(format!(
                "{name}: {} {}",
                response.status,
                clipped(&response.text())
            ));
        }
    }
    found
}

/// What is wrong with a response that the proxy gives in its own way: when it refuses, it must say so in the terms of the
/// API.
fn refusal(step: &Step, code: u16, direct: &Received, proxied: &Received, found: &mut Vec<String>) {
    if (direct.status, proxied.status) != (step.status, code) {
        found.push(format!(
            "{} direct and {} proxied, instead of {} and {code}",
            direct.status, proxied.status, step.status
        ));
    }
    if proxied.status < 400 {
        return;
    }
    let status = proxied.json().unwrap_or_default();
    let says = |field: &str| status[field].as_str().is_some_and(|text| !text.is_empty());
    if status["kind"] != "Status" || status["code"] != code || !says("message") || !says("reason") {
        found.push("the refusal is not a Status".to_owned());
    }
}
