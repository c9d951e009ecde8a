//! Everything of the webhook but the CRDs. Pure.

use anyhow::Context;
use control_plane_component::sidecar::{self, Sidecar};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::{FLAGS, NAME, ROLE, Setup, Trust, names_ours};
use crate::crds::parse;
use crate::install::binding;
use crate::install::kind::{Kind, text};
use crate::install::monitoring;
use crate::install::object::{Id, Object};
use crate::install::options::{Options, Private};
use crate::install::workload::{
    METRICS_PORT_NAME, NAME_LABEL, Operator, PULL_SECRET, container_security,
};

/// Port on which the API server is answered.
const PORT: u16 = 8443;
/// Port of probes and metrics.
const ADMIN_PORT: u16 = 9082;
/// Ports of the first manager; those of the others come after it.
const BACKEND_PORT: usize = 9443;
const BACKEND_HEALTH_PORT: usize = 9540;
const BACKEND_DIAGNOSTICS_PORT: usize = 9640;
const REPLICAS: u8 = 2;
/// How long a terminating pod keeps serving, until API servers no longer use it. The webhook itself waits and not a
/// `preStop` hook, because it has to close idle connections meanwhile.
const SHUTDOWN_DELAY_SECONDS: u8 = 10;
/// At least `SHUTDOWN_DELAY_SECONDS` and the 25 s that a conversion may take.
const GRACE_SECONDS: u8 = 45;
/// The shim's `--max-memory`, and what its connections take beside it.
const SHIM_LIMIT: &str = "2Gi";
/// A manager holds what the shim lets through at a time as objects, not as text.
const BACKEND_LIMIT: &str = "4Gi";
const CERTIFICATES: &str = "/etc/capi-conversion/certificates";
const AUTHORITY: &str = "/etc/capi-conversion/authority";
/// Key of the `ConfigMap` that OpenShift's service CA fills.
const SERVICE_CA_KEY: &str = "service-ca.crt";
/// Label of OpenShift's namespace that stands for all that is on the network of a host.
const HOST_NETWORK: &str = "policy-group.network.openshift.io/host-network";
const ROLES: &str = include_str!("../../../../manifests/install/cluster-api/conversion.yaml");
const ALERTS: &str = include_str!("../../../../manifests/alerts/capi-conversion.yaml");

/// All of them.
pub(crate) fn objects(
    options: &Options,
    private: &Private,
    monitored: bool,
) -> anyhow::Result<Vec<Object>> {
    let Some(setup) = &private.conversion else {
        return Ok(Vec::new());
    };
    let mut objects = vec![
        service_account(setup, options),
        kubeconfig(setup)?,
        service(setup),
        network_policy(setup),
        disruption_budget(setup),
    ];
    objects.extend(secret(setup));
    objects.extend(service_ca(setup));
    objects.extend(roles(setup)?);
    if monitored {
        objects.push(service_monitor(setup));
        objects.extend(monitoring::rules(&setup.namespace, ALERTS)?);
    }
    objects.push(deployment(setup, options, private)?);
    Ok(objects)
}

/// Which Deployment must be available before CRDs name the webhook.
pub(crate) fn deployment_id(setup: &Setup) -> Id {
    Id {
        kind: Kind::Deployment,
        namespace: Some(setup.namespace.clone()),
        name: NAME.to_owned(),
    }
}

// === impl Setup ===

impl Setup {
    pub(super) fn secret_name() -> String {
        conversion_certificates::secret_name()
    }

    pub(super) fn secret_path(&self) -> String {
        Id {
            kind: Kind::Secret,
            namespace: Some(self.namespace.clone()),
            name: Self::secret_name(),
        }
        .path()
    }

    fn object(&self, kind: Kind, name: &str, fields: Value) -> Object {
        Object::new(kind, &self.namespace, name, fields)
    }

    /// Where the authority of the backends' certificate is: it is the one that the webhook itself shows.
    fn authority(&self) -> String {
        match self.trust {
            Trust::Own(_) => format!("{CERTIFICATES}/ca.crt"),
            Trust::ServiceCa | Trust::Undecided(_) => format!("{AUTHORITY}/{SERVICE_CA_KEY}"),
        }
    }
}

