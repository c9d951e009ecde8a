//! Operators of the guest that run in the control plane: how they depend on the hosted control plane.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_component::dependency::dependencies;
use control_plane_component::facts::Infra;
use control_plane_component::operands::waiting;
use control_plane_component::proxy::OwnProxy;
use control_plane_component::render::render;
use control_plane_component::{Component, Context, Predicates, Release};
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::input;
use crate::variants::changed;

const NETWORK: &str = "cluster-network-operator";
const STORAGE: &str = "cluster-storage-operator";
const SNAPSHOT: &str = "csi-snapshot-controller-operator";
const TUNING: &str = "cluster-node-tuning-operator";
const DNS: &str = "dns-operator";
const INGRESS: &str = "ingress-operator";
const REGISTRY: &str = "cluster-image-registry-operator";
const OPERATORS: [&str; 7] = [NETWORK, STORAGE, SNAPSHOT, TUNING, DNS, INGRESS, REGISTRY];

/// The proxy of this operator.
const PROXY: &str = "http://proxy.example.com:3128";
/// The variable with the file of a managed identity's certificate.
const CREDENTIALS: &str = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH";
const CLOUD_TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";

/// Changes of the hosted control plane: JSON pointers and values.
type Changes<'a> = &'a [(&'a str, Value)];
/// Changes, a path (see [`at`]), and the value there.
type Row<'a> = (Changes<'a>, &'a str, Value);

fn component(name: &str) -> &'static Component {
    let mut all = components::all().iter();
    all.find(|component| component.name == name).unwrap()
}

fn with_settings(mut input: Input) -> Input {
    let settings = &mut input.settings;
    let driver = "secrets-store.csi.x-k8s.io".to_owned();
    settings.served_groups.push(driver);
    settings.azure_key_vault_client_id = Some("vault-reader".to_owned());
    input
}

/// All objects of a component.
fn objects(input: &Input, name: &str) -> Vec<Value> {
    let files = input.component(component(name)).unwrap();
    files.into_iter().map(|file| file.object).collect()
}

/// Returns the value at a path of a component's objects, or null: `Kind/name/field/...`, or of its Deployment
/// `/field/...`, of its pods `pod/field/...`, of its main container `main/field/...`, or an environment variable `$NAME`.
/// A list's items are numbered or named.
fn at(objects: &[Value], name: &str, path: &str) -> Value {
    let pod = format!("Deployment/{name}/spec/template/spec");
    let main = format!("{pod}/containers/{name}");
    let path = match path.split_at(1) {
        ("$", variable) => format!("{main}/env/{variable}/value"),
        ("/", rest) => format!("Deployment/{name}/{rest}"),
        _ => match path.split_once('/') {
            Some(("pod", rest)) => format!("{pod}/{rest}"),
            Some(("main", rest)) => format!("{main}/{rest}"),
            _ => path.to_owned(),
        },
    };
    let mut parts = path.split('/');
    let (kind, object_name) = (parts.next().unwrap(), parts.next().unwrap());
    let mut found = objects.iter();
    let object = found.find(|it| it["kind"] == kind && it["metadata"]["name"] == object_name);
    let mut value = object.unwrap_or(&Value::Null);
    for part in parts {
        let part = part.replace("~1", "/");
        value = item(value, &part);
    }
    value.clone()
}

fn item<'a>(value: &'a Value, part: &str) -> &'a Value {
    let Some(items) = value.as_array() else {
        return &value[part];
    };
    let named = items.iter().find(|item| item["name"] == part);
    let number: Option<usize> = part.parse().ok();
    let numbered = number.and_then(|number| items.get(number));
    named.or(numbered).unwrap_or(&Value::Null)
}

