//! Components in configurations that the reference facts do not cover.

use api::group::{self, CapiTypes};
use clap::Parser as _;
use control_plane_operator::args::Cli;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::input;

/// Returns the input with changes: `path` is a JSON pointer into the hosted control plane.
pub(crate) fn changed(changes: &[(&str, Value)]) -> Input {
    let mut input = input::base();
    let mut hcp = json!(input.hosted_control_plane);
    for (path, value) in changes {
        let (parent, field) = path.rsplit_once('/').unwrap();
        hcp.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    input.hosted_control_plane = serde_json::from_value(hcp).unwrap();
    input
}

/// Returns the input of a management cluster with private types.
fn private() -> Input {
    let mut input = input::base();
    input.settings.capi_types = CapiTypes::Private;
    input.settings.capi_proxy_image = Some("images.example.com/proxy".to_owned());
    input
}

/// Returns an object of a component, or null.
pub(crate) fn object(input: &Input, component: &str, kind: &str, name: &str) -> Value {
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    let files = input.component(component).unwrap();
    let mut objects = files.into_iter().map(|file| file.object);
    let found = objects.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_default()
}

fn deployment(input: &Input, name: &str) -> Value {
    object(input, name, "Deployment", name)
}

/// Returns command and arguments of a workload's first container.
fn line(workload: &Value) -> Vec<String> {
    let container = &workload["spec"]["template"]["spec"]["containers"][0];
    let words = ["command", "args"].map(|field| container[field].as_array());
    let words = words.into_iter().flatten().flatten();
    words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect()
}

fn assert_flag(input: &Input, component: &str, flag: &str) {
    let line = line(&deployment(input, component));
    assert!(line.iter().any(|word| word == flag), "{flag}: {line:#?}");
}

fn groups(input: &Input, component: &str) -> Vec<String> {
    let role = object(input, component, "Role", component);
    let rules = role["rules"].as_array().unwrap().iter();
    let groups = rules.flat_map(|rule| rule["apiGroups"].as_array().unwrap());
    groups
        .map(|group| group.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn roles_grant_only_the_groups_in_use() {
    for component in [
        "cluster-autoscaler",
        "hosted-cluster-config-operator",
        "machine-approver",
    ] {
        for (input, own, other) in [
            (input::base(), CapiTypes::Standard, CapiTypes::Private),
            (private(), CapiTypes::Private, CapiTypes::Standard),
        ] {
            let named = groups(&input, component);
            assert!(named.contains(&group::core(own)), "{component}: {named:?}");
            let foreign = group::served(other);
            let is_foreign = |group: &String| foreign.contains(group) || group.starts_with('<');
            assert!(!named.iter().any(is_foreign), "{component}: {named:?}");
        }
    }
}

#[test]
fn cluster_api_clients_use_the_proxy() {
    for (component, flag) in [
        ("cluster-autoscaler", "--cloud-config"),
        ("machine-approver", "--management-cluster-kubeconfig"),
    ] {
        assert_flag(
            &private(),
            component,
            &format!("{flag}=/etc/kube-apiserver-proxy/kubeconfig"),
        );
        let with = deployment(&private(), component);
        let first = &with["spec"]["template"]["spec"]["initContainers"][0];
        assert_eq!(first["name"], "kube-apiserver-proxy", "{component}");
        let without = line(&deployment(&input::base(), component));
        assert!(
            !without.iter().any(|word| word.starts_with(flag)),
            "{without:?}"
        );
    }
}

/// Check F06: the proxy's alerts aggregate by namespace and pod, labels that a `PodMonitor` adds.
#[test]
fn control_plane_proxies_are_monitored() {
    let monitor = |input: &Input| {
        let component = "hosted-cluster-config-operator";
        object(input, component, "PodMonitor", "capi-proxy")
    };
    assert_eq!(monitor(&input::base()), Value::Null);
    let monitor = monitor(&private());
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    for component in ["cluster-autoscaler", "machine-approver"] {
        let deployment = deployment(&private(), component);
        let proxy = &deployment["spec"]["template"]["spec"]["initContainers"][0];
        let mut ports = proxy["ports"].as_array().into_iter().flatten();
        assert!(
            ports.any(|port| port["name"] == endpoint["port"]),
            "{proxy:#}"
        );
    }
    assert_eq!(monitor["spec"]["selector"], json!({}), "any pod");
    let namespaces = &monitor["spec"]["namespaceSelector"]["matchNames"];
    assert_eq!(namespaces, &json!([monitor["metadata"]["namespace"]]));
    let alerts = include_str!("../../../manifests/alerts/capi-proxy.yaml");
    let by = alerts.matches("sum by (").count();
    assert_eq!(by, alerts.matches("sum by (namespace, pod, ").count());
}

#[test]
fn config_operator_gets_the_capi_types() {
    let component = "hosted-cluster-config-operator";
    assert_flag(&private(), component, "--capi-types=private");
    let line = line(&deployment(&input::base(), component));
    assert!(
        !line.iter().any(|word| word.contains("capi-types")),
        "{line:?}"
    );
}

#[test]
fn single_replica_policy_is_respected() {
    let single = changed(&[("/spec/controllerAvailabilityPolicy", json!("SingleReplica"))]);
    for component in [
        "ignition-server",
        "ignition-server-proxy",
        "konnectivity-agent",
        "kube-controller-manager",
        "kube-scheduler",
        "router",
    ] {
        let workload = deployment(&single, component);
        assert_eq!(workload["spec"]["replicas"], 1, "{component}");
    }
    let budget = object(&single, "router", "PodDisruptionBudget", "router");
    assert_eq!(budget["spec"]["minAvailable"], 1);
}

#[test]
fn ibm_cloud_has_a_longer_node_grace_period() {
    let ibm = changed(&[("/spec/platform/type", json!("IBMCloud"))]);
    let manager = "kube-controller-manager";
    assert_flag(&ibm, manager, "--node-monitor-grace-period=55s");
    let name = "ignition-server-serving-cert";
    let server = deployment(&ibm, "ignition-server");
    let volumes = &server["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["secret"]["secretName"], name);
}

#[test]
fn node_cidrs_are_allocated_if_enabled() {
    let own = changed(&[
        ("/spec/networking/networkType", json!("Other")),
        ("/spec/networking/allocateNodeCIDRs", json!("Enabled")),
        (
            "/spec/networking/serviceNetwork",
            json!([{ "cidr": "172.31.0.0/16" }]),
        ),
    ]);
    let manager = "kube-controller-manager";
    assert_flag(&own, manager, "--allocate-node-cidrs=true");
    assert_flag(&own, manager, "--service-cluster-ip-range=172.31.0.0/16");
}

#[test]
fn profiling_is_disabled_by_annotation() {
    let name = "hypershift.openshift.io/disable-profiling";
    let silent = changed(&[("/metadata/annotations", json!({ name: "kube-scheduler" }))]);
    assert_flag(&silent, "kube-scheduler", "--profiling=false");
    let manager = line(&deployment(&silent, "kube-controller-manager"));
    assert!(!manager.iter().any(|word| word == "--profiling=false"));
}

#[test]
fn autoscaler_gets_kubeconfig_and_options() {
    let input = changed(&[
        ("/spec/infraID", json!("dev-x7k2p")),
        ("/spec/autoscaling", json!({ "maxNodesTotal": 9 })),
    ]);
    assert_flag(&input, "cluster-autoscaler", "--max-nodes-total=9");
    let workload = deployment(&input, "cluster-autoscaler");
    let volumes = &workload["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["secret"]["secretName"], "dev-x7k2p-kubeconfig");
}

#[test]
fn ignition_can_be_published_by_node_port() {
    let published = json!([{ "service": "Ignition", "servicePublishingStrategy": {
        "type": "NodePort", "nodePort": { "address": "192.0.2.7", "port": 30007 },
    } }]);
    let input = changed(&[("/spec/services", published)]);
    let name = "ignition-server-proxy";
    let service = object(&input, name, "Service", name);
    assert_eq!(service["spec"]["type"], "NodePort");
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 30007);
    let route = object(&input, "ignition-server", "Route", "ignition-server");
    assert_eq!(route, Value::Null);
}

#[test]
fn router_config_routes_by_sni_without_injection() {
    let mut input = input::base();
    let route = |name: &str, host: &str, namespace: &str| {
        json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": { "name": name, "labels": {
                "hypershift.openshift.io/hosted-control-plane": namespace,
            } },
            "spec": { "host": host, "to": { "kind": "Service", "name": "kube-apiserver" } },
        })
    };
    let own = "hcp-namespace";
    input
        .objects
        .insert(route("kube-apiserver", "api.example.com", own));
    input
        .objects
        .insert(route("foreign", "foreign.example.com", "other"));
    input
        .objects
        .insert(route("evil", "a.example.com }\n  bind :1", own));
    input.objects.insert(json!({
        "kind": "Service", "metadata": { "name": "kube-apiserver" },
        "spec": { "clusterIP": "198.51.100.9", "ports": [{ "port": 6443 }] },
    }));
    let config = object(&input, "router", "ConfigMap", "router");
    let config = config["data"]["haproxy.cfg"].as_str().unwrap();
    let (_, cases) = config.split_once("req_ssl_hello_type 1 }\n").unwrap();
    assert_eq!(
        cases,
        "  use_backend kube-apiserver if { req_ssl_sni -i api.example.com }\n\n\
         backend kube-apiserver\n  server kube-apiserver 198.51.100.9:6443\n"
    );
}

