//! How inputs change OpenShift's API servers and controller managers: one row for each statement.

use std::fmt::Write as _;

use control_plane_component::Predicates;
use control_plane_component::proxy::OwnProxy;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::variants::{changed, object};

const API: &str = "openshift-apiserver";
const OAUTH: &str = "openshift-oauth-apiserver";
const CONTROLLERS: &str = "openshift-controller-manager";
const ROUTES: &str = "openshift-route-controller-manager";
const POLICY: &str = "cluster-policy-controller";
const VERSION: &str = "cluster-version-operator";
const APISERVER: &str = "/spec/configuration/apiServer";
const IMAGE: &str = "/spec/configuration/image";

/// Name, changes of the hosted control plane (JSON pointers), object (`Kind/name`), path in it (see [`at`]), value.
pub(crate) type Row<'a> = (&'a str, &'a [(&'a str, Value)], &'a str, &'a str, Value);

/// Returns the value at a path: a JSON pointer that also enters embedded YAML, selects items of a list by name, and
/// arguments by their flag. It is null if there is none.
fn at(object: &Value, path: &str) -> Value {
    let segments = path.split('/').skip(1);
    segments.fold(object.clone(), |value, segment| {
        let segment = segment.replace("~1", "/");
        match &value {
            Value::String(text) => {
                let embedded: Value = serde_saphyr::from_str(text).unwrap();
                embedded[segment.as_str()].clone()
            }
            Value::Array(items) => item(items, &segment).cloned().unwrap_or_default(),
            _ => value[segment.as_str()].clone(),
        }
    })
}

fn item<'a>(items: &'a [Value], segment: &str) -> Option<&'a Value> {
    if segment == "-" {
        return items.last();
    }
    if let Ok(index) = segment.parse::<usize>() {
        return items.get(index);
    }
    items.iter().find(|item| {
        let text = item.as_str().unwrap_or_default();
        let flag = text.split('=').next();
        item["name"] == segment || flag == Some(segment)
    })
}

/// Returns the object of the component, or null.
fn rendered(input: &Input, component: &str, id: &str) -> Value {
    let (kind, name) = id.split_once('/').unwrap();
    let mut input = input.clone();
    input.predicates = Predicates::Evaluated;
    object(&input, component, kind, name)
}