fn check(name: &str, rows: &[Row<'_>]) {
    for (changes, path, expected) in rows {
        let input = with_settings(changed(changes));
        let found = at(&objects(&input, name), name, path);
        assert_eq!(found, *expected, "{name}: {changes:?}: {path}");
    }
    crate::rows::count(rows.len());
}

/// Checks paths of a component with changed settings.
fn check_settings(name: &str, change: impl FnOnce(&mut Input), rows: &[(&str, Value)]) {
    let mut input = input::base();
    change(&mut input);
    let objects = objects(&input, name);
    for (path, expected) in rows {
        assert_eq!(at(&objects, name, path), *expected, "{name}: {path}");
    }
    crate::rows::count(rows.len());
}

fn proxied(input: &mut Input) {
    input.settings.proxy = OwnProxy {
        http: Some(PROXY.to_owned()),
        https: Some(PROXY.to_owned()),
        exempt: vec![".example.com".to_owned()],
    };
}

fn platform(name: &str) -> (&'static str, Value) {
    ("/spec/platform", json!({ "type": name }))
}

fn profile(profile: &Value) -> (&'static str, Value) {
    let api_server = json!({ "tlsSecurityProfile": profile });
    ("/spec/configuration/apiServer", api_server)
}

fn without_capabilities(disabled: &[&str]) -> (&'static str, Value) {
    ("/spec/capabilities", json!({ "disabled": disabled }))
}

/// Azure with this authentication.
fn azure(authentication: &Value) -> (&'static str, Value) {
    let of = |type_: &str| {
        format!("/subscriptions/s/resourceGroups/network/providers/Microsoft.Network/{type_}")
    };
    let settings = json!({
        "location": "eastus", "resourceGroup": "group", "subscriptionID": "subscription",
        "tenantID": "tenant", "vnetID": of("virtualNetworks/vnet"),
        "subnetID": of("virtualNetworks/vnet/subnets/subnet"),
        "securityGroupID": of("networkSecurityGroups/nodes"),
        "azureAuthenticationConfig": authentication,
    });
    let platform = json!({ "type": "Azure", "azure": settings });
    ("/spec/platform", platform)
}

const IDENTITIES: [&str; 8] = [
    "cloudProvider",
    "nodePoolManagement",
    "controlPlaneOperator",
    "imageRegistry",
    "ingress",
    "network",
    "disk",
    "file",
];

/// Azure with identities that trust the guest.
fn self_managed() -> (&'static str, Value) {
    let identity = |name: &str| (name.to_owned(), json!({ "clientID": format!("{name}-id") }));
    let identities: BTreeMap<_, _> = IDENTITIES.map(identity).into();
    azure(&json!({
        "azureAuthenticationConfigType": "WorkloadIdentities", "workloadIdentities": identities,
    }))
}

/// Azure Red Hat OpenShift, with identities of a key vault.
pub(crate) fn aro() -> (&'static str, Value) {
    let identity = |name: &str| {
        let secret = format!("{}-creds", name.to_lowercase());
        let identity = json!({ "credentialsSecretName": secret, "objectEncoding": "hex" });
        (name.to_owned(), identity)
    };
    let identities: BTreeMap<_, _> = IDENTITIES.map(identity).into();
    let mut identities = json!(identities);
    identities["managedIdentitiesKeyVault"] =
        json!({ "name": "vault", "tenantID": "vault-tenant" });
    azure(&json!({
        "azureAuthenticationConfigType": "ManagedIdentities",
        "managedIdentities": {
            "controlPlane": identities,
            "dataPlane": {
                "imageRegistryMSIClientID": "a", "diskMSIClientID": "b", "fileMSIClientID": "c",
            },
        },
    }))
}

fn networking(fields: &Value) -> (&'static str, Value) {
    let mut all = json!({ "clusterNetwork": [{ "cidr": "10.132.0.0/14" }], "serviceNetwork": [] });
    for (field, value) in fields.as_object().unwrap() {
        all[field] = value.clone();
    }
    ("/spec/networking", all)
}

fn services(strategy: &Value) -> (&'static str, Value) {
    let service = json!({ "service": "APIServer", "servicePublishingStrategy": strategy });
    ("/spec/services", json!([service]))
}

/// The `SecretProviderClass` of an identity.
fn class(secret: &str) -> Value {
    let objects = format!(
        "\narray:\n  - |\n    objectName: {secret}\n    objectEncoding: hex\n    objectType: secret\n"
    );
    json!({ "provider": "azure", "parameters": {
        "usePodIdentity": "false", "useVMManagedIdentity": "true",
        "userAssignedIdentityID": "vault-reader", "keyvaultName": "vault",
        "tenantId": "vault-tenant", "objects": objects,
    } })
}

#[test]
pub(crate) fn network_operator_gets_names_and_addresses() {
    let access = "/spec/platform/aws/endpointAccess";
    let ipv4 = networking(&json!({ "serviceNetwork": [{ "cidr": "172.31.0.0/16" }] }));
    let balanced = services(&json!({ "type": "LoadBalancer" }));
    let advertised = json!({ "advertiseAddress": "192.0.2.4", "port": 2040 });
    let advertised = networking(&json!({ "apiServer": advertised }));
    let minter = "pod/containers/client-token-minter/args";
    let oneshot = "pod/initContainers/init-client-token-minter/args";
    let issuer = || ("/spec/issuerURL", json!("https://issuer.example.com"));
    let konnectivity = "pod/containers/konnectivity-proxy-socks5/args";
    let own = "registry.example.com/release:own";
    check(
        NETWORK,
        &[
            (
                &[("/metadata/name", json!("dev"))],
                "$HOSTED_CLUSTER_NAME",
                json!("dev"),
            ),
            (
                &[issuer()],
                "$TOKEN_AUDIENCE",
                json!("https://issuer.example.com"),
            ),
            (
                &[issuer()],
                &format!("{minter}/8"),
                json!("--token-audience"),
            ),
            (
                &[issuer()],
                &format!("{minter}/9"),
                json!("https://issuer.example.com"),
            ),
            (&[issuer()], &format!("{oneshot}/8"), json!("--oneshot")),
            (
                &[issuer()],
                &format!("{oneshot}/10"),
                json!("https://issuer.example.com"),
            ),
            (
                &[("/spec/releaseImage", json!(own))],
                "$OPENSHIFT_RELEASE_IMAGE",
                json!(own),
            ),
            (
                &[("/spec/controlPlaneReleaseImage", json!(own))],
                "$OPENSHIFT_RELEASE_IMAGE",
                json!(own),
            ),
            // A private API server has a name in the cluster's network.
            (
                &[(access, json!("Private")), ("/metadata/name", json!("dev"))],
                "$APISERVER_OVERRIDE_HOST",
                json!("api.dev.hypershift.local"),
            ),
            (
                &[(access, json!("PublicAndPrivate"))],
                "$APISERVER_OVERRIDE_PORT",
                json!("443"),
            ),
            (
                &[(access, json!("PublicAndPrivate")), balanced.clone()],
                "$APISERVER_OVERRIDE_PORT",
                json!("6443"),
            ),
            (
                &[(access, json!("Public")), balanced],
                "$APISERVER_OVERRIDE_PORT",
                json!("0"),
            ),
            (
                &[(access, json!("Private"))],
                "$PROXY_INTERNAL_APISERVER_ADDRESS",
                Value::Null,
            ),
            (
                &[(access, json!("Public"))],
                "$PROXY_INTERNAL_APISERVER_ADDRESS",
                json!("true"),
            ),
            (
                &[platform("None")],
                "$PROXY_INTERNAL_APISERVER_ADDRESS",
                json!("true"),
            ),
            (
                &[platform("IBMCloud"), advertised.clone()],
                "$APISERVER_OVERRIDE_HOST",
                json!("192.0.2.4"),
            ),
            (
                &[platform("IBMCloud"), advertised.clone()],
                "$APISERVER_OVERRIDE_PORT",
                json!("2040"),
            ),
            (
                &[platform("IBMCloud"), advertised],
                "pod/initContainers/availability-prober/command/3",
                json!("https://kube-apiserver:2040/readyz"),
            ),
            (&[], konnectivity, json!(["run", "--disable-resolver=true"])),
            (
                &[ipv4],
                &format!("{konnectivity}/2"),
                json!("--prefer-ipv4=true"),
            ),
        ],
    );
    let without_port = changed(&[platform("IBMCloud")]);
    let error = without_port.component(component(NETWORK)).unwrap_err();
    assert!(error.to_string().contains("advertiseAddress"), "{error}");
}

#[test]
fn network_operator_waits_for_its_prerequisites() {
    let prober = "pod/initContainers/availability-prober";
    let line = |number: usize| format!("{prober}/command/{number}");
    check(
        NETWORK,
        &[
            (
                &[],
                &line(4),
                json!("--kubeconfig=/var/kubeconfig/kubeconfig"),
            ),
            (
                &[],
                &line(5),
                json!("--required-api=operator.openshift.io,v1,Network"),
            ),
            (
                &[],
                &line(6),
                json!("--required-api=network.operator.openshift.io,v1,EgressRouter"),
            ),
            (
                &[],
                &line(7),
                json!("--required-api=network.operator.openshift.io,v1,OperatorPKI"),
            ),
            (&[], &line(8), json!("--wait-for-infrastructure-resource")),
            (
                &[],
                &line(9),
                json!("--wait-for-cluster-rolebinding=cluster-network-operator"),
            ),
            (
                &[],
                &format!("{prober}/volumeMounts/0/name"),
                json!("hosted-etc-kube"),
            ),
            (
                &[],
                "pod/volumes/ca-bundle/secret/items/0/key",
                json!("ca.crt"),
            ),
            (&[], "pod/volumes/ca-bundle/secret/items/1", Value::Null),
        ],
    );
}

#[test]
pub(crate) fn network_operator_is_configured_by_settings() {
    check(
        NETWORK,
        &[
            (&[], "$RUN_AS_USER", Value::Null),
            (&[], "$MGMT_HTTPS_PROXY", Value::Null),
            (
                &[aro()],
                "$ARO_HCP_SECRET_PROVIDER_CLASS",
                json!("managed-azure-network"),
            ),
            (&[aro()], &format!("${CREDENTIALS}"), json!("network-creds")),
            (
                &[aro()],
                "SecretProviderClass/managed-azure-network/spec",
                class("network-creds"),
            ),
            // The certificate is mounted by what the operator creates.
            (&[aro()], "main/volumeMounts/3/name", json!("tmp-dir")),
            (&[aro()], "main/volumeMounts/4", Value::Null),
            (
                &[self_managed()],
                "$ARO_HCP_SECRET_PROVIDER_CLASS",
                Value::Null,
            ),
            (&[self_managed()], &format!("${CREDENTIALS}"), Value::Null),
            (
                &[self_managed()],
                "SecretProviderClass/managed-azure-network",
                Value::Null,
            ),
        ],
    );
    check_settings(
        NETWORK,
        proxied,
        &[
            ("$MGMT_HTTP_PROXY", json!(PROXY)),
            ("$MGMT_HTTPS_PROXY", json!(PROXY)),
            ("$MGMT_NO_PROXY", json!(".example.com,kube-apiserver")),
            ("$HTTPS_PROXY", Value::Null),
        ],
    );
    let uid = |input: &mut Input| input.settings.uid = Some(1001);
    check_settings(NETWORK, uid, &[("$RUN_AS_USER", json!("1001"))]);
}

#[test]
fn network_operator_may_do_what_its_network_needs() {
    let rules = "Role/cluster-network-operator/rules";
    let ovn = || networking(&json!({ "networkType": "OVNKubernetes" }));
    let calico = || networking(&json!({ "networkType": "Calico" }));
    let narrow = json!(["openshift-service-ca.crt", "root-ca"]);
    check(
        NETWORK,
        &[
            (
                &[calico()],
                &format!("{rules}/0/resourceNames"),
                narrow.clone(),
            ),
            (
                &[calico()],
                &format!("{rules}/6/resources"),
                json!(["hostedcontrolplanes/status"]),
            ),
            (&[calico()], &format!("{rules}/7"), Value::Null),
            (&[ovn()], &format!("{rules}/0/resourceNames"), Value::Null),
            (
                &[ovn()],
                &format!("{rules}/0/resources"),
                json!(["events", "configmaps", "pods", "secrets", "services"]),
            ),
            (
                &[ovn()],
                &format!("{rules}/1/resources"),
                json!(["poddisruptionbudgets"]),
            ),
            (
                &[ovn()],
                &format!("{rules}/2/resources"),
                json!(["statefulsets", "deployments"]),
            ),
            (
                &[ovn()],
                &format!("{rules}/3/resources"),
                json!(["routes", "routes/custom-host"]),
            ),
            (
                &[ovn()],
                &format!("{rules}/4/apiGroups"),
                json!(["monitoring.coreos.com", "monitoring.rhobs"]),
            ),
            (&[ovn()], &format!("{rules}/4/verbs"), json!(["*"])),
            (
                &[ovn()],
                &format!("{rules}/5/verbs"),
                json!(["get", "list", "watch"]),
            ),
            (
                &[ovn()],
                &format!("{rules}/6/resources"),
                json!(["hostedcontrolplanes/status"]),
            ),
            (&[ovn()], &format!("{rules}/7"), Value::Null),
        ],
    );
}

#[test]
fn webhook_of_an_old_release_is_removed() {
    let path = "pod/initContainers/remove-old-multus-validating-webhook-configuration/image";
    for (version, expected) in [
        ("4.12.3", json!("cli")),
        ("4.13.0", Value::Null),
        ("4.20.12", Value::Null),
    ] {
        let old = |input: &mut Input| input.release.version = version.to_owned();
        check_settings(NETWORK, old, &[(path, expected)]);
    }
}

#[test]
pub(crate) fn dns_operator_depends_on_the_release_and_its_account() {
    let prober = "pod/initContainers/availability-prober";
    check(
        DNS,
        &[
            (
                &[],
                "main/env/KUBECONFIG/value",
                json!("/etc/kubernetes/kubeconfig"),
            ),
            (&[], "main/env/5", Value::Null),
            (&[], "pod/terminationGracePeriodSeconds", json!(2)),
            (
                &[],
                "pod/volumes/service-account-kubeconfig/secret/secretName",
                json!("dns-operator-service-account-kubeconfig"),
            ),
            (
                &[],
                "main/volumeMounts/service-account-kubeconfig/mountPath",
                json!("/etc/kubernetes"),
            ),
            (
                &[],
                &format!("{prober}/command/5"),
                json!("--required-api=operator.openshift.io,v1,DNS"),
            ),
            (
                &[],
                &format!("{prober}/command/6"),
                json!("--wait-for-labeled-pods-gone=openshift-dns-operator/name=dns-operator"),
            ),
            (
                &[],
                &format!("{prober}/volumeMounts/0/name"),
                json!("service-account-kubeconfig"),
            ),
            (
                &[platform("IBMCloud")],
                &format!("{prober}/command/3"),
                json!("https://kube-apiserver:2040/readyz"),
            ),
            (
                &[(
                    "/spec/controllerAvailabilityPolicy",
                    json!("HighlyAvailable"),
                )],
                "/spec/replicas",
                json!(1),
            ),
            (&[], "pod/automountServiceAccountToken", json!(false)),
        ],
    );
}

#[test]
pub(crate) fn ingress_operator_depends_on_the_cloud_and_the_guest() {
    let minter = "pod/initContainers/cloud-token-minter";
    let konnectivity = "pod/containers/konnectivity-proxy-https";
    let guest_proxy = || {
        let proxy = json!({ "httpsProxy": "http://guest.example.com" });
        ("/spec/configuration/proxy", proxy)
    };
    let direct = "--connect-directly-to-cloud-apis=true";
    check(
        INGRESS,
        &[
            (
                &[("/spec/fips", json!(true))],
                "$FIPS_ENABLED",
                json!("true"),
            ),
            (
                &[("/spec/fips", json!(false))],
                "$FIPS_ENABLED",
                Value::Null,
            ),
            (&[], "$FIPS_ENABLED", Value::Null),
            (&[], "$DEFAULT_HAPROXY_VERSION", json!("3.2")),
            (&[], "$HTTPS_PROXY", json!("http://127.0.0.1:8090")),
            (&[], "$NO_PROXY", json!("kube-apiserver")),
            (
                &[guest_proxy()],
                "$HTTPS_PROXY",
                json!("http://127.0.0.1:8090"),
            ),
            (&[], &format!("{konnectivity}/args"), json!(["run", direct])),
            (
                &[guest_proxy()],
                &format!("{konnectivity}/args/4"),
                json!("http://guest.example.com"),
            ),
            (
                &[],
                &format!("{konnectivity}/volumeMounts/0/name"),
                json!("admin-kubeconfig"),
            ),
            (
                &[],
                &format!("{minter}/args/1"),
                json!("--service-account-namespace=openshift-ingress-operator"),
            ),
            (
                &[],
                &format!("{minter}/args/2"),
                json!("--service-account-name=ingress-operator"),
            ),
            (&[platform("IBMCloud")], minter, Value::Null),
            (
                &[platform("IBMCloud")],
                "main/volumeMounts/cloud-token",
                Value::Null,
            ),
            (
                &[],
                "main/volumeMounts/service-account-kubeconfig/mountPath",
                json!("/etc/kubernetes"),
            ),
            (
                &[],
                &format!("{konnectivity}/volumeMounts/service-account-kubeconfig"),
                Value::Null,
            ),
            (
                &[],
                "pod/initContainers/availability-prober/command/5",
                json!("--required-api=route.openshift.io,v1,Route"),
            ),
            (&[], "/spec/strategy/type", json!("Recreate")),
            (
                &[aro()],
                &format!("${CREDENTIALS}"),
                json!("/mnt/certs/ingress-creds"),
            ),
            (
                &[aro()],
                "main/volumeMounts/ingress-cert/mountPath",
                json!("/mnt/certs"),
            ),
            (
                &[aro()],
                "pod/volumes/ingress-cert/csi/volumeAttributes/secretProviderClass",
                json!("managed-azure-ingress"),
            ),
            (
                &[aro()],
                "SecretProviderClass/managed-azure-ingress/spec",
                class("ingress-creds"),
            ),
            (&[self_managed()], &format!("${CREDENTIALS}"), Value::Null),
            (&[self_managed()], "pod/volumes/ingress-cert", Value::Null),
            (
                &[self_managed()],
                "SecretProviderClass/managed-azure-ingress",
                Value::Null,
            ),
        ],
    );
    let own = format!("{konnectivity}/env/HTTPS_PROXY/value");
    check_settings(
        INGRESS,
        proxied,
        &[
            (&own, json!(PROXY)),
            ("$HTTPS_PROXY", json!("http://127.0.0.1:8090")),
        ],
    );
}

#[test]
pub(crate) fn image_registry_operator_depends_on_the_cloud() {
    let cloud = "pod/initContainers/cloud-token-minter";
    let own = "pod/initContainers/apiserver-token-minter";
    let issuer = ("/spec/issuerURL", json!("https://issuer.example.com"));
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    check(
        REGISTRY,
        &[
            (
                &[],
                &format!("{cloud}/args/0"),
                json!("--token-audience=openshift"),
            ),
            (
                &[issuer],
                &format!("{own}/args/0"),
                json!("--token-audience=https://issuer.example.com"),
            ),
            (
                &[],
                &format!("{own}/args/1"),
                json!("--service-account-namespace=openshift-image-registry"),
            ),
            (
                &[],
                &format!("{own}/args/2"),
                json!(format!("--service-account-name={REGISTRY}")),
            ),
            (
                &[],
                &format!("{own}/volumeMounts/1/name"),
                json!("kubeconfig"),
            ),
            (
                &[],
                "main/volumeMounts/apiserver-token/mountPath",
                json!(account),
            ),
            (&[platform("IBMCloud")], cloud, Value::Null),
            (
                &[platform("IBMCloud")],
                &format!("{own}/name"),
                json!("apiserver-token-minter"),
            ),
            (&[], "/spec/strategy/type", json!("Recreate")),
            (&[], "$HTTPS_PROXY", Value::Null),
            (&[], "pod/initContainers/availability-prober", Value::Null),
            (&[], "pod/volumes/ca-bundle/secret/items/1", Value::Null),
            (
                &[aro()],
                &format!("${CREDENTIALS}"),
                json!("/mnt/certs/imageregistry-creds"),
            ),
            (
                &[aro()],
                "main/volumeMounts/image-registry-cert/readOnly",
                json!(true),
            ),
            (
                &[aro()],
                "pod/volumes/image-registry-cert/csi/volumeAttributes/secretProviderClass",
                json!("managed-azure-image-registry"),
            ),
            (
                &[aro()],
                "SecretProviderClass/managed-azure-image-registry/spec",
                class("imageregistry-creds"),
            ),
            (&[self_managed()], &format!("${CREDENTIALS}"), Value::Null),
            (
                &[self_managed()],
                "pod/volumes/image-registry-cert",
                Value::Null,
            ),
            (
                &[],
                "PodMonitor/cluster-image-registry-operator/spec/podMetricsEndpoints/0/scheme",
                json!("https"),
            ),
            (
                &[],
                "PodMonitor/cluster-image-registry-operator/spec/podMetricsEndpoints/0/tlsConfig/serverName",
                json!(REGISTRY),
            ),
        ],
    );
    check_settings(
        REGISTRY,
        proxied,
        &[
            ("$HTTP_PROXY", json!(PROXY)),
            ("$NO_PROXY", json!(".example.com,kube-apiserver")),
        ],
    );
}

#[test]
pub(crate) fn storage_operator_depends_on_the_platform() {
    let classes = "$ARO_HCP_SECRET_PROVIDER_CLASS_FOR_";
    let disk_class = "SecretProviderClass/managed-azure-disk-csi/spec";
    check(
        STORAGE,
        &[
            (&[], "$RUN_AS_USER", Value::Null),
            (&[], "$HTTPS_PROXY", Value::Null),
            (&[], &format!("{classes}DISK"), Value::Null),
            (&[], "Secret/azure-disk-csi-config", Value::Null),
            (&[self_managed()], &format!("{classes}DISK"), Value::Null),
            (&[self_managed()], disk_class, Value::Null),
            (
                &[aro()],
                &format!("{classes}DISK"),
                json!("managed-azure-disk-csi"),
            ),
            (
                &[aro()],
                &format!("{classes}FILE"),
                json!("managed-azure-file-csi"),
            ),
            (&[aro()], disk_class, class("disk-creds")),
            (
                &[aro()],
                "SecretProviderClass/managed-azure-file-csi/spec",
                class("file-creds"),
            ),
            (
                &[],
                "pod/initContainers/availability-prober/command/5",
                json!("--required-api=operator.openshift.io,v1,Storage"),
            ),
            (&[], "pod/automountServiceAccountToken", json!(true)),
        ],
    );
    check_settings(
        STORAGE,
        |input| {
            proxied(input);
            input.settings.uid = Some(1001);
        },
        &[
            ("$RUN_AS_USER", json!("1001")),
            ("$HTTP_PROXY", json!(PROXY)),
            ("$HTTPS_PROXY", json!(PROXY)),
            ("$NO_PROXY", json!(".example.com,kube-apiserver")),
        ],
    );
}

#[test]
fn storage_drivers_on_azure_get_a_configuration_each() {
    use base64::Engine as _;
    let config = |change: (&'static str, Value), driver: &str| {
        let objects = objects(&with_settings(changed(&[change])), STORAGE);
        let path = format!("Secret/azure-{driver}-csi-config/data/cloud.conf");
        let text = at(&objects, STORAGE, &path);
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(text.as_str().unwrap()).unwrap();
        let config: Value = serde_json::from_slice(&bytes).unwrap();
        config
    };
    let (disk, file) = (
        config(self_managed(), "disk"),
        config(self_managed(), "file"),
    );
    let (own_disk, own_file) = (config(aro(), "disk"), config(aro(), "file"));
    for (config, field, expected) in [
        (&disk, "cloud", json!("AzurePublicCloud")),
        (&disk, "tenantId", json!("tenant")),
        (&disk, "subscriptionId", json!("subscription")),
        (&disk, "resourceGroup", json!("group")),
        (&disk, "location", json!("eastus")),
        (&disk, "vnetName", json!("vnet")),
        (&disk, "vnetResourceGroup", json!("network")),
        (&disk, "subnetName", json!("")),
        (&disk, "securityGroupName", json!("")),
        (&disk, "loadBalancerName", json!("")),
        (&disk, "cloudProviderBackoffDuration", json!(0)),
        (&disk, "useFederatedWorkloadIdentityExtension", json!(true)),
        (&disk, "aadClientId", json!("disk-id")),
        (&file, "aadClientId", json!("file-id")),
        (&file, "aadFederatedTokenFile", json!(CLOUD_TOKEN)),
        (&file, "aadMSIDataPlaneIdentityPath", json!("")),
        (
            &own_disk,
            "aadMSIDataPlaneIdentityPath",
            json!("/mnt/certs/disk-creds"),
        ),
        (
            &own_file,
            "aadMSIDataPlaneIdentityPath",
            json!("/mnt/certs/file-creds"),
        ),
        (
            &own_file,
            "useFederatedWorkloadIdentityExtension",
            json!(false),
        ),
        (&own_file, "aadClientId", json!("")),
        (&own_file, "useManagedIdentityExtension", json!(false)),
    ] {
        assert_eq!(config[field], expected, "{field}: {config:#}");
    }
}

#[test]
fn drivers_that_the_release_lacks_have_no_image() {
    let change = |input: &mut Input| {
        input.release.images.remove("ovirt-csi-driver");
    };
    check_settings(
        STORAGE,
        change,
        &[
            ("main/env/OVIRT_DRIVER_IMAGE", Value::Null),
            (
                "$OVIRT_DRIVER_OPERATOR_IMAGE",
                json!("ovirt-csi-driver-operator"),
            ),
        ],
    );
}

#[test]
pub(crate) fn snapshot_operator_depends_on_settings() {
    let labels = "RoleBinding/csi-snapshot-controller-operator-role/metadata/labels";
    check(
        SNAPSHOT,
        &[
            (&[], "$RUN_AS_USER", Value::Null),
            (
                &[],
                "main/env/POD_NAME/valueFrom/fieldRef/fieldPath",
                json!("metadata.name"),
            ),
            (
                &[],
                "pod/initContainers/availability-prober/command/5",
                json!("--required-api=operator.openshift.io,v1,CSISnapshotController"),
            ),
            (
                &[],
                "pod/initContainers/availability-prober/volumeMounts/0/name",
                json!("guest-kubeconfig"),
            ),
            (&[], "pod/automountServiceAccountToken", json!(true)),
            (
                &[],
                &format!("{labels}/kubernetes.io~1cluster-service"),
                json!("true"),
            ),
            (&[platform("None")], "/spec/replicas", json!(1)),
        ],
    );
    let uid = |input: &mut Input| input.settings.uid = Some(1001);
    check_settings(SNAPSHOT, uid, &[("$RUN_AS_USER", json!("1001"))]);
}

#[test]
pub(crate) fn node_tuning_operator_serves_metrics_under_its_name() {
    let endpoint = "ServiceMonitor/node-tuning-operator/spec/endpoints/0";
    check(
        TUNING,
        &[
            (
                &[("/metadata/namespace", json!("clusters-dev"))],
                &format!("{endpoint}/tlsConfig/serverName"),
                json!("node-tuning-operator.clusters-dev.svc"),
            ),
            (&[], &format!("{endpoint}/targetPort"), json!(60000)),
            (
                &[],
                "Service/node-tuning-operator/spec/ports/0/port",
                json!(60000),
            ),
            (&[], "pod/initContainers", Value::Null),
            (&[], "pod/automountServiceAccountToken", json!(true)),
            (
                &[(
                    "/spec/clusterID",
                    json!("7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11"),
                )],
                &format!("{endpoint}/metricRelabelings/0/replacement"),
                json!("7f3c9d52-0a51-4a63-9a3e-0f6f0c1f2b11"),
            ),
            (
                &[("/metadata/namespace", json!("clusters-dev"))],
                "ServiceMonitor/node-tuning-operator/spec/namespaceSelector/matchNames",
                json!(["clusters-dev"]),
            ),
        ],
    );
}

/// Check T16: ciphers are known names, so a profile cannot add settings to these files.
#[test]
fn tls_profiles_are_part_of_configurations() {
    let intermediate = json!([
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ]);
    let one = json!(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
    let custom = json!({
        "minTLSVersion": "VersionTLS11",
        "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "unknown\nbindAddress: a"],
    });
    let of = |type_: &str| profile(&json!({ "type": type_ }));
    for (name, config_map, address) in [
        (STORAGE, "cluster-storage-operator-config", "0.0.0.0:8443"),
        (
            SNAPSHOT,
            "csi-snapshot-controller-operator-config",
            "0.0.0.0:8443",
        ),
        (REGISTRY, "image-registry-controller-config", ":60000"),
    ] {
        for (changes, version, ciphers) in [
            (vec![], "VersionTLS12", intermediate.clone()),
            (
                vec![of("Intermediate")],
                "VersionTLS12",
                intermediate.clone(),
            ),
            (vec![of("Modern")], "VersionTLS13", Value::Null),
            (
                vec![profile(&json!({ "type": "Custom", "custom": custom }))],
                "VersionTLS11",
                one.clone(),
            ),
        ] {
            let objects = objects(&changed(&changes), name);
            let path = format!("ConfigMap/{config_map}/data/config.yaml");
            let text = at(&objects, name, &path);
            let config: Value = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
            let serving = &config["servingInfo"];
            assert_eq!(serving["bindAddress"], address, "{changes:?}");
            assert_eq!(serving["bindNetwork"], "", "{changes:?}");
            assert_eq!(serving["minTLSVersion"], version, "{name}: {changes:?}");
            assert_eq!(serving["cipherSuites"], ciphers, "{name}: {changes:?}");
        }
    }
}

#[test]
fn metrics_sets_select_series_of_operators() {
    let telemetry = |input: &mut Input| input.settings.metrics_set = Some(MetricsSet::Telemetry);
    let sre = |input: &mut Input| {
        input.settings.metrics_set = Some(MetricsSet::Sre);
        let rule = |name: &str| format!("{name}:\n- {{ action: keep, regex: {name} }}\n");
        let text = [rule("nodeTuningOperator"), rule("registryOperator")].concat();
        input.objects.insert(json!({
            "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" }, "data": { "config": text },
        }));
    };
    for (name, monitor, action, regex, key) in [
        (
            TUNING,
            "ServiceMonitor/node-tuning-operator/spec/endpoints/0",
            "keep",
            "nto_profile_calculated_total",
            "nodeTuningOperator",
        ),
        (
            INGRESS,
            "PodMonitor/ingress-operator/spec/podMetricsEndpoints/0",
            "drop",
            "(.*)",
            "registryOperator",
        ),
        (
            REGISTRY,
            "PodMonitor/cluster-image-registry-operator/spec/podMetricsEndpoints/0",
            "drop",
            "(.*)",
            "registryOperator",
        ),
    ] {
        let field = |field: &str| format!("{monitor}/metricRelabelings/0/{field}");
        let check = |change: &dyn Fn(&mut Input), action: &str, regex: Value| {
            let rows = [
                (&*field("action"), json!(action)),
                (&*field("regex"), regex),
            ];
            check_settings(name, change, &rows);
        };
        check(&|_| {}, "replace", Value::Null);
        check(&telemetry, action, json!(regex));
        check(&sre, "keep", json!(key));
    }
}

/// A control plane with two releases, whose images differ.
fn with_releases<T>(input: &Input, inspect: impl FnOnce(&Context<'_>) -> T) -> T {
    let release = |name: &str, version: &str| {
        let images = input.settings.image_overrides.keys();
        let images = images.map(|image| (image.clone(), format!("{name}/{image}")));
        Release {
            version: version.to_owned(),
            ..Release::default()
        }
        .with_overrides("own", &images.collect())
    };
    let context = Context {
        hcp: &input.hosted_control_plane,
        release: &release("control-plane", "4.20.1"),
        user_release: &release("guest", "4.20.0"),
        infra: &Infra::default(),
        objects: &input.objects,
        settings: &input.settings,
        predicates: Predicates::Evaluated,
    };
    inspect(&context)
}

#[test]
fn images_are_those_of_the_release_that_runs_them() {
    let (own, guest) = ("control-plane", "guest");
    let input = input::base();
    for (name, release, variable, image) in [
        (
            NETWORK,
            own,
            "MULTUS_ADMISSION_CONTROLLER_IMAGE",
            "multus-admission-controller",
        ),
        (NETWORK, own, "OVN_CONTROL_PLANE_IMAGE", "ovn-kubernetes"),
        (
            NETWORK,
            own,
            "CLOUD_NETWORK_CONFIG_CONTROLLER_IMAGE",
            "cloud-network-config-controller",
        ),
        (NETWORK, own, "TOKEN_MINTER_IMAGE", "token-minter"),
        (NETWORK, own, "CLI_CONTROL_PLANE_IMAGE", "cli"),
        (NETWORK, own, "SOCKS5_PROXY_IMAGE", "socks5-proxy"),
        (NETWORK, guest, "KUBE_PROXY_IMAGE", "kube-proxy"),
        (NETWORK, guest, "OVN_IMAGE", "ovn-kubernetes"),
        (NETWORK, guest, "CLI_IMAGE", "cli"),
        (NETWORK, guest, "FRR_K8S_IMAGE", "metallb-frr"),
        (
            NETWORK,
            guest,
            "NETWORK_CHECK_TARGET_IMAGE",
            "cluster-network-operator",
        ),
        (DNS, guest, "IMAGE", "coredns"),
        (DNS, guest, "OPENSHIFT_CLI_IMAGE", "cli"),
        (DNS, guest, "KUBE_RBAC_PROXY_IMAGE", "kube-rbac-proxy"),
        (INGRESS, guest, "IMAGE", "haproxy-router"),
        (
            INGRESS,
            guest,
            "HAPROXY_28_IMAGE",
            "haproxy-router-haproxy28",
        ),
        (
            INGRESS,
            guest,
            "HAPROXY_32_IMAGE",
            "haproxy-router-haproxy32",
        ),
        (INGRESS, guest, "CANARY_IMAGE", "cluster-ingress-operator"),
        (
            STORAGE,
            guest,
            "NODE_DRIVER_REGISTRAR_IMAGE",
            "csi-node-driver-registrar",
        ),
        (STORAGE, guest, "LIVENESS_PROBE_IMAGE", "csi-livenessprobe"),
        (STORAGE, guest, "KUBE_RBAC_PROXY_IMAGE", "kube-rbac-proxy"),
        (
            STORAGE,
            guest,
            "CLUSTER_CLOUD_CONTROLLER_MANAGER_OPERATOR_IMAGE",
            "cluster-cloud-controller-manager-operator",
        ),
        (STORAGE, guest, "AWS_EBS_DRIVER_IMAGE", "aws-ebs-csi-driver"),
        (STORAGE, guest, "MANILA_NFS_DRIVER_IMAGE", "csi-driver-nfs"),
        (
            STORAGE,
            own,
            "AWS_EBS_DRIVER_CONTROL_PLANE_IMAGE",
            "aws-ebs-csi-driver",
        ),
        (
            STORAGE,
            own,
            "AWS_EBS_DRIVER_OPERATOR_IMAGE",
            "aws-ebs-csi-driver-operator",
        ),
        (
            STORAGE,
            own,
            "LIVENESS_PROBE_CONTROL_PLANE_IMAGE",
            "csi-livenessprobe",
        ),
        (
            STORAGE,
            own,
            "PROVISIONER_IMAGE",
            "csi-external-provisioner",
        ),
        (STORAGE, own, "HYPERSHIFT_IMAGE", "token-minter"),
        (STORAGE, own, "TOOLS_IMAGE", "tools"),
        (SNAPSHOT, own, "OPERAND_IMAGE", "csi-snapshot-controller"),
        (
            REGISTRY,
            own,
            "OPERATOR_IMAGE",
            "cluster-image-registry-operator",
        ),
        (REGISTRY, guest, "IMAGE", "docker-registry"),
        (REGISTRY, guest, "IMAGE_PRUNER", "cli"),
        (
            TUNING,
            guest,
            "CLUSTER_NODE_TUNED_IMAGE",
            "cluster-node-tuning-operator",
        ),
    ] {
        let rendered = with_releases(&input, |context| render(component(name), context).unwrap());
        let objects: Vec<_> = rendered.objects().cloned().collect();
        let found = at(&objects, name, &format!("${variable}"));
        assert_eq!(found, format!("{release}/{image}"), "{name}: {variable}");
    }
}

/// Operators report the version that users see.
#[test]
fn versions_are_those_of_the_guest() {
    let input = input::base();
    for (name, variables) in [
        (NETWORK, &["RELEASE_VERSION"][..]),
        (DNS, &["RELEASE_VERSION"]),
        (INGRESS, &["RELEASE_VERSION"]),
        (TUNING, &["RELEASE_VERSION"]),
        (
            STORAGE,
            &["OPERATOR_IMAGE_VERSION", "OPERAND_IMAGE_VERSION"],
        ),
        (
            SNAPSHOT,
            &["OPERATOR_IMAGE_VERSION", "OPERAND_IMAGE_VERSION"],
        ),
        (REGISTRY, &["RELEASE_VERSION", "OPERATOR_IMAGE_VERSION"]),
    ] {
        let rendered = with_releases(&input, |context| render(component(name), context).unwrap());
        let objects: Vec<_> = rendered.objects().cloned().collect();
        for variable in variables {
            let found = at(&objects, name, &format!("${variable}"));
            assert_eq!(found, "4.20.0", "{name}: {variable}");
        }
    }
}

#[test]
fn operands_depend_on_network_and_platform() {
    let ovn = || networking(&json!({ "networkType": "OVNKubernetes" }));
    let single = json!({ "clusterNetworkOperator": { "disableMultiNetwork": true } });
    let single = ("/spec/operatorConfiguration", single);
    let (multus, cloud) = (
        "multus-admission-controller",
        "cloud-network-config-controller",
    );
    let (control_plane, identity) = ("ovnkube-control-plane", "network-node-identity");
    for (name, changes, expected) in [
        (
            NETWORK,
            vec![ovn()],
            &[control_plane, identity, cloud, multus][..],
        ),
        (
            NETWORK,
            vec![ovn(), self_managed()],
            &[control_plane, identity, cloud, multus],
        ),
        (
            NETWORK,
            vec![ovn(), platform("None")],
            &[control_plane, identity, multus],
        ),
        (
            NETWORK,
            vec![ovn(), platform("KubeVirt")],
            &[control_plane, identity, multus],
        ),
        (NETWORK, vec![], &[multus]),
        (NETWORK, vec![single.clone()], &[]),
        (
            NETWORK,
            vec![ovn(), platform("Agent"), single],
            &[control_plane, identity],
        ),
        (
            STORAGE,
            vec![],
            &[
                "aws-ebs-csi-driver-operator",
                "aws-ebs-csi-driver-controller",
            ],
        ),
        (
            STORAGE,
            vec![aro()],
            &[
                "azure-disk-csi-driver-operator",
                "azure-disk-csi-driver-controller",
                "azure-file-csi-driver-operator",
                "azure-file-csi-driver-controller",
            ],
        ),
        (STORAGE, vec![platform("None")], &[]),
        (
            SNAPSHOT,
            vec![platform("None")],
            &["csi-snapshot-controller"],
        ),
        (DNS, vec![], &[]),
    ] {
        let lacking = with_releases(&changed(&changes), |context| {
            waiting(component(name), context)
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|deployment| format!("Deployment {deployment} does not exist"))
            .collect();
        assert_eq!(lacking, expected, "{name}: {changes:?}");
    }
}

/// The compared container of each operand, and its image.
#[test]
fn operands_are_compared_with_the_release_of_the_control_plane() {
    let ovn = networking(&json!({ "networkType": "OVNKubernetes" }));
    for (name, platform, deployment, container, image) in [
        (
            NETWORK,
            None,
            "ovnkube-control-plane",
            "ovnkube-control-plane",
            "ovn-kubernetes",
        ),
        (
            NETWORK,
            None,
            "network-node-identity",
            "approver",
            "ovn-kubernetes",
        ),
        (
            NETWORK,
            None,
            "cloud-network-config-controller",
            "controller",
            "cloud-network-config-controller",
        ),
        (
            NETWORK,
            None,
            "multus-admission-controller",
            "multus-admission-controller",
            "multus-admission-controller",
        ),
        (
            STORAGE,
            None,
            "aws-ebs-csi-driver-controller",
            "csi-driver",
            "aws-ebs-csi-driver",
        ),
        (
            STORAGE,
            Some(aro()),
            "azure-disk-csi-driver-controller",
            "csi-driver",
            "azure-disk-csi-driver",
        ),
        (
            STORAGE,
            Some(aro()),
            "azure-file-csi-driver-controller",
            "csi-driver",
            "azure-file-csi-driver",
        ),
        (
            SNAPSHOT,
            None,
            "csi-snapshot-controller",
            "snapshot-controller",
            "csi-snapshot-controller",
        ),
    ] {
        let changes: Vec<_> = platform.into_iter().chain([ovn.clone()]).collect();
        let lacks = |release: &str| {
            let mut input = changed(&changes);
            let image = format!("{release}/{image}");
            let containers = [json!({ "name": container, "image": image })];
            input.objects.insert(json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": deployment },
                "spec": { "selector": {}, "template": { "spec": { "containers": containers } } },
                "status": {
                    "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                },
            }));
            let lacking = with_releases(&input, |context| waiting(component(name), context));
            let about = format!("Deployment {deployment} ");
            let mut lacking = lacking.into_iter();
            lacking.find(|text| text.starts_with(&about))
        };
        assert_eq!(lacks("control-plane"), None, "{deployment}");
        let old = lacks("guest").unwrap_or_default();
        assert!(
            old.contains("instead of control-plane/"),
            "{deployment}: {old}"
        );
    }
}

#[test]
fn operators_run_where_the_cluster_has_their_part() {
    let is_rendered = |name: &str, changes: Changes<'_>| {
        let mut input = with_settings(changed(changes));
        input.predicates = Predicates::Evaluated;
        !objects(&input, name).is_empty()
    };
    for (name, changes, expected) in [
        (
            REGISTRY,
            vec![without_capabilities(&["ImageRegistry"])],
            false,
        ),
        (
            REGISTRY,
            vec![without_capabilities(&["Ingress", "NodeTuning"])],
            true,
        ),
        (
            INGRESS,
            vec![without_capabilities(&["Console", "Ingress"])],
            false,
        ),
        (
            INGRESS,
            vec![without_capabilities(&["ImageRegistry"])],
            true,
        ),
        (TUNING, vec![without_capabilities(&["NodeTuning"])], false),
        (TUNING, vec![without_capabilities(&["ImageRegistry"])], true),
        (STORAGE, vec![platform("IBMCloud")], false),
        (STORAGE, vec![platform("PowerVS")], false),
        (STORAGE, vec![platform("KubeVirt")], true),
        (STORAGE, vec![platform("None")], true),
        (STORAGE, vec![self_managed()], true),
        (SNAPSHOT, vec![platform("IBMCloud")], false),
        (SNAPSHOT, vec![platform("PowerVS")], false),
        (SNAPSHOT, vec![platform("Agent")], true),
        (NETWORK, vec![without_capabilities(&["NodeTuning"])], true),
        (NETWORK, vec![platform("PowerVS")], true),
        (
            DNS,
            vec![without_capabilities(&["Console", "Ingress"])],
            true,
        ),
        (DNS, vec![platform("None")], true),
    ] {
        assert_eq!(is_rendered(name, &changes), expected, "{name}: {changes:?}");
    }
}

/// A disabled operator leaves nothing behind, not even what exists on one platform only.
#[test]
fn objects_of_disabled_operators_are_deleted() {
    let mut input = with_settings(changed(&[without_capabilities(&[
        "ImageRegistry",
        "Console",
        "Ingress",
    ])]));
    input.predicates = Predicates::Evaluated;
    for (name, expected) in [
        (REGISTRY, "image-registry-controller-config"),
        (REGISTRY, "managed-azure-image-registry"),
        (INGRESS, "ingress-operator-service-account-kubeconfig"),
        (INGRESS, "managed-azure-ingress"),
    ] {
        let rendered = with_releases(&input, |context| render(component(name), context).unwrap());
        assert!(rendered.workload.is_none(), "{name}");
        let mut deleted = rendered.deletions.iter();
        assert!(
            deleted.any(|identity| identity.name == expected),
            "{name}: {expected}"
        );
    }
}

#[test]
fn operators_wait_for_the_api_servers() {
    for name in OPERATORS {
        let all = with_releases(&input::base(), |context| {
            dependencies(component(name), context)
        });
        assert_eq!(all, ["openshift-apiserver", "kube-apiserver"], "{name}");
    }
}

#[test]
fn certificates_have_the_names_of_the_services() {
    let namespace = "hcp-namespace";
    let service = |name: &str| {
        vec![
            name.to_owned(),
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.cluster.local"),
        ]
    };
    let with_localhost = |name: &str| {
        let mut names = service(name);
        names.push("localhost".to_owned());
        names
    };
    let local = |name: &str| vec![name.to_owned(), "localhost".to_owned()];
    let dns = |fields: Value| ("/spec/dns", fields);
    for (name, changes, secret, expected) in [
        (
            TUNING,
            vec![],
            "node-tuning-operator-tls",
            Some(service("node-tuning-operator")),
        ),
        (REGISTRY, vec![], REGISTRY, Some(local(REGISTRY))),
        (
            STORAGE,
            vec![],
            "cluster-storage-operator-serving-cert",
            Some(local(STORAGE)),
        ),
        (
            SNAPSHOT,
            vec![],
            "csi-snapshot-controller-operator-serving-cert",
            Some(local(SNAPSHOT)),
        ),
        (
            NETWORK,
            vec![],
            "ovn-control-plane-metrics-cert",
            Some(with_localhost("ovn-kubernetes-control-plane")),
        ),
        (
            STORAGE,
            vec![],
            "aws-ebs-csi-driver-controller-metrics-serving-cert",
            Some(with_localhost("aws-ebs-csi-driver-controller-metrics")),
        ),
        (
            STORAGE,
            vec![self_managed()],
            "aws-ebs-csi-driver-operator-serving-cert",
            None,
        ),
        (
            STORAGE,
            vec![self_managed()],
            "azure-file-csi-driver-operator-serving-cert",
            Some(with_localhost("azure-file-csi-driver-operator")),
        ),
        (
            INGRESS,
            vec![dns(json!({ "baseDomain": "example.com" }))],
            "ingress-crt",
            Some(vec!["*.apps.hcp.example.com".to_owned()]),
        ),
        (
            INGRESS,
            vec![dns(
                json!({ "baseDomain": "example.com", "baseDomainPrefix": "" }),
            )],
            "ingress-crt",
            Some(vec!["*.apps.example.com".to_owned()]),
        ),
        (
            INGRESS,
            vec![dns(
                json!({ "baseDomain": "example.com", "baseDomainPrefix": "a" }),
            )],
            "ingress-crt",
            Some(vec!["*.apps.a.example.com".to_owned()]),
        ),
    ] {
        let leaves = with_releases(&changed(&changes), |context| {
            component(name).certificates(context)
        });
        let found = leaves.into_iter().find(|leaf| leaf.secret == secret);
        assert_eq!(found.map(|leaf| leaf.names), expected, "{name}: {secret}");
    }
}

/// The management cluster issues a certificate itself if the operator's Service asks for one.
#[test]
fn certificates_of_annotated_services_are_not_issued_twice() {
    let name = "network-node-identity";
    let issued = |annotations: Value| {
        let mut input = input::base();
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "annotations": annotations },
        }));
        let leaves = with_releases(&input, |context| component(NETWORK).certificates(context));
        let secrets: Vec<_> = leaves.into_iter().map(|leaf| leaf.secret).collect();
        (secrets.len(), secrets.contains(&format!("{name}-secret")))
    };
    let annotation = "service.beta.openshift.io/serving-cert-secret-name";
    assert_eq!(issued(json!({})), (3, true));
    assert_eq!(
        issued(json!({ annotation: "network-node-identity-secret" })),
        (2, false)
    );
}