#[test]
fn konnectivity_agent_serves_cluster_ips() {
    let mut input = input::base();
    input.objects.insert(json!({
        "kind": "Service", "metadata": { "name": "openshift-apiserver" },
        "spec": { "clusterIP": "198.51.100.3" },
    }));
    let agent = "konnectivity-agent";
    assert_flag(&input, agent, "ipv4=198.51.100.3&ipv4=&ipv4=");
}

/// Returns an init container.
fn init<'a>(workload: &'a Value, name: &str) -> &'a Value {
    let init = workload["spec"]["template"]["spec"]["initContainers"].as_array();
    let mut init = init.unwrap().iter();
    init.find(|container| container["name"] == name).unwrap()
}

#[test]
fn payload_omits_manifests_managed_elsewhere() {
    let operator = "cluster-version-operator";
    let storage = "0000_50_cluster-storage-operator_10_deployment-ibm-cloud-managed.yaml";
    let login = "0000_50_console-operator_01-oauth.yaml";
    let cloud = json!("IBMCloud");
    let oidc = json!({ "authentication": { "type": "OIDC" }, "featureGate": { "featureSet": "TechPreviewNoUpgrade" } });
    for (change, omits_storage, objects, omits_login, set) in [
        (
            ("/spec/platform/type", json!("AWS")),
            true,
            14,
            false,
            "Default",
        ),
        (("/spec/platform/type", cloud), false, 5, false, "Default"),
        (
            ("/spec/configuration", oidc),
            true,
            14,
            true,
            "TechPreviewNoUpgrade",
        ),
    ] {
        let workload = deployment(&changed(&[change]), operator);
        let script = init(&workload, "prepare-payload")["args"][1]
            .as_str()
            .unwrap();
        assert_eq!(script.contains(storage), omits_storage);
        assert_eq!(script.contains(login), omits_login);
        assert_eq!(
            script.matches("release.openshift.io/delete").count(),
            objects
        );
        assert!(
            script.contains(&format!("\nfeature_set={set}\n")),
            "{script}"
        );
    }
}

