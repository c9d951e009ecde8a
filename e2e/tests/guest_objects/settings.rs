//! Settings of a HostedCluster that become global configuration: the real CRDs take them, and their defaults cause no write.

use anyhow::Result;
use serde_json::{Value, json};

use super::guest::Guest;
use super::pass;
use super::profiles::{Profile, base64, source};

/// Writes the objects of a profile with many settings twice. Returns their number.
pub(crate) async fn run(guest: &Guest) -> Result<usize> {
    let mut profile = profile();
    pass::run(guest, &mut profile).await?;
    // Some objects follow the state of others, such as the sources that a hub disables.
    pass::run(guest, &mut profile).await?;
    let found = pass::objects(guest, &profile).await?;
    pass::run(guest, &mut profile).await?;
    let again = pass::objects(guest, &profile).await?;
    pass::unchanged(guest, &found, &again);
    guest.clean_up(&found).await?;
    Ok(found.len())
}

fn profile() -> Profile {
    let mut profile = Profile::new("AWS")
        .with("/spec/configuration", configuration())
        .with("/spec/additionalTrustBundle", json!({ "name": "user-ca-bundle" }))
        .with(
            "/spec/imageContentSources",
            json!([{ "source": "quay.io/a", "mirrors": ["mirror.example.com/a", "mirror.example.com/b"] }]),
        )
        .with("/spec/capabilities", json!({ "disabled": ["Console"] }))
        .with(
            "/spec/operatorConfiguration",
            json!({ "clusterNetworkOperator": {
                "disableMultiNetwork": true,
                "ovnKubernetesConfig": { "ipv4": { "internalJoinSubnet": "100.99.0.0/16" }, "mtu": 1400 },
            } }),
        )
        .with("/spec/infrastructureAvailabilityPolicy", json!("HighlyAvailable"));
    for name in ["image-ca", "proxy-ca", "idp-ca", "user-ca-bundle"] {
        let data = json!({ "ca-bundle.crt": format!("{name} PEM") });
        profile = profile.source(source("ConfigMap", name, data));
    }
    let data = json!({ "clientSecret": base64("client") });
    profile.source(source("Secret", "client", data))
}

fn configuration() -> Value {
    json!({
        "apiServer": {
            "audit": { "profile": "WriteRequestBodies" },
            "tlsSecurityProfile": { "type": "Intermediate", "intermediate": {} },
            "servingCerts": { "namedCertificates": [
                { "names": ["api.example.com"], "servingCertificate": { "name": "serving" } },
            ] },
        },
        "authentication": {
            "type": "OIDC",
            "oidcProviders": [{
                "name": "provider",
                "issuer": {
                    "issuerURL": "https://login.example.com",
                    "audiences": ["hosted"],
                    "issuerCertificateAuthority": { "name": "idp-ca" },
                },
                "claimMappings": {
                    "username": { "claim": "email", "prefixPolicy": "NoPrefix" },
                    "groups": { "claim": "groups", "prefix": "oidc:" },
                },
                "oidcClients": [{
                    "componentName": "console",
                    "componentNamespace": "openshift-console",
                    "clientID": "console",
                    "clientSecret": { "name": "client" },
                }],
            }],
        },
        "image": {
            "additionalTrustedCA": { "name": "image-ca" },
            "allowedRegistriesForImport": [{ "domainName": "quay.io" }],
            "registrySources": { "insecureRegistries": ["registry.example.com"] },
        },
        "ingress": {
            "appsDomain": "apps.example.org",
            "loadBalancer": { "platform": { "type": "AWS", "aws": { "type": "NLB" } } },
        },
        "network": {
            "externalIP": { "policy": { "allowedCIDRs": ["10.1.0.0/16"] } },
            "serviceNodePortRange": "30000-32000",
        },
        "proxy": {
            "httpProxy": "http://proxy.example.com:3128",
            "httpsProxy": "http://proxy.example.com:3128",
            "noProxy": ".example.org",
            "trustedCA": { "name": "proxy-ca" },
        },
        "operatorhub": { "disableAllDefaultSources": true },
    })
}