fn selector() -> Value {
    json!({ NAME_LABEL: NAME })
}

fn service_account(setup: &Setup, options: &Options) -> Object {
    let mut fields = json!({});
    if options.pull_secret.is_some() {
        fields["imagePullSecrets"] = json!([{ "name": PULL_SECRET }]);
    }
    setup.object(Kind::ServiceAccount, NAME, fields)
}

/// What points the managers at their proxy.
fn kubeconfig(setup: &Setup) -> anyhow::Result<Object> {
    let map = serde_json::to_value(sidecar::config_map(&setup.namespace))
        .context("the proxy's kubeconfig cannot be written")?;
    let fields = json!({ "data": map["data"] });
    Ok(setup.object(Kind::ConfigMap, sidecar::NAME, fields))
}

/// The certificate, where we issue it. Elsewhere the Service asks for it.
pub(super) fn secret(setup: &Setup) -> Option<Object> {
    let Trust::Own(serving) = &setup.trust else {
        return None;
    };
    let fields = json!({ "type": "kubernetes.io/tls", "data": serving.data() });
    Some(setup.object(Kind::Secret, &Setup::secret_name(), fields))
}

/// Filled by OpenShift's service CA.
fn service_ca(setup: &Setup) -> Option<Object> {
    match setup.trust {
        Trust::Own(_) => None,
        Trust::ServiceCa | Trust::Undecided(_) => {
            let mut map = setup.object(Kind::ConfigMap, &format!("{NAME}-ca"), json!({}));
            map.body["metadata"]["annotations"] =
                json!({ "service.beta.openshift.io/inject-cabundle": "true" });
            Some(map)
        }
    }
}

fn service(setup: &Setup) -> Object {
    let fields = json!({
        "spec": {
            "type": "ClusterIP",
            "selector": selector(),
            "ports": [{ "name": "https", "protocol": "TCP", "port": 443, "targetPort": PORT }],
        },
    });
    let mut service = setup
        .object(Kind::Service, NAME, fields)
        .label(NAME_LABEL, NAME);
    if matches!(setup.trust, Trust::ServiceCa) {
        service.body["metadata"]["annotations"] =
            json!({ "service.beta.openshift.io/serving-cert-secret-name": Setup::secret_name() });
    }
    service
}

/// The managers' own webhook servers listen on every address; only the shim reaches them. Where API servers connect from
/// is known on OpenShift only: there they are on the network of their hosts. Probes come from the node itself.
fn network_policy(setup: &Setup) -> Object {
    let port = |port: i32| json!({ "protocol": "TCP", "port": port });
    let mut api_servers = json!({ "ports": [port(i32::from(PORT))] });
    if matches!(setup.trust, Trust::ServiceCa) {
        api_servers["from"] = json!([{
            "namespaceSelector": { "matchLabels": { HOST_NETWORK: "" } },
        }]);
    }
    let monitoring = json!({
        "ports": [port(i32::from(ADMIN_PORT)), port(sidecar::ADMIN_PORT)],
        // Prometheus is a pod: nothing outside the cluster reads metrics.
        "from": [{ "namespaceSelector": {} }],
    });
    let fields = json!({
        "spec": {
            "podSelector": { "matchLabels": selector() },
            "policyTypes": ["Ingress"],
            "ingress": [api_servers, monitoring],
        },
    });
    setup.object(Kind::NetworkPolicy, NAME, fields)
}

/// Without the webhook objects cannot be read: one pod is always there.
fn disruption_budget(setup: &Setup) -> Object {
    let fields = json!({
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": selector() } },
    });
    setup.object(Kind::PodDisruptionBudget, NAME, fields)
}

/// The roles of the managers, and who has them.
fn roles(setup: &Setup) -> anyhow::Result<Vec<Object>> {
    let documents = parse("the roles", ROLES).context("the roles of this binary are damaged")?;
    let mut objects = Vec::new();
    for document in documents {
        let name = text(&document.value, "/metadata/name").to_owned();
        let rules = json!({ "rules": document.value["rules"] });
        let kind = if name.ends_with("-cluster") {
            Kind::ClusterRoleBinding
        } else {
            Kind::RoleBinding
        };
        // Roles have no namespace, and a cluster may have several installations.
        let own = format!("{}-{name}", setup.namespace);
        objects.push(setup.object(Kind::ClusterRole, &own, rules));
        objects.push(setup.object(kind, &own, bound(&own, &setup.namespace, NAME)));
    }
    Ok(objects)
}