/// Evaluates rows with an input that `prepare` changed.
pub(crate) fn evaluate(component: &str, prepare: impl Fn(&mut Input), rows: &[Row<'_>]) {
    let mut failures = String::new();
    for (name, changes, id, path, expected) in rows {
        let mut input = changed(changes);
        prepare(&mut input);
        let found = at(&rendered(&input, component, id), path);
        if found != *expected {
            let _ = writeln!(
                failures,
                "{name}: {id} {path}: {expected} expected: {found}"
            );
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    crate::rows::count(rows.len());
}

pub(crate) fn check(component: &str, rows: &[Row<'_>]) {
    evaluate(component, |_| {}, rows);
}

/// A `ConfigMap` with one key.
fn config_map(name: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { key: text },
    })
}

fn tls(profile: &str) -> Value {
    json!({ "tlsSecurityProfile": { "type": profile } })
}

fn custom_tls() -> Value {
    json!({ "tlsSecurityProfile": { "type": "Custom", "custom": {
        "minTLSVersion": "VersionTLS11",
        "ciphers": ["ECDHE-RSA-AES256-SHA", "UNKNOWN", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"],
    } } })
}

fn audit(profile: &str) -> Value {
    json!({ "audit": { "profile": profile } })
}

fn etcd(endpoint: &str) -> Value {
    json!({ "managementType": "Unmanaged", "unmanaged": {
        "endpoint": endpoint, "tls": { "clientSecret": { "name": "etcd" } },
    } })
}

fn without(capability: &str) -> Value {
    json!({ "disabled": [capability] })
}

fn disable_monitoring() -> Value {
    json!({ "hypershift.openshift.io/disable-monitoring-services": "true" })
}

fn external_ip() -> Value {
    json!({ "externalIP": { "autoAssignCIDRs": ["192.0.2.0/24", "198.51.100.0/24"] } })
}

pub(crate) fn feature_gate(enabled: &[&str], disabled: &[&str]) -> Value {
    let names = |names: &[&str]| -> Vec<_> {
        let names = names.iter();
        names.map(|name| json!({ "name": name })).collect()
    };
    let gate = json!({ "status": { "featureGates": [
        { "version": "4.20.0", "enabled": names(enabled), "disabled": names(disabled) },
    ] } });
    config_map("feature-gate", "feature-gate.yaml", &gate.to_string())
}

/// The suites of the profiles Intermediate and Old.
fn suites(profile: &str) -> Value {
    let mut suites = vec![
        "ECDSA_WITH_AES_128_GCM_SHA256",
        "RSA_WITH_AES_128_GCM_SHA256",
        "ECDSA_WITH_AES_256_GCM_SHA384",
        "RSA_WITH_AES_256_GCM_SHA384",
        "ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "RSA_WITH_CHACHA20_POLY1305_SHA256",
    ];
    if profile == "Old" {
        suites.extend([
            "ECDSA_WITH_AES_128_CBC_SHA",
            "RSA_WITH_AES_128_CBC_SHA",
            "ECDSA_WITH_AES_256_CBC_SHA",
            "RSA_WITH_AES_256_CBC_SHA",
        ]);
    }
    let suites = suites.iter().map(|suite| format!("TLS_ECDHE_{suite}"));
    suites.collect()
}

/// Statements about TLS profiles, for a component with a configuration.
pub(crate) fn check_tls_config(component: &str, config_map: &str) {
    let id = format!("ConfigMap/{config_map}");
    let version = "/data/config.yaml/servingInfo/minTLSVersion";
    let ciphers = "/data/config.yaml/servingInfo/cipherSuites";
    let custom = json!([
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ]);
    check(
        component,
        &[
            ("no profile", &[], &id, version, json!("VersionTLS12")),
            ("no profile", &[], &id, ciphers, suites("Intermediate")),
            (
                "intermediate",
                &[(APISERVER, tls("Intermediate"))],
                &id,
                ciphers,
                suites("Intermediate"),
            ),
            (
                "old",
                &[(APISERVER, tls("Old"))],
                &id,
                version,
                json!("VersionTLS10"),
            ),
            (
                "old",
                &[(APISERVER, tls("Old"))],
                &id,
                ciphers,
                suites("Old"),
            ),
            (
                "modern",
                &[(APISERVER, tls("Modern"))],
                &id,
                version,
                json!("VersionTLS13"),
            ),
            (
                "modern",
                &[(APISERVER, tls("Modern"))],
                &id,
                ciphers,
                Value::Null,
            ),
            (
                "custom",
                &[(APISERVER, custom_tls())],
                &id,
                version,
                json!("VersionTLS11"),
            ),
            ("custom", &[(APISERVER, custom_tls())], &id, ciphers, custom),
        ],
    );
}

/// Statements about the feature gates of a component with a configuration.
pub(crate) fn check_feature_gates(component: &str, id: &str, path: &str, added: &[&str]) {
    let gates = |gates: &[&str]| json!([gates, added].concat());
    for (gate, expected) in [
        (
            feature_gate(&["B", "A"], &["D", "C"]),
            gates(&["B=true", "A=true", "D=false", "C=false"]),
        ),
        (
            feature_gate(&["OpenShiftPodSecurityAdmission"], &[]),
            gates(&["OpenShiftPodSecurityAdmission=true"]),
        ),
    ] {
        let prepare = |input: &mut Input| input.objects.insert(gate.clone());
        evaluate(component, prepare, &[("gates", &[], id, path, expected)]);
    }
    let mut missing = changed(&[]);
    missing
        .objects
        .insert(config_map("feature-gate", "other", ""));
    let error = error_of(&missing, component);
    assert!(error.contains("feature-gate"), "{error}");
}

fn error_of(input: &Input, component: &str) -> String {
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    let error = input.component(component).unwrap_err();
    support::error::chain(&error)
}

/// Statements about replicas and disruption.
fn check_availability(component: &str, replicas: i32) {
    let single = ("/spec/controllerAvailabilityPolicy", json!("SingleReplica"));
    let id = format!("Deployment/{component}");
    let keys = "/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey";
    check(
        component,
        &[
            (
                "highly available",
                &[],
                &id,
                "/spec/replicas",
                json!(replicas),
            ),
            (
                "single",
                std::slice::from_ref(&single),
                &id,
                "/spec/replicas",
                json!(1),
            ),
            (
                "zones",
                &[],
                &id,
                keys,
                json!("topology.kubernetes.io/zone"),
            ),
            (
                "one zone",
                std::slice::from_ref(&single),
                &id,
                keys,
                Value::Null,
            ),
        ],
    );
}

/// Statements about audit logs, for an API server.
fn check_audit(component: &str, config_map: &str, volume: &str) {
    let id = format!("ConfigMap/{config_map}");
    let workload = format!("Deployment/{component}");
    let logs = "/spec/template/spec/containers/audit-logs/name";
    let mount =
        format!("/spec/template/spec/containers/{component}/volumeMounts/{volume}/mountPath");
    let secret = format!("/spec/template/spec/volumes/{volume}/secret/secretName");
    let custom = json!({ "audit": {
        "profile": "None",
        "customRules": [{ "group": "system:authenticated:oauth", "profile": "WriteRequestBodies" }],
    } });
    let webhook = [("/spec/auditWebhook", json!({ "name": "webhook" }))];
    let rule = "/data/policy.yaml/rules";
    let all = audit("AllRequestBodies");
    let writes = audit("WriteRequestBodies");
    check(
        component,
        &[
            ("default", &[], &id, "/data/profile", json!("Default")),
            (
                "default",
                &[],
                &id,
                &format!("{rule}/0/level"),
                json!("None"),
            ),
            (
                "default",
                &[],
                &id,
                &format!("{rule}/2/level"),
                json!("RequestResponse"),
            ),
            (
                "default",
                &[],
                &id,
                &format!("{rule}/2/resources/0/group"),
                json!("user.openshift.io"),
            ),
            (
                "default",
                &[],
                &id,
                &format!("{rule}/3/level"),
                json!("Metadata"),
            ),
            ("default", &[], &id, &format!("{rule}/4"), Value::Null),
            ("logs", &[], &workload, logs, json!("audit-logs")),
            (
                "none",
                &[(APISERVER, audit("None"))],
                &id,
                "/data/profile",
                json!("None"),
            ),
            (
                "none",
                &[(APISERVER, audit("None"))],
                &id,
                &format!("{rule}/2"),
                json!({ "level": "None" }),
            ),
            (
                "none",
                &[(APISERVER, audit("None"))],
                &workload,
                logs,
                Value::Null,
            ),
            (
                "writes",
                &[(APISERVER, writes.clone())],
                &id,
                &format!("{rule}/2/level"),
                json!("Metadata"),
            ),
            (
                "writes: secrets are not logged",
                &[(APISERVER, writes.clone())],
                &id,
                &format!("{rule}/2/resources/1/resources"),
                json!(["secrets", "serviceaccounts/token"]),
            ),
            (
                "writes",
                &[(APISERVER, writes.clone())],
                &id,
                &format!("{rule}/3/verbs/-"),
                json!("deletecollection"),
            ),
            (
                "writes",
                &[(APISERVER, writes)],
                &id,
                &format!("{rule}/4/level"),
                json!("Metadata"),
            ),
            (
                "all",
                &[(APISERVER, all.clone())],
                &id,
                &format!("{rule}/3"),
                json!({ "level": "RequestResponse" }),
            ),
            (
                "all",
                &[(APISERVER, all.clone())],
                &id,
                &format!("{rule}/4"),
                Value::Null,
            ),
            (
                "all",
                &[(APISERVER, all)],
                &workload,
                logs,
                json!("audit-logs"),
            ),
            (
                "custom",
                &[(APISERVER, custom.clone())],
                &id,
                &format!("{rule}/2/userGroups"),
                json!(["system:authenticated:oauth"]),
            ),
            (
                "custom",
                &[(APISERVER, custom.clone())],
                &id,
                &format!("{rule}/3/level"),
                json!("RequestResponse"),
            ),
            (
                "custom",
                &[(APISERVER, custom)],
                &id,
                &format!("{rule}/5"),
                json!({ "level": "None" }),
            ),
            ("no webhook", &[], &workload, &mount, Value::Null),
            (
                "webhook",
                &webhook,
                &workload,
                &mount,
                json!("/etc/kubernetes/auditwebhook"),
            ),
            ("webhook", &webhook, &workload, &secret, json!("webhook")),
        ],
    );
}

/// Statements about the check of the guest's API server, and the probe before the start.
fn check_readiness(component: &str) {
    let id = format!("Deployment/{component}");
    let check_path =
        "/spec/template/spec/containers/kas-readiness-check/readinessProbe/exec/command/2";
    let request = |port: i32| {
        json!(format!(
            "curl --insecure --fail --silent --max-time 4 --output /dev/null https://kube-apiserver:{port}/livez"
        ))
    };
    let prober = "/spec/template/spec/initContainers/availability-prober/command/-";
    let ibm = [("/spec/platform/type", json!("IBMCloud"))];
    let url = "https://kube-apiserver:2040/readyz";
    check(
        component,
        &[
            ("readiness", &[], &id, check_path, request(6443)),
            (
                "readiness on IBM Cloud",
                &ibm,
                &id,
                check_path,
                request(2040),
            ),
            ("prober on IBM Cloud", &ibm, &id, prober, json!(url)),
        ],
    );
}

#[test]
pub(crate) fn openshift_apiserver_shares_settings_of_api_servers() {
    check_tls_config(API, API);
    check_audit(API, "openshift-apiserver-audit", "oas-audit-webhook");
    check_availability(API, 3);
    check_readiness(API);
    let gates = "/data/config.yaml/apiServerArguments/feature-gates";
    let id = "ConfigMap/openshift-apiserver";
    check_feature_gates(API, id, gates, &["WatchList=false"]);
    let enabled = feature_gate(&["A", "WatchList"], &["B", "WatchListClient"]);
    let expected = json!([
        "A=true",
        "B=false",
        "WatchListClient=false",
        "WatchList=false"
    ]);
    let prepare = |input: &mut Input| input.objects.insert(enabled.clone());
    evaluate(API, prepare, &[("WatchList", &[], id, gates, expected)]);
}

#[test]
fn audit_of_the_api_server_follows_the_profile() {
    check_audit("kube-apiserver", "kas-audit-config", "kas-audit-webhook");
}

#[test]
pub(crate) fn openshift_apiserver_config_follows_the_hosted_control_plane() {
    let id = "ConfigMap/openshift-apiserver";
    let images = "/data/config.yaml/imagePolicyConfig";
    let internal = format!("{images}/internalRegistryHostname");
    let allowed = format!("{images}/allowedRegistriesForImport");
    let subdomain = "/data/config.yaml/routingConfig/subdomain";
    let urls = "/data/config.yaml/storageConfig/urls";
    let webhook = "/data/config.yaml/apiServerArguments/audit-webhook-config-file";
    let names =
        json!({ "externalRegistryHostnames": ["images.example.com", "second.example.com"] });
    let registries = json!({ "allowedRegistriesForImport": [
        { "domainName": "a.example.com", "insecure": true }, { "domainName": "b.example.com" },
    ] });
    let dns = |prefix: Value| json!({ "baseDomain": "example.com", "baseDomainPrefix": prefix });
    let ingress = "/spec/configuration/ingress";
    check(
        API,
        &[
            (
                "registry",
                &[],
                id,
                &internal,
                json!("image-registry.openshift-image-registry.svc:5000"),
            ),
            (
                "no registry",
                &[("/spec/capabilities", without("ImageRegistry"))],
                id,
                &internal,
                json!(""),
            ),
            (
                "another capability",
                &[("/spec/capabilities", without("Console"))],
                id,
                &internal,
                json!("image-registry.openshift-image-registry.svc:5000"),
            ),
            (
                "external names",
                &[(IMAGE, names)],
                id,
                &format!("{images}/externalRegistryHostnames"),
                json!(["images.example.com", "second.example.com"]),
            ),
            (
                "allowed registries",
                &[(IMAGE, registries.clone())],
                id,
                &format!("{allowed}/0"),
                json!({ "domainName": "a.example.com", "insecure": true }),
            ),
            (
                "allowed registries",
                &[(IMAGE, registries)],
                id,
                &format!("{allowed}/1/insecure"),
                json!(false),
            ),
            ("any registry", &[], id, &allowed, Value::Null),
            (
                "apps domain of the user",
                &[(
                    ingress,
                    json!({ "appsDomain": "a.example.com", "domain": "b.example.com" }),
                )],
                id,
                subdomain,
                json!("a.example.com"),
            ),
            (
                "ingress domain",
                &[(
                    ingress,
                    json!({ "appsDomain": "", "domain": "b.example.com" }),
                )],
                id,
                subdomain,
                json!("b.example.com"),
            ),
            (
                "base domain",
                &[("/spec/dns", json!({ "baseDomain": "example.com" }))],
                id,
                subdomain,
                json!("apps.hcp.example.com"),
            ),
            (
                "base domain prefix",
                &[("/spec/dns", dns(json!("prod")))],
                id,
                subdomain,
                json!("apps.prod.example.com"),
            ),
            (
                "no base domain prefix",
                &[("/spec/dns", dns(json!("")))],
                id,
                subdomain,
                json!("apps.example.com"),
            ),
            (
                "managed etcd",
                &[],
                id,
                urls,
                json!(["https://etcd-client:2379"]),
            ),
            (
                "unmanaged etcd",
                &[("/spec/etcd", etcd("https://etcd.example.com:2379"))],
                id,
                urls,
                json!(["https://etcd.example.com:2379"]),
            ),
            ("no webhook", &[], id, webhook, Value::Null),
            (
                "webhook",
                &[("/spec/auditWebhook", json!({ "name": "webhook" }))],
                id,
                webhook,
                json!(["/etc/kubernetes/auditwebhook/webhook-kubeconfig"]),
            ),
            (
                "webhook",
                &[("/spec/auditWebhook", json!({ "name": "webhook" }))],
                id,
                "/data/config.yaml/apiServerArguments/audit-webhook-mode",
                json!(["batch"]),
            ),
            (
                "webhook",
                &[("/spec/auditWebhook", json!({ "name": "webhook" }))],
                id,
                "/data/config.yaml/apiServerArguments/audit-webhook-initial-backoff",
                json!(["5s"]),
            ),
        ],
    );
}

#[test]
pub(crate) fn openshift_apiserver_config_follows_the_guest_project() {
    let id = "ConfigMap/openshift-apiserver";
    let message = "/data/config.yaml/projectConfig/projectRequestMessage";
    let template = "/data/config.yaml/projectConfig/projectRequestTemplate";
    let injected = "yes\nservingInfo:\n  clientCA: ''\n";
    let project = json!({ "spec": {
        "projectRequestMessage": injected, "projectRequestTemplate": { "name": "defaults" },
    } });
    let observed = config_map("observed-config-project", "config", &project.to_string());
    check(
        API,
        &[
            ("no project", &[], id, message, Value::Null),
            ("no project", &[], id, template, Value::Null),
        ],
    );
    evaluate(
        API,
        |input| input.objects.insert(observed.clone()),
        &[
            ("message", &[], id, message, json!(injected)),
            (
                "template",
                &[],
                id,
                template,
                json!("openshift-config/defaults"),
            ),
            (
                "settings are not injected",
                &[],
                id,
                "/data/config.yaml/servingInfo/clientCA",
                json!("/etc/kubernetes/certs/client-ca/ca.crt"),
            ),
        ],
    );
    let mut invalid = changed(&[]);
    let observed = config_map("observed-config-project", "config", "a: [");
    invalid.objects.insert(observed);
    let error = error_of(&invalid, API);
    assert!(error.contains("observed-config-project"), "{error}");
}

#[test]
pub(crate) fn openshift_apiserver_pods_follow_the_hosted_control_plane() {
    let id = "Deployment/openshift-apiserver";
    let server = "/spec/template/spec/containers/openshift-apiserver";
    let oauth = format!("{server}/args/--internal-oauth-disabled");
    let direct = format!("{server}/env/NO_PROXY/value");
    let mounts = format!("{server}/volumeMounts");
    let sources = "/spec/template/spec/volumes/additional-trust-bundle/projected/sources";
    let bundle = [("/spec/additionalTrustBundle", json!({ "name": "user-ca" }))];
    let anchors = "/spec/template/spec/initContainers/oas-trust-anchor-generator/volumeMounts";
    check(
        API,
        &[
            ("OAuth", &[], id, &oauth, Value::Null),
            (
                "OIDC",
                &[(
                    "/spec/configuration/authentication",
                    json!({ "type": "OIDC" }),
                )],
                id,
                &oauth,
                json!("--internal-oauth-disabled=true"),
            ),
            (
                "managed etcd",
                &[],
                id,
                &direct,
                json!("kube-apiserver,etcd-client,audit-webhook"),
            ),
            (
                "unmanaged etcd",
                &[("/spec/etcd", etcd("https://etcd.example.com:2379"))],
                id,
                &direct,
                json!("kube-apiserver,etcd.example.com,audit-webhook"),
            ),
            ("no bundle", &[], id, sources, Value::Null),
            (
                "bundle",
                &bundle,
                id,
                sources,
                json!([{ "configMap": { "name": "user-ca", "items": [
                    { "key": "ca-bundle.crt", "path": "additional-ca-bundle.pem" },
                ] } }]),
            ),
            (
                "bundle",
                &bundle,
                id,
                &format!("{mounts}/additional-trust-bundle/mountPath"),
                json!("/etc/pki/tls/certs/additional-ca-bundle.pem"),
            ),
            (
                "bundle",
                &bundle,
                id,
                "/spec/template/spec/volumes/additional-trust-bundle/projected/defaultMode",
                json!(420),
            ),
            (
                "bundle in the proxy",
                &bundle,
                id,
                "/spec/template/spec/containers/konnectivity-proxy-https/volumeMounts/proxy-additional-trust-bundle/subPath",
                json!("additional-ca-bundle.pem"),
            ),
            (
                "no service CA",
                &[],
                id,
                &format!("{anchors}/kube-controller-manager"),
                Value::Null,
            ),
        ],
    );
    evaluate(
        API,
        |input| {
            let ca = config_map("service-serving-ca", "service-ca.crt", "pem");
            input.objects.insert(ca);
        },
        &[
            (
                "service CA",
                &[],
                id,
                &format!("{anchors}/kube-controller-manager/mountPath"),
                json!("/run/service-ca-signer"),
            ),
            (
                "service CA",
                &[],
                id,
                "/spec/template/spec/volumes/kube-controller-manager/configMap/name",
                json!("service-serving-ca"),
            ),
        ],
    );
}

#[test]
pub(crate) fn openshift_apiserver_trusts_configured_registries() {
    let id = "Deployment/openshift-apiserver";
    let change = [
        ("/spec/additionalTrustBundle", json!({ "name": "user-ca" })),
        (
            IMAGE,
            json!({ "additionalTrustedCA": { "name": "registries" } }),
        ),
    ];
    let keys = json!({ "registry.example.com..5000": "pem", "images.example.com": "pem" });
    let registries = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "registries" }, "data": keys,
    });
    evaluate(
        API,
        |input| input.objects.insert(registries.clone()),
        &[(
            "registries",
            &change,
            id,
            "/spec/template/spec/volumes/additional-trust-bundle/projected/sources/1",
            json!({ "configMap": { "name": "registries", "items": [
                { "key": "images.example.com", "path": "image-registry-1.pem" },
                { "key": "registry.example.com..5000", "path": "image-registry-2.pem" },
            ] } }),
        )],
    );
    let error = error_of(&changed(&change), API);
    assert!(error.contains("ConfigMap registries"), "{error}");
}

