//! The text format of Prometheus: filters samples, and adds labels. No I/O.

use std::fmt::Write as _;

use super::config::Component;
use crate::endpoint_resolver::Target;

/// Default of the label `endpoint`.
const ENDPOINT: &str = "metrics";
/// Counts pods that were not scraped.
const SCRAPE_ERRORS: &str = "metrics_aggregator_pod_scrape_errors_total";

/// Labels that identify a pod, which Prometheus would add if it scraped the pod itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labels([(&'static str, String); 6]);

// === impl Labels ===

impl Labels {
    /// The labels of a component's pod.
    pub(super) fn of(component: &Component, pod: &Target, namespace: &str) -> Self {
        let or = |value: &Option<String>, default: &str| {
            value.clone().unwrap_or_else(|| default.to_owned())
        };
        let address = host(&pod.ip);
        Self([
            ("pod", pod.name.clone()),
            ("namespace", or(&component.metrics_namespace, namespace)),
            ("job", or(&component.metrics_job, &component.name)),
            ("service", or(&component.metrics_service, &component.name)),
            ("endpoint", or(&component.metrics_endpoint, ENDPOINT)),
            ("instance", format!("{address}:{}", component.metrics_port)),
        ])
    }
}

/// An address as part of a URL: IPv6 addresses are put in brackets.
pub(super) fn host(ip: &str) -> String {
    if ip.contains(':') {
        return format!("[{ip}]");
    }
    ip.to_owned()
}

/// Adds the kept samples to `output`, with those labels that they do not have. Comments of a metric without samples are
/// dropped, and lines that are not samples, too.
pub(super) fn rewrite(
    metrics: &str,
    keeps: impl Fn(&str) -> bool,
    labels: &Labels,
    output: &mut String,
) {
    let mut comments = Vec::new();
    for line in metrics.lines() {
        if line.starts_with('#') {
            if starts_metric(line, &comments) {
                comments.clear();
            }
            comments.push(line);
            continue;
        }
        let Some(sample) = Sample::parse(line).filter(|sample| keeps(sample.name)) else {
            continue;
        };
        for comment in comments.drain(..) {
            output.push_str(comment);
            output.push('\n');
        }
        sample.write(labels, output);
    }
}

/// Whether a comment is about another metric than the comments before it.
fn starts_metric(comment: &str, before: &[&str]) -> bool {
    let metric = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    before
        .last()
        .is_some_and(|last| metric(last) != metric(comment))
}

/// Adds a sample that says that a pod was not scraped.
pub(super) fn scrape_failed(component: &str, pod: &str, output: &mut String) {
    let (component, pod) = (escaped(component), escaped(pod));
    // Writing to a String cannot fail.
    let _ = writeln!(
        output,
        "# TYPE {SCRAPE_ERRORS} counter\n{SCRAPE_ERRORS}{{component=\"{component}\",pod=\"{pod}\"}} 1"
    );
}

/// A line with a sample: `name{labels} value timestamp`.
#[derive(Debug, PartialEq, Eq)]
struct Sample<'a> {
    name: &'a str,
    /// Between the braces.
    labels: &'a str,
    /// Names of the labels.
    names: Vec<&'a str>,
    /// Value and timestamp.
    rest: &'a str,
}

// === impl Sample ===

impl<'a> Sample<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
        let (name, rest) = line.split_at(end);
        let Some(inner) = rest.strip_prefix('{') else {
            return Self::new(name, "", Vec::new(), rest);
        };
        let (names, end) = label_names(inner)?;
        Self::new(name, &inner[..end], names, &inner[end + 1..])
    }

    fn new(name: &'a str, labels: &'a str, names: Vec<&'a str>, rest: &'a str) -> Option<Self> {
        let rest = rest.trim();
        (!name.is_empty() && !rest.is_empty()).then_some(Self {
            name,
            labels: labels.trim().trim_end_matches(','),
            names,
            rest,
        })
    }

    /// Writes it with further labels.
    fn write(&self, labels: &Labels, output: &mut String) {
        output.push_str(self.name);
        output.push('{');
        output.push_str(self.labels);
        let mut separator = if self.labels.is_empty() { "" } else { "," };
        for (name, value) in &labels.0 {
            if !self.names.contains(name) {
                // Writing to a String cannot fail.
                let _ = write!(output, "{separator}{name}=\"{}\"", escaped(value));
                separator = ",";
            }
        }
        let _ = writeln!(output, "}} {}", self.rest);
    }
}

