//! The kubelet of a worker: its configuration, its unit, and the unit that determines the provider ID.

use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::{Map, Value, json};

use super::facts::Facts;
use super::file::{PUBLIC, Unit, file};
use super::manifests::{InvalidConfig, Manifest};

/// Path of the CA bundle for client certificates of the kubelet API.
pub(super) const CA: &str = "/etc/kubernetes/kubelet-ca.crt";
const CONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// Environment file with settings from a KubeletConfig.
const ENVIRONMENT: &str = "/etc/kubernetes/kubelet-config-env";
/// Fields that pools cannot configure.
const FIXED: [&str; 3] = ["clusterDNS", "clusterDomain", "staticPodPath"];
/// Fields of a KubeletConfig's spec.
const FIELDS: [&str; 5] = [
    "autoSizingReserved",
    "kubeletConfig",
    "logLevel",
    "machineConfigPoolSelector",
    "tlsSecurityProfile",
];

/// Renders the kubelet configuration: defaults, overridden by the pool's `KubeletConfigs`.
pub(super) fn config(facts: &Facts, users: &[Manifest]) -> Result<Value, InvalidConfig> {
    let mut config = defaults(facts);
    for user in users {
        check_fields(user)?;
        if let Some(profile) = user.spec.get("tlsSecurityProfile") {
            overlay(&mut config, tls(user, profile)?);
        }
        match &user.spec["kubeletConfig"] {
            Value::Null => {}
            desired @ Value::Object(fields) => {
                check_fixed(user, fields)?;
                overlay(&mut config, desired.clone());
            }
            _ => return Err(user.invalid("spec.kubeletConfig", "use an object")),
        }
    }
    // JSON is valid YAML, and deterministic.
    let text = format!("{config:#}\n");
    Ok(file(CONFIG, PUBLIC, text))
}

/// The default kubelet configuration.
fn defaults(facts: &Facts) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": CA },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDNS": facts.cluster_dns,
        "clusterDomain": "cluster.local",
        "containerLogMaxSize": "50Mi",
        "kubeAPIBurst": 100,
        "kubeAPIQPS": 50,
        "maxPods": 250,
        "nodeStatusReportFrequency": "5m",
        "nodeStatusUpdateFrequency": "10s",
        "podPidsLimit": 4096,
        "protectKernelDefaults": true,
        "registerWithTaints": facts.taints,
        "rotateCertificates": true,
        "serializeImagePulls": false,
        "serverTLSBootstrap": true,
        "staticPodPath": "/etc/kubernetes/manifests",
        "systemReserved": { "cpu": "500m", "ephemeral-storage": "1Gi", "memory": "1Gi" },
        "tlsMinVersion": "VersionTLS12",
    })
}