#[test]
pub(crate) fn openshift_apiserver_proxy_follows_the_hosted_control_plane() {
    let id = "Deployment/openshift-apiserver";
    let args = "/spec/template/spec/containers/konnectivity-proxy-https/args";
    let url = "http://proxy.example.com:3128";
    let proxy = json!({ "httpsProxy": url, "noProxy": "z.example.com" });
    let exempt = "..compute.internal,.cluster.local,.hypershift.local,.svc,10.132.0.0/14,127.0.0.1,\
                  169.254.169.254,localhost,z.example.com";
    let rows: &[Row<'_>] = &[
        ("no proxy", &[], id, args, json!(["run"])),
        (
            "proxy of the guest",
            &[("/spec/configuration/proxy", proxy)],
            id,
            args,
            json!([
                "run",
                "--http-proxy",
                "",
                "--https-proxy",
                url,
                "--no-proxy",
                exempt
            ]),
        ),
        (
            "IPv4 services",
            &[(
                "/spec/networking/serviceNetwork",
                json!([{ "cidr": "172.31.0.0/16" }]),
            )],
            id,
            args,
            json!(["run", "--prefer-ipv4=true"]),
        ),
        (
            "no access to clouds",
            &[],
            id,
            "/spec/template/spec/containers/konnectivity-proxy-https/env/HTTPS_PROXY",
            Value::Null,
        ),
    ];
    let prepare = |input: &mut Input| {
        input.settings.proxy = OwnProxy {
            https: Some(url.to_owned()),
            ..OwnProxy::default()
        };
    };
    evaluate(API, prepare, rows);
}

