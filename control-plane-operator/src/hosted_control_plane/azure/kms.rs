//! Whether Secrets can be encrypted with the key of the cluster: a text is encrypted, as the managed identity of the plugin. The
//! token of a workload identity is only given to the plugin.

use std::path::Path;
use std::time::Duration;

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::platform::azure::identity::AzureManagedIdentity;
use api::hypershift::v1beta1::secret_encryption::SecretEncryptionType;
use api::hypershift::v1beta1::secret_encryption::azure::{
    AzureKeyVaultAccess, AzureKeyVaultType, AzureKmsSpec,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use support::azure::{Cloud, Source};
use support::rest::{Calls, Client, Error, Request};
use tokio::time::timeout;

use crate::hosted_control_plane::status::Evaluation;

/// Where hypershift-operator mounts the certificate of the identity.
const CERTIFICATES: &str = "/mnt/kms";
/// The version of the API of key vaults.
const VERSION: &str = "7.4";
const ALGORITHM: &str = "RSA-OAEP-256";
/// What is encrypted: nothing depends on it.
const TEXT: &str = "text";
/// How long an encryption may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// Secrets are not encrypted by Azure.
    NotUsed,
    /// Only the private network of the cluster reaches the key.
    Private,
    /// Only the plugin has the identity that uses the key.
    AtRunTime,
    /// The certificate of the identity is not mounted.
    NotMounted,
    /// The key is used.
    Works,
    /// The certificate cannot be used.
    InvalidCredentials(String),
    /// Azure refuses to encrypt: a status and a code.
    Refused(String),
    /// Azure cannot be used.
    Unavailable(String),
}

/// Asks.
pub(super) async fn ask(hcp: &HostedControlPlane) -> Found {
    let Some(kms) = settings(hcp) else {
        return Found::NotUsed;
    };
    let Some(identity) = &kms.kms else {
        return Found::AtRunTime;
    };
    if kms.key_vault_access == Some(AzureKeyVaultAccess::Private) {
        return Found::Private;
    }
    if !Path::new(CERTIFICATES).is_dir() {
        return Found::NotMounted;
    }
    let platform = hcp.spec.platform.azure.as_ref();
    let name = json!(platform.map(|it| it.cloud));
    let Some(cloud) = name.as_str().and_then(Cloud::of_name) else {
        return Found::Unavailable(format!(
            "spec.platform.azure.cloud {name} has no key vaults"
        ));
    };
    let request = match request(kms, cloud) {
        Ok(request) => request,
        Err(problem) => return Found::Refused(problem),
    };
    match source(identity, kms, cloud) {
        Ok(source) => encrypt(&Client::new(source), &request).await,
        Err(problem) => Found::InvalidCredentials(problem),
    }
}

fn settings(hcp: &HostedControlPlane) -> Option<&AzureKmsSpec> {
    let encryption = hcp.spec.secret_encryption.as_ref()?;
    if encryption.type_ != SecretEncryptionType::Kms {
        return None;
    }
    encryption.kms.as_ref()?.azure.as_ref()
}

/// The domain of key vaults, or of managed HSMs.
fn domain(kms: &AzureKmsSpec, cloud: Cloud) -> String {
    let service = match kms.key_vault_type {
        Some(AzureKeyVaultType::ManagedHsm) => "managedhsm",
        Some(AzureKeyVaultType::KeyVault) | None => "vault",
    };
    let domain = match cloud {
        Cloud::Public => "azure.net",
        Cloud::UsGovernment => "usgovcloudapi.net",
        Cloud::China => "azure.cn",
        Cloud::Bleu => "sovcloud-api.fr",
    };
    format!("{service}.{domain}")
}

