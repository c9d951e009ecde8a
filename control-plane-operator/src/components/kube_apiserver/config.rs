//! The API server's configuration, as far as it depends on the hosted control plane.

use api::annotations::AnnotationError;
use api::annotations::cluster::{
    DISABLE_PROFILING, KUBE_API_SERVER_GOAWAY_CHANCE,
    KUBE_API_SERVER_MAX_MUTATING_REQUESTS_INFLIGHT, KUBE_API_SERVER_MAX_REQUESTS_INFLIGHT,
    KUBE_API_SERVER_TOKEN_MAX_EXPIRATION,
};
use api::hypershift::v1beta1::configuration::api_server::ApiServerNamedServingCert;
use api::hypershift::v1beta1::configuration::authentication::AuthenticationType;
use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{audit, edit, encryption};
use crate::components::feature_gate::Features;

const KEY: &str = "config.json";
const NODE_PORTS: &str = "30000-32767";
/// Features that the control plane relies on, whatever the release enables.
const REQUIRED_FEATURES: [&str; 2] = [
    "StructuredAuthenticationConfiguration",
    "ValidatingAdmissionPolicy",
];
/// Features, in order, and the API versions that are served only with them.
const FEATURE_APIS: [(&str, &str); 3] = [
    ("DynamicResourceAllocation", "resource.k8s.io/v1beta1"),
    (
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/v1beta1",
    ),
    ("VolumeAttributesClass", "storage.k8s.io/v1beta1"),
];
/// Admission plugins that ask the OAuth server's API about users and groups.
const OAUTH_PLUGINS: [&str; 2] = [
    "authorization.openshift.io/RestrictSubjectBindings",
    "authorization.openshift.io/ValidateRoleBindingRestriction",
];

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let data = config_map.data.get_or_insert_default();
    let text = data.get(KEY).cloned().unwrap_or_default();
    let mut config: Value =
        serde_saphyr::from_str(&text).map_err(|_| Error::missing("manifest kas-config", KEY))?;
    let features = Features::of(context)?;
    serving(context, &mut config["servingInfo"]);
    admission(context, &features, &mut config["admission"]["pluginConfig"]);
    cluster(context, &mut config);
    let mut arguments = Arguments(&mut config["apiServerArguments"]);
    network_arguments(context, &mut arguments);
    identity_arguments(context, &mut arguments)?;
    load_arguments(context, &mut arguments)?;
    feature_arguments(&features, &mut arguments);
    data.insert(KEY.to_owned(), config.to_string());
    Ok(())
}

/// Arguments of the API server; each has a list of values.
struct Arguments<'a>(&'a mut Value);

impl Arguments<'_> {
    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0[name] = json!([value.into()]);
    }

    /// Disables admission plugins that the manifest enables.
    fn disable_plugins(&mut self, plugins: &[&str]) {
        let is_disabled = |plugin: &Value| plugin.as_str().is_some_and(|it| plugins.contains(&it));
        if let Some(enabled) = self.0["enable-admission-plugins"].as_array_mut() {
            enabled.retain(|plugin| !is_disabled(plugin));
        }
        if let Some(disabled) = self.0["disable-admission-plugins"].as_array_mut() {
            disabled.extend(plugins.iter().map(|plugin| json!(plugin)));
        }
    }
}

/// Whether external providers of identities are configured.
fn has_providers(context: &Context<'_>) -> bool {
    let configuration = context.spec().configuration.as_ref();
    let authentication = configuration.and_then(|it| it.authentication.as_ref());
    authentication.is_some_and(|it| !it.oidc_providers.is_empty())
}

/// Custom serving certificates that users configure by name.
pub(super) fn named_certificates<'a>(context: &Context<'a>) -> &'a [ApiServerNamedServingCert] {
    let configuration = context.spec().configuration.as_ref();
    configuration
        .and_then(|configuration| configuration.api_server.as_ref())
        .and_then(|api_server| api_server.serving_certs.as_ref())
        .map_or(&[], |certs| certs.named_certificates.as_slice())
}

/// Mount path of the n-th named certificate.
pub(super) fn named_certificate_path(number: usize) -> String {
    format!("/etc/kubernetes/certs/named/{number}")
}

fn serving(context: &Context<'_>, serving: &mut Value) {
    let tls = context.tls();
    let ipv6 = context
        .cluster_cidrs()
        .first()
        .is_some_and(|cidr| cidr.contains(':'));
    let (address, network) = if ipv6 {
        ("[::]", "tcp6")
    } else {
        ("0.0.0.0", "tcp4")
    };
    serving["bindAddress"] = json!(format!("{address}:{}", context.api_pod_port()));
    serving["bindNetwork"] = json!(network);
    serving["minTLSVersion"] = json!(tls.version());
    if !tls.ciphers.is_empty() {
        serving["cipherSuites"] = json!(tls.ciphers);
    }
    let Some(certificates) = serving["namedCertificates"].as_array_mut() else {
        return;
    };
    // Before those of the manifest: the first that fits a name is served.
    let named = named_certificates(context).iter().enumerate();
    let named = named.map(|(number, named)| {
        let path = named_certificate_path(number);
        json!({
            "names": named.names,
            "certFile": format!("{path}/tls.crt"),
            "keyFile": format!("{path}/tls.key"),
        })
    });
    certificates.splice(0..0, named);
}