#[test]
pub(crate) fn openshift_oauth_apiserver_follows_the_hosted_control_plane() {
    let policy = "openshift-oauth-apiserver-audit";
    check_audit(OAUTH, policy, "oauth-audit-webhook");
    check_availability(OAUTH, 3);
    check_readiness(OAUTH);
    let id = "Deployment/openshift-oauth-apiserver";
    let server = "/spec/template/spec/containers/openshift-oauth-apiserver";
    let arg = |flag: &str| format!("{server}/args/--{flag}");
    let direct = format!("{server}/env/NO_PROXY/value");
    let timeout = |value: &str| {
        let tokens = json!({ "accessTokenInactivityTimeout": value });
        (
            "/spec/configuration/oauth",
            json!({ "tokenConfig": tokens }),
        )
    };
    let webhook = [("/spec/auditWebhook", json!({ "name": "webhook" }))];
    let unmanaged = [("/spec/etcd", etcd("https://[fd00::5]:2379"))];
    let wait = "/spec/template/spec/initContainers/wait-for-etcd/args/0";
    let proxy = "/spec/template/spec/containers/konnectivity-proxy-socks5/args";
    check(
        OAUTH,
        &[
            (
                "issuer",
                &[("/spec/issuerURL", json!("https://oidc.example.com"))],
                id,
                &arg("api-audiences"),
                json!("--api-audiences=https://oidc.example.com"),
            ),
            (
                "etcd",
                &[],
                id,
                &arg("etcd-servers"),
                json!("--etcd-servers=https://etcd-client:2379"),
            ),
            (
                "unmanaged etcd",
                &unmanaged,
                id,
                &arg("etcd-servers"),
                json!("--etcd-servers=https://[fd00::5]:2379"),
            ),
            (
                "unmanaged etcd",
                &unmanaged,
                id,
                &direct,
                json!("kube-apiserver,fd00::5,audit-webhook"),
            ),
            ("unmanaged etcd", &unmanaged, id, wait, Value::Null),
            ("etcd", &[], id, wait, json!("resolve-dns")),
            (
                "TLS",
                &[],
                id,
                &arg("tls-min-version"),
                json!("--tls-min-version=VersionTLS12"),
            ),
            (
                "modern TLS",
                &[(APISERVER, tls("Modern"))],
                id,
                &arg("tls-min-version"),
                json!("--tls-min-version=VersionTLS13"),
            ),
            (
                "modern TLS",
                &[(APISERVER, tls("Modern"))],
                id,
                &arg("tls-cipher-suites"),
                Value::Null,
            ),
            (
                "custom TLS",
                &[(APISERVER, custom_tls())],
                id,
                &arg("tls-cipher-suites"),
                json!(
                    "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
                ),
            ),
            (
                "no webhook",
                &[],
                id,
                &arg("audit-webhook-mode"),
                Value::Null,
            ),
            (
                "webhook",
                &webhook,
                id,
                &arg("audit-webhook-mode"),
                json!("--audit-webhook-mode=batch"),
            ),
            (
                "webhook",
                &webhook,
                id,
                &arg("audit-webhook-config-file"),
                json!(
                    "--audit-webhook-config-file=/etc/kubernetes/auditwebhook/webhook-kubeconfig"
                ),
            ),
            (
                "webhook",
                &webhook,
                id,
                &arg("audit-webhook-initial-backoff"),
                json!("--audit-webhook-initial-backoff=5s"),
            ),
            (
                "no timeout",
                &[],
                id,
                &arg("accesstoken-inactivity-timeout"),
                Value::Null,
            ),
            (
                "timeout",
                &[timeout("600s")],
                id,
                &arg("accesstoken-inactivity-timeout"),
                json!("--accesstoken-inactivity-timeout=10m0s"),
            ),
            (
                "timeout is the last argument",
                &[timeout("1h"), webhook[0].clone()],
                id,
                &format!("{server}/args/-"),
                json!("--accesstoken-inactivity-timeout=1h0m0s"),
            ),
            (
                "proxy",
                &[],
                id,
                proxy,
                json!(["run", "--resolve-from-guest-cluster-dns=true"]),
            ),
            (
                "OIDC",
                &[(
                    "/spec/configuration/authentication",
                    json!({ "type": "OIDC" }),
                )],
                id,
                "",
                Value::Null,
            ),
            (
                "integrated OAuth",
                &[(
                    "/spec/configuration/authentication",
                    json!({ "type": "IntegratedOAuth" }),
                )],
                id,
                "/metadata/name",
                json!(OAUTH),
            ),
        ],
    );
    let error = error_of(&changed(&[timeout("10m --v=9")]), OAUTH);
    assert!(error.contains("accessTokenInactivityTimeout"), "{error}");
}

