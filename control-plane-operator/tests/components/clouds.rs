//! Cloud integrations: how their objects depend on the platform's settings, and on which platform each runs.

pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod kubevirt;
pub(crate) mod others;

use control_plane_component::Predicates;
use control_plane_component::proxy::OwnProxy;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};
use support::testing::restricted_violations;

use crate::variants::changed;

const AWS: &str = "aws-cloud-controller-manager";
const AZURE: &str = "azure-cloud-controller-manager";
const GCP: &str = "gcp-cloud-controller-manager";
const KUBEVIRT: &str = "kubevirt-cloud-controller-manager";
const OPENSTACK: &str = "openstack-cloud-controller-manager";
const POWERVS: &str = "powervs-cloud-controller-manager";
const TERMINATION: &str = "aws-node-termination-handler";
const CSI: &str = "kubevirt-csi-controller";
const CREDENTIALS: &str = "cloud-credential-operator";
/// All components of clouds.
const ALL: [&str; 9] = [
    AWS,
    AZURE,
    GCP,
    KUBEVIRT,
    OPENSTACK,
    POWERVS,
    TERMINATION,
    CSI,
    CREDENTIALS,
];

/// Text with which a user tries to add a setting.
const INJECTED: &str = "a\ncredential_process = sh -c id";

/// Changes of the hosted control plane, as JSON pointers and values.
type Changes = Vec<(&'static str, Value)>;

/// What is expected at a place of an object.
#[derive(Debug)]
enum Expected {
    /// This value.
    Is(Value),
    /// A list with this item, or a text with this line.
    Has(&'static str),
    /// A list without such an item, or a text without such a line: none begins with it.
    Lacks(&'static str),
}

use Expected::{Has, Is, Lacks};

/// The input and one expected value.
struct Row {
    component: &'static str,
    changes: Changes,
    settings: fn(&mut Input),
    /// `Kind/name`; empty for the Deployment.
    object: &'static str,
    /// Path in the object: keys, indices, or names of items; behind `#`, in the text of this value.
    path: &'static str,
    expected: Expected,
}

/// A row of the Deployment. Its path starts at the pod's spec.
fn pod(component: &'static str, changes: Changes, path: &'static str, expected: Expected) -> Row {
    row(component, changes, "", path, expected)
}

fn row(
    component: &'static str,
    changes: Changes,
    object: &'static str,
    path: &'static str,
    expected: Expected,
) -> Row {
    Row {
        component,
        changes,
        settings: |_| {},
        object,
        path,
        expected,
    }
}

// === impl Row ===

impl Row {
    /// Changes the settings of the operator.
    fn with(mut self, settings: fn(&mut Input)) -> Self {
        self.settings = settings;
        self
    }

    fn verify(&self) {
        let mut input = changed(&self.changes);
        (self.settings)(&mut input);
        let object = self.object(&input);
        let found = match self.path.split_once('#') {
            None => lookup(&object, self.path),
            Some((place, inner)) => {
                let text = lookup(&object, place);
                let value: Value = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
                lookup(&value, inner)
            }
        };
        let name = format!("{} {:?} {}", self.component, self.changes, self.path);
        match &self.expected {
            Is(value) => assert_eq!(found, *value, "{name}"),
            Has(item) => assert!(
                items(&found).contains(item),
                "{name}: no {item} in {found:#}"
            ),
            Lacks(start) => {
                assert!(!found.is_null(), "{name}: nothing is there");
                let mut items = items(&found).into_iter();
                assert!(!items.any(|it| it.starts_with(start)), "{name}: {found:#}");
            }
        }
    }

    fn object(&self, input: &Input) -> Value {
        if !self.object.is_empty() {
            let (kind, name) = self.object.split_once('/').unwrap();
            return object(input, self.component, kind, name);
        }
        let deployment = object(input, self.component, "Deployment", self.component);
        assert!(!deployment.is_null(), "{}", self.component);
        deployment["spec"]["template"]["spec"].clone()
    }
}

/// Returns an object of a component, or null. The data of Secrets is decoded.
fn object(input: &Input, component: &str, kind: &str, name: &str) -> Value {
    let mut object = crate::variants::object(input, component, kind, name);
    if kind == "Secret" {
        for value in object["data"].as_object_mut().unwrap().values_mut() {
            *value = json!(decoded(value.as_str().unwrap()));
        }
    }
    object
}

fn decoded(base64: &str) -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    String::from_utf8(engine.decode(base64).unwrap()).unwrap()
}

fn lookup(value: &Value, path: &str) -> Value {
    let mut found = value;
    for key in path.split('/').skip(1) {
        let key = key.replace("~1", "/");
        found = match found {
            Value::Array(items) => {
                let mut named = items.iter().filter(|item| item["name"] == key);
                let index = key.parse::<usize>().ok();
                named
                    .next()
                    .or_else(|| items.get(index?))
                    .unwrap_or(&Value::Null)
            }
            other => &other[key.as_str()],
        };
    }
    found.clone()
}

/// Items of a list, their names if they have some, or lines of a text.
fn items(value: &Value) -> Vec<&str> {
    if let Some(text) = value.as_str() {
        return text.lines().collect();
    }
    let items = value.as_array().into_iter().flatten();
    let texts = items.filter_map(|item| item.as_str().or_else(|| item["name"].as_str()));
    texts.collect()
}

fn verify(rows: &[Row]) {
    for component in ALL {
        let of_component = rows.iter().filter(|row| row.component == component);
        of_component.for_each(Row::verify);
    }
    assert!(rows.iter().all(|row| ALL.contains(&row.component)));
    crate::rows::count(rows.len());
}

/// The message of a failed render.
fn error(component: &str, input: &Input) -> String {
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    input.component(component).unwrap_err().to_string()
}

fn on_platform(platform: &str) -> Changes {
    vec![("/spec/platform/type", json!(platform))]
}

fn annotated(key: &str, value: &str) -> Changes {
    vec![("/metadata/annotations", json!({ key: value }))]
}

fn tls(profile: &str) -> Changes {
    let profile = json!({ "type": profile });
    let configuration = json!({ "apiServer": { "tlsSecurityProfile": profile } });
    vec![("/spec/configuration", configuration)]
}

/// The operator uses a proxy.
fn proxied(input: &mut Input) {
    input.settings.proxy = OwnProxy {
        http: None,
        https: Some("http://proxy.example.com:3128".to_owned()),
        exempt: vec!["10.0.0.0/8".to_owned()],
    };
}

/// ARO runs the operator.
fn aro(input: &mut Input) {
    input.settings.managed_service = Some("ARO-HCP".to_owned());
}

#[test]
fn components_run_on_their_platform_only() {
    let platforms = [
        "AWS", "Azure", "IBMCloud", "KubeVirt", "Agent", "PowerVS", "None",
    ];
    for (component, expected) in [
        (AWS, "AWS"),
        (AZURE, "Azure"),
        // The API does not offer the platforms of these two.
        (GCP, ""),
        (OPENSTACK, ""),
        (KUBEVIRT, "KubeVirt"),
        (POWERVS, "PowerVS"),
        (TERMINATION, "AWS"),
        (CSI, "KubeVirt"),
        (CREDENTIALS, "AWS"),
    ] {
        for platform in platforms {
            let input = interruptible(&on_platform(platform));
            let runs = runs(&input, component);
            assert_eq!(runs, platform == expected, "{component} on {platform}");
        }
    }
}

/// A control plane whose guest can be reached, with evaluated predicates.
fn interruptible(changes: &[(&str, Value)]) -> Input {
    let kubeconfig = json!({ "name": "admin-kubeconfig", "key": "kubeconfig" });
    let status = json!({ "ready": false, "initialized": false, "kubeConfig": kubeconfig });
    let mut input = changed(&[&[("/status", status)][..], changes].concat());
    input.predicates = Predicates::Evaluated;
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "service-network-admin-kubeconfig" },
    }));
    input
}