#[test]
fn cluster_version_has_the_configured_fields() {
    let input = changed(&[
        (
            "/spec/clusterID",
            json!("7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11"),
        ),
        ("/spec/channel", json!("stable-4.20")),
        (
            "/spec/updateService",
            json!("https://updates.example.com/graph"),
        ),
        (
            "/spec/capabilities",
            json!({ "enabled": ["baremetal"], "disabled": ["ImageRegistry", "Console"] }),
        ),
    ]);
    let workload = deployment(&input, "cluster-version-operator");
    let variables = init(&workload, "bootstrap")["env"].as_array().unwrap();
    let text = variables
        .iter()
        .find(|variable| variable["name"] == "CLUSTER_VERSION_JSON")
        .unwrap();
    let version: Value = serde_json::from_str(text["value"].as_str().unwrap()).unwrap();
    let spec = &version["spec"];
    assert_eq!(spec["clusterID"], "7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11");
    assert_eq!(spec["channel"], "stable-4.20");
    assert_eq!(spec["upstream"], "https://updates.example.com/graph");
    let enabled = spec["capabilities"]["additionalEnabledCapabilities"]
        .as_array()
        .unwrap();
    assert!(enabled.contains(&json!("baremetal")) && !enabled.contains(&json!("Console")));
    assert_eq!(enabled.len(), 15);
}

/// Returns the command line of a container that runs this binary.
fn own_line(container: &Value) -> Option<Vec<String>> {
    let words = ["command", "args"].map(|field| container[field].as_array());
    let words = words.into_iter().flatten().flatten();
    let mut line: Vec<_> = words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    // The pod sets it as an environment variable.
    let namespaced = ["endpoint-resolver", "ignition-server", "metrics-proxy"];
    if line
        .get(1)
        .is_some_and(|name| namespaced.contains(&name.as_str()))
    {
        line.push("--namespace=hcp-namespace".to_owned());
    }
    line.first()
        .is_some_and(|program| program.ends_with("control-plane-operator"))
        .then_some(line)
}

