//! Clusters of which one invariant does not hold.

use serde_json::{Value, json};

use super::healthy::*;
use crate::*;

/// Breaks a cluster.
pub(super) type Break = fn(&mut Observed);

/// A cluster that breaks an invariant, and what is reported of it.
pub(super) struct Row {
    pub(super) invariant: Invariant,
    pub(super) name: &'static str,
    pub(super) broken: Break,
    pub(super) reported: &'static str,
}

pub(super) const fn row(
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
pub(super) fn the_pod(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[2]
}

/// The main container of the first Deployment.
pub(super) fn container(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[0]["spec"]["template"]["spec"]["containers"][0]
}

/// The template of the first Deployment.
pub(super) fn template(observed: &mut Observed) -> &mut Value {
    &mut observed.objects[0]["spec"]["template"]
}

pub(super) fn cluster(observed: &mut Observed) -> &mut Value {
    observed.hosted_cluster.as_mut().unwrap()
}

pub(super) fn set_condition(object: &mut Value, kind: &str, status: &str) {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    let found = conditions.iter_mut().find(|it| it["type"] == kind);
    found.unwrap()["status"] = json!(status);
}

pub(super) fn without(object: &mut Value, key: &str) {
    object.as_object_mut().unwrap().remove(key);
}

pub(super) const ROWS: [Row; 50] = [
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
        |it| {
            cluster(it)["spec"]["secretEncryption"] = json!({ "kms": { "aws": {} } });
            set_condition(cluster(it), "ValidAWSKMSConfig", "False");
        },
        "HostedCluster one: ValidAWSKMSConfig is False, not True (R: M)",
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
        Invariant::ClusterConditions,
        "a private cluster on Azure has all parts of its link",
        |it| {
            *cluster(it) = private_on_azure();
            set_condition(cluster(it), "AzurePrivateDNSAvailable", "False");
        },
        "HostedCluster one: AzurePrivateDNSAvailable is False, not True (R: M)",
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
        Invariant::ClusterConditions,
        "a cluster with AutoNode does not report it",
        |it| cluster(it)["spec"]["autoNode"] = json!({ "provisionerConfig": {} }),
        "HostedCluster one: AutoNodeEnabled is missing, not True",
    ),
    row(
        Invariant::PoolConditions,
        "a pool with nodes is not repaired",
        |it| set_condition(&mut it.node_pools[0], "AutorepairEnabled", "False"),
        "NodePool workers: AutorepairEnabled is False, not True (R: M)",
    ),
];
