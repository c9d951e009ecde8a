//! What the operators stand on: namespace, priority classes, service accounts, configuration, network.

use serde_json::{Value, json};

use super::args::PlatformMonitoring;
use super::kind::Kind;
use super::object::Object;
use super::options::Options;
use super::private_links::PrivateLinks;
use super::workload::{
    APP_LABEL, METRICS_PORT, METRICS_PORT_NAME, NAME_LABEL, OVERRIDES, OVERRIDES_KEY, Operator,
    PULL_SECRET, TRUST_BUNDLE, TRUST_BUNDLE_KEY,
};

/// Port of the Services, on which metrics are served.
const SERVICE_PORT: u16 = 9393;

/// Name, value and use of each priority class.
const PRIORITY_CLASSES: [(&str, u32, &str); 4] = [
    (
        "hypershift-control-plane",
        100_000_000,
        "Control planes of hosted clusters.",
    ),
    (
        "hypershift-api-critical",
        100_001_000,
        "What a hosted cluster's API needs to answer.",
    ),
    (
        "hypershift-etcd",
        100_002_000,
        "The store of a hosted cluster.",
    ),
    (
        "hypershift-operator",
        100_003_000,
        "The operators of all hosted clusters.",
    ),
];

/// The operator's namespace: nothing in it may have more permissions than a pod needs that touches no host.
pub(crate) fn namespace(options: &Options) -> Object {
    let mut object = Object::new(
        Kind::Namespace,
        &options.namespace,
        &options.namespace,
        json!({}),
    );
    for mode in ["enforce", "audit", "warn"] {
        object = object.label(&format!("pod-security.kubernetes.io/{mode}"), "restricted");
    }
    match options.platform_monitoring {
        PlatformMonitoring::None => object,
        PlatformMonitoring::OperatorOnly | PlatformMonitoring::All => {
            object.label("openshift.io/cluster-monitoring", "true")
        }
    }
}

/// Hosted control planes name them, so they outlive the operators while there are any.
pub(crate) fn priority_classes(namespace: &str) -> Vec<Object> {
    PRIORITY_CLASSES
        .iter()
        .map(|(name, value, description)| {
            let fields = json!({ "value": value, "description": description });
            Object::new(Kind::PriorityClass, namespace, name, fields)
        })
        .collect()
}

/// The service account of an operator.
pub(crate) fn service_account(options: &Options, operator: Operator) -> Object {
    let mut fields = json!({});
    if options.pull_secret.is_some() {
        fields["imagePullSecrets"] = json!([{ "name": PULL_SECRET }]);
    }
    let mut account = Object::new(
        Kind::ServiceAccount,
        &options.namespace,
        operator.name(),
        fields,
    );
    let private_links = options.private_links.as_ref();
    if let Some((key, value)) = private_links.and_then(PrivateLinks::annotation) {
        account.body["metadata"]["annotations"] = json!({ key: value });
    }
    account
}

/// The pull secret, if one was given.
pub(crate) fn pull_secret(options: &Options) -> Option<Object> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = options.pull_secret.as_ref()?;
    let fields = json!({
        "type": "kubernetes.io/dockerconfigjson",
        "data": { ".dockerconfigjson": STANDARD.encode(text) },
    });
    Some(Object::new(
        Kind::Secret,
        &options.namespace,
        PULL_SECRET,
        fields,
    ))
}

/// The trusted certificates, if any were given.
pub(crate) fn trust_bundle(options: &Options) -> Option<Object> {
    let text = options.trust_bundle.as_ref()?;
    let fields = json!({ "data": { TRUST_BUNDLE_KEY: text } });
    Some(Object::new(
        Kind::ConfigMap,
        &options.namespace,
        TRUST_BUNDLE,
        fields,
    ))
}

/// The table of images of the control-plane-operator, if one was given.
pub(crate) fn operator_overrides(options: &Options) -> Option<Object> {
    let table = options.operator_overrides.as_ref()?;
    let fields = json!({ "data": { OVERRIDES_KEY: table.text } });
    Some(Object::new(
        Kind::ConfigMap,
        &options.namespace,
        OVERRIDES,
        fields,
    ))
}

/// The pods can be reached for metrics only.
///
/// What they reach is not limited: an API server has no pods or labels by which a policy could name it.
pub(crate) fn network_policies(options: &Options) -> Vec<Object> {
    let policy = |name: &str, spec: Value| {
        Object::new(
            Kind::NetworkPolicy,
            &options.namespace,
            name,
            json!({ "spec": spec }),
        )
    };
    vec![
        policy(
            "default-deny-ingress",
            json!({ "podSelector": {}, "policyTypes": ["Ingress"] }),
        ),
        policy(
            "operator-metrics",
            json!({
                "podSelector": { "matchLabels": { APP_LABEL: "hypershift-operator" } },
                "policyTypes": ["Ingress"],
                "ingress": [{ "ports": [{ "protocol": "TCP", "port": METRICS_PORT }] }],
            }),
        ),
    ]
}

/// The Service behind which an operator's metrics are.
pub(crate) fn service(options: &Options, operator: Operator) -> Object {
    let fields = json!({
        "spec": {
            "type": "ClusterIP",
            "selector": { NAME_LABEL: operator.name() },
            "ports": [{
                "name": METRICS_PORT_NAME,
                "protocol": "TCP",
                "port": SERVICE_PORT,
                "targetPort": METRICS_PORT_NAME,
            }],
        },
    });
    Object::new(Kind::Service, &options.namespace, operator.name(), fields)
        .label(NAME_LABEL, operator.name())
        .label(APP_LABEL, "hypershift-operator")
}
