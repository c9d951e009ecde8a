//! Metrics about the configuration of the hosted cluster; docs/metrics.md lists them.
//!
//! They have the names and labels that dashboards of OpenShift use. Only the leader reports them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;

use super::reencryption;
use super::resources::desired::{FEATURES, Guest, Key};

const CONFIG: &str = "config.openshift.io/v1";

/// Metrics about the configuration of the hosted cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    provider: Family<ProviderLabels, Gauge>,
    feature_set: Family<FeatureSetLabels, Gauge>,
    proxy: Family<ProxyLabels, Gauge>,
    encryption: reencryption::Metrics,
}

/// The metrics during a term of leader election. After it, another process reports them.
#[derive(Debug)]
pub(super) struct Term(Metrics);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    r#type: String,
    region: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeatureSetLabels {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProxyLabels {
    r#type: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Metrics without series.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            encryption: reencryption::Metrics::new(registry),
            ..Self::default()
        };
        registry.register(
            "cluster_infrastructure_provider",
            "Platform of the hosted cluster: 1, or 0 without one",
            metrics.provider.clone(),
        );
        registry.register(
            "cluster_feature_set",
            "Feature set of the hosted cluster: 1 for the default one, otherwise 0",
            metrics.feature_set.clone(),
        );
        registry.register(
            "cluster_proxy_enabled",
            "Whether the hosted cluster has a proxy, or a CA bundle for one",
            metrics.proxy.clone(),
        );
        metrics
    }

    /// Begins a term.
    pub(super) fn term(self) -> Term {
        Term(self)
    }

    fn clear(&self) {
        self.provider.clear();
        self.feature_set.clear();
        self.proxy.clear();
    }
}

// === impl Term ===

impl Term {
    /// The metrics of rotations of the encryption key.
    pub(super) fn encryption(&self) -> &reencryption::Metrics {
        &self.0.encryption
    }

    /// Reports the objects that exist.
    pub(super) fn report(&self, guest: &Guest) {
        let Self(metrics) = self;
        metrics.clear();
        let find = |kind: &str| guest.get(&Key::new(CONFIG, kind, "", "cluster"));
        if let Some(found) = find("Infrastructure") {
            let (labels, value) = provider(&found["status"]["platformStatus"]);
            metrics.provider.get_or_create(&labels).set(value);
        }
        if let Some(found) = find(FEATURES) {
            let name = text(&found["spec"]["featureSet"]);
            let value = i64::from(name.is_empty());
            metrics
                .feature_set
                .get_or_create(&FeatureSetLabels { name })
                .set(value);
        }
        if let Some(found) = find("Proxy") {
            for (r#type, pointer) in [
                ("http", "/spec/httpProxy"),
                ("https", "/spec/httpsProxy"),
                ("trusted_ca", "/spec/trustedCA/name"),
            ] {
                let is_set = found
                    .pointer(pointer)
                    .is_some_and(|it| !text(it).is_empty());
                metrics
                    .proxy
                    .get_or_create(&ProxyLabels { r#type })
                    .set(i64::from(is_set));
            }
        }
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.0.clear();
        self.0.encryption.clear();
    }
}

fn provider(platform: &Value) -> (ProviderLabels, i64) {
    let kind = text(&platform["type"]);
    let region = match kind.as_str() {
        "AWS" => text(&platform["aws"]["region"]),
        "GCP" => text(&platform["gcp"]["region"]),
        _ => String::new(),
    };
    let value = i64::from(kind != "None");
    (
        ProviderLabels {
            r#type: kind,
            region,
        },
        value,
    )
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;

    fn object(kind: &str, fields: &Value) -> Value {
        let mut object = json!({
            "apiVersion": CONFIG, "kind": kind, "metadata": { "name": "cluster" },
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
        object
    }

    fn platform(status: &Value) -> Value {
        object(
            "Infrastructure",
            &json!({ "status": { "platformStatus": status } }),
        )
    }

    fn lines(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn series_follow_the_configuration() {
        let features = |set: Value| object(FEATURES, &json!({ "spec": { "featureSet": set } }));
        let proxy = |spec: Value| object("Proxy", &json!({ "spec": spec }));
        for (found, expected) in [
            (
                platform(&json!({ "type": "None" })),
                vec![r#"cluster_infrastructure_provider{type="None",region=""} 0"#],
            ),
            (
                platform(&json!({ "type": "AWS", "aws": { "region": "us-east-1" } })),
                vec![r#"cluster_infrastructure_provider{type="AWS",region="us-east-1"} 1"#],
            ),
            (
                platform(&json!({ "type": "GCP", "gcp": { "region": "r" } })),
                vec![r#"cluster_infrastructure_provider{type="GCP",region="r"} 1"#],
            ),
            (
                platform(&json!({ "type": "PowerVS", "powervs": { "region": "r" } })),
                vec![r#"cluster_infrastructure_provider{type="PowerVS",region=""} 1"#],
            ),
            (
                features(Value::Null),
                vec![r#"cluster_feature_set{name=""} 1"#],
            ),
            (
                features(json!("TechPreviewNoUpgrade")),
                vec![r#"cluster_feature_set{name="TechPreviewNoUpgrade"} 0"#],
            ),
            (
                proxy(json!({ "httpsProxy": "https://p", "trustedCA": { "name": "" } })),
                vec![
                    r#"cluster_proxy_enabled{type="http"} 0"#,
                    r#"cluster_proxy_enabled{type="https"} 1"#,
                    r#"cluster_proxy_enabled{type="trusted_ca"} 0"#,
                ],
            ),
            (
                proxy(json!({ "httpProxy": "http://p", "trustedCA": { "name": "ca" } })),
                vec![
                    r#"cluster_proxy_enabled{type="http"} 1"#,
                    r#"cluster_proxy_enabled{type="https"} 0"#,
                    r#"cluster_proxy_enabled{type="trusted_ca"} 1"#,
                ],
            ),
        ] {
            let mut registry = Registry::default();
            let term = Metrics::new(&mut registry).term();
            term.report(&[found].into_iter().collect());
            let mut lines = lines(&registry);
            lines.sort();
            assert_eq!(lines, expected);
        }
    }

    #[test]
    fn series_of_another_configuration_disappear() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let term = metrics.clone().term();
        for kind in ["AWS", "KubeVirt"] {
            let found = platform(&json!({ "type": kind }));
            term.report(&[found].into_iter().collect());
        }
        let expected = r#"cluster_infrastructure_provider{type="KubeVirt",region=""} 1"#;
        assert_eq!(lines(&registry), [expected]);
        // The next leader reports them.
        drop(term);
        assert_eq!(lines(&registry), [""; 0]);
    }

    #[test]
    fn metrics_are_documented() {
        let page = include_str!("../../../docs/metrics.md");
        for name in [
            "cluster_infrastructure_provider",
            "cluster_feature_set",
            "cluster_proxy_enabled",
        ] {
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not in docs/metrics.md"
            );
        }
    }
}
