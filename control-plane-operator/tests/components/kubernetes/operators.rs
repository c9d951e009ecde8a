//! How inputs change hosted-cluster-config-operator, cluster-version-operator and monitors.

use control_plane_component::settings::MonitoringStack;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use super::{ETCD, platform};
use crate::openshift_apis::{Row, check, evaluate};

const CONFIG_OPERATOR: &str = "hosted-cluster-config-operator";
const CONFIG_PODS: &str = "Deployment/hosted-cluster-config-operator";
const VERSION: &str = "cluster-version-operator";
const VERSION_PODS: &str = "Deployment/cluster-version-operator";
const PROMETHEUS: &str =
    "https://thanos-querier.openshift-monitoring.svc:9092?namespace=hcp-namespace";

/// Virtual machines on another cluster.
fn external() -> [(&'static str, Value); 2] {
    let credentials = json!({
        "infraNamespace": "machines",
        "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
    });
    [
        ("/spec/platform/type", json!("KubeVirt")),
        (
            "/spec/platform/kubevirt",
            json!({ "generateID": "a", "credentials": credentials }),
        ),
    ]
}

#[test]
pub(crate) fn config_operator_follows_the_platform() {
    let command = container!("hosted-cluster-config-operator", "/command");
    let controllers = format!("{command}/--controllers");
    let kubeconfig = format!("{command}/--kubevirt-infra-kubeconfig");
    let volume = "/spec/template/spec/volumes/kubevirt-infra-kubeconfig/secret/secretName";
    let mount = container!(
        "hosted-cluster-config-operator",
        "/volumeMounts/kubevirt-infra-kubeconfig/mountPath"
    );
    let directory = "/etc/kubernetes/kubevirt-infra-kubeconfig";
    let role = "Role/hosted-cluster-config-operator";
    let machines = "/rules/-/resources";
    let ibm = "--controllers=controller-manager-ca,resources,inplaceupgrader,drainer,hcpstatus";
    let (external, kubevirt) = (external(), platform("KubeVirt"));
    let rows: [Row<'_>; 10] = [
        (
            "controllers on IBM Cloud",
            &platform("IBMCloud"),
            CONFIG_PODS,
            &controllers,
            json!(ibm),
        ),
        (
            "all controllers elsewhere",
            &[],
            CONFIG_PODS,
            &controllers,
            Value::Null,
        ),
        (
            "machines elsewhere",
            &external,
            CONFIG_PODS,
            &kubeconfig,
            json!(format!(
                "--kubevirt-infra-kubeconfig={directory}/kubeconfig"
            )),
        ),
        (
            "Secret for machines elsewhere",
            &external,
            CONFIG_PODS,
            volume,
            json!("kubevirt-infra-credentials"),
        ),
        (
            "directory for machines elsewhere",
            &external,
            CONFIG_PODS,
            mount,
            json!(directory),
        ),
        (
            "machines in the same cluster",
            &kubevirt,
            CONFIG_PODS,
            &kubeconfig,
            Value::Null,
        ),
        (
            "no Secret for machines in the same cluster",
            &kubevirt,
            CONFIG_PODS,
            volume,
            Value::Null,
        ),
        (
            "Role on KubeVirt",
            &kubevirt,
            role,
            machines,
            json!(["virtualmachines"]),
        ),
        ("Role elsewhere", &[], role, machines, json!(["events"])),
        (
            "routes are always readable",
            &[],
            role,
            "/rules/9/resources",
            json!(["routes"]),
        ),
    ];
    check(CONFIG_OPERATOR, &rows);
}

#[test]
pub(crate) fn config_operator_waits_for_kinds_of_the_capabilities() {
    let last = "/spec/template/spec/initContainers/availability-prober/command/-";
    let without = |capability: &str| [("/spec/capabilities", json!({ "disabled": [capability] }))];
    let ingress = "--required-api=operator.openshift.io,v1,IngressController";
    let rows: [Row<'_>; 3] = [
        ("with ingress", &[], CONFIG_PODS, last, json!(ingress)),
        (
            "with ingress, without another",
            &without("ImageRegistry"),
            CONFIG_PODS,
            last,
            json!(ingress),
        ),
        (
            "without ingress",
            &without("Ingress"),
            CONFIG_PODS,
            last,
            json!("--required-api=operator.openshift.io,v1,ClusterCSIDriver"),
        ),
    ];
    check(CONFIG_OPERATOR, &rows);
}

#[test]
pub(crate) fn version_operator_runs_releases_by_digest() {
    let payload = "/spec/template/spec/initContainers/prepare-payload/image";
    let release = container!("cluster-version-operator", "/env/RELEASE_IMAGE/value");
    let pinned = format!("registry.example.com/release@{}", digest());
    evaluate(
        VERSION,
        |input| input.release.digest = digest(),
        &[
            (
                "payload of the control plane",
                &[],
                VERSION_PODS,
                payload,
                json!(pinned),
            ),
            (
                "release of the cluster",
                &[],
                VERSION_PODS,
                release,
                json!(pinned),
            ),
        ],
    );
    let tagged = json!("registry.example.com/release:4.16.10-x86_64");
    let service = container!("cluster-version-operator", "/args/--update-service");
    let own = [(
        "/spec/updateService",
        json!("https://updates.example.com/graph"),
    )];
    check(
        VERSION,
        &[
            ("release from a file", &[], VERSION_PODS, release, tagged),
            (
                "update service",
                &own,
                VERSION_PODS,
                service,
                json!("--update-service=https://updates.example.com/graph"),
            ),
            (
                "default update service",
                &[],
                VERSION_PODS,
                service,
                Value::Null,
            ),
        ],
    );
}

fn digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

fn requested(input: &mut Input) {
    input.settings.version_metrics = true;
}

fn rhobs(input: &mut Input) {
    input.settings.monitoring = MonitoringStack::Rhobs;
    input
        .settings
        .served_groups
        .push("monitoring.rhobs".to_owned());
}

#[test]
pub(crate) fn version_operator_reads_metrics_on_request() {
    let flag =
        |name: &str| format!("/spec/template/spec/containers/cluster-version-operator/args/{name}");
    let (url, ca, dns) = (
        flag("--metrics-url"),
        flag("--metrics-ca-bundle-file"),
        flag("--use-dns-for-services"),
    );
    let label =
        "/spec/template/metadata/labels/hypershift.openshift.io~1need-metrics-server-access";
    let annotation =
        "/spec/template/metadata/annotations/hypershift.openshift.io~1need-metrics-server-access";
    let token = "/spec/template/spec/automountServiceAccountToken";
    let account = "/spec/template/spec/serviceAccountName";
    let authority =
        "--metrics-ca-bundle-file=/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt";
    evaluate(
        VERSION,
        requested,
        &[
            (
                "URL",
                &[],
                VERSION_PODS,
                &url,
                json!(format!("--metrics-url={PROMETHEUS}")),
            ),
            ("authority", &[], VERSION_PODS, &ca, json!(authority)),
            (
                "names of Services",
                &[],
                VERSION_PODS,
                &dns,
                json!("--use-dns-for-services=true"),
            ),
            ("label", &[], VERSION_PODS, label, json!("true")),
            ("annotation", &[], VERSION_PODS, annotation, json!("true")),
            ("token", &[], VERSION_PODS, token, json!(true)),
            ("account", &[], VERSION_PODS, account, json!(VERSION)),
            (
                "account exists",
                &[],
                "ServiceAccount/cluster-version-operator",
                "/kind",
                json!("ServiceAccount"),
            ),
            (
                "Role",
                &[],
                "Role/cluster-version-operator",
                "/rules/0/apiGroups",
                json!(["metrics.k8s.io"]),
            ),
            (
                "RoleBinding",
                &[],
                "RoleBinding/cluster-version-operator",
                "/subjects/0/namespace",
                json!("hcp-namespace"),
            ),
        ],
    );
    let own = |input: &mut Input| {
        requested(input);
        input.settings.version_metrics_url = Some("https://prometheus.example.com".to_owned());
    };
    let rows: [Row<'_>; 1] = [(
        "own URL",
        &[],
        VERSION_PODS,
        &url,
        json!("--metrics-url=https://prometheus.example.com"),
    )];
    evaluate(VERSION, own, &rows);
    let tags = json!([{ "key": "red-hat-managed", "value": "true" }]);
    let managed = [("/spec/platform/aws/resourceTags", tags)];
    let elsewhere = [managed.to_vec(), platform("None").to_vec()].concat();
    let expected = "--metrics-url=http://hypershift-monitoring-stack-prometheus.openshift-observability-operator.svc:9090";
    evaluate(
        VERSION,
        rhobs,
        &[
            (
                "managed cluster",
                &managed,
                VERSION_PODS,
                &url,
                json!(expected),
            ),
            (
                "managed cluster elsewhere",
                &elsewhere,
                VERSION_PODS,
                &url,
                Value::Null,
            ),
            ("another cluster", &[], VERSION_PODS, &url, Value::Null),
        ],
    );
    check(
        VERSION,
        &[
            ("no URL", &managed, VERSION_PODS, &url, Value::Null),
            ("no label", &[], VERSION_PODS, label, Value::Null),
            ("no token", &[], VERSION_PODS, token, json!(false)),
            (
                "no account",
                &[],
                "ServiceAccount/cluster-version-operator",
                "/kind",
                Value::Null,
            ),
        ],
    );
}

