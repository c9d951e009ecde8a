//! The figures as a table, with their targets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Figures;

/// One row: name, value, and target.
struct Row {
    what: String,
    found: String,
    target: Option<(&'static str, bool)>,
}

/// Renders the results as a Markdown table.
pub fn render(figures: &Figures) -> String {
    let mut text = format!(
        "{} cores, {:.0} % of which others used\n\n| what | found | target |\n|---|---|---|\n",
        figures.cores,
        figures.used_by_others * 100.0
    );
    for Row {
        what,
        found,
        target,
    } in rows(figures)
    {
        let target = target.map_or(String::new(), |(target, met)| {
            format!("{target}: {}", if met { "met" } else { "missed" })
        });
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {what} | {found} | {target} |");
    }
    text
}

fn rows(figures: &Figures) -> Vec<Row> {
    let Figures { burst, fleet, .. } = figures;
    let row = |what: String, found: String, target| Row {
        what,
        found,
        target,
    };
    vec![
        row(
            format!("{burst} HostedClusters at once: all objects of one, p50"),
            format!("{:.1} s", figures.p50),
            None,
        ),
        row(
            format!("{burst} HostedClusters at once: all objects of one, p95"),
            format!("{:.1} s", figures.p95),
            Some(("15 s", figures.p95 <= 15.0)),
        ),
        row(
            format!("{burst} HostedClusters at once: all objects of all"),
            format!("{:.1} s", figures.total),
            Some(("30 s", figures.total <= 30.0)),
        ),
        row(
            "objects of each, and processor time of the operator for them".to_owned(),
            format!(
                "{:.0}, {:.0} ms",
                figures.objects,
                figures.cpu * 1000.0 / super::figure(*burst as u64)
            ),
            None,
        ),
        row(
            "writes for each".to_owned(),
            format!(
                "{:.1}",
                super::figure(figures.burst_writes as u64) / super::figure(*burst as u64)
            ),
            None,
        ),
        row(
            format!("reads for all {burst}"),
            reads(&figures.burst_reads),
            None,
        ),
        row(
            "operator without a cluster".to_owned(),
            format!("{:.1} MiB", figures.empty),
            None,
        ),
        row(
            format!("operator with {fleet} clusters; the most at any time"),
            format!("{:.1} MiB; {:.1} MiB", figures.full, figures.peak),
            Some(("200 MB", figures.peak <= 190.7)),
        ),
        row(
            "memory of a cluster".to_owned(),
            format!("{:.3} MiB", figures.each()),
            Some(("0.1 MiB", figures.each() <= 0.1)),
        ),
        row(
            format!("writes in {:.0} s at rest", figures.rest),
            figures.writes.to_string(),
            Some(("0", figures.writes == 0)),
        ),
        row(
            "reads in that time".to_owned(),
            reads(&figures.reads),
            Some(("0", figures.reads.is_empty())),
        ),
        row(
            "processors used at rest".to_owned(),
            format!("{:.3}", figures.rest_cores),
            Some(("0.02", figures.rest_cores <= 0.02)),
        ),
    ]
}

/// The number of reads, by verb and resource.
fn reads(reads: &BTreeMap<String, usize>) -> String {
    let all: usize = reads.values().sum();
    let each = reads.iter();
    let each: Vec<_> = each
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    if each.is_empty() {
        return all.to_string();
    }
    format!("{all} ({})", each.join(", "))
}

#[test]
fn missed_targets_are_reported() {
    let figures = Figures {
        cores: 2,
        used_by_others: 0.05,
        burst: 100,
        p50: 1.0,
        p95: 16.0,
        total: 30.0,
        cpu: 4.0,
        objects: 50.0,
        burst_writes: 5100,
        burst_reads: BTreeMap::new(),
        empty: 20.0,
        full: 120.0,
        peak: 150.0,
        fleet: 1000,
        rest: 60.0,
        writes: 0,
        reads: [("get secrets".to_owned(), 9)].into(),
        rest_cores: 0.01,
    };
    let text = render(&figures);
    assert!(text.contains("16.0 s | 15 s: missed"), "{text}");
    assert!(text.contains("| writes for each | 51.0 |"), "{text}");
    assert!(text.contains("0.100 MiB | 0.1 MiB: met"), "{text}");
    assert!(text.contains("9 (get secrets 9) | 0: missed"), "{text}");
}