/// Merges objects; other values, including lists, are replaced.
fn overlay(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (field, value) in over {
                overlay(base.entry(field).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn check_fields(user: &Manifest) -> Result<(), InvalidConfig> {
    let mut fields = user.spec.as_object().into_iter().flat_map(Map::keys);
    match fields.find(|field| !FIELDS.contains(&field.as_str())) {
        None => Ok(()),
        Some(field) => {
            let field = format!("spec.{field}");
            Err(user.invalid(&field, "unknown field of KubeletConfig: remove it"))
        }
    }
}

fn check_fixed(user: &Manifest, fields: &Map<String, Value>) -> Result<(), InvalidConfig> {
    match FIXED.into_iter().find(|field| fields.contains_key(*field)) {
        None => Ok(()),
        Some(field) => {
            let field = format!("spec.kubeletConfig.{field}");
            Err(user.invalid(&field, "set by the cluster: remove it"))
        }
    }
}

/// Returns the minimum TLS version, and the ciphers of a custom profile.
fn tls(user: &Manifest, profile: &Value) -> Result<Value, InvalidConfig> {
    let kind = profile["type"].as_str().unwrap_or("Intermediate");
    Ok(match kind {
        "Old" => json!({ "tlsMinVersion": "VersionTLS10" }),
        "Intermediate" => json!({ "tlsMinVersion": "VersionTLS12" }),
        "Modern" => json!({ "tlsMinVersion": "VersionTLS13" }),
        "Custom" => {
            let custom = &profile["custom"];
            json!({ "tlsMinVersion": custom["minTLSVersion"], "tlsCipherSuites": custom["ciphers"] })
        }
        _ => {
            let problem =
                format!("unknown TLS profile {kind:?}: use Old, Intermediate, Modern or Custom");
            return Err(user.invalid("spec.tlsSecurityProfile.type", problem));
        }
    })
}

/// Renders environment files for KubeletConfig fields that are not part of the kubelet configuration.
pub(super) fn environment(users: &[Manifest]) -> Result<Vec<Value>, InvalidConfig> {
    let mut files = Vec::new();
    for user in users {
        match &user.spec["logLevel"] {
            Value::Null => {}
            Value::Number(level) => {
                let text = format!("KUBELET_LOG_LEVEL={level}\n");
                files.push(file(ENVIRONMENT, PUBLIC, text));
            }
            _ => return Err(user.invalid("spec.logLevel", "use a number from 1 to 10")),
        }
        if let Some(enabled) = user.spec["autoSizingReserved"].as_bool() {
            let text = format!("NODE_SIZING_ENABLED={enabled}\n");
            files.push(file("/etc/node-sizing-enabled.env", PUBLIC, text));
        }
    }
    Ok(files)
}

/// The units that run the kubelet.
pub(super) fn units(facts: &Facts) -> Vec<Unit> {
    let mut units = vec![Unit::new("kubelet.service").with_contents(&unit(facts.platform))];
    if facts.platform == PlatformType::Aws {
        units.push(Unit::new("kubelet-provider-id.service").with_contents(AWS_PROVIDER_ID));
    }
    units
}

/// Whether an external cloud provider initializes the node.
fn has_cloud_provider(platform: PlatformType) -> bool {
    match platform {
        PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::OpenStack
        | PlatformType::PowerVs => true,
        PlatformType::Agent | PlatformType::None => false,
    }
}

fn unit(platform: PlatformType) -> String {
    let provider = if has_cloud_provider(platform) {
        "external"
    } else {
        ""
    };
    UNIT.replace("@CLOUD_PROVIDER@", provider)
}

/// Variables in `/etc/kubernetes/kubelet-env` take precedence; machines that are not provisioned by Ignition set them.
const UNIT: &str = r#"[Unit]
Description=Kubernetes Kubelet
Wants=network-online.target
Requires=crio.service
After=network-online.target crio.service kubelet-provider-id.service

[Service]
Type=notify
ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests
ExecStartPre=/bin/rm -f /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state
Environment="KUBELET_LOG_LEVEL=2" "KUBELET_CLOUD_PROVIDER=@CLOUD_PROVIDER@"
Environment="KUBELET_PROVIDERID=" "KUBELET_NODE_NAME=" "KUBELET_NODE_IP=" "KUBELET_NODE_LABELS="
EnvironmentFile=-/etc/os-release
EnvironmentFile=-/run/kubelet-provider-id.env
EnvironmentFile=-/etc/kubernetes/kubelet-config-env
EnvironmentFile=-/etc/kubernetes/kubelet-env
ExecStart=/usr/bin/kubelet \
  --config=/etc/kubernetes/kubelet.conf \
  --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \
  --kubeconfig=/var/lib/kubelet/kubeconfig \
  --container-runtime-endpoint=/var/run/crio/crio.sock \
  --runtime-cgroups=/system.slice/crio.service \
  --node-labels=node.openshift.io/os_id=${ID},${KUBELET_NODE_LABELS} \
  --hostname-override=${KUBELET_NODE_NAME} \
  --node-ip=${KUBELET_NODE_IP} \
  --provider-id=${KUBELET_PROVIDERID} \
  --cloud-provider=${KUBELET_CLOUD_PROVIDER} \
  --v=${KUBELET_LOG_LEVEL}
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
"#;

/// Converts the metadata service's instance ID to a provider ID.
const AWS_PROVIDER_ID: &str = r#"[Unit]
Description=Name of this machine at AWS, for the kubelet
Requires=afterburn.service
After=afterburn.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=/run/metadata/afterburn
ExecStart=/bin/sh -c "echo KUBELET_PROVIDERID=aws:///${AFTERBURN_AWS_AVAILABILITY_ZONE}/${AFTERBURN_AWS_INSTANCE_ID} >/run/kubelet-provider-id.env"

[Install]
WantedBy=multi-user.target
"#;
