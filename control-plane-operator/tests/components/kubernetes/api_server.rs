//! How inputs change the configuration of the API server.

use control_plane_operator::render::Input;
use serde_json::{Value, json};

use super::{CONFIG, SERVER, SERVER_PODS, configuration, platform};
use crate::openshift_apis::{Row, check, evaluate, feature_gate};

#[test]
pub(crate) fn api_server_config_follows_the_hosted_control_plane() {
    let external = |value: Value| configuration("network", &json!({ "externalIP": value }));
    let ranger = "/data/config.json/admission/pluginConfig/network.openshift.io~1ExternalIPRanger/configuration";
    let policy = external(
        json!({ "policy": { "allowedCIDRs": ["10.0.0.0/8"], "rejectedCIDRs": ["10.1.0.0/16"] } }),
    );
    let assigned = external(json!({ "autoAssignCIDRs": ["192.0.2.0/24"] }));
    let origins = configuration(
        "apiServer",
        &json!({ "additionalCORSAllowedOrigins": ["//a\\.example\\.com"] }),
    );
    let images = configuration(
        "image",
        &json!({
            "externalRegistryHostnames": ["registry.example.com"],
            "allowedRegistriesForImport": [{ "domainName": "quay.example.com", "insecure": true }],
        }),
    );
    let without_registry = [(
        "/spec/capabilities",
        json!({ "disabled": ["ImageRegistry"] }),
    )];
    let selector = configuration("scheduler", &json!({ "defaultNodeSelector": "a=b" }));
    let dns = |prefix: Option<&str>| {
        let mut dns = json!({ "baseDomain": "example.com" });
        if let Some(prefix) = prefix {
            dns["baseDomainPrefix"] = json!(prefix);
        }
        [("/spec/dns", dns)]
    };
    let on_ibm = [platform("IBMCloud"), dns(None)].concat();
    let image_policy = "/data/config.json/imagePolicyConfig";
    let console = "/data/config.json/consolePublicURL";
    let hsts = argument!("strict-transport-security-directives");
    let issuer = [("/spec/issuerURL", json!("https://issuer.example.com"))];
    let host = |name: &str| json!(format!("https://console-openshift-console.{name}"));
    let rows: [Row<'_>; 21] = [
        (
            "external addresses, rejected first",
            &policy,
            CONFIG,
            &format!("{ranger}/externalIPNetworkCIDRs"),
            json!(["!10.1.0.0/16", "10.0.0.0/8"]),
        ),
        (
            "external addresses are not assigned",
            &policy,
            CONFIG,
            &format!("{ranger}/allowIngressIP"),
            json!(false),
        ),
        (
            "external addresses are assigned",
            &assigned,
            CONFIG,
            &format!("{ranger}/allowIngressIP"),
            json!(true),
        ),
        (
            "origins",
            &origins,
            CONFIG,
            "/data/config.json/corsAllowedOrigins/-",
            json!("//a\\.example\\.com"),
        ),
        (
            "origins of the manifest",
            &origins,
            CONFIG,
            "/data/config.json/corsAllowedOrigins/0",
            json!("//127\\.0\\.0\\.1(:|$)"),
        ),
        (
            "registry",
            &[],
            CONFIG,
            &format!("{image_policy}/internalRegistryHostname"),
            json!("image-registry.openshift-image-registry.svc:5000"),
        ),
        (
            "no registry",
            &without_registry,
            CONFIG,
            &format!("{image_policy}/internalRegistryHostname"),
            json!(""),
        ),
        (
            "names of the registry",
            &images,
            CONFIG,
            &format!("{image_policy}/externalRegistryHostnames"),
            json!(["registry.example.com"]),
        ),
        (
            "registries for imports",
            &images,
            CONFIG,
            &format!("{image_policy}/allowedRegistriesForImport"),
            json!([{ "domainName": "quay.example.com", "insecure": true }]),
        ),
        (
            "all registries for imports",
            &[],
            CONFIG,
            &format!("{image_policy}/allowedRegistriesForImport"),
            Value::Null,
        ),
        (
            "node selector",
            &selector,
            CONFIG,
            "/data/config.json/projectConfig/defaultNodeSelector",
            json!("a=b"),
        ),
        (
            "issuer",
            &issuer,
            CONFIG,
            argument!("service-account-issuer"),
            json!(["https://issuer.example.com"]),
        ),
        (
            "issuer",
            &issuer,
            CONFIG,
            argument!("api-audiences"),
            json!(["https://issuer.example.com"]),
        ),
        (
            "issuer",
            &issuer,
            CONFIG,
            argument!("service-account-jwks-uri"),
            json!(["https://issuer.example.com/openid/v1/jwks"]),
        ),
        (
            "console",
            &dns(None),
            CONFIG,
            console,
            host("hcp.example.com"),
        ),
        (
            "console, prefix",
            &dns(Some("a")),
            CONFIG,
            console,
            host("a.example.com"),
        ),
        (
            "console, no prefix",
            &dns(Some("")),
            CONFIG,
            console,
            host("example.com"),
        ),
        (
            "console on IBM Cloud",
            &on_ibm,
            CONFIG,
            console,
            host("example.com"),
        ),
        (
            "transport security",
            &[],
            CONFIG,
            hsts,
            json!(["max-age=31536000,includeSubDomains,preload"]),
        ),
        (
            "transport security on IBM Cloud",
            &platform("IBMCloud"),
            CONFIG,
            hsts,
            json!(["max-age=31536000"]),
        ),
        (
            "audit webhook",
            &[("/spec/auditWebhook", json!({ "name": "a" }))],
            CONFIG,
            argument!("audit-webhook-mode"),
            json!(["batch"]),
        ),
    ];
    check(SERVER, &rows);
}

