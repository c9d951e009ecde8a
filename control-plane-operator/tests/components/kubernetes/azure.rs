//! How inputs change what only clusters on Azure have: webhooks for workload identities, and private key vaults.

use control_plane_operator::render::Input;
use serde_json::{Value, json};

use super::{NETWORKING, SERVER, SERVER_PODS, configuration, platform};
use crate::cluster_operators::aro;
use crate::openshift_apis::{Row, check, evaluate};

const ROUTER: &str = "router";
const ROUTER_PODS: &str = "Deployment/router";

#[test]
pub(crate) fn workload_identities_on_azure_have_a_webhook() {
    let of = |field: &'static str, value: Value| {
        [("/spec/platform/type", json!("Azure")), (field, value)]
    };
    let azure = platform("Azure");
    let tenant = of("/spec/platform/azure/tenantID", json!("tenant"));
    let cloud = of(
        "/spec/platform/azure/cloud",
        json!("AzureUSGovernmentCloud"),
    );
    let port = of(
        NETWORKING,
        json!({ "networkType": "Other", "apiServer": { "port": 7443 } }),
    );
    let modern = [
        platform("Azure"),
        configuration(
            "apiServer",
            &json!({ "tlsSecurityProfile": { "type": "Modern" } }),
        ),
    ]
    .concat();
    let args = container!("azure-workload-identity-webhook", "/args");
    let ciphers = format!("{args}/--tls-cipher-suites");
    let secret = "Secret/azure-workload-identity-webhook-kubeconfig";
    let certificate =
        "/spec/template/spec/volumes/azure-wi-webhook-serving-certs/secret/secretName";
    let kubeconfig = "/spec/template/spec/volumes/azure-wi-webhook-kubeconfig/secret/secretName";
    let env = |name: &str| {
        let path = container!("azure-workload-identity-webhook", "/env");
        format!("{path}/{name}/value")
    };
    let rows: [Row<'_>; 17] = [
        (
            "image",
            &azure,
            SERVER_PODS,
            container!("azure-workload-identity-webhook", "/image"),
            json!("azure-workload-identity-webhook"),
        ),
        (
            "no webhook elsewhere",
            &[],
            SERVER_PODS,
            container!("azure-workload-identity-webhook", "/image"),
            Value::Null,
        ),
        (
            "not that of AWS",
            &azure,
            SERVER_PODS,
            container!("aws-pod-identity-webhook", "/image"),
            Value::Null,
        ),
        (
            "tenant",
            &tenant,
            SERVER_PODS,
            &env("AZURE_TENANT_ID"),
            json!("tenant"),
        ),
        (
            "public cloud",
            &azure,
            SERVER_PODS,
            &env("AZURE_ENVIRONMENT"),
            json!("AzurePublicCloud"),
        ),
        (
            "another cloud",
            &cloud,
            SERVER_PODS,
            &env("AZURE_ENVIRONMENT"),
            json!("AzureUSGovernmentCloud"),
        ),
        (
            "it waits for the API server",
            &azure,
            SERVER_PODS,
            &env("API_SERVER_PORT"),
            json!("6443"),
        ),
        (
            "it waits at the port of pods",
            &port,
            SERVER_PODS,
            &env("API_SERVER_PORT"),
            json!("7443"),
        ),
        (
            "certificates are not rotated",
            &azure,
            SERVER_PODS,
            &format!("{args}/--disable-cert-rotation"),
            json!("--disable-cert-rotation=true"),
        ),
        (
            "the TLS version is last",
            &azure,
            SERVER_PODS,
            &format!("{args}/-"),
            json!("--tls-min-version=VersionTLS12"),
        ),
        (
            "the TLS version of the profile",
            &modern,
            SERVER_PODS,
            &format!("{args}/-"),
            json!("--tls-min-version=VersionTLS13"),
        ),
        (
            "no ciphers with TLS 1.3",
            &modern,
            SERVER_PODS,
            &ciphers,
            Value::Null,
        ),
        (
            "serving certificate",
            &azure,
            SERVER_PODS,
            certificate,
            json!("azure-workload-identity-webhook-serving-cert"),
        ),
        (
            "kubeconfig",
            &azure,
            SERVER_PODS,
            kubeconfig,
            json!("azure-workload-identity-webhook-kubeconfig"),
        ),
        (
            "no kubeconfig elsewhere",
            &[],
            SERVER_PODS,
            kubeconfig,
            Value::Null,
        ),
        (
            "Secret of the kubeconfig",
            &azure,
            secret,
            "/metadata/labels/hypershift.openshift.io~1kubeconfig",
            json!("local"),
        ),
        ("no Secret elsewhere", &[], secret, "/kind", Value::Null),
    ];
    check(SERVER, &rows);
}

/// The changes for a cluster with managed identities, and encryption with a key in a vault.
fn vault(access: Option<&str>, settings: &Value) -> Vec<(&'static str, Value)> {
    let mut azure = json!({
        "activeKey": { "keyVaultName": "vault", "keyName": "key", "keyVersion": "1" },
        "kms": { "clientID": "00000000-0000-0000-0000-000000000001", "objectEncoding": "utf-8", "credentialsSecretName": "kms" },
    });
    if let Some(access) = access {
        azure["keyVaultAccess"] = json!(access);
    }
    for (field, value) in settings.as_object().into_iter().flatten() {
        azure[field] = value.clone();
    }
    let encryption = json!({ "type": "kms", "kms": { "provider": "Azure", "azure": azure } });
    vec![aro(), ("/spec/secretEncryption", encryption)]
}