/// Lets the operator have the CRDs trust a certificate that it renews: those that name the webhook, and no others.
pub(crate) fn renewal(private: &Private, crds: &[Value]) -> Vec<Object> {
    let Some(setup) = &private.conversion else {
        return Vec::new();
    };
    let ours = crds.iter().filter(|crd| names_ours(crd));
    let names: Vec<&str> = ours.map(|crd| text(crd, "/metadata/name")).collect();
    if !matches!(setup.trust, Trust::Own(_)) || names.is_empty() {
        return Vec::new();
    }
    let rules = json!({ "rules": [{
        "apiGroups": [Kind::Crd.resource().group],
        "resources": [Kind::Crd.resource().plural],
        "resourceNames": names,
        "verbs": ["patch"],
    }] });
    let role = format!("{}-{ROLE}-renewal", setup.namespace);
    let binding = bound(&role, &setup.namespace, Operator::New.name());
    vec![
        setup.object(Kind::ClusterRole, &role, rules),
        setup.object(Kind::ClusterRoleBinding, &role, binding),
    ]
}

fn bound(role: &str, namespace: &str, account: &str) -> Value {
    let account = binding::service_account(namespace, account);
    binding::fields(Kind::ClusterRole, role, &[account])
}

fn service_monitor(setup: &Setup) -> Object {
    let fields = json!({
        "spec": {
            "selector": { "matchLabels": selector() },
            "endpoints": [
                // Not ports of the Service: they are the pod's.
                { "targetPort": ADMIN_PORT, "interval": "15s" },
                { "targetPort": sidecar::ADMIN_PORT, "interval": "30s" },
            ],
        },
    });
    setup.object(Kind::ServiceMonitor, NAME, fields)
}

fn deployment(setup: &Setup, options: &Options, private: &Private) -> anyhow::Result<Object> {
    let backends = setup.backends.iter().enumerate();
    let backends: Vec<Value> = backends
        .map(|(index, (backend, image))| backend_container(index, backend.name(), image, options))
        .collect();
    let object = setup.object(
        Kind::Deployment,
        NAME,
        json!({ "spec": spec(setup, &backends) }),
    );
    let mut deployment: Deployment =
        serde_json::from_value(object.body).context("the webhook's Deployment is malformed")?;
    Sidecar {
        image: private.proxy_image.clone(),
    }
    .add_to(&mut deployment)?;
    let mut body =
        serde_json::to_value(&deployment).context("the webhook's Deployment cannot be written")?;
    let shim = shim_container(setup, options, private);
    settle(&mut body, &shim, options);
    Ok(Object {
        id: object.id,
        body,
    })
}

/// The managers, which were given their kubeconfig as containers, become native sidecars between the proxy and the
/// shim: they are up before it starts, and end after it has.
fn settle(body: &mut Value, shim: &Value, options: &Options) {
    let template = &mut body["spec"]["template"];
    template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = json!(NAME);
    let pod = &mut template["spec"];
    pod["initContainers"][0]["imagePullPolicy"] = json!(options.pull_policy.name());
    let backends = pod["containers"].take();
    pod["containers"] = json!([shim]);
    let (Some(init), Value::Array(backends)) = (pod["initContainers"].as_array_mut(), backends)
    else {
        return;
    };
    init.extend(backends.into_iter().map(|mut backend| {
        backend["restartPolicy"] = json!("Always");
        backend
    }));
}

