//! Alerts as they are shipped: complete, with a runbook page each, and about metrics that exist.

use std::{collections::BTreeSet, fs, path::PathBuf};

use cli::crds::parse;
use serde_json::Value;

/// The beginning of every metric of the proxy.
const PROXY_PREFIX: &str = "hypershift_api_proxy_";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// All alerts of all files.
fn alerts() -> Vec<Value> {
    let files = fs::read_dir(root().join("manifests/alerts")).expect("there are alerts");
    let mut alerts = Vec::new();
    for file in files {
        let path = file.expect("a directory can be listed").path();
        let text = fs::read_to_string(&path).expect("alerts can be read");
        for document in parse(&path.display().to_string(), &text).expect("alerts are YAML") {
            assert_eq!(
                document.value["kind"], "PrometheusRule",
                "{}",
                document.origin
            );
            let groups = document.value["spec"]["groups"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let rules = groups.iter().filter_map(|group| group["rules"].as_array());
            alerts.extend(rules.flatten().cloned());
        }
    }
    alerts
}

fn text<'a>(alert: &'a Value, pointer: &str) -> &'a str {
    let text = alert
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default();
    assert!(!text.is_empty(), "{}: no {pointer}", alert["alert"]);
    text
}

/// Names in an expression that begin like a metric of the proxy.
fn proxy_metrics(expression: &str) -> BTreeSet<String> {
    expression
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter_map(|word| word.strip_prefix(PROXY_PREFIX))
        .map(str::to_owned)
        .collect()
}

/// The name under which a metric is registered: without what its type and unit append.
fn registered(name: &str) -> &str {
    let name = name.strip_suffix("_bucket").unwrap_or(name);
    let name = name.strip_suffix("_seconds").unwrap_or(name);
    name.strip_suffix("_total").unwrap_or(name)
}

#[test]
fn each_alert_is_complete_and_has_its_runbook_page() {
    let alerts = alerts();
    let names: BTreeSet<_> = alerts.iter().map(|alert| text(alert, "/alert")).collect();
    assert!(names.contains("HyperShiftAPIProxyHighLatency"), "{names:?}");
    for alert in &alerts {
        let name = text(alert, "/alert");
        for pointer in [
            "/expr",
            "/for",
            "/labels/severity",
            "/annotations/summary",
            "/annotations/description",
        ] {
            text(alert, pointer);
        }
        let page = text(alert, "/annotations/runbook");
        assert_eq!(page, format!("docs/runbooks/{name}.md"));
        let page = read(page);
        assert!(
            page.starts_with(&format!("# {name}\n")),
            "{name}: the page has another title"
        );
        for section in ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"] {
            assert!(page.contains(section), "{name}: no section {section:?}");
        }
    }
}

#[test]
fn alerts_and_runbooks_name_metrics_that_the_proxy_has() {
    let source = read("capi-proxy/src/metrics.rs");
    let mut used = BTreeSet::new();
    for alert in alerts() {
        used.extend(proxy_metrics(text(&alert, "/expr")));
        used.extend(proxy_metrics(&read(text(&alert, "/annotations/runbook"))));
    }
    assert!(used.contains("request_duration_seconds_bucket"), "{used:?}");
    for metric in used {
        let registration = format!("\"{}\"", registered(&metric));
        assert!(
            source.contains(&registration),
            "{PROXY_PREFIX}{metric} is not among the proxy's metrics"
        );
    }
}