/// The encryption. The error says which name is none.
fn request(kms: &AzureKmsSpec, cloud: Cloud) -> Result<Request, String> {
    let key = &kms.active_key;
    // Users choose them, and they become parts of a URL.
    for (field, name) in [
        ("keyVaultName", &key.key_vault_name),
        ("keyName", &key.key_name),
        ("keyVersion", &key.key_version),
    ] {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!("{field} {name:?} is not a name in Azure"));
        }
    }
    let url = format!(
        "https://{}.{}/keys/{}/{}/encrypt?api-version={VERSION}",
        key.key_vault_name,
        domain(kms, cloud),
        key.key_name,
        key.key_version
    );
    let body = json!({ "alg": ALGORITHM, "value": URL_SAFE_NO_PAD.encode(TEXT) });
    Ok(Request::post(url, body))
}

fn source(
    identity: &AzureManagedIdentity,
    kms: &AzureKmsSpec,
    cloud: Cloud,
) -> Result<Source, String> {
    let scope = format!("https://{}/.default", domain(kms, cloud));
    super::source(CERTIFICATES, identity, &scope, cloud)
}

async fn encrypt(calls: &impl Calls, request: &Request) -> Found {
    match timeout(PATIENCE, calls.call(request)).await {
        Ok(Ok(_)) => Found::Works,
        Ok(Err(Error::Refused { status, code, .. })) if status < 500 && status != 429 => {
            Found::Refused(format!("{status} {code}").trim().to_owned())
        }
        Ok(Err(error)) => Found::Unavailable(error.to_string()),
        Err(_) => Found::Unavailable(format!("no response within {PATIENCE:?}")),
    }
}

// === impl Found ===

impl Found {
    pub(super) fn is_good(&self) -> bool {
        match self {
            Self::NotUsed | Self::Private | Self::AtRunTime | Self::Works => true,
            Self::NotMounted
            | Self::InvalidCredentials(_)
            | Self::Refused(_)
            | Self::Unavailable(_) => false,
        }
    }