fn spec(setup: &Setup, backends: &[Value]) -> Value {
    let mut volumes = vec![json!({
        "name": "certificates",
        "secret": { "secretName": Setup::secret_name() },
    })];
    if !matches!(setup.trust, Trust::Own(_)) {
        volumes.push(json!({ "name": "authority", "configMap": { "name": format!("{NAME}-ca") } }));
    }
    json!({
        "replicas": REPLICAS,
        "selector": { "matchLabels": selector() },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
        "template": {
            "metadata": { "labels": selector() },
            "spec": {
                "serviceAccountName": NAME,
                "automountServiceAccountToken": true,
                "priorityClassName": "hypershift-operator",
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "securityContext": {
                    "runAsNonRoot": true,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "affinity": { "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{
                        "weight": 100,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": { "matchLabels": selector() },
                        },
                    }],
                } },
                "volumes": volumes,
                "containers": backends,
            },
        },
    })
}

fn backend_container(index: usize, name: &str, image: &str, options: &Options) -> Value {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    args.extend([
        // Nothing of theirs is there, and they may read nothing elsewhere.
        format!("--namespace={}", options.namespace),
        format!("--webhook-port={}", BACKEND_PORT + index),
        format!("--webhook-cert-dir={CERTIFICATES}"),
        format!("--health-addr=:{}", BACKEND_HEALTH_PORT + index),
        format!(
            "--diagnostics-address=127.0.0.1:{}",
            BACKEND_DIAGNOSTICS_PORT + index
        ),
    ]);
    let probe = json!({ "path": "/readyz", "port": BACKEND_HEALTH_PORT + index });
    json!({
        "name": format!("convert-{name}"),
        "image": image,
        "imagePullPolicy": options.pull_policy.name(),
        "args": args,
        "startupProbe": { "httpGet": probe, "periodSeconds": 1, "failureThreshold": 120 },
        "livenessProbe": { "httpGet": probe, "periodSeconds": 10, "failureThreshold": 6 },
        "resources": {
            "requests": { "cpu": "10m", "memory": "64Mi" },
            "limits": { "memory": BACKEND_LIMIT },
        },
        "securityContext": container_security(),
        "volumeMounts": [{ "name": "certificates", "mountPath": CERTIFICATES, "readOnly": true }],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

fn shim_container(setup: &Setup, options: &Options, private: &Private) -> Value {
    let mut args = vec![
        "conversion-webhook".to_owned(),
        format!("--listen=0.0.0.0:{PORT}"),
        format!("--admin-listen=0.0.0.0:{ADMIN_PORT}"),
        format!("--tls-cert-file={CERTIFICATES}/tls.crt"),
        format!("--tls-key-file={CERTIFICATES}/tls.key"),
        format!("--backend-ca={}", setup.authority()),
        format!("--backend-server-name={}", setup.server_name()),
        format!("--shutdown-delay={SHUTDOWN_DELAY_SECONDS}s"),
    ];
    args.extend(setup.routes().map(|(group, index)| {
        format!(
            "--backend={group}=https://127.0.0.1:{}",
            BACKEND_PORT + index
        )
    }));
    let mut mounts =
        vec![json!({ "name": "certificates", "mountPath": CERTIFICATES, "readOnly": true })];
    if !matches!(setup.trust, Trust::Own(_)) {
        mounts.push(json!({ "name": "authority", "mountPath": AUTHORITY, "readOnly": true }));
    }
    json!({
        "name": NAME,
        "image": private.proxy_image,
        "imagePullPolicy": options.pull_policy.name(),
        "args": args,
        // What large reviews took goes back to the system: the allocator keeps no more than the limits count.
        "env": [
            { "name": "MALLOC_ARENA_MAX", "value": "2" },
            { "name": "MALLOC_MMAP_THRESHOLD_", "value": "131072" },
        ],
        "ports": [
            { "name": "https", "containerPort": PORT, "protocol": "TCP" },
            { "name": METRICS_PORT_NAME, "containerPort": ADMIN_PORT, "protocol": "TCP" },
        ],
        "livenessProbe": {
            "httpGet": { "path": "/healthz", "port": METRICS_PORT_NAME },
            "periodSeconds": 10, "failureThreshold": 3,
        },
        "readinessProbe": {
            "httpGet": { "path": "/readyz", "port": METRICS_PORT_NAME },
            "periodSeconds": 2, "failureThreshold": 2,
        },
        "resources": {
            "requests": { "cpu": "10m", "memory": "32Mi" },
            "limits": { "memory": SHIM_LIMIT },
        },
        "securityContext": container_security(),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}
