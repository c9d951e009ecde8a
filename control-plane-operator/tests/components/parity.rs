//! Compares components with the reference facts; intended differences are listed with a reason.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use control_plane_component::Component;
use control_plane_operator::components;

use crate::facts::{self, Embedded, Facts, SCRIPT};
use crate::input;

/// Registry of the described release, replaced by an example registry.
const REAL_RELEASE: &str = concat!("quay", ".io/openshift-release-dev/ocp-release");
const RELEASE: &str = "registry.example.com/release";

/// Path suffixes of default and empty values.
const DEFAULTS: [(&str, &str); 33] = [
    ("volumeClaimTemplates[0].apiVersion", "\"v1\""),
    ("volumeClaimTemplates[0].kind", "\"PersistentVolumeClaim\""),
    (".protocol", "\"TCP\""),
    (".successThreshold", "1"),
    ("Probe.failureThreshold", "3"),
    ("Probe.periodSeconds", "10"),
    ("Probe.timeoutSeconds", "1"),
    (".scheme", "\"HTTP\""),
    (".schedulerName", "\"default-scheduler\""),
    ("template.spec.restartPolicy", "\"Always\""),
    ("spec.revisionHistoryLimit", "10"),
    (".imagePullPolicy", "\"IfNotPresent\""),
    (".fieldRef.apiVersion", "\"v1\""),
    (".resources", "{}"),
    (".status", "{}"),
    (".annotations", "{}"),
    (".configMap.defaultMode", "420"),
    ("rollingUpdate.partition", "0"),
    (" spec.strategy", "{}"),
    ("strategy.type", "\"RollingUpdate\""),
    ("rollingUpdate.maxSurge", "\"25%\""),
    ("rollingUpdate.maxUnavailable", "\"25%\""),
    (" spec.type", "\"ClusterIP\""),
    (" spec", "{}"),
    (".operator", "\"Equal\""),
    (" type", "\"Opaque\""),
    (".weight", "0"),
    (" status.resources", "[]"),
    (".dnsPolicy", "\"ClusterFirst\""),
    (".securityContext", "{}"),
    (".terminationGracePeriodSeconds", "30"),
    (".terminationMessagePath", "\"/dev/termination-log\""),
    (".bearerTokenSecret.key", "\"\""),
];

/// Values of fields that a configuration does not set.
const EMPTY: [&str; 6] = ["\"\"", "\"0s\"", "0", "false", "null", "{}"];

/// Path suffixes of computed values.
const COMPUTED: [&str; 7] = [
    ".message",
    ".lastTransitionTime",
    ".observedGeneration",
    "[hypershift.openshift.io/desired-state-hash]",
    "[component.hypershift.openshift.io/config-hash]",
    " metadata.name",
    ".expr",
];