#[test]
pub(crate) fn konnectivity_agent_serves_existing_api_servers() {
    let id = "Deployment/konnectivity-agent";
    let path = "/spec/template/spec/containers/konnectivity-agent/args/-";
    let oidc = (
        "/spec/configuration/authentication",
        json!({ "type": "OIDC" }),
    );
    let service = |name: &str, address: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "clusterIP": address },
        })
    };
    let prepare = |input: &mut Input| {
        input.objects.insert(service(API, "198.51.100.3"));
        input
            .objects
            .insert(service("packageserver", "198.51.100.4"));
        input.objects.insert(service(OAUTH, "198.51.100.5"));
    };
    let both = "ipv4=198.51.100.3&ipv4=198.51.100.4";
    evaluate(
        "konnectivity-agent",
        prepare,
        &[
            (
                "OAuth",
                &[],
                id,
                path,
                json!(format!("{both}&ipv4=198.51.100.5")),
            ),
            ("OIDC", &[oidc], id, path, json!(both)),
        ],
    );
}

#[test]
pub(crate) fn openshift_controller_manager_follows_the_hosted_control_plane() {
    check_tls_config(CONTROLLERS, "openshift-controller-manager-config");
    check_availability(CONTROLLERS, 2);
    let id = "ConfigMap/openshift-controller-manager-config";
    check_feature_gates(CONTROLLERS, id, "/data/config.yaml/featureGates", &[]);
    let controllers = "/data/config.yaml/controllers";
    let secret = "/data/config.yaml/dockerPullSecret";
    let disabled = [("/spec/capabilities", without("ImageRegistry"))];
    let names = json!({ "externalRegistryHostnames": ["images.example.com"] });
    let silent = [("/metadata/annotations", disable_monitoring())];
    let (service, monitor) = (
        format!("Service/{CONTROLLERS}"),
        format!("ServiceMonitor/{CONTROLLERS}"),
    );
    check(
        CONTROLLERS,
        &[
            (
                "image of builds",
                &[],
                id,
                "/data/config.yaml/build/imageTemplateFormat/format",
                json!("docker-builder"),
            ),
            (
                "image of deployments",
                &[],
                id,
                "/data/config.yaml/deployer/imageTemplateFormat/format",
                json!("deployer"),
            ),
            ("registry", &[], id, controllers, Value::Null),
            (
                "no registry",
                &disabled,
                id,
                controllers,
                json!(["*", "-openshift.io/serviceaccount-pull-secrets"]),
            ),
            (
                "registry",
                &[],
                id,
                &format!("{secret}/internalRegistryHostname"),
                json!("image-registry.openshift-image-registry.svc:5000"),
            ),
            (
                "no registry",
                &disabled,
                id,
                &format!("{secret}/internalRegistryHostname"),
                json!(""),
            ),
            (
                "external names",
                &[(IMAGE, names)],
                id,
                &format!("{secret}/registryURLs"),
                json!(["images.example.com"]),
            ),
            (
                "no external names",
                &[],
                id,
                &format!("{secret}/registryURLs"),
                Value::Null,
            ),
            (
                "external addresses",
                &[("/spec/configuration/network", external_ip())],
                id,
                "/data/config.yaml/ingress/ingressIPNetworkCIDR",
                json!("192.0.2.0/24"),
            ),
            (
                "no external addresses",
                &[],
                id,
                "/data/config.yaml/ingress/ingressIPNetworkCIDR",
                Value::Null,
            ),
            (
                "monitored",
                &[],
                &service,
                "/metadata/name",
                json!(CONTROLLERS),
            ),
            (
                "monitored",
                &[],
                &monitor,
                "/metadata/name",
                json!(CONTROLLERS),
            ),
            ("not monitored", &silent, &service, "", Value::Null),
            ("not monitored", &silent, &monitor, "", Value::Null),
        ],
    );
}