fn runs(input: &Input, component: &str) -> bool {
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    !input.component(component).unwrap().is_empty()
}

#[test]
fn termination_handler_needs_queue_role_and_kubeconfig() {
    let queue = "/spec/platform/aws/terminationHandlerQueueURL";
    let role = "/spec/platform/aws/rolesRef/nodePoolManagementARN";
    for (name, changes, expected) in [
        ("complete", vec![], true),
        ("no queue", vec![(queue, Value::Null)], false),
        ("empty queue", vec![(queue, json!(""))], false),
        ("no role", vec![(role, json!(""))], false),
        ("no kubeconfig", vec![("/status", Value::Null)], false),
    ] {
        let input = interruptible(&changes);
        assert_eq!(runs(&input, TERMINATION), expected, "{name}");
    }
    let mut input = interruptible(&[]);
    input.objects = changed(&[]).objects;
    assert!(!runs(&input, TERMINATION), "no Secret");
}

/// Every component of a cloud uses the TLS profile, and the same arguments otherwise.
#[test]
pub(crate) fn managers_use_the_tls_profile_last() {
    for component in [AWS, AZURE, GCP, KUBEVIRT, OPENSTACK, POWERVS] {
        for (profile, version, has_ciphers) in [
            ("Modern", "--tls-min-version=VersionTLS13", false),
            ("Intermediate", "--tls-min-version=VersionTLS12", true),
            ("Old", "--tls-min-version=VersionTLS10", true),
        ] {
            let input = changed(&tls(profile));
            let deployment = object(&input, component, "Deployment", component);
            let path = "/spec/template/spec/containers/cloud-controller-manager/args";
            let args = lookup(&deployment, path);
            let args = items(&args);
            let last = args[args.len() - if has_ciphers { 2 } else { 1 }];
            assert_eq!(last, version, "{component}");
            let ciphers = args
                .iter()
                .filter(|it| it.starts_with("--tls-cipher-suites="));
            assert_eq!(ciphers.count(), usize::from(has_ciphers), "{component}");
            crate::rows::count(1);
        }
    }
}

