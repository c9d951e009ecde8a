//! A run's figures as human-readable tables.

use std::fmt::Write;

use load::wire::Speeds;

use super::figures::{Delays, Figures, Memory, Peer};
use super::target::{Evaluation, evaluate, mib};

/// From this share on, the machine was not the run's own.
const BUSY_SHARE: f64 = 0.1;

/// Rows of cells; the first row is the heading.
struct Table {
    rows: Vec<Vec<String>>,
}

/// The whole report.
pub fn render(figures: &Figures) -> String {
    let mut text = String::new();
    let sections = [
        (
            "Added to direct, in microseconds (ratio: p50 to the relay's, to nginx's)",
            delays(figures),
        ),
        ("Throughput, small GET", throughput(figures)),
        ("Peak memory, MiB", memory(figures)),
        ("Cold start, ms", cold_starts(figures)),
        ("Translation, GB/s on one core", translation(figures)),
        ("Targets", evaluations(&evaluate(figures))),
    ];
    for (title, table) in sections {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{title}\n{}", table.render());
    }
    let _ = write!(text, "\n{}\n", footer(figures));
    text
}

fn delays(figures: &Figures) -> Table {
    let mut table = Table::new(["", "peer", "p50", "p90", "p95", "p99", "/relay", "/nginx"]);
    for delays in figures.calls.iter().chain([&figures.watch]) {
        let direct = delays.direct;
        let values =
            [direct.p50, direct.p90, direct.p95, direct.p99].map(|value| format!("({value:.0})"));
        table.row(
            [
                vec![delays.what.to_owned(), Peer::Direct.name().to_owned()],
                values.to_vec(),
            ]
            .concat(),
        );
        for (peer, added) in &delays.added {
            let values =
                [added.p50, added.p90, added.p95, added.p99].map(|value| format!("{value:+.1}"));
            let ratios = [Peer::Relay, Peer::Nginx].map(|other| ratio(delays, *peer, other));
            let names = [String::new(), peer.name().to_owned()];
            table.row([names.to_vec(), values.to_vec(), ratios.to_vec()].concat());
        }
    }
    table
}

/// How one peer's added median compares with another's; nothing where the other adds nothing.
fn ratio(delays: &Delays, peer: Peer, other: Peer) -> String {
    match (delays.added.get(&peer), delays.added.get(&other)) {
        (Some(this), Some(other)) if other.p50 > 0.0 => format!("{:.2}", this.p50 / other.p50),
        _ => String::new(),
    }
}

fn throughput(figures: &Figures) -> Table {
    let mut table = Table::new(["peer", "req/s", "/direct", "CPU ms per 1,000", "/nginx"]);
    let direct = figures
        .throughput
        .get(&Peer::Direct)
        .map(|found| found.requests_per_second);
    let nginx = figures
        .throughput
        .get(&Peer::Nginx)
        .and_then(|found| found.cpu_millis_per_thousand);
    for (peer, found) in &figures.throughput {
        let speed = found.requests_per_second;
        let cost = found.cpu_millis_per_thousand;
        table.row(vec![
            peer.name().to_owned(),
            format!("{speed:.0}"),
            direct
                .map(|direct| format!("{:.2}", speed / direct))
                .unwrap_or_default(),
            cost.map(|cost| format!("{cost:.1}")).unwrap_or_default(),
            cost.zip(nginx)
                .map(|(cost, nginx)| format!("{:.2}", cost / nginx))
                .unwrap_or_default(),
        ]);
    }
    table
}

fn memory(figures: &Figures) -> Table {
    let mut table = Table::new([
        "peer",
        "idle",
        "loaded",
        "1,000 watches",
        "KiB a watch",
        "4 lists of 100 MB",
    ]);
    for (peer, found) in &figures.memory {
        let Memory {
            idle,
            steady,
            idle_watches,
            each_watch,
            lists,
        } = found;
        let size = |kib: &u64| format!("{:.1}", mib(*kib));
        table.row(vec![
            peer.name().to_owned(),
            size(idle),
            size(steady),
            size(idle_watches),
            format!("{each_watch:.1}"),
            size(lists),
        ]);
    }
    table
}

fn cold_starts(figures: &Figures) -> Table {
    let mut table = Table::new(["peer", "first response", "ready"]);
    for (peer, found) in &figures.cold_starts {
        let ready = found
            .ready_millis
            .map(|millis| format!("{millis:.1}"))
            .unwrap_or_default();
        table.row(vec![
            peer.name().to_owned(),
            format!("{:.1}", found.first_response_millis),
            ready,
        ]);
    }
    table
}

fn translation(figures: &Figures) -> Table {
    let mut table = Table::new(["", "ours, stream", "ours, whole", "serde_json", "search"]);
    let lists = [
        ("list of Machines", &figures.translation.list),
        ("nothing to change", &figures.translation.unchanged),
    ];
    for (
        name,
        Speeds {
            stream,
            whole,
            serde_json,
            search,
        },
    ) in lists
    {
        let speeds = [stream, whole, serde_json, search].map(|speed| format!("{speed:.2}"));
        table.row([vec![name.to_owned()], speeds.to_vec()].concat());
    }
    table
}

fn evaluations(evaluations: &[Evaluation]) -> Table {
    let mut table = Table::new(["target", "found", "bound", ""]);
    for Evaluation {
        what,
        found,
        bound,
        met,
    } in evaluations
    {
        let mark = match met {
            Some(true) => "PASS",
            Some(false) => "MISS",
            None => "NOISE",
        };
        table.row(vec![
            what.clone(),
            found.clone(),
            bound.clone(),
            mark.to_owned(),
        ]);
    }
    table
}

fn footer(figures: &Figures) -> String {
    let peers: Vec<String> = figures
        .peers
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let share = figures.machine.used_by_others;
    let mut text = format!(
        "{} cores; {}; other processes used {:.0} % of the machine",
        figures.machine.cores,
        peers.join(", "),
        share * 100.0
    );
    if share > BUSY_SHARE {
        text.push_str(
            "\nWARNING: that is too much for figures to rely on: run it again on a quiet machine",
        );
    }
    text
}

// === impl Table ===

impl Table {
    fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned).to_vec()],
        }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Columns side by side; all but the first are aligned to the right when they hold figures.
    fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or_default()
            })
            .collect();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .map(|(cell, &width)| {
            let figure = cell.starts_with(|c: char| c.is_ascii_digit() || "+-(".contains(c));
            if figure {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        })
        .collect();
    format!("  {}\n", cells.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["peer", "p50"]);
        table.row(vec!["nginx".to_owned(), "+90.0".to_owned()]);
        table.row(vec!["us".to_owned(), "+9.0".to_owned()]);
        assert_eq!(
            table.render(),
            "  peer   p50\n  nginx  +90.0\n  us      +9.0\n"
        );
    }
}