    /// The condition.
    pub(super) fn evaluation(&self) -> Evaluation {
        let about = Type::ValidAzureKmsConfig;
        let field = "spec.secretEncryption.kms.azure";
        match self {
            Self::Works => Evaluation::yes(about),
            Self::AtRunTime => Evaluation {
                message: "The API server tests the key when it starts".to_owned(),
                ..Evaluation::yes(about)
            },
            Self::NotUsed => Evaluation::unknown(about, "Azure KMS is not configured"),
            Self::Private => Evaluation::unknown(
                about,
                "The key vault is private: only the API server reaches it",
            ),
            Self::NotMounted => Evaluation::unknown(
                about,
                format!("Waiting for the certificate of {field}.kms to be mounted"),
            ),
            Self::InvalidCredentials(problem) => Evaluation::no(
                about,
                "InvalidAzureCredentials",
                format!("the certificate of {field}.kms cannot be used: {problem}"),
            ),
            Self::Refused(problem) => Evaluation::no(
                about,
                "AzureError",
                format!(
                    "Azure refuses to encrypt with {field}.activeKey ({problem}): check the key, and the permissions of the \
                     identity in {field}.kms"
                ),
            ),
            Self::Unavailable(problem) => {
                Evaluation::unknown(about, format!("Azure cannot be used: {problem}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    use serde_json::Value;
    use support::rest::Response;

    use super::*;

    fn kms(settings: &Value) -> AzureKmsSpec {
        let key = json!({ "keyVaultName": "vault-1", "keyName": "key", "keyVersion": "1a" });
        let mut kms = json!({ "activeKey": key });
        for (field, value) in settings.as_object().into_iter().flatten() {
            kms[field] = value.clone();
        }
        serde_json::from_value(kms).unwrap()
    }

    fn hcp(azure: Option<&Value>) -> HostedControlPlane {
        let text = include_str!(
            "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
        hcp["spec"]["secretEncryption"] = azure.map_or(Value::Null, |azure| {
            let kms = json!(kms(azure));
            json!({ "type": "kms", "kms": { "provider": "Azure", "azure": kms } })
        });
        hcp["status"] = Value::Null;
        serde_json::from_value(hcp).unwrap()
    }

    #[tokio::test]
    async fn azure_is_only_asked_as_a_managed_identity() {
        let managed = json!({ "credentialsSecretName": "kms", "objectEncoding": "utf-8" });
        let private = json!({ "kms": managed, "keyVaultAccess": "Private" });
        let workload = json!({
            "workloadIdentity": { "clientID": "00000000-0000-0000-0000-000000000009" },
        });
        for (name, azure, status) in [
            ("no encryption", None, "Unknown"),
            ("a workload identity", Some(&workload), "True"),
            ("a private key vault", Some(&private), "Unknown"),
            // Nothing is mounted where tests run.
            (
                "no certificate",
                Some(&json!({ "kms": managed })),
                "Unknown",
            ),
        ] {
            let found = ask(&hcp(azure)).await;
            assert_eq!(found.evaluation().status, status, "{name}: {found:?}");
        }
    }

    #[test]
    fn the_key_is_at_the_vault_of_its_cloud() {
        let hsm = json!({ "keyVaultType": "ManagedHSM" });
        let none = json!({});
        for (settings, cloud, expected) in [
            (&none, Cloud::Public, "vault.azure.net"),
            (&hsm, Cloud::Public, "managedhsm.azure.net"),
            (&none, Cloud::UsGovernment, "vault.usgovcloudapi.net"),
            (&hsm, Cloud::China, "managedhsm.azure.cn"),
            (&none, Cloud::Bleu, "vault.sovcloud-api.fr"),
        ] {
            let request = request(&kms(settings), cloud).unwrap();
            let expected =
                format!("https://vault-1.{expected}/keys/key/1a/encrypt?api-version=7.4");
            assert_eq!(request.url, expected);
            assert_eq!(
                request.body,
                json!({ "alg": "RSA-OAEP-256", "value": "dGV4dA" })
            );
        }
        for name in ["", "a/b", "a.example.com", "a?b"] {
            let mut kms = kms(&none);
            kms.active_key.key_vault_name = name.to_owned();
            let problem = request(&kms, Cloud::Public).unwrap_err();
            assert!(problem.contains("keyVaultName"), "{problem}");
        }
    }

    /// One response.
    struct Fake(Mutex<Option<Result<Response, Error>>>);

    impl Calls for Fake {
        async fn call(&self, _: &Request) -> Result<Response, Error> {
            let mut response = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            response.take().unwrap()
        }

        async fn pause(&self, _: Duration) {}
    }

    #[tokio::test]
    async fn refusals_and_outages_are_different_findings() {
        let refused = |status: u16, code: &str| {
            Err(Error::Refused {
                what: "POST".to_owned(),
                status,
                code: code.to_owned(),
                message: String::new(),
            })
        };
        let works = Response {
            status: 200,
            headers: BTreeMap::new(),
            body: json!({}),
        };
        let credentials = Error::Credentials("none".to_owned());
        for (response, expected) in [
            (Ok(works), "Works"),
            (refused(403, "Forbidden"), "Refused(\"403 Forbidden\")"),
            (refused(404, ""), "Refused(\"404\")"),
            (refused(429, "Throttled"), "Unavailable("),
            (refused(500, "Internal"), "Unavailable("),
            (Err(credentials), "Unavailable("),
        ] {
            let fake = Fake(Mutex::new(Some(response)));
            let found = encrypt(&fake, &Request::get("https://vault")).await;
            let found = format!("{found:?}");
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn findings_have_conditions() {
        for (found, expected) in [
            (Found::Works, ("True", "AsExpected")),
            (Found::AtRunTime, ("True", "AsExpected")),
            (Found::NotUsed, ("Unknown", "StatusUnknown")),
            (Found::Private, ("Unknown", "StatusUnknown")),
            (Found::NotMounted, ("Unknown", "StatusUnknown")),
            (
                Found::InvalidCredentials("empty".to_owned()),
                ("False", "InvalidAzureCredentials"),
            ),
            (
                Found::Refused("403 Forbidden".to_owned()),
                ("False", "AzureError"),
            ),
            (
                Found::Unavailable("none".to_owned()),
                ("Unknown", "StatusUnknown"),
            ),
        ] {
            let evaluation = found.evaluation();
            let evaluated = (evaluation.status, evaluation.reason.as_str());
            assert_eq!(evaluated, expected, "{found:?}");
        }
    }
}