fn admission(context: &Context<'_>, features: &Features, plugins: &mut Value) {
    let level = if features.is_on("OpenShiftPodSecurityAdmission") {
        "restricted"
    } else {
        "privileged"
    };
    let security = &mut plugins["PodSecurity"]["configuration"]["defaults"];
    for kind in ["enforce", "audit", "warn"] {
        security[kind] = json!(level);
    }
    let mut internal = context.cluster_cidrs();
    internal.extend(context.service_cidrs());
    plugins["network.openshift.io/RestrictedEndpointsAdmission"]["configuration"]["restrictedCIDRs"] =
        json!(internal);
    let configuration = context.spec().configuration.as_ref();
    let external = configuration
        .and_then(|configuration| configuration.network.as_ref())
        .and_then(|network| network.external_ip.as_ref());
    if let Some(external) = external {
        let policy = external.policy.as_ref();
        // `!` marks rejected ranges; they come first.
        let rejected = policy.iter().flat_map(|policy| &policy.rejected_cidrs);
        let allowed = policy.iter().flat_map(|policy| &policy.allowed_cidrs);
        let ranges: Vec<_> = rejected
            .map(|range| format!("!{range}"))
            .chain(allowed.cloned())
            .collect();
        let settings = &mut plugins["network.openshift.io/ExternalIPRanger"]["configuration"];
        settings["externalIPNetworkCIDRs"] = json!(ranges);
        settings["allowIngressIP"] = json!(!external.auto_assign_cidrs.is_empty());
    }
}

fn cluster(context: &Context<'_>, config: &mut Value) {
    config["servicesSubnet"] = json!(context.service_cidrs().join(","));
    config["consolePublicURL"] = json!(console(context));
    config["authConfig"]["oauthMetadataFile"] = if has_oauth_metadata(context) {
        json!("/etc/kubernetes/oauth/oauthMetadata.json")
    } else {
        json!("")
    };
    images(context, &mut config["imagePolicyConfig"]);
    let configuration = context.spec().configuration.as_ref();
    let api_server = configuration.and_then(|configuration| configuration.api_server.as_ref());
    let origins = api_server.map(|api_server| &api_server.additional_cors_allowed_origins);
    if let Some(allowed) = config["corsAllowedOrigins"].as_array_mut() {
        let origins = origins.into_iter().flatten();
        allowed.extend(origins.map(|origin| json!(origin)));
    }
    let scheduler = configuration.and_then(|configuration| configuration.scheduler.as_ref());
    let selector = scheduler.and_then(|scheduler| scheduler.default_node_selector.clone());
    config["projectConfig"]["defaultNodeSelector"] = json!(selector.unwrap_or_default());
}

/// Whether clients find the OAuth server of the cluster: users may also log in with certificates and tokens only.
fn has_oauth_metadata(context: &Context<'_>) -> bool {
    let configuration = context.spec().configuration.as_ref();
    let authentication = configuration.and_then(|it| it.authentication.as_ref());
    authentication.is_none_or(|it| it.type_ == Some(AuthenticationType::IntegratedOAuth))
}

/// Names of the image registry, and registries from which users may import.
fn images(context: &Context<'_>, policy: &mut Value) {
    policy["internalRegistryHostname"] = json!(edit::registry_host(context));
    let configuration = context.spec().configuration.as_ref();
    let Some(image) = configuration.and_then(|configuration| configuration.image.as_ref()) else {
        return;
    };
    policy["externalRegistryHostnames"] = json!(image.external_registry_hostnames);
    if !image.allowed_registries_for_import.is_empty() {
        let allowed = image.allowed_registries_for_import.iter();
        policy["allowedRegistriesForImport"] = allowed
            .map(|location| {
                json!({
                    "domainName": location.domain_name.as_deref().unwrap_or_default(),
                    "insecure": location.insecure.unwrap_or_default(),
                })
            })
            .collect();
    }
}

/// URL of the guest's console. On IBM Cloud the base domain is already the cluster's.
fn console(context: &Context<'_>) -> String {
    let dns = &context.spec().dns;
    let domain = &dns.base_domain;
    if context.is_on(PlatformType::IbmCloud) {
        return format!("https://console-openshift-console.{domain}");
    }
    match dns.base_domain_prefix.as_deref() {
        Some("") => format!("https://console-openshift-console.{domain}"),
        Some(prefix) => format!("https://console-openshift-console.{prefix}.{domain}"),
        None => format!(
            "https://console-openshift-console.{}.{domain}",
            context.name()
        ),
    }
}

