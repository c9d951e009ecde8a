//! The Deployments of the operators, with what every pod of theirs has.

use std::collections::BTreeSet;

use api::features::{FEATURE_SET_ENV, FeatureSet};
use api::group::CapiTypes;
use serde_json::{Value, json};

use super::args::PlatformMonitoring;
use super::kind::Kind;
use super::object::Object;
use super::oidc::OidcStorage;
use super::options::{Options, Types};
use super::private_links::PrivateLinks;
use super::scale_from_zero::ScaleFromZero;

/// Port of probes and metrics.
pub(crate) const METRICS_PORT: u16 = 9000;
/// Name of that port.
pub(crate) const METRICS_PORT_NAME: &str = "metrics";
/// Label by which the pods of one operator are chosen.
pub(crate) const NAME_LABEL: &str = "name";
/// Label that the pods of both operators have.
pub(crate) const APP_LABEL: &str = "app";
/// Secret with the pull secret.
pub(crate) const PULL_SECRET: &str = "pull-secret";
/// `ConfigMap` with the trusted certificates.
pub(crate) const TRUST_BUNDLE: &str = "user-ca-bundle";
/// Key in it, and name of the file.
pub(crate) const TRUST_BUNDLE_KEY: &str = "ca-bundle.crt";

/// `ConfigMap` with images of the control-plane-operator.
pub(crate) const OVERRIDES: &str = "control-plane-operator-overrides";
/// Key in it, and name of the file.
pub(crate) const OVERRIDES_KEY: &str = "overrides.yaml";

const TRUST_BUNDLE_PATH: &str = "/etc/pki/user-ca-bundle";
const OVERRIDES_PATH: &str = "/etc/hypershift/control-plane-operator-overrides";
/// Annotation of pods: which table they were started with.
const OVERRIDES_HASH: &str = "hypershift.openshift.io/control-plane-operator-overrides-hash";
/// Priority class of what all hosted clusters need.
pub(crate) const OPERATOR_PRIORITY: &str = "hypershift-operator";

/// One of the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operator {
    /// For hosted clusters on private types, or for all where there are none.
    New,
    /// For hosted clusters that have not been migrated yet.
    Legacy,
}

// === impl Operator ===

impl Operator {
    pub(crate) const ALL: [Self; 2] = [Self::New, Self::Legacy];

    /// Name of the Deployment, the service account and the Service.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::New => "operator",
            Self::Legacy => "operator-legacy",
        }
    }

    /// Which hosted clusters it acts on.
    fn scope(self, types: &Types) -> &'static str {
        match (self, types) {
            (Self::New, Types::Standard) => "all",
            (Self::New, Types::Private(_)) => "private",
            (Self::Legacy, _) => "legacy",
        }
    }

    /// The types of which it writes objects.
    pub(crate) fn capi_types(self, types: &Types) -> &'static [CapiTypes] {
        match types {
            // Hosted clusters may be private already, from an installation before this one.
            Types::Standard => &[CapiTypes::Private, CapiTypes::Standard],
            Types::Private(_) => self.capi_types_beside_private(),
        }
    }

    /// The same where there are private types.
    pub(crate) fn capi_types_beside_private(self) -> &'static [CapiTypes] {
        match self {
            Self::New => &[CapiTypes::Private],
            Self::Legacy => &[CapiTypes::Standard],
        }
    }
}

/// The Deployment of an operator. It has no proxy beside it: operators see the standard and the private groups, so they
/// talk to the API server themselves, and a proxy would only lend out their permissions on loopback.
pub(crate) fn deployment(options: &Options, operator: Operator) -> Object {
    let fields = json!({ "spec": spec(options, operator) });
    Object::new(
        Kind::Deployment,
        &options.namespace,
        operator.name(),
        fields,
    )
}

fn spec(options: &Options, operator: Operator) -> Value {
    let mut spec = json!({
        "replicas": options.replicas,
        "selector": { "matchLabels": { NAME_LABEL: operator.name() } },
        // Both replicas may be there at once: a lease decides which one acts.
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
        "template": {
            "metadata": {
                "labels": {
                    APP_LABEL: "hypershift-operator",
                    NAME_LABEL: operator.name(),
                },
            },
            "spec": pod(options, operator),
        },
    });
    let private_links = options.private_links.as_ref();
    if let Some((key, value)) = private_links.and_then(PrivateLinks::label) {
        spec["template"]["metadata"]["labels"][key] = json!(value);
    }
    if let Some(table) = &options.operator_overrides {
        // It is read at the start.
        spec["template"]["metadata"]["annotations"] = json!({ OVERRIDES_HASH: table.hash });
    }
    spec
}

fn pod(options: &Options, operator: Operator) -> Value {
    let mut pod = json!({
        "serviceAccountName": operator.name(),
        "automountServiceAccountToken": true,
        "priorityClassName": OPERATOR_PRIORITY,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "affinity": apart(operator),
        "tolerations": [{
            "key": "node-role.kubernetes.io/control-plane",
            "operator": "Exists",
            "effect": "NoSchedule",
        }],
        "volumes": [],
        "containers": [container(options, operator)],
    });
    pod["volumes"] = volumes(options).map(|(volume, _)| volume).collect();
    pod
}