/// Cloud tokens exist where a cloud trusts the guest's issuer.
#[test]
fn cloud_tokens_follow_platform_and_managed_service() {
    for (component, account) in [
        (AWS, "kube-controller-manager"),
        (AZURE, "azure-cloud-provider"),
        (GCP, "cloud-controller-manager"),
        (TERMINATION, "capa-controller-manager"),
    ] {
        for (platform, settings, expected) in [
            ("AWS", (|_| {}) as fn(&mut Input), true),
            ("Azure", |_| {}, true),
            ("Azure", aro, false),
            ("AWS", aro, true),
            ("IBMCloud", |_| {}, false),
        ] {
            let mut input = changed(&on_platform(platform));
            settings(&mut input);
            let deployment = object(&input, component, "Deployment", component);
            let path = "/spec/template/spec/initContainers/cloud-token-minter/args";
            let args = lookup(&deployment, path);
            let flag = format!("--service-account-name={account}");
            let found = items(&args).contains(&flag.as_str());
            assert_eq!(found, expected, "{component} on {platform}");
            let volume = lookup(&deployment, "/spec/template/spec/volumes/cloud-token");
            assert_eq!(!volume.is_null(), expected, "{component} on {platform}");
        }
    }
    for component in [KUBEVIRT, OPENSTACK, POWERVS, CSI, CREDENTIALS] {
        let deployment = object(&changed(&[]), component, "Deployment", component);
        let path = "/spec/template/spec/initContainers/cloud-token-minter";
        assert_eq!(lookup(&deployment, path), Value::Null, "{component}");
    }
}

/// Check T05.
#[test]
fn pods_with_optional_volumes_satisfy_the_restricted_standard() {
    for (component, changes) in [
        (AZURE, azure::managed()),
        (KUBEVIRT, kubevirt::external()),
        (CSI, kubevirt::external()),
    ] {
        let mut input = changed(&changes);
        input.settings.uid = Some(1001);
        let deployment = object(&input, component, "Deployment", component);
        let found = restricted_violations(&deployment["spec"]["template"]["spec"]);
        assert!(found.is_empty(), "{component}: {found:?}");
    }
}

/// Check T16: values of users stay values.
#[test]
fn configuration_files_reject_injected_settings() {
    let probe = "hypershift.openshift.io/shared-load-balancer-health-probe-path";
    let network = json!({ "vpc": "a", "zone": INJECTED });
    let subnet = json!({ "vpc": "a", "subnet": { "id": INJECTED } });
    let config = "/spec/platform/aws/cloudProviderConfig";
    let role = "/spec/platform/aws/rolesRef/nodePoolManagementARN";
    let injected = || json!(INJECTED);
    for (component, changes, field) in [
        (AWS, vec![(config, network)], "cloudProviderConfig.zone"),
        (
            AWS,
            vec![(config, json!({ "vpc": INJECTED }))],
            "cloudProviderConfig.vpc",
        ),
        (AWS, vec![(config, subnet)], "cloudProviderConfig.subnet.id"),
        (AWS, vec![("/spec/infraID", injected())], "spec.infraID"),
        (AWS, annotated(probe, INJECTED), probe),
        (
            TERMINATION,
            vec![(role, injected())],
            "rolesRef.nodePoolManagementARN",
        ),
        (GCP, vec![("/spec/infraID", injected())], "spec.infraID"),
        (
            POWERVS,
            vec![("/spec/platform/powervs/accountID", injected())],
            "powervs.accountID",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/resourceGroup", injected())],
            "powervs.resourceGroup",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/region", injected())],
            "powervs.region",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/zone", injected())],
            "powervs.zone",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/serviceInstanceID", injected())],
            "serviceInstanceID",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/vpc/name", injected())],
            "vpc.name",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/vpc/region", injected())],
            "vpc.region",
        ),
        (
            POWERVS,
            vec![("/spec/platform/powervs/vpc/subnet", injected())],
            "vpc.subnet",
        ),
        (
            CSI,
            vec![("/spec/infraID", json!("a,example.com/owner=b"))],
            "spec.infraID",
        ),
    ] {
        let error = error(component, &changed(&changes));
        assert!(error.contains(field), "{component}: {error}");
    }
}

#[test]
fn cloud_credential_operator_depends_on_openshift_apiserver() {
    let of = |name: &str| components::all().iter().find(|it| it.name == name);
    if of("openshift-apiserver").is_some() {
        let dependencies = of(CREDENTIALS).unwrap().dependencies();
        assert!(dependencies.contains(&"openshift-apiserver"));
    }
}
