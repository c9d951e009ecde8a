//! Requests for tokens.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::SCOPE;
use crate::outbound::{self, Http};
use crate::rest::{self, Error, Token};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
/// How long a token of a service account is valid.
const LIFETIME: &str = "3600s";

/// Sends a form, and returns the document of the response.
pub(super) async fn post_form(
    http: &Http,
    url: &str,
    form: &[(&str, &str)],
) -> Result<Value, Error> {
    let body = encoded(form);
    let build = || {
        Request::post(url)
            .header(CONTENT_TYPE, FORM)
            .body(body.clone())
    };
    document(&Method::POST, url, http.send(build).await)
}

/// In a function of its own: an encoder cannot be kept while something is awaited.
fn encoded(form: &[(&str, &str)]) -> Bytes {
    let mut encoder = form_urlencoded::Serializer::new(String::new());
    encoder.extend_pairs(form);
    Bytes::from(encoder.finish())
}

/// The token of a response of a token endpoint.
pub(super) fn token_of(url: &str, document: &Value) -> Result<Token, Error> {
    let value = document["access_token"].as_str();
    let seconds = document["expires_in"].as_u64();
    token(url, value, seconds.unwrap_or_default())
}

/// A token of a service account, for one who may act as it.
pub(super) async fn impersonate(http: &Http, url: &str, caller: &Token) -> Result<Token, Error> {
    let body = Bytes::from(json!({ "scope": [SCOPE], "lifetime": LIFETIME }).to_string());
    let build = || {
        Request::post(url)
            .header(CONTENT_TYPE, JSON)
            .header(AUTHORIZATION, format!("Bearer {}", caller.value))
            .body(body.clone())
    };
    let document = document(&Method::POST, url, http.send(build).await)?;
    let until = document["expireTime"]
        .as_str()
        .and_then(|time| time.parse::<Timestamp>().ok());
    let seconds = until.map_or(0, |until| until.as_second() - Timestamp::now().as_second());
    token(
        url,
        document["accessToken"].as_str(),
        u64::try_from(seconds).unwrap_or_default(),
    )
}

/// A token of the machine's service account.
pub(super) async fn metadata(http: &Http, host: &str) -> Result<Token, Error> {
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let request = Request::get(&url)
        .header("metadata-flavor", "Google")
        .body(Bytes::new());
    let sent = match request {
        Ok(request) => http.attempt(request).await,
        Err(error) => Err(error.into()),
    };
    let absent = |problem: &str| {
        Error::Credentials(format!(
            "there are no credentials for Google Cloud: set GOOGLE_APPLICATION_CREDENTIALS to a file with some, or run \
             gcloud auth application-default login (the metadata server of machines: {problem})"
        ))
    };
    let response = sent.map_err(|error| absent(&error.to_string()))?;
    if !response.status().is_success() {
        return Err(absent(response.status().as_str()));
    }
    token_of(&url, &document(&Method::GET, &url, Ok(response))?)
}

/// The document of a response. A refusal that repetition may change is one; others are errors of credentials.
fn document(
    method: &Method,
    url: &str,
    sent: Result<Response<Bytes>, outbound::Error>,
) -> Result<Value, Error> {
    let request = rest::Request::new(method.clone(), url);
    let response = sent.map_err(|source| Error::Http {
        what: request.what(),
        source,
    })?;
    let status = response.status();
    let document: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    if status.is_success() {
        return Ok(document);
    }
    let refused = rest::refused(&request, status, &document);
    if refused.is_uncertain() || refused.is_throttled() {
        return Err(refused);
    }
    Err(Error::Credentials(refused.to_string()))
}

fn token(url: &str, value: Option<&str>, seconds: u64) -> Result<Token, Error> {
    let value = value.filter(|value| !value.is_empty());
    let value =
        value.ok_or_else(|| Error::Credentials(format!("the response of {url} has no token")))?;
    Ok(Token {
        value: value.to_owned(),
        valid_for: Duration::from_secs(seconds),
    })
}