/// Names of the labels up to the closing brace, and where that is. Values are quoted, and may contain braces.
fn label_names(text: &str) -> Option<(Vec<&str>, usize)> {
    let mut names = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', ',']).len();
        at += skipped;
        if text[at..].starts_with('}') {
            return Some((names, at));
        }
        let equals = at + text[at..].find('=')?;
        names.push(text[at..equals].trim());
        let quote = equals + text[equals..].find('"')?;
        at = quote + 1 + closing_quote(&text[quote + 1..])? + 1;
    }
}

/// Where a quoted value ends; `\"` is part of it.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !is_escaped => return Some(at),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        let component = serde_json::from_value(serde_json::json!({
            "name": "etcd", "metricsPort": 2381, "metricsJob": "etcd-metrics",
        }));
        let pod = Target {
            name: "etcd-0".to_owned(),
            ip: "fd00::7".to_owned(),
        };
        Labels::of(&component.unwrap(), &pod, "clusters-dev")
    }

    const OWN: &str = "pod=\"etcd-0\",namespace=\"clusters-dev\",job=\"etcd-metrics\",service=\"etcd\",\
                       endpoint=\"metrics\",instance=\"[fd00::7]:2381\"";

    #[test]
    fn samples_get_the_labels_that_they_lack() {
        let without_pod = OWN.replace("pod=\"etcd-0\",", "");
        for (line, expected) in [
            ("up 1", format!("up{{{OWN}}} 1\n")),
            ("up{} 1 1700000000", format!("up{{{OWN}}} 1 1700000000\n")),
            ("up{a=\"b\",} 2", format!("up{{a=\"b\",{OWN}}} 2\n")),
            (
                "up{a=\"}\\\"{\", c=\"\"} 3",
                format!("up{{a=\"}}\\\"{{\", c=\"\",{OWN}}} 3\n"),
            ),
            (
                "up{pod=\"other\"} 4",
                format!("up{{pod=\"other\",{without_pod}}} 4\n"),
            ),
            ("up{a=\"\\\\\"} 5", format!("up{{a=\"\\\\\",{OWN}}} 5\n")),
            ("up", String::new()),
            ("up{a=\"b 1", String::new()),
            ("up{a} 1", String::new()),
            ("{a=\"b\"} 1", String::new()),
            ("", String::new()),
        ] {
            let mut output = String::new();
            rewrite(line, |_| true, &labels(), &mut output);
            assert_eq!(output, expected, "{line}");
        }
    }

    #[test]
    fn comments_stay_with_kept_samples() {
        let metrics = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n\
                       # HELP b_total B.\n# TYPE b_total counter\nb_total 1\n\
                       # TYPE c_bucket histogram\nc_bucket{le=\"1\"} 1\nc_sum 1\n# EOF\n";
        let mut output = String::new();
        rewrite(
            metrics,
            |name| name != "b_total" && name != "c_sum",
            &labels(),
            &mut output,
        );
        let expected = format!(
            "# HELP a_total A.\n# TYPE a_total counter\na_total{{{OWN}}} 1\n\
             # TYPE c_bucket histogram\nc_bucket{{le=\"1\",{OWN}}} 1\n"
        );
        assert_eq!(output, expected);
    }

    #[test]
    fn failed_scrapes_are_counted() {
        let mut output = String::new();
        scrape_failed("etcd", "etcd-\"0", &mut output);
        let expected = "# TYPE metrics_aggregator_pod_scrape_errors_total counter\n\
                        metrics_aggregator_pod_scrape_errors_total{component=\"etcd\",pod=\"etcd-\\\"0\"} 1\n";
        assert_eq!(output, expected);
    }
}
