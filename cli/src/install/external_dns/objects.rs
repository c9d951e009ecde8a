//! The objects of ExternalDNS. Pure.

use serde_json::{Value, json};

use super::{Cloud, DIRECTORY, DnsSurroundings, ExternalDns, KEY, NAME, OWNER, VOLUME, refused};
use crate::install::aws_role;
use crate::install::binding;
use crate::install::kind::Kind;
use crate::install::object::Object;
use crate::install::options::Options;
use crate::install::workload::{
    APP_LABEL, NAME_LABEL, OPERATOR_PRIORITY, PULL_SECRET, container_security,
};

/// Port of probes and metrics.
const PORT: u16 = 7979;
const PORT_NAME: &str = "metrics";
/// What a program of the operator's namespace is, as HyperShift labels it.
const COMPONENT_LABEL: &str = "hypershift.openshift.io/operator-component";
/// Routes with this label are for clients inside of the cloud's network, and not published.
const NOT_PRIVATE: &str = "hypershift.openshift.io/route-visibility!=private";
/// Route 53 is the same in all regions.
const AWS_REGION: &str = "us-east-1";
const READ: [&str; 3] = ["get", "list", "watch"];

/// Everything that ExternalDNS needs and is.
pub(in crate::install) fn objects(
    external_dns: &ExternalDns,
    options: &Options,
    dns: &DnsSurroundings,
    monitoring: bool,
) -> anyhow::Result<Vec<Object>> {
    let Some(owner) = external_dns.owner.as_ref().or(dns.owner.as_ref()) else {
        return refused(format!(
            "{OWNER} is needed: by it ExternalDNS finds the DNS records of this cluster again"
        ));
    };
    let namespace = &options.namespace;
    // Cluster-wide names carry the namespace, so that two installations do not share a role.
    let role = format!("{namespace}-{NAME}");
    let account = binding::service_account(namespace, NAME);
    let mut objects = vec![
        service_account(options),
        Object::new(
            Kind::ClusterRole,
            namespace,
            &role,
            json!({ "rules": rules(external_dns, dns) }),
        ),
        Object::new(
            Kind::ClusterRoleBinding,
            namespace,
            &role,
            binding::fields(Kind::ClusterRole, &role, &[account]),
        ),
        network_policy(namespace),
        deployment(external_dns, options, dns, owner),
    ];
    let secret = external_dns.credentials.as_ref();
    objects.extend(secret.and_then(|it| it.object(namespace)));
    if monitoring {
        objects.push(pod_monitor(namespace));
    }
    Ok(objects)
}

fn service_account(options: &Options) -> Object {
    let mut fields = json!({});
    if options.pull_secret.is_some() {
        fields["imagePullSecrets"] = json!([{ "name": PULL_SECRET }]);
    }
    Object::new(Kind::ServiceAccount, &options.namespace, NAME, fields)
}

/// It reads Services, and what they stand for, and Routes. It writes nothing but the status of its own kind.
fn rules(external_dns: &ExternalDns, dns: &DnsSurroundings) -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let mut rules = vec![
        rule("", &["services", "endpoints", "pods", "nodes"], &READ),
        rule("discovery.k8s.io", &["endpointslices"], &READ),
    ];
    if dns.routes {
        rules.push(rule("route.openshift.io", &["routes"], &READ));
    }
    if external_dns.uses_endpoints(dns) {
        let group = "externaldns.k8s.io";
        rules.push(rule(group, &["dnsendpoints"], &READ));
        rules.push(rule(group, &["dnsendpoints/status"], &["update"]));
    }
    rules
}

/// The namespace lets nothing else in.
fn network_policy(namespace: &str) -> Object {
    let fields = json!({ "spec": {
        "podSelector": { "matchLabels": { APP_LABEL: NAME } },
        "policyTypes": ["Ingress"],
        "ingress": [{ "ports": [{ "protocol": "TCP", "port": PORT }] }],
    }});
    Object::new(
        Kind::NetworkPolicy,
        namespace,
        &format!("{NAME}-metrics"),
        fields,
    )
}

fn pod_monitor(namespace: &str) -> Object {
    let fields = json!({ "spec": {
        "selector": { "matchLabels": { APP_LABEL: NAME } },
        "podMetricsEndpoints": [{ "port": PORT_NAME, "interval": "30s" }],
    }});
    Object::new(Kind::PodMonitor, namespace, NAME, fields)
}