#[test]
pub(crate) fn openshift_controller_manager_keeps_observed_controllers() {
    let id = "ConfigMap/openshift-controller-manager-config";
    let path = "/data/config.yaml/controllers";
    let disabled = [("/spec/capabilities", without("ImageRegistry"))];
    let standard = json!(["*", "-openshift.io/serviceaccount-pull-secrets"]);
    for (live, kept) in [
        (json!({ "controllers": ["*", "-a"] }), json!(["*", "-a"])),
        (json!({ "controllers": [] }), Value::Null),
        (json!({ "controllers": null }), Value::Null),
        (json!({}), Value::Null),
    ] {
        let live = config_map(
            "openshift-controller-manager-config",
            "config.yaml",
            &live.to_string(),
        );
        evaluate(
            CONTROLLERS,
            |input| input.objects.insert(live.clone()),
            &[
                ("live", &[], id, path, kept),
                (
                    "live, but no registry",
                    &disabled,
                    id,
                    path,
                    standard.clone(),
                ),
            ],
        );
    }
}

#[test]
pub(crate) fn openshift_controller_manager_follows_the_guest_build() {
    let id = "ConfigMap/openshift-controller-manager-config";
    let defaults = "/data/config.yaml/build/buildDefaults";
    let overrides = "/data/config.yaml/build/buildOverrides";
    check(
        CONTROLLERS,
        &[
            ("no build", &[], id, defaults, Value::Null),
            ("no build", &[], id, overrides, Value::Null),
        ],
    );
    let labels = json!([{ "name": "team", "value": "red" }]);
    let resources = json!({ "limits": { "cpu": "1" } });
    let tolerations = json!([{ "key": "builds", "operator": "Exists" }]);
    for (name, spec, path, expected) in [
        (
            "empty",
            json!({ "buildDefaults": { "resources": {} }, "buildOverrides": {} }),
            defaults,
            Value::Null,
        ),
        (
            "empty",
            json!({ "buildDefaults": { "resources": {} }, "buildOverrides": {} }),
            overrides,
            Value::Null,
        ),
        (
            "variables",
            json!({ "buildDefaults": { "env": [{ "name": "A", "value": "1" }] } }),
            defaults,
            json!({ "env": [{ "name": "A", "value": "1" }] }),
        ),
        (
            "labels and resources",
            json!({ "buildDefaults": { "imageLabels": labels, "resources": resources } }),
            defaults,
            json!({ "imageLabels": labels, "resources": resources }),
        ),
        (
            "proxy for Git",
            json!({ "buildDefaults": { "gitProxy": {
                "httpProxy": "http://p.example.com", "httpsProxy": "https://p.example.com", "noProxy": "a,b",
            } } }),
            defaults,
            json!({
                "gitHTTPProxy": "http://p.example.com", "gitHTTPSProxy": "https://p.example.com", "gitNoProxy": "a,b",
            }),
        ),
        (
            "only another proxy",
            json!({ "buildDefaults": { "defaultProxy": { "httpProxy": "http://p.example.com" } } }),
            defaults,
            Value::Null,
        ),
        (
            "overrides",
            json!({ "buildOverrides": {
                "imageLabels": labels, "nodeSelector": { "builds": "yes" }, "tolerations": tolerations, "forcePull": true,
            } }),
            overrides,
            json!({
                "imageLabels": labels, "nodeSelector": { "builds": "yes" }, "tolerations": tolerations, "forcePull": true,
            }),
        ),
    ] {
        let build = json!({ "kind": "Build", "spec": spec }).to_string();
        let observed = config_map("observed-config-build", "config", &build);
        let prepare = |input: &mut Input| input.objects.insert(observed.clone());
        evaluate(CONTROLLERS, prepare, &[(name, &[], id, path, expected)]);
    }
}