fn with_plugin(input: &mut Input) {
    let name = "azure-kms-encryption-provider".to_owned();
    input.release.images.insert(name.clone(), name);
}

/// The lines of a text that has such lines.
fn lines(input: &Input, start: &str) -> Vec<String> {
    let config = crate::variants::object(input, ROUTER, "ConfigMap", ROUTER);
    let text = config["data"]["haproxy.cfg"].as_str().unwrap().to_owned();
    let lines = text.lines().map(str::trim);
    let found = lines.filter(|line| line.starts_with(start));
    found.map(str::to_owned).collect()
}

#[test]
pub(crate) fn key_vaults_are_reached_through_the_router() {
    let private = vault(Some("Private"), &Value::Null);
    let public = vault(Some("Public"), &Value::Null);
    let unset = vault(None, &Value::Null);
    let hsm = vault(Some("Private"), &json!({ "keyVaultType": "ManagedHSM" }));
    let old = json!({ "keyVaultName": "old", "keyName": "key", "keyVersion": "1" });
    let two = vault(Some("Private"), &json!({ "backupKey": old }));
    let government = [
        private.clone(),
        vec![(
            "/spec/platform/azure/cloud",
            json!("AzureUSGovernmentCloud"),
        )],
    ]
    .concat();
    let address = "/spec/template/spec/hostAliases/0/ip";
    let names = "/spec/template/spec/hostAliases/0/hostnames";
    let rows: [Row<'_>; 8] = [
        (
            "address of the router",
            &private,
            SERVER_PODS,
            address,
            json!("172.30.0.100"),
        ),
        (
            "name of the vault",
            &private,
            SERVER_PODS,
            names,
            json!(["vault.vault.azure.net"]),
        ),
        (
            "name in another cloud",
            &government,
            SERVER_PODS,
            names,
            json!(["vault.vault.usgovcloudapi.net"]),
        ),
        (
            "name of an HSM",
            &hsm,
            SERVER_PODS,
            names,
            json!(["vault.managedhsm.azure.net"]),
        ),
        (
            "names of two vaults",
            &two,
            SERVER_PODS,
            names,
            json!(["vault.vault.azure.net", "old.vault.azure.net"]),
        ),
        ("public vault", &public, SERVER_PODS, names, Value::Null),
        (
            "vault without access",
            &unset,
            SERVER_PODS,
            names,
            Value::Null,
        ),
        ("no encryption", &[], SERVER_PODS, names, Value::Null),
    ];
    evaluate(SERVER, with_plugin, &rows);
    let none: &[&str] = &[];
    for (changes, rules, servers) in [
        (
            &private,
            ["use_backend keyvault if is_keyvault"].as_slice(),
            ["server keyvault vault.vault.azure.net:443"].as_slice(),
        ),
        (
            &two,
            &[
                "use_backend keyvault if is_keyvault",
                "use_backend keyvault_1 if is_keyvault_1",
            ],
            &[
                "server keyvault vault.vault.azure.net:443",
                "server keyvault_1 old.vault.azure.net:443",
            ],
        ),
        (&public, none, none),
    ] {
        let input = crate::variants::changed(changes);
        assert_eq!(lines(&input, "use_backend keyvault"), rules);
        let found = lines(&input, "server keyvault");
        assert_eq!(found.len(), servers.len(), "{found:?}");
        let matches = |(found, server): (&String, &&str)| found.starts_with(server);
        assert!(found.iter().zip(servers).all(matches), "{found:?}");
        let resolvers = lines(&input, "nameserver azure 168.63.129.16:53");
        assert_eq!(resolvers.len(), usize::from(!servers.is_empty()));
        crate::rows::count(1);
    }
}

#[test]
pub(crate) fn routers_are_attached_to_the_network_of_nodes() {
    let label = "/spec/template/metadata/labels/kubernetes.azure.com~1pod-network-instance";
    let selector = "/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels/kubernetes.azure.com~1pod-network-instance";
    let private = json!({ "type": "Swift", "swift": { "podNetworkInstance": "instance" } });
    let swift = [
        ("/spec/platform/type", json!("Azure")),
        ("/spec/platform/azure/topology", json!("Private")),
        ("/spec/platform/azure/private", private),
    ];
    let annotated = super::annotation(
        "hypershift.openshift.io/swift-pod-network-instance",
        "other",
    );
    let annotated = [platform("Azure"), annotated].concat();
    let rows: [Row<'_>; 4] = [
        ("field", &swift, ROUTER_PODS, label, json!("instance")),
        (
            "selector of other replicas",
            &swift,
            ROUTER_PODS,
            selector,
            json!("instance"),
        ),
        ("annotation", &annotated, ROUTER_PODS, label, json!("other")),
        (
            "no network",
            &platform("Azure"),
            ROUTER_PODS,
            label,
            Value::Null,
        ),
    ];
    let ignored = |changes: &[(&str, Value)], id: &str, path: &str| {
        let (kind, name) = id.split_once('/').unwrap();
        let object =
            crate::variants::object(&crate::variants::changed(changes), ROUTER, kind, name);
        object.pointer(path).cloned().unwrap_or_default()
    };
    for (name, changes, id, path, expected) in &rows {
        assert_eq!(ignored(changes, id, path), *expected, "{name}");
    }
    crate::rows::count(rows.len());
}
