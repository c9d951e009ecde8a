//! A cluster of which everything holds.

use serde_json::{Value, json};

use crate::*;

pub(super) const NAMESPACE: &str = "clusters-one";
pub(super) const API: &str = "10.0.0.1";

/// A healthy cluster on AWS with a component that uses the management API and one that does not.
pub(super) fn healthy() -> Observed {
    Observed {
        hosted_cluster: Some(hosted_cluster()),
        node_pools: vec![node_pool()],
        has_settled: true,
        namespace: json!({ "metadata": {
            "name": NAMESPACE,
            "annotations": { "hypershift.openshift.io/default-security-context-uid": "1005" },
        }}),
        objects: vec![
            deployment("kube-scheduler", &json!({})),
            deployment("ignition-server", &json!({ access::LABEL: "true" })),
            pod("kube-scheduler"),
            policy(),
            route(),
        ],
        operator_pods: vec![json!({
            "kind": "Pod",
            "metadata": { "name": "operator-1", "labels": { "app": "operator" } },
            "spec": {},
        })],
        priority_classes: vec![
            json!({ "metadata": { "name": "hypershift-control-plane" }, "value": 100_000_000 }),
            json!({ "metadata": { "name": "hypershift-operator" }, "value": 100_003_000 }),
        ],
        management_api: vec![API.to_owned()],
        guest: Some(guest()),
        metrics: Some(metrics()),
        previous_logs: BTreeMap::new(),
    }
}

pub(super) fn conditions<'a>(expected: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let all = expected.into_iter();
    all.map(
        |(kind, status)| json!({ "type": kind, "status": status, "reason": "R", "message": "M" }),
    )
    .collect()
}

pub(super) fn hosted_cluster() -> Value {
    let positive = "Available ConfigOperatorReconciliationSucceeded ClusterVersionReleaseAccepted EtcdAvailable \
        IgnitionEndpointAvailable InfrastructureReady KubeAPIServerAvailable PlatformCredentialsFound \
        ReconciliationActive ReconciliationSucceeded SupportedHostedCluster ValidConfiguration \
        ValidHostedControlPlaneConfiguration ValidReleaseImage ValidReleaseInfo ClusterVersionAvailable \
        ClusterVersionSucceeding ControlPlaneConnectionAvailable DataPlaneConnectionAvailable \
        AWSDefaultSecurityGroupCreated ValidAWSIdentityProvider ValidOIDCConfiguration";
    let positive = positive.split_whitespace().map(|kind| (kind, "True"));
    let negative = ["Degraded", "Progressing", "ClusterVersionProgressing"];
    let unknown = ["ExternalDNSReachable", "ValidAWSKMSConfig"];
    let all = positive
        .chain(negative.map(|kind| (kind, "False")))
        .chain(unknown.map(|kind| (kind, "Unknown")));
    json!({
        "metadata": { "namespace": "clusters", "name": "one" },
        "spec": {
            "platform": { "type": "AWS", "aws": { "endpointAccess": "Public" } },
            "services": [
                { "service": "APIServer", "servicePublishingStrategy": { "type": "Route" } },
            ],
            "labels": { "team": "a" },
            "olmCatalogPlacement": "guest",
            "tolerations": [{ "key": "team", "operator": "Exists" }],
        },
        "status": { "payloadArch": "AMD64", "conditions": conditions(all) },
    })
}

/// A private cluster on Azure.
pub(super) fn private_on_azure() -> Value {
    let mut cluster = hosted_cluster();
    cluster["spec"]["platform"] = json!({ "type": "Azure", "azure": {
        "topology": "Private", "private": { "type": "PrivateLink" },
    }});
    let link = "AzureInternalLoadBalancerAvailable AzurePLSCreated AzurePrivateDNSAvailable \
        AzurePrivateEndpointAvailable AzurePrivateLinkServiceAvailable";
    let link = conditions(link.split_whitespace().map(|kind| (kind, "True")));
    let all = cluster["status"]["conditions"].as_array_mut().unwrap();
    all.extend(link.as_array().unwrap().iter().cloned());
    cluster
}

pub(super) fn node_pool() -> Value {
    let positive = "Ready ReconciliationActive SupportedVersionSkew UpdateManagementEnabled ValidArchPlatform \
        ValidGeneratedPayload ValidMachineConfig ValidReleaseImage AllMachinesReady AllNodesHealthy \
        ReachedIgnitionEndpoint AWSSecurityGroupAvailable ValidPlatformImage AutorepairEnabled";
    let positive = positive.split_whitespace().map(|kind| (kind, "True"));
    let negative =
        "UpdatingConfig UpdatingPlatformMachineTemplate UpdatingVersion AutoscalingEnabled";
    let negative = negative.split_whitespace().map(|kind| (kind, "False"));
    json!({
        "metadata": { "namespace": "clusters", "name": "workers" },
        "spec": { "replicas": 1, "management": { "autoRepair": true } },
        "status": { "conditions": conditions(positive.chain(negative)) },
    })
}