#[test]
pub(crate) fn authentication_follows_its_type() {
    let type_ = |type_: &str| configuration("authentication", &json!({ "type": type_ }));
    let providers = configuration(
        "authentication",
        &json!({ "type": "OIDC", "oidcProviders": [{
        "name": "a",
        "issuer": { "issuerURL": "https://a.example.com", "audiences": ["b"] },
        "claimMappings": { "username": { "claim": "email" } },
    }] }),
    );
    let metadata = "/data/config.json/authConfig/oauthMetadataFile";
    let file = json!("/etc/kubernetes/oauth/oauthMetadata.json");
    let webhook = argument!("authentication-token-webhook-config-file");
    let enabled =
        argument!("enable-admission-plugins/authorization.openshift.io~1RestrictSubjectBindings");
    let last = argument!("enable-admission-plugins/-");
    let disabled = argument!("disable-admission-plugins");
    let plugins = json!([
        "authorization.openshift.io/RestrictSubjectBindings",
        "authorization.openshift.io/ValidateRoleBindingRestriction",
    ]);
    let configured = argument!("authentication-config");
    let render = "/spec/template/spec/initContainers/init-auth-bootstrap-render/name";
    let rows: [Row<'_>; 16] = [
        ("default: metadata", &[], CONFIG, metadata, file.clone()),
        (
            "OAuth: metadata",
            &type_("IntegratedOAuth"),
            CONFIG,
            metadata,
            file,
        ),
        (
            "None: metadata",
            &type_("None"),
            CONFIG,
            metadata,
            json!(""),
        ),
        (
            "OIDC: metadata",
            &type_("OIDC"),
            CONFIG,
            metadata,
            json!(""),
        ),
        (
            "OAuth: webhook",
            &[],
            CONFIG,
            webhook,
            json!(["/etc/kubernetes/auth-token-webhook/kubeconfig"]),
        ),
        (
            "None: webhook",
            &type_("None"),
            CONFIG,
            webhook,
            json!(["/etc/kubernetes/auth-token-webhook/kubeconfig"]),
        ),
        (
            "OIDC: webhook",
            &type_("OIDC"),
            CONFIG,
            webhook,
            Value::Null,
        ),
        ("OAuth: plugins", &[], CONFIG, last, plugins[1].clone()),
        ("OAuth: plugins", &[], CONFIG, enabled, plugins[0].clone()),
        ("OAuth: plugins", &[], CONFIG, disabled, json!([])),
        (
            "OIDC: plugins",
            &type_("OIDC"),
            CONFIG,
            enabled,
            Value::Null,
        ),
        ("OIDC: plugins", &type_("OIDC"), CONFIG, disabled, plugins),
        (
            "OIDC without providers",
            &type_("OIDC"),
            CONFIG,
            configured,
            Value::Null,
        ),
        (
            "OIDC with providers",
            &providers,
            CONFIG,
            configured,
            json!(["/etc/kubernetes/auth/auth.json"]),
        ),
        (
            "OAuth: objects are rendered",
            &[],
            SERVER_PODS,
            render,
            json!("init-auth-bootstrap-render"),
        ),
        (
            "OIDC: objects are rendered",
            &type_("OIDC"),
            SERVER_PODS,
            render,
            Value::Null,
        ),
    ];
    check(SERVER, &rows);
}