/// What the policy for control planes lets Roles grant writes of.
fn may_write(group: &str, resource: &str) -> bool {
    let kind = resource.split('/').next().unwrap_or_default();
    match group {
        "" => !["*", "namespaces", "resourcequotas", "limitranges"].contains(&kind),
        "hypershift.openshift.io" => !["*", "hostedclusters", "nodepools"].contains(&kind),
        "monitoring.coreos.com" | "monitoring.rhobs" => {
            ["podmonitors", "prometheusrules", "servicemonitors"].contains(&resource)
        }
        "apps"
        | "coordination.k8s.io"
        | "policy"
        | "rbac.authorization.k8s.io"
        | "route.openshift.io" => true,
        _ => false,
    }
}

/// Check T05: the policy in `cli` rejects other Roles.
#[test]
fn roles_of_operators_stay_within_the_policy_for_control_planes() {
    let ovn = networking(&json!({ "networkType": "OVNKubernetes" }));
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut granted = 0;
    for (name, input) in OPERATORS
        .iter()
        .flat_map(|name| [vec![], vec![ovn.clone()]].map(|changes| (*name, changed(&changes))))
    {
        for object in objects(&input, name) {
            if object["kind"] == "RoleBinding" {
                assert_eq!(object["roleRef"]["kind"], "Role", "{object}");
                for subject in object["subjects"].as_array().unwrap() {
                    assert_eq!(subject["kind"], "ServiceAccount", "{object}");
                    assert_eq!(subject["namespace"], object["metadata"]["namespace"]);
                }
            }
            for rule in object["rules"].as_array().into_iter().flatten() {
                let reads = ["get", "list", "watch"];
                if texts(&rule["verbs"])
                    .iter()
                    .all(|verb| reads.contains(&verb.as_str()))
                {
                    continue;
                }
                for group in texts(&rule["apiGroups"]) {
                    for resource in texts(&rule["resources"]) {
                        granted += 1;
                        assert!(may_write(&group, &resource), "{name}: {rule}");
                    }
                }
            }
        }
    }
    assert!(granted >= 40, "{granted}");
}