/// The volumes of a pod, and where its container has them. Credentials for several purposes share a token.
fn volumes(options: &Options) -> impl Iterator<Item = (Value, Value)> {
    let files = files(options).map(|(name, path)| {
        let volume = json!({ "name": name, "configMap": { "name": name } });
        let mount = json!({ "name": name, "mountPath": path, "readOnly": true });
        (volume, mount)
    });
    let scale_from_zero = options.scale_from_zero.as_ref();
    let scale_from_zero = scale_from_zero.map(ScaleFromZero::volume);
    let oidc_storage = options.oidc_storage.iter().flat_map(OidcStorage::volumes);
    let private_links = options.private_links.iter();
    let private_links = private_links.flat_map(PrivateLinks::volumes);
    let all = files
        .chain(scale_from_zero)
        .chain(oidc_storage)
        .chain(private_links);
    let mut seen = BTreeSet::new();
    all.filter(move |(volume, _)| seen.insert(volume["name"].to_string()))
}

/// The `ConfigMaps` that the operator reads as files, and where.
fn files(options: &Options) -> impl Iterator<Item = (&'static str, &'static str)> {
    let trust_bundle = options.trust_bundle.is_some();
    let overrides = options.operator_overrides.is_some();
    let files = [
        (trust_bundle, (TRUST_BUNDLE, TRUST_BUNDLE_PATH)),
        (overrides, (OVERRIDES, OVERRIDES_PATH)),
    ];
    let given = files.into_iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, file)| file)
}

/// Replicas prefer different nodes.
fn apart(operator: Operator) -> Value {
    json!({
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": { "matchLabels": { NAME_LABEL: operator.name() } },
                },
            }],
        },
    })
}

fn container(options: &Options, operator: Operator) -> Value {
    let mut arguments = vec![
        "run".to_owned(),
        format!("--scope={}", operator.scope(&options.types)),
        format!("--metrics-addr=:{METRICS_PORT}"),
    ];
    arguments.extend(options.control_planes.arguments.iter().cloned());
    if options.platform_monitoring == PlatformMonitoring::All {
        arguments.push("--enable-ocp-cluster-monitoring".to_owned());
    }
    if let Some(scale_from_zero) = &options.scale_from_zero {
        arguments.extend(scale_from_zero.arguments());
    }
    if let Some(oidc_storage) = &options.oidc_storage {
        arguments.extend(oidc_storage.arguments());
    }
    if let Some(private_links) = &options.private_links {
        arguments.extend(private_links.arguments());
    }
    let mut container = json!({
        "name": operator.name(),
        "image": options.operator_image,
        "imagePullPolicy": options.pull_policy.name(),
        "args": arguments,
        "env": environment(options),
        "ports": [{
            "name": METRICS_PORT_NAME,
            "containerPort": METRICS_PORT,
            "protocol": "TCP",
        }],
        "startupProbe": probe("/livez", 1, 60),
        "livenessProbe": probe("/livez", 10, 6),
        "readinessProbe": probe("/readyz", 5, 3),
        "resources": resources(),
        "securityContext": container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    let mounts: Vec<_> = volumes(options).map(|(_, mount)| mount).collect();
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    container
}

/// 1,000 hosted clusters at rest take 52 MiB, and migrating 500 machines takes 160 MiB (`docs/performance.md`). The limit
/// leaves room for several such migrations and a full cache of releases: only a leak or an attack reaches it, and ends
/// one replica in place of a node.
fn resources() -> Value {
    json!({
        "requests": { "cpu": "10m", "memory": "64Mi" },
        "limits": { "memory": "1Gi" },
    })
}

fn environment(options: &Options) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let plain = |name: &str, value: &str| json!({ "name": name, "value": value });
    let mut environment = vec![
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        plain("METRICS_SET", options.metrics_set.name()),
        // Control planes with AutoNode run another program of it.
        plain("IMAGE_HYPERSHIFT_OPERATOR", &options.operator_image),
    ];
    if options.features != FeatureSet::Default {
        environment.push(plain(FEATURE_SET_ENV, options.features.name()));
    }
    let control_planes = options.control_planes.environment.iter();
    environment.extend(control_planes.map(|(name, value)| plain(name, value)));
    let managed_service = options.managed_service.iter();
    environment.extend(managed_service.map(|(name, value)| plain(name, value)));
    if options.trust_bundle.is_some() {
        environment.push(plain(
            "SSL_CERT_DIR",
            &format!("/etc/ssl/certs:{TRUST_BUNDLE_PATH}"),
        ));
    }
    if let Some(private) = options.private() {
        // What it puts beside the controllers of each hosted cluster.
        environment.push(plain("IMAGE_CAPI_PROXY", &private.proxy_image));
    }
    if options.trust_bundle.is_some() {
        let bundle = format!("{TRUST_BUNDLE_PATH}/{TRUST_BUNDLE_KEY}");
        environment.push(plain("REGISTRY_CA_BUNDLE", &bundle));
    }
    if options.operator_overrides.is_some() {
        let table = format!("{OVERRIDES_PATH}/{OVERRIDES_KEY}");
        environment.push(plain("CONTROL_PLANE_OPERATOR_OVERRIDES", &table));
    }
    let images = options.image_refs.iter();
    environment.extend(images.map(|(name, image)| plain(name, image)));
    for (name, value) in &options.environment {
        // What the user says comes instead of what is there: the API server takes each name once.
        environment.retain(|variable| variable["name"] != name.as_str());
        environment.push(plain(name, value));
    }
    environment
}

/// The restrictions of all containers.
pub(super) fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
    })
}

fn probe(path: &str, period_seconds: u8, failure_threshold: u8) -> Value {
    json!({
        "httpGet": { "path": path, "port": METRICS_PORT_NAME },
        "periodSeconds": period_seconds,
        "failureThreshold": failure_threshold,
    })
}