/// Intended differences: component, path (with wildcards `*`) and reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "*",
        "PodDisruptionBudget/* spec.maxUnavailable",
        "the API always has an availability policy",
    ),
    (
        "*",
        "PrometheusRule/* spec.groups*.expression*",
        "PromQL is described there, and written here",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.containers[etcd-defrag]*",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "Role/etcd-defrag-controller *",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "RoleBinding/etcd-defrag-controller *",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "ControlPlaneComponent/etcd status.resources[etcd-defrag-controller]*",
        "the API's availability policy is HighlyAvailable",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.initContainers[ensure-dns]*",
        "the image holds no shell, so its program is called directly",
    ),
    (
        "etcd",
        "StatefulSet/etcd spec.template.spec.initContainers[reset-member].env*",
        "the script names what it uses",
    ),
    (
        "*-apiserver",
        "Deployment/* spec.template.spec.initContainers[wait-for-etcd]*",
        "our program resolves the name, so that no shell is needed",
    ),
    (
        "kube-apiserver",
        "Secret/bootstrap-kubeconfig data.kubeconfig@yaml.clusters[cluster].cluster.server",
        "AWS always has an endpointAccess in the API; Private is the one whose addresses are like those of none",
    ),
    (
        "kube-*",
        "Secret/kube-*-kubeconfig data.kubeconfig@yaml.users[admin].user*",
        "a kubeconfig without a user is no use: we wait for the certificate",
    ),
    (
        "kube-controller-manager",
        "ConfigMap/recycler-config data[recycler-pod.yaml]@yaml.spec.containers[recycler-container].args[1]",
        "a script of our own that does the same",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.serviceAccount",
        "the old name of serviceAccountName, which the API server sets by itself",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server *livenessProbe.httpGet*",
        "probes have a port of their own: connections of others do not fail them",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server *readinessProbe.httpGet*",
        "probes have a port of their own: connections of others do not fail them",
    ),
    (
        "ignition-server",
        "Route/ignition-server *",
        "AWS always has an endpointAccess in the API; a private one has a name in the cluster's own network",
    ),
    (
        "ignition-server",
        "Deployment/ignition-server spec.template.spec.containers[ignition-server].args*",
        "it is started with the name of its control plane: the namespace may have two",
    ),
    (
        "ignition-server",
        "Role/ignition-server rules[2].apiGroups[1]",
        "Events are written in that group, too",
    ),
    (
        "hosted-cluster-config-operator",
        "Role/hosted-cluster-config-operator rules[10]*",
        "failures are reported as Events",
    ),
    (
        "*",
        "Deployment/* metadata.labels[hypershift.openshift.io/uses-capi]",
        "a migration finds what uses Cluster API by a label",
    ),
    (
        "router",
        "ConfigMap/router data[haproxy.cfg]*",
        "HAProxy's configuration is described there, and written here",
    ),
    (
        "router",
        "ControlPlaneComponent/router status.conditions[RolloutComplete].reason",
        "the renderer takes dependencies for fulfilled",
    ),
    (
        "oauth-openshift",
        "Secret/oauth-openshift-default-*-template data[*.html]",
        "pages of our own with the same variables",
    ),
    (
        "olm-collect-profiles",
        "ControlPlaneComponent/olm-collect-profiles status*",
        "a CronJob is complete when it is applied, and the renderer applies nothing",
    ),
    (
        "redhat-operators-catalog",
        "ImageStream/catalogs spec.tags*.from.name",
        "the index is that of the release's version; there, a label of its image has another one",
    ),
    (
        "metrics-proxy",
        "Route/metrics-proxy *",
        "AWS always has an endpointAccess in the API; a private one has a name in the cluster's own network",
    ),
    (
        "metrics-proxy",
        "Deployment/metrics-proxy spec.template.spec.volumes[*].secret.items*",
        "the proxy trusts authorities and does not get their keys",
    ),
    (
        "cluster-version-operator",
        "Deployment/cluster-version-operator *[CLUSTER_VERSION_JSON].value@json.status*",
        "Go serializes an empty status",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.initContainers[cloud-token-minter].startupProbe*",
        "the image holds no shell; the API server of a new cluster can take many minutes",
    ),
    (
        "*",
        "Deployment/* spec.strategy",
        "an empty strategy is the default one",
    ),
    (
        "*",
        "Secret/*-service-account-kubeconfig *",
        "nothing is signed there, so the Secret has neither owner nor label",
    ),
    (
        "azure-cloud-controller-manager",
        "*/azure-cloud-config data[cloud.conf]@json.cloud",
        "the API always has a cloud",
    ),
    (
        "gcp-cloud-controller-manager",
        "ConfigMap/gcp-cloud-config data[cloud.conf]@ini.Global.project-id",
        "the API does not offer the platform",
    ),
    (
        "gcp-cloud-controller-manager",
        "ConfigMap/gcp-cloud-config data[cloud.conf]@ini.Global.network-name",
        "the API does not offer the platform",
    ),
    (
        "openstack-cloud-controller-manager",
        "Deployment/openstack-cloud-controller-manager *volumes[secret-occm].secret.secretName",
        "the API does not offer the platform",
    ),
    (
        "openstack-cloud-controller-manager",
        "Deployment/openstack-cloud-controller-manager *.env[OCP_INFRASTRUCTURE_NAME].value",
        "an empty value is written",
    ),
    (
        "powervs-cloud-controller-manager",
        "Deployment/powervs-cloud-controller-manager *volumes[cloud-creds].secret.secretName",
        "the API always has a name",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *.env[AWS_REGION].value",
        "an empty value is written",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *ontainers[token-minter-kube]*",
        "the program exits without a token, so the minter starts before it; the image holds no shell",
    ),
    (
        "aws-node-termination-handler",
        "Deployment/aws-node-termination-handler *[root-ca]*",
        "the certificate authority is mounted, so that no shell copies it from the kubeconfig",
    ),
    (
        "kubevirt-csi-controller",
        "Deployment/kubevirt-csi-controller spec.template.spec.serviceAccountName",
        "serviceAccount is the old name of it",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.initContainers[apiserver-token-minter].startupProbe*",
        "the image holds no shell; the API server of a new cluster can take many minutes",
    ),
    (
        "*",
        "Deployment/* spec.template.spec.volumes[ca-bundle].secret.items*",
        "the private key of the authority is not mounted",
    ),
    (
        "cluster-network-operator",
        "Deployment/cluster-network-operator *.env[APISERVER_OVERRIDE_*].value",
        "AWS always has an endpointAccess in the API; Private has a name in the cluster's own network",
    ),
    (
        "cluster-network-operator",
        "Deployment/cluster-network-operator *.env[PROXY_INTERNAL_APISERVER_ADDRESS]*",
        "AWS always has an endpointAccess in the API; the name of a private API server needs no proxy",
    ),
];

