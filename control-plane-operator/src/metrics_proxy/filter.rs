//! Which metrics of a component are in a metrics set.

use control_plane_component::Component;
use control_plane_component::settings::CollectedMetrics;

use crate::components;

/// Monitors whose component has another name.
const RENAMED: (&str, &str) = ("node-tuning-operator", "cluster-node-tuning-operator");

/// The metrics to serve.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filter<'a> {
    /// All.
    All,
    /// These names.
    Names(Vec<&'a str>),
    /// None: the rule of the set is not understood, and it could exclude any of them.
    None,
}

/// The filter of a component. Of the SRE set only the control-plane-operator knows the rules, which it sets in the monitors
/// of the management cluster.
pub(super) fn of(set: CollectedMetrics, name: &str) -> Filter<'static> {
    match set {
        CollectedMetrics::All | CollectedMetrics::Sre => Filter::All,
        CollectedMetrics::Telemetry => {
            let (monitor, component) = RENAMED;
            let name = if name == monitor { component } else { name };
            let mut all = components::declared().iter();
            let declared = all.find(|component| component.name == name);
            match declared.and_then(Component::telemetry) {
                Some(("keep", regex)) => keep(regex),
                _ => Filter::All,
            }
        }
    }
}

/// Parses a rule: names, separated by `|`, and maybe in parentheses.
fn keep(regex: &str) -> Filter<'_> {
    let inner = regex
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(regex);
    let names: Vec<_> = inner.split('|').collect();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_:".contains(&byte);
    let is_name = |name: &&str| !name.is_empty() && name.bytes().all(known);
    if names.iter().all(is_name) {
        return Filter::Names(names);
    }
    Filter::None
}

// === impl Filter ===

impl Filter<'_> {
    /// Whether a metric is served.
    pub(super) fn keeps(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.contains(&name),
            Self::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_keeps_the_declared_metrics() {
        let telemetry = CollectedMetrics::Telemetry;
        for (component, metric, expected) in [
            ("catalog-operator", "subscription_sync_total", true),
            ("catalog-operator", "subscription_sync_total_other", false),
            ("catalog-operator", "go_goroutines", false),
            (
                "kube-controller-manager",
                "pv_collector_total_pv_count",
                true,
            ),
            ("kube-apiserver", "apiserver_request_total", true),
            ("kube-apiserver", "apiserver_request", false),
            ("kube-scheduler", "go_goroutines", true),
            ("unknown", "go_goroutines", true),
        ] {
            let keeps = of(telemetry, component).keeps(metric);
            assert_eq!(keeps, expected, "{component}: {metric}");
        }
        for set in [CollectedMetrics::All, CollectedMetrics::Sre] {
            assert_eq!(of(set, "kube-apiserver"), Filter::All);
        }
    }

    #[test]
    fn only_lists_of_names_are_understood() {
        for (regex, expected) in [
            ("a_total", Filter::Names(vec!["a_total"])),
            ("(a|b:c)", Filter::Names(vec!["a", "b:c"])),
            ("(a|b.*)", Filter::None),
            ("(a", Filter::None),
            ("", Filter::None),
        ] {
            assert_eq!(keep(regex), expected, "{regex}");
        }
    }
}