#[test]
pub(crate) fn features_enable_apis_and_levels() {
    let gates = argument!("feature-gates");
    let versions = argument!("runtime-config");
    let level =
        "/data/config.json/admission/pluginConfig/PodSecurity/configuration/defaults/enforce";
    let forced = [
        "StructuredAuthenticationConfiguration=true",
        "ValidatingAdmissionPolicy=true",
    ];
    let table: [(&[&str], &[&str], &str, Value); 6] = [
        (
            &["B"],
            &["A"],
            gates,
            json!(["A=false", "B=true", forced[0], forced[1]]),
        ),
        (&[], &["ValidatingAdmissionPolicy"], gates, json!(forced)),
        (
            &[],
            &[],
            versions,
            json!(["admissionregistration.k8s.io/v1beta1=true"]),
        ),
        (
            &["VolumeAttributesClass", "DynamicResourceAllocation"],
            &[],
            versions,
            json!([
                "resource.k8s.io/v1beta1=true",
                "admissionregistration.k8s.io/v1beta1=true",
                "storage.k8s.io/v1beta1=true"
            ]),
        ),
        (
            &["OpenShiftPodSecurityAdmission"],
            &[],
            level,
            json!("restricted"),
        ),
        (
            &[],
            &["OpenShiftPodSecurityAdmission"],
            level,
            json!("privileged"),
        ),
    ];
    for (enabled, disabled, path, expected) in table {
        let gate = feature_gate(enabled, disabled);
        let prepare = |input: &mut Input| input.objects.insert(gate.clone());
        evaluate(
            SERVER,
            prepare,
            &[("features", &[], CONFIG, path, expected)],
        );
    }
}

#[test]
pub(crate) fn annotations_limit_the_api_server() {
    let own = |name: &str, value: &str| {
        let key = format!("hypershift.openshift.io/{name}");
        [("/metadata/annotations", json!({ key: value }))]
    };
    let single = [("/spec/controllerAvailabilityPolicy", json!("SingleReplica"))];
    let goaway = argument!("goaway-chance");
    let reads = argument!("max-requests-inflight");
    let writes = argument!("max-mutating-requests-inflight");
    let env =
        |name: &str| format!("/spec/template/spec/containers/kube-apiserver/env/{name}/value");
    let rows: [Row<'_>; 15] = [
        (
            "reads",
            &own("kube-apiserver-max-requests-inflight", "5000"),
            CONFIG,
            reads,
            json!(["5000"]),
        ),
        ("default of reads", &[], CONFIG, reads, json!(["3000"])),
        (
            "writes",
            &own("kube-apiserver-max-mutating-requests-inflight", "2000"),
            CONFIG,
            writes,
            json!(["2000"]),
        ),
        ("default of writes", &[], CONFIG, writes, json!(["1000"])),
        (
            "GOAWAY",
            &own("kube-apiserver-goaway-chance", "0.01"),
            CONFIG,
            goaway,
            json!(["0.01"]),
        ),
        ("default of GOAWAY", &[], CONFIG, goaway, json!(["0.001"])),
        (
            "GOAWAY of one replica",
            &single,
            CONFIG,
            goaway,
            json!(["0"]),
        ),
        (
            "expiration",
            &own("kube-apiserver-service-account-token-max-expiration", "24h"),
            CONFIG,
            argument!("service-account-max-token-expiration"),
            json!(["24h"]),
        ),
        (
            "default of expiration",
            &[],
            CONFIG,
            argument!("service-account-max-token-expiration"),
            Value::Null,
        ),
        (
            "profiling",
            &own("disable-profiling", "kube-apiserver"),
            CONFIG,
            argument!("profiling"),
            json!(["false"]),
        ),
        (
            "profiling of others",
            &own("disable-profiling", "kube-scheduler"),
            CONFIG,
            argument!("profiling"),
            Value::Null,
        ),
        (
            "verbosity",
            &own("kube-apiserver-verbosity-level", "4"),
            SERVER_PODS,
            container!("kube-apiserver", "/args/--v"),
            json!("--v=4"),
        ),
        (
            "default of verbosity",
            &[],
            SERVER_PODS,
            container!("kube-apiserver", "/args/--v"),
            json!("--v=2"),
        ),
        (
            "collection",
            &own("kube-apiserver-gogc", "50"),
            SERVER_PODS,
            &env("GOGC"),
            json!("50"),
        ),
        (
            "memory",
            &own("kube-apiserver-gomemlimit", "2GiB"),
            SERVER_PODS,
            &env("GOMEMLIMIT"),
            json!("2GiB"),
        ),
    ];
    check(SERVER, &rows);
}
