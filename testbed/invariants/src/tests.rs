//! A cluster of which everything holds, and one that breaks each invariant.

use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "clusters-one";
const API: &str = "10.0.0.1";

/// A healthy cluster on AWS with a component that uses the management API and one that does not.
fn healthy() -> Observed {
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

fn conditions<'a>(expected: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let all = expected.into_iter();
    all.map(
        |(kind, status)| json!({ "type": kind, "status": status, "reason": "R", "message": "M" }),
    )
    .collect()
}

fn hosted_cluster() -> Value {
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

fn node_pool() -> Value {
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

fn pod_spec() -> Value {
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

fn pod_metadata(component: &str, labels: &Value) -> Value {
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

fn deployment(name: &str, labels: &Value) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": { "name": name, "generation": 1 },
        "spec": { "template": { "metadata": pod_metadata(name, labels), "spec": pod_spec() } },
    })
}

fn pod(component: &str) -> Value {
    let mut metadata = pod_metadata(component, &json!({}));
    metadata["name"] = json!(format!("{component}-1"));
    let mut spec = pod_spec();
    spec["priority"] = json!(100_000_000);
    let status = json!({ "containerStatuses": [{ "name": "main", "restartCount": 0 }] });
    json!({ "kind": "Pod", "metadata": metadata, "spec": spec, "status": status })
}

fn policy() -> Value {
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

fn route() -> Value {
    json!({
        "kind": "Route",
        "metadata": {
            "name": "ignition-server",
            "labels": { "hypershift.openshift.io/hosted-control-plane": NAMESPACE },
        },
    })
}

fn guest() -> Guest {
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
const POLICY: &str = "ValidatingAdmissionPolicy 'config' with binding 'config-binding' denied request: it is managed";

fn attempt(change: Change, refusal: Option<&str>) -> Attempt {
    let refusal = refusal.map(str::to_owned);
    Attempt { change, refusal }
}

/// Replaces the answer to a change.
fn answered(observed: &mut Observed, change: Change, refusal: Option<&str>) {
    let attempts = &mut observed.guest.as_mut().unwrap().attempts;
    attempts.retain(|it| it.change != change);
    attempts.push(attempt(change, refusal));
}

fn metrics() -> String {
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

/// Breaks a cluster.
type Break = fn(&mut Observed);

/// A cluster that breaks an invariant, and what is reported of it.
struct Row {
    invariant: Invariant,
    name: &'static str,
    broken: Break,
    reported: &'static str,
}

const fn row(
    invariant: Invariant,
    name: &'static str,
    broken: Break,
    reported: &'static str,
) -> Row {
    Row {
        invariant,
        name,
        broken,
        reported,
    }
}

/// The pod of the cluster.
fn the_pod(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[2]
}

/// The main container of the first Deployment.
fn container(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[0]["spec"]["template"]["spec"]["containers"][0]
}

/// The template of the first Deployment.
fn template(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[0]["spec"]["template"]
}

fn cluster(observed: &mut Observed) -> &mut Value {
    observed.hosted_cluster.as_mut().unwrap()
}

fn set_condition(object: &mut Value, kind: &str, status: &str) {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    let found = conditions.iter_mut().find(|it| it["type"] == kind);
    found.unwrap()["status"] = json!(status);
}

fn without(object: &mut Value, key: &str) {
    object.as_object_mut().unwrap().remove(key);
}

const ROWS: [Row; 48] = [
    row(
        Invariant::ClusterConditions,
        "a condition that must be true is false",
        |it| set_condition(cluster(it), "EtcdAvailable", "False"),
        "HostedCluster one: EtcdAvailable is False, not True (R: M)",
    ),
    row(
        Invariant::ClusterConditions,
        "a condition that must be false is true",
        |it| set_condition(cluster(it), "Degraded", "True"),
        "HostedCluster one: Degraded is True, not False (R: M)",
    ),
    row(
        Invariant::ClusterConditions,
        "a condition is missing",
        |it| without(&mut cluster(it)["status"]["conditions"][0], "type"),
        "HostedCluster one: Available is missing, not True",
    ),
    row(
        Invariant::ClusterConditions,
        "an encryption key that is used must be valid",
        |it| cluster(it)["spec"]["secretEncryption"] = json!({ "kms": { "aws": {} } }),
        "HostedCluster one: ValidAWSKMSConfig is Unknown, not True (R: M)",
    ),
    row(
        Invariant::ClusterConditions,
        "an external name must be reachable",
        |it| {
            cluster(it)["spec"]["services"][0]["servicePublishingStrategy"]["route"] =
                json!({ "hostname": "api.example.com" });
        },
        "HostedCluster one: ExternalDNSReachable is Unknown, not True (R: M)",
    ),
    row(
        Invariant::ClusterConditions,
        "a private cluster has endpoints",
        |it| {
            cluster(it)["spec"]["platform"]["aws"]["endpointAccess"] = json!("Private");
            let conditions = cluster(it)["status"]["conditions"].as_array_mut().unwrap();
            conditions.push(json!({ "type": "AWSEndpointAvailable", "status": "True" }));
        },
        "HostedCluster one: AWSEndpointServiceAvailable is missing, not True",
    ),
    row(
        Invariant::Restarts,
        "a container restarted",
        |it| the_pod(it)["status"]["containerStatuses"][0]["restartCount"] = json!(1),
        "Pod kube-scheduler-1: container main: restarted 1 times, and 0 are tolerated",
    ),
    row(
        Invariant::Restarts,
        "a container restarted more often than is tolerated",
        |it| {
            *the_pod(it) = pod("dns-operator");
            the_pod(it)["status"]["containerStatuses"][0]["restartCount"] = json!(6);
        },
        "Pod dns-operator-1: container main: restarted 6 times, and 5 are tolerated",
    ),
    row(
        Invariant::Restarts,
        "an init container restarted",
        |it| {
            the_pod(it)["status"]["initContainerStatuses"] =
                json!([{ "name": "prober", "restartCount": 2 }]);
        },
        "Pod kube-scheduler-1: container prober: restarted 2 times, and 0 are tolerated",
    ),
    row(
        Invariant::Generations,
        "a Deployment changes all the time",
        |it| it.objects[0]["metadata"]["generation"] = json!(11),
        "Deployment kube-scheduler: its generation is 11, above 10",
    ),
    row(
        Invariant::Priorities,
        "the class of a template is above etcd",
        |it| template(it)["spec"]["priorityClassName"] = json!("hypershift-operator"),
        "Deployment kube-scheduler: its priority is 100003000, above 100002000",
    ),
    row(
        Invariant::Priorities,
        "there is no class of that name",
        |it| template(it)["spec"]["priorityClassName"] = json!("other"),
        "Deployment kube-scheduler: there is no PriorityClass other",
    ),
    row(
        Invariant::Priorities,
        "a pod is above etcd",
        |it| the_pod(it)["spec"]["priority"] = json!(100_002_001),
        "Pod kube-scheduler-1: its priority is 100002001, above 100002000",
    ),
    row(
        Invariant::PullPolicies,
        "an image is always pulled",
        |it| container(it)["imagePullPolicy"] = json!("Always"),
        "Deployment kube-scheduler: container main: imagePullPolicy is \"Always\"",
    ),
    row(
        Invariant::PullPolicies,
        "an init container does not say",
        |it| {
            without(
                &mut template(it)["spec"]["initContainers"][0],
                "imagePullPolicy",
            )
        },
        "Deployment kube-scheduler: container prober: imagePullPolicy is null",
    ),
    row(
        Invariant::TerminationMessages,
        "a failure has no message",
        |it| container(it)["terminationMessagePolicy"] = json!("File"),
        "Deployment kube-scheduler: container main: terminationMessagePolicy is \"File\"",
    ),
    row(
        Invariant::ResourceRequests,
        "a container requests no memory",
        |it| without(&mut container(it)["resources"]["requests"], "memory"),
        "Deployment kube-scheduler: container main: no request of memory",
    ),
    row(
        Invariant::ResourceRequests,
        "a sidecar requests nothing",
        |it| template(it)["spec"]["initContainers"][0]["restartPolicy"] = json!("Always"),
        "Deployment kube-scheduler: container prober: no request of cpu, memory",
    ),
    row(
        Invariant::LocalVolumes,
        "a local volume is not named",
        |it| template(it)["spec"]["volumes"][1] = json!({ "name": "logs", "emptyDir": {} }),
        "Deployment kube-scheduler: cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes does not name logs",
    ),
    row(
        Invariant::ReadOnlyRoot,
        "a container can write to its image",
        |it| without(container(it), "securityContext"),
        "Deployment kube-scheduler: container main: readOnlyRootFilesystem is null",
    ),
    row(
        Invariant::TemporaryDirectories,
        "a container has no /tmp",
        |it| container(it)["volumeMounts"] = json!([]),
        "Deployment kube-scheduler: container main: no volume is mounted at /tmp",
    ),
    row(
        Invariant::ManagementTokens,
        "a template mounts a token",
        |it| without(&mut template(it)["spec"], "automountServiceAccountToken"),
        "Deployment kube-scheduler: automountServiceAccountToken is null",
    ),
    row(
        Invariant::ManagementTokens,
        "a pod has a token",
        |it| the_pod(it)["spec"]["volumes"][1] = json!({ "name": "kube-api-access-x7k2p" }),
        "Pod kube-scheduler-1: it has the volume kube-api-access-x7k2p",
    ),
    row(
        Invariant::Scheduling,
        "a toleration is missing",
        |it| without(&mut template(it)["spec"]["tolerations"][0], "effect"),
        "Deployment kube-scheduler: it lacks the toleration of hypershift.openshift.io/control-plane",
    ),
    row(
        Invariant::Scheduling,
        "pods prefer the nodes of another cluster",
        |it| {
            let term = "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight";
            *template(it).pointer_mut(term).unwrap() = json!(1);
        },
        "Deployment kube-scheduler: it lacks the preference for pods with hypershift.openshift.io/hosted-control-plane",
    ),
    row(
        Invariant::Scheduling,
        "nodes are not preferred",
        |it| without(&mut template(it)["spec"]["affinity"], "nodeAffinity"),
        "Deployment kube-scheduler: it lacks the preference for nodes with hypershift.openshift.io/control-plane",
    ),
    row(
        Invariant::Users,
        "a pod runs as another user",
        |it| template(it)["spec"]["securityContext"]["runAsUser"] = json!(0),
        "Deployment kube-scheduler: it runs as user 0, not 1005",
    ),
    row(
        Invariant::RouteLabels,
        "a Route is served by the router of the management cluster",
        |it| without(&mut it.objects[4]["metadata"], "labels"),
        "Route ignition-server: it has no label hypershift.openshift.io/hosted-control-plane=clusters-one",
    ),
    row(
        Invariant::KnownPods,
        "a pod is of no component",
        |it| {
            *the_pod(it) = pod("miner");
        },
        "Pod miner-1: no component is named \"miner\"",
    ),
    row(
        Invariant::KnownPods,
        "a pod next to the operators is unknown",
        |it| it.operator_pods[0]["metadata"]["labels"]["app"] = json!("miner"),
        "Pod operator-1: no component is named \"miner\"",
    ),
    row(
        Invariant::ManagementAccess,
        "a pod has the label and needs no access",
        |it| template(it)["metadata"]["labels"][access::LABEL] = json!("true"),
        "Deployment kube-scheduler: it has the label hypershift.openshift.io/need-management-kas-access, and needs no access",
    ),
    row(
        Invariant::ManagementAccess,
        "a pod that needs access has no label",
        |it| it.objects[1] = deployment("ignition-server", &json!({})),
        "Deployment ignition-server: it has no label hypershift.openshift.io/need-management-kas-access",
    ),
    row(
        Invariant::ManagementIsolation,
        "no policy keeps a pod from the management API",
        |it| without(&mut it.objects[3], "spec"),
        "Deployment kube-scheduler: the policies let it out to the management API at 10.0.0.1",
    ),
    row(
        Invariant::ManagementIsolation,
        "a policy cuts off a pod that needs access",
        |it| it.objects[3]["spec"]["podSelector"] = json!({}),
        "Deployment ignition-server: no policy lets it out to the management API at 10.0.0.1",
    ),
    row(
        Invariant::ManagementIsolation,
        "one address of several is open",
        |it| it.management_api.push("10.0.0.2".to_owned()),
        "Pod kube-scheduler-1: the policies let it out to the management API at 10.0.0.2",
    ),
    row(
        Invariant::AdmissionPolicies,
        "a policy is missing",
        |it| drop(it.guest.as_mut().unwrap().admission_policies.remove(1)),
        "ValidatingAdmissionPolicy icsp: it is missing",
    ),
    row(
        Invariant::AdmissionPolicies,
        "a protected field can be changed",
        |it| answered(it, Change::AuditProfile, None),
        "hosted cluster, AuditProfile: it is admitted",
    ),
    row(
        Invariant::AdmissionPolicies,
        "a protected field is refused for another reason",
        |it| answered(it, Change::AuditProfile, Some("profile: Unsupported value")),
        "hosted cluster, AuditProfile: something else refuses it: profile: Unsupported value",
    ),
    row(
        Invariant::AdmissionPolicies,
        "a status cannot be written",
        |it| answered(it, Change::NetworkStatus, Some("denied")),
        "hosted cluster, NetworkStatus: it is refused: denied",
    ),
    row(
        Invariant::AdmissionPolicies,
        "a change was not tried",
        |it| drop(it.guest.as_mut().unwrap().attempts.pop()),
        "hosted cluster, CatalogSources: it was not tried",
    ),
    row(
        Invariant::AdmissionPolicies,
        "catalogs of the management cluster can be changed",
        |it| without(&mut cluster(it)["spec"], "olmCatalogPlacement"),
        "hosted cluster, CatalogSources: it is admitted",
    ),
    row(
        Invariant::PayloadArchitecture,
        "the architecture is not known",
        |it| without(&mut cluster(it)["status"], "payloadArch"),
        "HostedCluster one: status.payloadArch is \"\"",
    ),
    row(
        Invariant::ClusterMetrics,
        "only another pool is reported",
        |it| {
            let metrics = it.metrics.as_mut().unwrap();
            *metrics = metrics.replace("name=\"workers\"", "name=\"others\"");
        },
        "hypershift_nodepools_size of NodePool clusters/workers: it is not reported",
    ),
    row(
        Invariant::UserSettings,
        "a pod lacks what its user sets",
        |it| {
            without(&mut template(it)["metadata"]["labels"], "team");
            template(it)["spec"]["tolerations"][2] = json!({});
        },
        "Deployment kube-scheduler: it lacks the label team, the toleration {\"key\":\"team\",\"operator\":\"Exists\"}",
    ),
    row(
        Invariant::AppLabels,
        "a pod has no label app",
        |it| without(&mut template(it)["metadata"]["labels"], "app"),
        "Deployment kube-scheduler: it has no label app",
    ),
    row(
        Invariant::Nodes,
        "a node is not ready",
        |it| set_condition(&mut it.guest.as_mut().unwrap().nodes[0], "Ready", "Unknown"),
        "hosted cluster: 0 of 1 nodes are ready, and 1 are requested",
    ),
    row(
        Invariant::PoolConditions,
        "a pool with autoscaling does not report it",
        |it| {
            it.node_pools[0]["spec"] =
                json!({ "autoScaling": { "min": 1 }, "management": { "autoRepair": true } });
        },
        "NodePool workers: AutoscalingEnabled is False, not True (R: M)",
    ),
    row(
        Invariant::PoolConditions,
        "a pool with nodes is not repaired",
        |it| set_condition(&mut it.node_pools[0], "AutorepairEnabled", "False"),
        "NodePool workers: AutorepairEnabled is False, not True (R: M)",
    ),
];

fn said(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    let found = findings(&healthy());
    assert!(found.is_empty(), "{:#?}", said(&found));
}

#[test]
fn repair_of_a_pool_without_nodes_may_have_to_wait() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    set_condition(&mut observed.node_pools[0], "AutorepairEnabled", "False");
    let found = findings(&observed);
    let mut of_pools = found
        .iter()
        .filter(|it| it.invariant == Invariant::PoolConditions);
    assert!(of_pools.next().is_none(), "{:#?}", said(&found));
}

/// Check T23.
#[test]
fn broken_objects_are_found() {
    for row in ROWS {
        let mut observed = healthy();
        (row.broken)(&mut observed);
        let found = findings(&observed);
        let expected = format!("{:?}: {}", row.invariant, row.reported);
        assert!(
            said(&found).contains(&expected),
            "{}: {:#?}",
            row.name,
            said(&found)
        );
        let others = found.iter().filter(|it| it.invariant != row.invariant);
        assert_eq!(others.count(), 0, "{}: {:#?}", row.name, said(&found));
    }
}

#[test]
fn every_invariant_has_a_broken_object() {
    for invariant in Invariant::ALL {
        let has_row = ROWS.iter().any(|row| row.invariant == invariant);
        assert!(has_row, "{invariant:?}");
    }
}

#[test]
fn what_was_not_read_is_not_judged() {
    assert!(findings(&Observed::default()).is_empty());
}

#[test]
fn exceptions_cover_pods_and_templates() {
    let mut observed = healthy();
    observed.objects[0] = deployment("csi-snapshot-controller", &json!({}));
    without(container(&mut observed), "securityContext");
    *the_pod(&mut observed) = pod("csi-snapshot-controller");
    without(
        &mut the_pod(&mut observed)["spec"]["containers"][0],
        "securityContext",
    );
    let found = findings(&observed);
    assert!(found.is_empty(), "{:#?}", said(&found));
}

#[test]
fn virtual_machines_are_no_part_of_the_control_plane() {
    let mut machine =
        json!({ "kind": "Pod", "metadata": { "name": "virt-launcher-1" }, "spec": {} });
    machine["metadata"]["labels"] = json!({ "kubevirt.io": "virt-launcher", "name": "worker-1" });
    let mut observed = healthy();
    observed.objects.push(machine);
    assert!(findings(&observed).is_empty());
}

#[test]
fn restarts_of_replicas_that_lost_their_lease_are_forgiven() {
    let mut observed = healthy();
    the_pod(&mut observed)["status"]["containerStatuses"][0]["restartCount"] = json!(1);
    let key = ("kube-scheduler-1".to_owned(), "main".to_owned());
    for (log, forgiven) in [("E1 leaderelection lost", true), ("panic", false)] {
        observed.previous_logs.insert(key.clone(), log.to_owned());
        assert_eq!(findings(&observed).is_empty(), forgiven, "{log}");
    }
}

/// Nodes take a while to join, and conditions about them to follow.
#[test]
fn workers_are_judged_once_they_have_settled() {
    let mut observed = healthy();
    observed.has_settled = false;
    observed.guest.as_mut().unwrap().nodes.clear();
    set_condition(&mut observed.node_pools[0], "AllNodesHealthy", "False");
    let kinds = [
        "ClusterVersionAvailable",
        "ClusterVersionSucceeding",
        "ControlPlaneConnectionAvailable",
        "DataPlaneConnectionAvailable",
    ];
    for kind in kinds {
        set_condition(cluster(&mut observed), kind, "False");
    }
    assert!(findings(&observed).is_empty());
    observed.has_settled = true;
    assert_eq!(findings(&observed).len(), kinds.len() + 2);
    observed.has_settled = false;
    set_condition(cluster(&mut observed), "EtcdAvailable", "False");
    assert_eq!(findings(&observed).len(), 1);
}

/// Where no ClusterVersion is written, the conditions follow the components, which do not need workers.
#[test]
fn versions_of_components_do_not_need_workers() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    observed.guest.as_mut().unwrap().nodes.clear();
    let conditions = cluster(&mut observed)["status"]["conditions"].as_array_mut();
    for condition in conditions.unwrap() {
        let kind = condition["type"].as_str().unwrap().to_owned();
        if kind.starts_with("ClusterVersion") {
            condition["reason"] = json!("FromControlPlaneComponents");
        }
        if kind.ends_with("ConnectionAvailable") {
            condition["status"] = json!("Unknown");
        }
    }
    assert!(findings(&observed).is_empty());
    set_condition(cluster(&mut observed), "ClusterVersionAvailable", "False");
    assert_eq!(findings(&observed).len(), 1);
}

/// Conditions that no controller writes yet may be missing, and must be right once they are there.
#[test]
fn conditions_that_are_not_written_yet_may_be_missing() {
    let mut observed = healthy();
    let of = |observed: &mut Observed| {
        let conditions = cluster(observed)["status"]["conditions"].as_array_mut();
        let all = conditions.unwrap().clone();
        let rest = all
            .into_iter()
            .filter(|it| it["type"] != "ValidOIDCConfiguration");
        cluster(observed)["status"]["conditions"] = rest.collect();
    };
    set_condition(cluster(&mut observed), "ValidOIDCConfiguration", "False");
    assert_eq!(findings(&observed).len(), 1);
    of(&mut observed);
    assert!(findings(&observed).is_empty());
}

/// Without workers, no operator of the release runs in the cluster, and the tunnel has no end.
#[test]
fn clusters_without_workers_have_other_conditions() {
    let mut observed = healthy();
    observed.node_pools[0]["spec"]["replicas"] = json!(0);
    observed.guest.as_mut().unwrap().nodes.clear();
    for (kind, status) in [
        ("ClusterVersionAvailable", "False"),
        ("ClusterVersionSucceeding", "False"),
        ("ClusterVersionProgressing", "True"),
        ("ControlPlaneConnectionAvailable", "Unknown"),
        ("DataPlaneConnectionAvailable", "Unknown"),
    ] {
        let found = said(&findings(&observed));
        assert!(
            found.iter().any(|it| it.contains(kind)),
            "{kind}: {found:#?}"
        );
        set_condition(cluster(&mut observed), kind, status);
    }
    assert!(findings(&observed).is_empty());
}

#[test]
fn metrics_of_a_deleted_cluster_are_left() {
    let pools = ["workers".to_owned()];
    let left = |name: &str| metrics_left(&metrics(), "clusters", name, &pools).len();
    assert_eq!((left("one"), left("two")), (6, 2));
    assert!(metrics_left(&metrics(), "others", "one", &pools).is_empty());
    let none = metrics_left(
        "hypershift_nodepools{platform=\"AWS\"} 1",
        "clusters",
        "one",
        &pools,
    );
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn attempts_change_what_is_there() {
    let configurations = [
        json!({}),
        json!({ "spec": { "audit": { "profile": "None" }, "disableAllDefaultSources": true } }),
        json!({ "status": { "clusterNetworkMTU": 1300 } }),
    ];
    for change in Change::ALL {
        for live in &configurations {
            let patch = change.patch(live);
            let (part, fields) = patch.as_object().unwrap().iter().next().unwrap();
            let field = fields.as_object().unwrap().keys().next().unwrap();
            assert_ne!(patch[part][field], live[part][field], "{change:?} {live}");
        }
    }
}