#[test]
pub(crate) fn openshift_route_controller_manager_follows_the_hosted_control_plane() {
    check_tls_config(ROUTES, "openshift-route-controller-manager-config");
    check_availability(ROUTES, 2);
    let id = "ConfigMap/openshift-route-controller-manager-config";
    let silent = [("/metadata/annotations", disable_monitoring())];
    let (service, monitor) = (
        format!("Service/{ROUTES}"),
        format!("ServiceMonitor/{ROUTES}"),
    );
    let network = "/data/config.yaml/ingress/ingressIPNetworkCIDR";
    check(
        ROUTES,
        &[
            (
                "external addresses",
                &[("/spec/configuration/network", external_ip())],
                id,
                network,
                json!("192.0.2.0/24"),
            ),
            ("no external addresses", &[], id, network, Value::Null),
            (
                "no feature gates",
                &[],
                id,
                "/data/config.yaml/featureGates",
                Value::Null,
            ),
            (
                "the name of all controller managers",
                &[],
                &monitor,
                "/spec/endpoints/0/tlsConfig/serverName",
                json!(CONTROLLERS),
            ),
            ("monitored", &[], &service, "/metadata/name", json!(ROUTES)),
            ("monitored", &[], &monitor, "/metadata/name", json!(ROUTES)),
            ("not monitored", &silent, &service, "", Value::Null),
            ("not monitored", &silent, &monitor, "", Value::Null),
        ],
    );
}

