//! The text format of Prometheus, as far as kubelets use it for resources.

use std::collections::BTreeMap;

/// A sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
    pub(crate) milliseconds: i64,
}

// === impl Sample ===

impl Sample {
    /// `name{label="value",...} value milliseconds`. Values of labels are names of Kubernetes, without escapes.
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_at(line.find(['{', ' '])?);
        let (labels, rest) = rest
            .strip_prefix('{')
            .map_or(Some(("", rest)), |rest| rest.split_once('}'))?;
        let labels = labels.split(',').filter_map(|label| {
            let (name, value) = label.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('"').to_owned()))
        });
        let mut numbers = rest.split_whitespace();
        Some(Self {
            name: name.to_owned(),
            labels: labels.collect(),
            value: numbers.next()?.parse().ok()?,
            milliseconds: numbers.next().and_then(|it| it.parse().ok()).unwrap_or(0),
        })
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

/// All samples of a text.
pub(crate) fn samples(text: &str) -> Vec<Sample> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(Sample::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_parsed() {
        let text = "# HELP x y\nnode_cpu_usage_seconds_total 12.5 1700000000000\n\
                    container_memory_working_set_bytes{container=\"a\",namespace=\"b\",pod=\"c\"} 1.5e+06 1700000000123\nscrape_error 0\n";
        let found = samples(text);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].name, "node_cpu_usage_seconds_total");
        assert_eq!(found[1].label("pod"), Some("c"));
        assert_eq!(found[1].milliseconds, 1_700_000_000_123);
        assert!((found[1].value - 1_500_000.0).abs() < 0.1);
    }
}