#[test]
fn rendered_command_lines_are_accepted() {
    for input in [input::base(), private()] {
        for (component, started) in [
            ("aws-cloud-controller-manager", 1),
            ("aws-node-termination-handler", 2),
            ("catalog-operator", 2),
            ("cloud-credential-operator", 1),
            ("cluster-autoscaler", 1),
            ("cluster-image-registry-operator", 2),
            ("cluster-network-operator", 4),
            ("cluster-policy-controller", 1),
            ("cluster-storage-operator", 1),
            ("cluster-version-operator", 1),
            ("csi-snapshot-controller-operator", 1),
            ("dns-operator", 1),
            ("endpoint-resolver", 1),
            ("hosted-cluster-config-operator", 2),
            ("ignition-server", 1),
            ("ingress-operator", 3),
            ("kube-controller-manager", 1),
            ("kube-scheduler", 1),
            ("machine-approver", 1),
            ("metrics-proxy", 1),
            ("oauth-openshift", 3),
            ("olm-operator", 2),
            ("openshift-apiserver", 2),
            ("openshift-oauth-apiserver", 3),
            ("packageserver", 2),
        ] {
            let workload = deployment(&input, component);
            let pod = &workload["spec"]["template"]["spec"];
            let containers = ["initContainers", "containers"].map(|field| pod[field].as_array());
            let containers = containers.into_iter().flatten().flatten();
            let lines: Vec<_> = containers.filter_map(own_line).collect();
            assert_eq!(lines.len(), started, "{component}");
            for line in lines {
                if let Err(error) = Cli::try_parse_from(&line) {
                    panic!("{component}: {line:?}: {error}");
                }
            }
        }
    }
}

/// Returns the relabel rules of a monitor.
fn rules(input: &Input, component: &str) -> Vec<Value> {
    let monitor = object(input, component, "ServiceMonitor", component);
    let rules = &monitor["spec"]["endpoints"][0]["metricRelabelings"];
    rules.as_array().unwrap().clone()
}

#[test]
fn series_have_the_cluster_id_label() {
    let id = "7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11";
    let input = changed(&[("/spec/clusterID", json!(id))]);
    for component in ["kube-apiserver", "etcd", "kube-scheduler"] {
        let mut labels = rules(&input, component).into_iter();
        let label = labels.find(|rule| rule["targetLabel"] == "_id").unwrap();
        assert_eq!(label["replacement"], id, "{component}");
    }
    let recorded = object(
        &input,
        "kube-apiserver",
        "PrometheusRule",
        "recording-rules",
    );
    let rules = recorded["spec"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["labels"]["_id"] == id));
    assert!(!recorded.to_string().contains("\"_id\":\"\""), "{recorded}");
}

#[test]
fn metrics_set_selects_the_kept_series() {
    use api::hypershift::v1beta1::monitoring::MetricsSet;
    let kept = |input: &Input| {
        let mut rules = rules(input, "kube-apiserver").into_iter();
        rules.find_map(|rule| (rule["action"] == "keep").then(|| rule["regex"].clone()))
    };
    let mut input = input::base();
    assert_eq!(
        kept(&input),
        None,
        "without a metrics set, all series are kept"
    );
    input.settings.metrics_set = Some(MetricsSet::Telemetry);
    assert!(
        kept(&input)
            .unwrap()
            .as_str()
            .unwrap()
            .contains("apiserver_request_total")
    );
    // The cluster's own metrics set takes precedence.
    let mut own = changed(&[("/spec/monitoring", json!({ "metricsSet": "All" }))]);
    own.settings.metrics_set = Some(MetricsSet::Telemetry);
    assert_eq!(kept(&own), None);
    input.settings.metrics_set = Some(MetricsSet::Sre);
    assert_eq!(kept(&input), None, "nothing is chosen yet");
    input.objects.insert(json!({
        "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" },
        "data": { "config": "kubeAPIServer:\n- action: keep\n  regex: up\n  sourceLabels: [__name__]\n" },
    }));
    assert_eq!(kept(&input), Some(json!("up")));
    let labels = rules(&input, "kube-apiserver");
    assert!(
        labels.iter().any(|rule| rule["targetLabel"] == "_id"),
        "{labels:?}"
    );
}
