//! What providers respond: the discovery document, and whether passwords can be verified without a browser. Pure.

use control_plane_component::facts::OpenIdEndpoints;
use serde::Deserialize;
use serde_json::Value;

use super::error::Error;
use super::url::HttpsUrl;

/// The fields of the discovery document that matter here.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(rename = "authorization_endpoint")]
    authorize: String,
    #[serde(rename = "token_endpoint")]
    token: String,
    #[serde(rename = "userinfo_endpoint", default)]
    user_info: Option<String>,
}

/// Reads a discovery document. Its text is not quoted in errors.
pub(super) fn endpoints(body: &[u8]) -> Result<OpenIdEndpoints, Error> {
    let document: Document = serde_json::from_slice(body).map_err(|_| Error::Document)?;
    let Document {
        authorize,
        token,
        user_info,
    } = document;
    let user_info = user_info.unwrap_or_default();
    validate("authorization_endpoint", &authorize)?;
    validate("token_endpoint", &token)?;
    if !user_info.is_empty() {
        validate("userinfo_endpoint", &user_info)?;
    }
    Ok(OpenIdEndpoints {
        authorize,
        token,
        user_info,
        challenge: false,
    })
}

fn validate(field: &'static str, text: &str) -> Result<(), Error> {
    let url = HttpsUrl::parse(text);
    url.map(drop)
        .map_err(|problem| Error::Endpoint { field, problem })
}

/// Whether the response to a wrong password says that passwords are supported. Only then it is the password that is wrong.
pub(super) fn supports_passwords(body: &[u8]) -> bool {
    let Ok(response) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    match response["error"].as_str() {
        Some("") | None => response["access_token"]
            .as_str()
            .is_some_and(|it| !it.is_empty()),
        Some(error) => error == "invalid_grant",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(changes: &Value) -> Value {
        let mut document = json!({
            "issuer": "https://sso.example.com",
            "authorization_endpoint": "https://sso.example.com/auth",
            "token_endpoint": "https://sso.example.com/token",
            "userinfo_endpoint": "https://sso.example.com/me",
        });
        let fields = document.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        fields.retain(|_, value| !value.is_null());
        document
    }

    fn read(document: &Value) -> Result<OpenIdEndpoints, String> {
        endpoints(document.to_string().as_bytes()).map_err(|error| support::error::chain(&error))
    }

    #[test]
    fn endpoints_are_those_of_the_document() {
        let mut expected = OpenIdEndpoints {
            authorize: "https://sso.example.com/auth".to_owned(),
            token: "https://sso.example.com/token".to_owned(),
            user_info: "https://sso.example.com/me".to_owned(),
            challenge: false,
        };
        assert_eq!(read(&document(&json!({}))), Ok(expected.clone()));
        expected.user_info.clear();
        for absent in [json!(null), json!("")] {
            let found = read(&document(&json!({ "userinfo_endpoint": absent })));
            assert_eq!(found, Ok(expected.clone()));
        }
    }

    #[test]
    fn invalid_documents_are_refused_with_the_reason() {
        for (changes, expected) in [
            (
                json!({ "token_endpoint": null }),
                "not a discovery document",
            ),
            (
                json!({ "authorization_endpoint": 7 }),
                "not a discovery document",
            ),
            (
                json!({ "token_endpoint": "http://a" }),
                "invalid token_endpoint",
            ),
            (
                json!({ "token_endpoint": "https://a#b" }),
                "it has a fragment",
            ),
            (
                json!({ "token_endpoint": "https://169.254.169.254/" }),
                "link-local",
            ),
            (
                json!({ "authorization_endpoint": "" }),
                "invalid authorization_endpoint",
            ),
            (
                json!({ "userinfo_endpoint": "javascript:x" }),
                "invalid userinfo_endpoint",
            ),
        ] {
            let error = read(&document(&changes)).unwrap_err();
            assert!(error.contains(expected), "{changes}: {error}");
        }
        for body in ["", "<html>", "[]", "null", "\"secret\""] {
            let error = endpoints(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("not a discovery document"), "{body}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn passwords_are_supported_if_only_the_password_is_wrong() {
        for (body, expected) in [
            (r#"{"error":"invalid_grant"}"#, true),
            (r#"{"error":"unsupported_grant_type"}"#, false),
            (r#"{"error":"invalid_client","access_token":"t"}"#, false),
            (r#"{"access_token":"t"}"#, true),
            (r#"{"access_token":""}"#, false),
            ("{}", false),
            ("<html>", false),
            ("", false),
        ] {
            assert_eq!(supports_passwords(body.as_bytes()), expected, "{body}");
        }
    }
}