#[test]
pub(crate) fn cluster_policy_controller_follows_the_hosted_control_plane() {
    check_tls_config(POLICY, "cluster-policy-controller-config");
    check_availability(POLICY, 2);
    let id = "ConfigMap/cluster-policy-controller-config";
    check_feature_gates(POLICY, id, "/data/config.yaml/featureGates", &[]);
    let prober = "/spec/template/spec/initContainers/availability-prober/command/-";
    let ibm = [("/spec/platform/type", json!("IBMCloud"))];
    let workload = format!("Deployment/{POLICY}");
    let url = "https://kube-apiserver:2040/readyz";
    check(
        POLICY,
        &[
            ("prober on IBM Cloud", &ibm, &workload, prober, json!(url)),
            (
                "no external addresses",
                &[("/spec/configuration/network", external_ip())],
                id,
                "/data/config.yaml/ingress",
                Value::Null,
            ),
        ],
    );
}

#[test]
fn images_of_openshift_apis_can_be_overridden() {
    for (component, image) in [
        (API, "openshift-apiserver"),
        (OAUTH, "oauth-apiserver"),
        (CONTROLLERS, "openshift-controller-manager"),
        (ROUTES, "route-controller-manager"),
        (POLICY, "cluster-policy-controller"),
    ] {
        let other = "images.example.com/other:1";
        let id = format!("Deployment/{component}");
        let path = format!("/spec/template/spec/containers/{component}/image");
        let prepare = |input: &mut Input| {
            let images = &mut input.release.images;
            images.insert(image.to_owned(), other.to_owned());
        };
        evaluate(
            component,
            prepare,
            &[("image", &[], &id, &path, json!(other))],
        );
    }
}

#[test]
pub(crate) fn metrics_of_openshift_apis_follow_the_metrics_set() {
    let rule = "/spec/endpoints/0/metricRelabelings/0";
    let sre = "openshiftAPIServer:\n- { action: keep, regex: api }\n\
               openshiftControllerManager:\n- { action: keep, regex: controllers }\n\
               openshiftRouteControllerManager:\n- { action: keep, regex: routes }\n";
    let set = |set: &str| [("/spec/monitoring", json!({ "metricsSet": set }))];
    let (telemetry, all, chosen) = (set("Telemetry"), set("All"), set("SRE"));
    let api =
        "(apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests)";
    for (component, kept, dropped, by_sre) in [
        (API, ("keep", api), "etcd_(debugging|disk|server).*", "api"),
        (
            CONTROLLERS,
            ("keep", "openshift_build_status_phase_total"),
            "etcd_(debugging|disk|request|server).*",
            "controllers",
        ),
        (
            ROUTES,
            ("drop", "(.*)"),
            "etcd_(debugging|disk|request|server).*",
            "routes",
        ),
    ] {
        let id = format!("ServiceMonitor/{component}");
        let rules = |action: &str, regex: &str| json!({ "action": action, "regex": regex, "sourceLabels": ["__name__"] });
        evaluate(
            component,
            |input| {
                input
                    .objects
                    .insert(config_map("sre-metric-set", "config", sre))
            },
            &[
                ("telemetry", &telemetry, &id, rule, rules(kept.0, kept.1)),
                ("all", &all, &id, rule, rules("drop", dropped)),
                (
                    "SRE",
                    &chosen,
                    &id,
                    rule,
                    json!({ "action": "keep", "regex": by_sre }),
                ),
            ],
        );
    }
}

#[test]
fn cluster_version_operator_is_monitored_unless_disabled() {
    let silent = [("/metadata/annotations", disable_monitoring())];
    let (service, monitor) = (
        format!("Service/{VERSION}"),
        format!("ServiceMonitor/{VERSION}"),
    );
    let name = json!(VERSION);
    check(
        VERSION,
        &[
            ("monitored", &[], &service, "/metadata/name", name.clone()),
            ("monitored", &[], &monitor, "/metadata/name", name),
            ("not monitored", &silent, &service, "", Value::Null),
            ("not monitored", &silent, &monitor, "", Value::Null),
        ],
    );
}

#[test]
fn dependents_wait_for_openshift_apiserver() {
    for component in components::all() {
        let expected: &[&str] = match component.name {
            OAUTH | CONTROLLERS | ROUTES | POLICY | VERSION => &[API],
            API => &[],
            _ => continue,
        };
        assert_eq!(component.dependencies(), expected, "{}", component.name);
    }
}
