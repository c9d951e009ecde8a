//! Whether Secrets can be encrypted with the key of the cluster: its role is assumed, and a text is encrypted.

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::secret_encryption::{AwsKmsSpec, SecretEncryptionType};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::aws::{Credentials, Scope, domain, endpoint, is_region, sign};
use support::outbound::Http;

use super::access::{Access, NoAccess, Role, variable};
use crate::hosted_control_plane::status::Evaluation;

/// The service account that the role trusts.
const ACCOUNT: &str = "kms-provider";
const SERVICE: &str = "kms";
/// What is encrypted: nothing depends on it.
const TEXT: &str = "text";

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// The API server does not issue tokens yet.
    NotYet,
    /// Secrets are not encrypted by AWS.
    NotUsed,
    /// The key is used.
    Works,
    /// No credentials.
    NoAccess(NoAccess),
    /// KMS refuses to encrypt, with this code.
    Refused(String),
    /// KMS cannot be used.
    Unavailable,
}

/// Asks.
pub(super) async fn ask(hcp: &HostedControlPlane, access: &mut Access) -> Found {
    let Some(kms) = settings(hcp) else {
        return Found::NotUsed;
    };
    let role = Role {
        account: ACCOUNT,
        arn: kms.auth.aws_kms.clone(),
        region: kms.region.clone(),
    };
    match access.credentials(&role).await {
        Ok(credentials) => encrypt(&access.http, kms, &credentials).await,
        Err(none) => Found::NoAccess(none),
    }
}

fn settings(hcp: &HostedControlPlane) -> Option<&AwsKmsSpec> {
    let encryption = hcp.spec.secret_encryption.as_ref()?;
    if encryption.type_ != SecretEncryptionType::Kms {
        return None;
    }
    encryption.kms.as_ref()?.aws.as_ref()
}

async fn encrypt(http: &Http, kms: &AwsKmsSpec, credentials: &Credentials) -> Found {
    let region = kms.region.as_str();
    if !is_region(region) {
        return Found::Unavailable;
    }
    let of_aws = || format!("https://{SERVICE}.{region}.{}", domain(region));
    let url = endpoint(SERVICE, &variable).unwrap_or_else(of_aws);
    let body = json!({ "KeyId": kms.active_key.arn, "Plaintext": STANDARD.encode(TEXT) });
    let body = Bytes::from(body.to_string());
    let build = || {
        let mut request = Request::post(format!("{url}/"))
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", "TrentService.Encrypt")
            .body(body.clone())?;
        let scope = Scope {
            region,
            service: SERVICE,
            time: Timestamp::now(),
        };
        sign(&mut request, credentials, &scope)?;
        Ok(request)
    };
    match http.send(build).await {
        Ok(response) if response.status().is_success() => Found::Works,
        Ok(response) if response.status().is_client_error() => {
            Found::Refused(code(response.body()))
        }
        Ok(_) | Err(_) => Found::Unavailable,
    }
}

/// The code of an error, which may have a namespace before it.
fn code(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = body["__type"].as_str().unwrap_or_default();
    let code = code.rsplit('#').next().unwrap_or_default();
    code.chars().filter(char::is_ascii_alphanumeric).collect()
}

// === impl Found ===

impl Found {
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Self::Works | Self::NotUsed)
    }

    /// The condition; nothing while there is no kubeconfig to ask with.
    pub(super) fn evaluation(&self) -> Option<Evaluation> {
        let about = Type::ValidAwsKmsConfig;
        let role = "spec.secretEncryption.kms.aws.auth.awsKms";
        let evaluation = match self {
            Self::NotYet | Self::NoAccess(NoAccess::NoKubeconfig) => return None,
            Self::Works => Evaluation::yes(about),
            Self::NotUsed => Evaluation::unknown(about, "AWS KMS is not configured"),
            Self::NoAccess(NoAccess::NoToken(problem)) => Evaluation::unknown(
                about,
                format!("failed to get a token from the API server: {problem}"),
            ),
            Self::NoAccess(NoAccess::Refused(code)) => Evaluation::no(
                about,
                "InvalidIAMRole",
                format!(
                    "AWS does not accept tokens of the cluster for the role in {role} ({code}): check its trust policy"
                ),
            ),
            Self::NoAccess(NoAccess::Unavailable(problem)) => {
                Evaluation::unknown(about, problem.as_str())
            }
            Self::Refused(code) => Evaluation::no(
                about,
                "AWSError",
                format!(
                    "KMS refuses to encrypt with spec.secretEncryption.kms.aws.activeKey.arn ({code}): check the key, and the \
                     permissions of the role in {role}"
                ),
            ),
            Self::Unavailable => Evaluation::unknown(about, "KMS cannot be used"),
        };
        Some(evaluation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_conditions() {
        let none = Found::NoAccess;
        for (found, expected) in [
            (Found::NotYet, None),
            (none(NoAccess::NoKubeconfig), None),
            (Found::Works, Some(("True", "AsExpected"))),
            (Found::NotUsed, Some(("Unknown", "StatusUnknown"))),
            (
                none(NoAccess::NoToken("no".to_owned())),
                Some(("Unknown", "StatusUnknown")),
            ),
            (
                none(NoAccess::Refused("AccessDenied".to_owned())),
                Some(("False", "InvalidIAMRole")),
            ),
            (
                Found::Refused("DisabledException".to_owned()),
                Some(("False", "AWSError")),
            ),
            (Found::Unavailable, Some(("Unknown", "StatusUnknown"))),
        ] {
            let evaluation = found.evaluation();
            let evaluation = evaluation.as_ref();
            let evaluated = evaluation.map(|it| (it.status, it.reason.as_str()));
            assert_eq!(evaluated, expected, "{found:?}");
        }
    }

    #[test]
    fn codes_are_read_with_and_without_a_namespace() {
        for (body, expected) in [
            ("{\"__type\":\"DisabledException\"}", "DisabledException"),
            (
                "{\"__type\":\"com.amazonaws.kms#NotFoundException\"}",
                "NotFoundException",
            ),
            ("{}", ""),
            ("no JSON", ""),
        ] {
            assert_eq!(code(body.as_bytes()), expected);
        }
    }

    #[tokio::test]
    async fn a_region_that_is_no_label_gets_no_request() {
        let kms = json!({
            "region": "example.com/", "activeKey": { "arn": "arn:aws:kms:a" }, "auth": { "awsKms": "arn" },
        });
        let kms = serde_json::from_value(kms).unwrap();
        let credentials = Credentials {
            access_key: "a".to_owned(),
            secret_key: "s".to_owned(),
            session_token: None,
        };
        let found = encrypt(&Http::new(), &kms, &credentials).await;
        assert!(matches!(found, Found::Unavailable), "{found:?}");
    }
}