fn network_arguments(context: &Context<'_>, arguments: &mut Arguments<'_>) {
    arguments.set("advertise-address", context.api_advertise_address());
    let configuration = context.spec().configuration.as_ref();
    let range = configuration
        .and_then(|configuration| configuration.network.as_ref())
        .and_then(|network| network.service_node_port_range.as_deref())
        .filter(|range| !range.is_empty());
    arguments.set("service-node-port-range", range.unwrap_or(NODE_PORTS));
    arguments.set("etcd-servers", etcd_url(context));
    let security = if context.is_on(PlatformType::IbmCloud) {
        "max-age=31536000"
    } else {
        "max-age=31536000,includeSubDomains,preload"
    };
    arguments.set("strict-transport-security-directives", security);
}

fn etcd_url(context: &Context<'_>) -> String {
    match &context.spec().etcd.unmanaged {
        Some(etcd) if !context.is_etcd_managed() => etcd.endpoint.clone(),
        _ => format!("https://etcd-client.{}.svc:2379", context.namespace()),
    }
}

fn identity_arguments(context: &Context<'_>, arguments: &mut Arguments<'_>) -> Result<()> {
    let issuer = &context.spec().issuer_url;
    arguments.set("api-audiences", issuer);
    arguments.set("service-account-issuer", issuer);
    arguments.set(
        "service-account-jwks-uri",
        format!("{issuer}/openid/v1/jwks"),
    );
    let expiration = KUBE_API_SERVER_TOKEN_MAX_EXPIRATION
        .get(context.annotations())
        .map_err(invalid)?;
    if let Some(expiration) = expiration {
        arguments.set("service-account-max-token-expiration", expiration);
    }
    if context.is_oauth_enabled() {
        let file = "/etc/kubernetes/auth-token-webhook/kubeconfig";
        arguments.set("authentication-token-webhook-config-file", file);
        arguments.set("authentication-token-webhook-version", "v1");
    } else {
        arguments.disable_plugins(&OAUTH_PLUGINS);
        if has_providers(context) {
            arguments.set("authentication-config", "/etc/kubernetes/auth/auth.json");
        }
    }
    for (option, value) in audit::webhook_options(context) {
        arguments.set(option, value);
    }
    if encryption::is_on(context) {
        arguments.set("encryption-provider-config", encryption::FILE);
    }
    Ok(())
}

fn load_arguments(context: &Context<'_>, arguments: &mut Arguments<'_>) -> Result<()> {
    let annotations = context.annotations();
    let chance = KUBE_API_SERVER_GOAWAY_CHANCE
        .get(annotations)
        .map_err(invalid)?;
    // With one replica, GOAWAY would only make clients reconnect to the same server.
    let default = if context.is_single_replica() {
        "0"
    } else {
        "0.001"
    };
    arguments.set(
        "goaway-chance",
        chance.map_or(default.to_owned(), |chance| chance.to_string()),
    );
    let reads = KUBE_API_SERVER_MAX_REQUESTS_INFLIGHT
        .get(annotations)
        .map_err(invalid)?;
    arguments.set("max-requests-inflight", reads.unwrap_or(3000).to_string());
    let writes = KUBE_API_SERVER_MAX_MUTATING_REQUESTS_INFLIGHT
        .get(annotations)
        .map_err(invalid)?;
    arguments.set(
        "max-mutating-requests-inflight",
        writes.unwrap_or(1000).to_string(),
    );
    let disabled = DISABLE_PROFILING
        .get(annotations)
        .map_err(invalid)?
        .unwrap_or_default();
    if disabled.iter().any(|name| name == "kube-apiserver") {
        arguments.set("profiling", "false");
    }
    Ok(())
}

/// Converts the error of an invalid annotation.
pub(super) fn invalid(error: AnnotationError) -> Error {
    Error::Invalid {
        hint: format!("write {}", error.expected),
        field: error.key,
        value: error.value,
    }
}

fn feature_arguments(features: &Features, arguments: &mut Arguments<'_>) {
    let mut features = features.clone();
    features
        .0
        .retain(|(name, _)| !REQUIRED_FEATURES.contains(&name.as_str()));
    let required = REQUIRED_FEATURES.map(|name| (name.to_owned(), true));
    features.0.extend(required);
    let mut flags = features.flags();
    flags.sort_unstable();
    arguments.0["feature-gates"] = json!(flags);
    let versions = FEATURE_APIS.iter().filter(|(name, _)| features.is_on(name));
    let versions = versions.map(|(_, version)| format!("{version}=true"));
    arguments.0["runtime-config"] = versions.collect();
}