#[test]
pub(crate) fn monitors_are_in_the_group_of_their_prometheus() {
    let (monitor, rules) = ("ServiceMonitor/etcd", "PrometheusRule/recording-rules");
    let (version, pods) = ("/apiVersion", "PodMonitor/hosted-cluster-config-operator");
    let network = "cluster-network-operator";
    let variable = container!("cluster-network-operator", "/env/RHOBS_MONITORING/value");
    let network_pods = "Deployment/cluster-network-operator";
    for (component, id, path, on, off) in [
        (
            ETCD,
            monitor,
            version,
            json!("monitoring.rhobs/v1"),
            json!("monitoring.coreos.com/v1"),
        ),
        (
            super::SERVER,
            rules,
            version,
            json!("monitoring.rhobs/v1"),
            json!("monitoring.coreos.com/v1"),
        ),
        (
            CONFIG_OPERATOR,
            pods,
            version,
            json!("monitoring.rhobs/v1"),
            json!("monitoring.coreos.com/v1"),
        ),
        (network, network_pods, variable, json!("1"), Value::Null),
    ] {
        evaluate(
            component,
            rhobs,
            &[("observability operator", &[], id, path, on)],
        );
        check(component, &[("platform", &[], id, path, off)]);
    }
    let unserved = |input: &mut Input| input.settings.monitoring = MonitoringStack::Rhobs;
    evaluate(
        ETCD,
        unserved,
        &[("not served", &[], monitor, version, Value::Null)],
    );
}