fn deployment(
    external_dns: &ExternalDns,
    options: &Options,
    dns: &DnsSurroundings,
    owner: &str,
) -> Object {
    let volumes = volumes(external_dns);
    let mounts: Vec<_> = volumes.iter().map(|(_, mount)| mount).collect();
    let pod = json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "priorityClassName": OPERATOR_PRIORITY,
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "tolerations": [{
            "key": "node-role.kubernetes.io/control-plane",
            "operator": "Exists",
            "effect": "NoSchedule",
        }],
        "volumes": volumes.iter().map(|(volume, _)| volume).collect::<Vec<_>>(),
        "containers": [{
            "name": NAME,
            "image": external_dns.image,
            "imagePullPolicy": options.pull_policy.name(),
            "args": arguments(external_dns, dns, owner),
            "env": environment(external_dns, dns),
            "ports": [{ "name": PORT_NAME, "containerPort": PORT, "protocol": "TCP" }],
            "livenessProbe": {
                "httpGet": { "path": "/healthz", "port": PORT_NAME },
                "initialDelaySeconds": 60,
                "periodSeconds": 60,
                "failureThreshold": 5,
            },
            "resources": { "requests": { "cpu": "5m", "memory": "20Mi" } },
            "securityContext": container_security(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": mounts,
        }],
    });
    let fields = json!({ "spec": {
        "replicas": 1,
        "selector": { "matchLabels": { NAME_LABEL: NAME } },
        // It has no leader election: two pods would change the same DNS records.
        "strategy": { "type": "Recreate" },
        "template": {
            "metadata": { "labels": {
                APP_LABEL: NAME,
                NAME_LABEL: NAME,
                COMPONENT_LABEL: NAME,
            }},
            "spec": pod,
        },
    }});
    Object::new(Kind::Deployment, &options.namespace, NAME, fields)
}

/// The volumes of the pod, and where its container has them.
fn volumes(external_dns: &ExternalDns) -> Vec<(Value, Value)> {
    let credentials = external_dns.credentials.as_ref();
    let credentials = credentials.map(|it| it.volume(VOLUME, DIRECTORY, KEY));
    let token = external_dns.with_token.then(aws_role::token);
    credentials.into_iter().chain(token).collect()
}

fn arguments(external_dns: &ExternalDns, dns: &DnsSurroundings, owner: &str) -> Vec<String> {
    let ExternalDns {
        cloud,
        credentials: _,
        with_token: _,
        domain_filter,
        owner: _,
        image: _,
        interval,
    } = external_dns;
    let provider = match cloud {
        Cloud::Aws { .. } => "aws",
        Cloud::Azure => "azure",
        Cloud::Google { .. } => "google",
    };
    let mut arguments = vec!["--source=service".to_owned()];
    if dns.routes {
        arguments.push("--source=openshift-route".to_owned());
    }
    arguments.extend([
        format!("--domain-filter={domain_filter}"),
        format!("--provider={provider}"),
        "--registry=txt".to_owned(),
        "--txt-suffix=-external-dns".to_owned(),
        format!("--txt-owner-id={owner}"),
        format!("--label-filter={NOT_PRIVATE}"),
        format!("--interval={interval}"),
        "--txt-cache-interval=1h".to_owned(),
    ]);
    match cloud {
        Cloud::Aws { zones_cache } => arguments.extend([
            "--aws-zone-type=public".to_owned(),
            "--aws-batch-change-interval=10s".to_owned(),
            format!("--aws-zones-cache-duration={zones_cache}"),
        ]),
        Cloud::Azure => arguments.push(format!("--azure-config-file={DIRECTORY}/{KEY}")),
        Cloud::Google { project } => {
            arguments.extend(project.iter().map(|it| format!("--google-project={it}")));
            if external_dns.uses_endpoints(dns) {
                arguments.push("--source=crd".to_owned());
                let types = ["A", "AAAA", "CNAME", "NS"];
                arguments.extend(types.map(|it| format!("--managed-record-types={it}")));
            }
        }
    }
    arguments
}

fn environment(external_dns: &ExternalDns, dns: &DnsSurroundings) -> Vec<Value> {
    let file = format!("{DIRECTORY}/{KEY}");
    let of_cloud = match external_dns.cloud {
        Cloud::Aws { .. } => vec![
            ("AWS_REGION", AWS_REGION.to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", file),
            // Without it, older versions ignore roles.
            ("AWS_SDK_LOAD_CONFIG", "true".to_owned()),
        ],
        Cloud::Azure => vec![("AZURE_SDK_MAX_RETRIES", "5".to_owned())],
        Cloud::Google { .. } if external_dns.credentials.is_some() => {
            vec![("GOOGLE_APPLICATION_CREDENTIALS", file)]
        }
        Cloud::Google { .. } => Vec::new(),
    };
    let all = of_cloud.iter().chain(&dns.proxy);
    all.map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}