pub(super) fn pod_spec() -> Value {
    json!({
        "automountServiceAccountToken": false,
        "priorityClassName": "hypershift-control-plane",
        "securityContext": { "runAsUser": 1005 },
        "tolerations": [
            { "key": "hypershift.openshift.io/control-plane", "operator": "Equal", "value": "true", "effect": "NoSchedule" },
            { "key": "hypershift.openshift.io/cluster", "operator": "Equal", "value": NAMESPACE, "effect": "NoSchedule" },
            { "key": "team", "operator": "Exists" },
        ],
        "affinity": {
            "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 50,
                "preference": { "matchExpressions": [{ "key": "hypershift.openshift.io/control-plane" }] },
            }]},
            "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": { "labelSelector": { "matchLabels": {
                    "hypershift.openshift.io/hosted-control-plane": NAMESPACE,
                }}},
            }]},
        },
        "volumes": [{ "name": "tmp-dir", "emptyDir": {} }, { "name": "config", "configMap": {} }],
        "initContainers": [{
            "name": "prober",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }],
        "containers": [{
            "name": "main",
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "resources": { "requests": { "cpu": "10m", "memory": "30Mi" } },
            "securityContext": { "readOnlyRootFilesystem": true },
            "volumeMounts": [{ "name": "tmp-dir", "mountPath": "/tmp" }],
        }],
    })
}

pub(super) fn pod_metadata(component: &str, labels: &Value) -> Value {
    let mut metadata = json!({
        "labels": {
            "app": component,
            "hypershift.openshift.io/control-plane-component": component,
            "hypershift.openshift.io/hosted-control-plane": NAMESPACE,
            "team": "a",
        },
        "annotations": { "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "tmp-dir" },
    });
    for (key, value) in labels.as_object().into_iter().flatten() {
        metadata["labels"][key] = value.clone();
    }
    metadata
}

pub(super) fn deployment(name: &str, labels: &Value) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": { "name": name, "generation": 1 },
        "spec": { "template": { "metadata": pod_metadata(name, labels), "spec": pod_spec() } },
    })
}

pub(super) fn pod(component: &str) -> Value {
    let mut metadata = pod_metadata(component, &json!({}));
    metadata["name"] = json!(format!("{component}-1"));
    let mut spec = pod_spec();
    spec["priority"] = json!(100_000_000);
    let status = json!({ "containerStatuses": [{ "name": "main", "restartCount": 0 }] });
    json!({ "kind": "Pod", "metadata": metadata, "spec": spec, "status": status })
}

pub(super) fn policy() -> Value {
    json!({
        "kind": "NetworkPolicy",
        "metadata": { "name": "management-kas" },
        "spec": {
            "podSelector": { "matchExpressions": [
                { "key": access::LABEL, "operator": "DoesNotExist" },
            ]},
            "policyTypes": ["Egress"],
            "egress": [
                { "to": [{ "ipBlock": { "cidr": "0.0.0.0/0", "except": ["10.0.0.1/32"] } }] },
                { "to": [{ "podSelector": {} }, { "namespaceSelector": {} }] },
            ],
        },
    })
}

pub(super) fn route() -> Value {
    json!({
        "kind": "Route",
        "metadata": {
            "name": "ignition-server",
            "labels": { "hypershift.openshift.io/hosted-control-plane": NAMESPACE },
        },
    })
}

pub(super) fn guest() -> Guest {
    let policies = ["config", "icsp", "infra", "mirror", "ntomirroredconfigmaps"];
    let named = |name| json!({ "metadata": { "name": name } });
    Guest {
        nodes: vec![json!({
            "metadata": { "name": "node-1" },
            "status": { "conditions": conditions([("Ready", "True")]) },
        })],
        admission_policies: policies.into_iter().map(named).collect(),
        attempts: vec![
            attempt(Change::AuditProfile, Some(POLICY)),
            attempt(Change::NetworkStatus, None),
            attempt(Change::CatalogSources, None),
        ],
    }
}

/// What the API server says of a change that policy `config` refuses.
pub(super) const POLICY: &str = "ValidatingAdmissionPolicy 'config' with binding 'config-binding' denied request: it is managed";

pub(super) fn attempt(change: Change, refusal: Option<&str>) -> Attempt {
    let refusal = refusal.map(str::to_owned);
    Attempt { change, refusal }
}

/// Replaces the answer to a change.
pub(super) fn answered(observed: &mut Observed, change: Change, refusal: Option<&str>) {
    let attempts = &mut observed.guest.as_mut().unwrap().attempts;
    attempts.retain(|it| it.change != change);
    attempts.push(attempt(change, refusal));
}

pub(super) fn metrics() -> String {
    let one = r#"namespace="clusters",name="one",_id="i""#;
    let pool = r#"namespace="clusters",name="workers",_id="i",cluster_name="one""#;
    format!(
        "# TYPE hypershift_operator_info gauge\n\
        hypershift_operator_info{{version=\"v\"}} 1\n\
        hypershift_cluster_limited_support_enabled{{{one}}} 0\n\
        hypershift_cluster_silence_alerts{{{one}}} 0\n\
        hypershift_cluster_proxy{{{one},proxy_http=\"\"}} 0\n\
        hypershift_cluster_invalid_aws_creds{{{one}}} 0\n\
        hypershift_nodepools_size{{{pool}}} 1\n\
        hypershift_nodepools_available_replicas{{{pool}}} 1\n"
    )
}