fn file(component: &Component) -> PathBuf {
    input::root().join(format!("tests/facts/{}.txt", component.name))
}

fn read(component: &Component) -> Facts {
    let text = fs::read_to_string(file(component)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
        .collect()
}

fn ours(component: &Component, facts: &Facts) -> Facts {
    let embedded = Embedded::of(facts);
    let files = input::base().component(component).unwrap();
    files
        .iter()
        .flat_map(|file| facts::rendered(&file.object, &embedded))
        .collect()
}

fn is_compared(path: &str, value: &str) -> bool {
    let computed = COMPUTED.iter().any(|end| path.ends_with(end));
    // Go serializes empty fields of configurations; they are not compared.
    let is_config = path.contains("@json.") || path.contains("@yaml.");
    let unset = is_config && EMPTY.contains(&value);
    let default = unset
        || DEFAULTS
            .iter()
            .any(|(end, default)| path.ends_with(end) && value == *default);
    !computed && !default
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len())
        .filter(|at| text.is_char_boundary(*at))
        .any(|at| matches(rest, &text[at..]))
}

fn is_allowed(component: &str, path: &str) -> bool {
    ALLOWED.iter().any(|(of, pattern, reason)| {
        assert!(!reason.is_empty());
        matches(of, component) && matches(pattern, path)
    })
}

/// Whether the reference's value of a path, and ours, are the same as far as they are compared.
fn is_same(path: &str, expected: Option<&String>, value: Option<&String>) -> bool {
    let compared = |value: Option<&String>| value.is_some_and(|value| is_compared(path, value));
    let equal = expected.is_some_and(|it| it == SCRIPT && value.is_some() || Some(it) == value);
    equal || !compared(expected) && !compared(value)
}

fn differences(component: &Component) -> Vec<String> {
    let theirs = read(component);
    assert!(
        !theirs.is_empty(),
        "{} is missing",
        file(component).display()
    );
    let ours = ours(component, &theirs);
    let paths = theirs
        .keys()
        .chain(ours.keys().filter(|path| !theirs.contains_key(*path)));
    let mut differences = Vec::new();
    for path in paths.filter(|path| !is_allowed(component.name, path)) {
        let pair = (theirs.get(path), ours.get(path));
        if !is_same(path, pair.0, pair.1) {
            let show = |value: Option<&String>| value.map_or("-", String::as_str).to_owned();
            differences.push(format!(
                "{path}: {} there, {} here",
                show(pair.0),
                show(pair.1)
            ));
        }
    }
    differences
}

#[test]
fn components_match_reference_facts() {
    let mut text = String::new();
    for component in components::all() {
        for difference in differences(component) {
            let _ = writeln!(text, "{}: {difference}", component.name);
        }
    }
    assert!(text.is_empty(), "\n{text}");
}

/// Intended differences are few: facts that differ count here even if they are allowed.
#[test]
fn nearly_all_facts_of_46_components_are_equal() {
    let (mut all, mut equal, mut objects) = (0_u32, 0_u32, 0);
    for component in components::all() {
        let theirs = read(component);
        let ours = ours(component, &theirs);
        let same = theirs
            .iter()
            .filter(|(path, value)| is_same(path, Some(value), ours.get(*path)));
        equal += u32::try_from(same.count()).unwrap();
        all += u32::try_from(theirs.len()).unwrap();
        objects += input::base().component(component).unwrap().len();
    }
    let share = 100.0 * f64::from(equal) / f64::from(all);
    println!("{equal} of {all} facts are equal ({share:.2} %), in {objects} objects");
    assert_eq!(components::all().len(), 46);
    // Two objects more than described: the API's availability policy is HighlyAvailable.
    assert_eq!(objects, 242 + 2);
    assert!(share >= 98.0, "{share:.2} %");
}

#[test]
fn patterns_match_whole_paths() {
    assert!(matches("a*c", "abbc") && matches("*", "") && !matches("a*c", "abcd"));
}

#[test]
#[ignore = "writes tests/facts from the descriptions in the directory HCP_FACTS"]
fn write_facts() {
    let directory = PathBuf::from(std::env::var("HCP_FACTS").unwrap());
    for component in components::all() {
        let path = directory.join(format!("{}.json", component.name));
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        let text = text.replace(REAL_RELEASE, RELEASE);
        let facts = facts::described(&serde_json::from_str(&text).unwrap());
        let mut lines = format!(
            "# Reference facts of {}, one per line: tests/components/facts.rs.\n",
            component.name
        );
        for (path, value) in facts {
            let _ = writeln!(lines, "{path} = {value}");
        }
        fs::write(file(component), lines).unwrap();
    }
}
