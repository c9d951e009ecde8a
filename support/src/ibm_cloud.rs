//! Tokens of IBM Cloud, and the endpoints of its services.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, fs, io};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde_json::Value;

use crate::outbound::Http;
use crate::rest::{self, Token, TokenSource};

/// The variable with an API key.
const API_KEY: &str = "IBMCLOUD_API_KEY";
/// The variable with the path of a file that has one.
const CREDENTIALS: &str = "IBMCLOUD_CREDENTIALS";
/// The variables with what hosts of services begin with, for example `private`.
const PREFIXES: [&str; 4] = [
    "IBMCLOUD_PLATFORM_API_ENDPOINT",
    "IBMCLOUD_VPC_API_ENDPOINT",
    "IBMCLOUD_POWER_API_ENDPOINT",
    "IBMCLOUD_COS_API_ENDPOINT",
];
const GRANT: &str = "urn:ibm:params:oauth:grant-type:apikey";
/// How long a token is valid if the response does not say it.
const VALIDITY: u64 = 3600;

/// An API key of a user or of a service ID. It never appears in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Gets tokens for an API key.
#[derive(Debug)]
pub struct Tokens {
    key: ApiKey,
    url: String,
}

/// The endpoints of services, without a slash at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    platform: String,
    vpc: String,
    power: String,
    storage: String,
}

/// The environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no API key.
    #[error(
        "no API key for IBM Cloud: set {API_KEY}, or set {CREDENTIALS} to the path of a file that contains one"
    )]
    NoKey,
    /// The file with the API key cannot be read.
    #[error("failed to read {}, which {CREDENTIALS} names", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What an endpoint would begin with is not part of a host name.
    #[error(
        "{variable}={value:?}: write what the host names of the service begin with, for example private"
    )]
    Endpoint {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

/// A text as a part of a path or of a query: everything is escaped that could end it.
pub fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

// === impl ApiKey ===

impl ApiKey {
    /// The key of a text. `None` if there is nothing in it.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The key that the environment has or names.
    pub fn from_env() -> Result<Self, Error> {
        Self::find(|name| env::var(name).ok())
    }

    fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        if let Some(key) = variable(API_KEY).as_deref().and_then(Self::new) {
            return Ok(key);
        }
        let path = variable(CREDENTIALS).filter(|path| !path.is_empty());
        let path = PathBuf::from(path.ok_or(Error::NoKey)?);
        match fs::read_to_string(&path) {
            Ok(text) => Self::new(&text).ok_or(Error::NoKey),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// The key itself, for the one call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").finish_non_exhaustive()
    }
}

// === impl Tokens ===

impl Tokens {
    /// Tokens for a key.
    pub fn new(key: ApiKey, endpoints: &Endpoints) -> Self {
        Self {
            key,
            url: format!("{}/identity/token", endpoints.identity()),
        }
    }

    fn request(&self) -> http::Result<Request<Bytes>> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("apikey", self.key.expose())
            .finish();
        Request::post(&self.url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(Bytes::from(form))
    }

    fn token(&self, status: StatusCode, body: &[u8]) -> Result<Token, rest::Error> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        if status.is_client_error() {
            let message = body["errorMessage"].as_str().unwrap_or_default();
            let error = format!("IBM Cloud refused the API key: {status}: {message}");
            return Err(rest::Error::Credentials(error));
        }
        if !status.is_success() {
            let call = rest::Request::new(http::Method::POST, &self.url);
            return Err(rest::refused(&call, status, &body));
        }
        let value = body["access_token"].as_str();
        let value = value.ok_or_else(|| {
            rest::Error::Credentials("the response of IBM Cloud has no token".to_owned())
        })?;
        Ok(Token {
            value: value.to_owned(),
            valid_for: Duration::from_secs(body["expires_in"].as_u64().unwrap_or(VALIDITY)),
        })
    }
}

impl TokenSource for Tokens {
    async fn load(&self, http: &Http) -> Result<Token, rest::Error> {
        let response = http.send(|| self.request()).await;
        let response = response.map_err(|source| rest::Error::Http {
            what: format!("POST {}", self.url),
            source,
        })?;
        self.token(response.status(), response.body())
    }
}

// === impl Endpoints ===

impl Endpoints {
    /// The public endpoints, but for what the environment says.
    pub fn from_env() -> Result<Self, Error> {
        Self::find(|name| env::var(name).ok())
    }

    fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let prefix = |name: &'static str| {
            let value = variable(name).unwrap_or_default();
            if value.is_empty() {
                return Ok(value);
            }
            let is_plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte)
            };
            if !value.bytes().all(is_plain) || value.split('.').any(str::is_empty) {
                let variable = name;
                return Err(Error::Endpoint { variable, value });
            }
            Ok(format!("{value}."))
        };
        let [platform, vpc, power, storage] = PREFIXES;
        Ok(Self {
            platform: prefix(platform)?,
            vpc: prefix(vpc)?,
            power: prefix(power)?,
            storage: prefix(storage)?,
        })
    }

    /// Identities, policies, API keys and tokens.
    pub fn identity(&self) -> String {
        format!("https://{}iam.cloud.ibm.com", self.platform)
    }

    /// Resource groups, instances of services and their keys.
    pub fn resources(&self) -> String {
        format!("https://{}resource-controller.cloud.ibm.com", self.platform)
    }

    /// Internet Services: zones and records of DNS.
    pub fn internet_services(&self) -> String {
        "https://api.cis.cloud.ibm.com".to_owned()
    }

    /// Tags.
    pub fn tagging(&self) -> String {
        "https://tags.global-search-tagging.cloud.ibm.com".to_owned()
    }

    /// Transit gateways of all locations.
    pub fn transit_gateways(&self) -> String {
        "https://transit.cloud.ibm.com".to_owned()
    }

    /// VPCs of a region.
    pub fn vpc(&self, region: &str) -> String {
        format!("https://{}{region}.iaas.cloud.ibm.com", self.vpc)
    }

    /// Power Virtual Servers of a region.
    pub fn power_vs(&self, region: &str) -> String {
        format!("https://{}{region}.power-iaas.cloud.ibm.com", self.power)
    }

    /// Buckets of a region.
    pub fn object_storage(&self, region: &str) -> String {
        format!(
            "https://{}s3.{region}.cloud-object-storage.appdomain.cloud",
            self.storage
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let found = pairs.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        }
    }

    #[test]
    fn keys_are_those_of_the_environment_or_of_the_file_that_it_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(&path, "from-file\n").unwrap();
        let path = path.to_str().unwrap();
        for (pairs, expected) in [
            (vec![(API_KEY, "from-env"), (CREDENTIALS, path)], "from-env"),
            (vec![(API_KEY, ""), (CREDENTIALS, path)], "from-file"),
        ] {
            let key = ApiKey::find(of(&pairs)).unwrap();
            assert_eq!(key.expose(), expected);
        }
        let missing = directory.path().join("missing");
        let missing = missing.to_str().unwrap();
        for (pairs, expected) in [
            (vec![], "set IBMCLOUD_API_KEY"),
            (vec![(CREDENTIALS, missing)], "failed to read"),
        ] {
            let error = ApiKey::find(of(&pairs)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn endpoints_begin_with_what_the_environment_says() {
        let plain = Endpoints::find(of(&[])).unwrap();
        assert_eq!(plain, Endpoints::default());
        assert_eq!(plain.vpc("us-south"), "https://us-south.iaas.cloud.ibm.com");
        let [platform, vpc, power, storage] = PREFIXES;
        let pairs = [(platform, "private"), (power, "a.b"), (storage, "c")];
        let changed = Endpoints::find(of(&pairs)).unwrap();
        assert_eq!(changed.identity(), "https://private.iam.cloud.ibm.com");
        assert_eq!(
            changed.power_vs("dal"),
            "https://a.b.dal.power-iaas.cloud.ibm.com"
        );
        assert_eq!(
            changed.object_storage("eu-de"),
            "https://c.s3.eu-de.cloud-object-storage.appdomain.cloud"
        );
        for value in ["evil.example.com/", "a:b@c", "https://a", ".", "a..b", "a."] {
            Endpoints::find(of(&[(vpc, value)])).unwrap_err();
        }
    }

    #[test]
    fn a_response_has_a_token_or_the_reason() {
        let key = ApiKey::new(" secret\n").unwrap();
        let tokens = Tokens::new(key, &Endpoints::default());
        assert!(!format!("{tokens:?}").contains("secret"));
        let request = tokens.request().unwrap();
        let form = String::from_utf8(request.body().to_vec()).unwrap();
        assert!(form.ends_with("&apikey=secret"), "{form}");
        let read = |status, body: &Value| tokens.token(status, body.to_string().as_bytes());
        let body = json!({"access_token": "t", "expires_in": 60});
        let token = read(StatusCode::OK, &body).unwrap();
        assert_eq!((token.value.as_str(), token.valid_for.as_secs()), ("t", 60));
        let body = json!({"errorMessage": "no such key"});
        let error = read(StatusCode::BAD_REQUEST, &body).unwrap_err();
        assert!(error.is_denied() && error.to_string().contains("no such key"));
        let error = read(StatusCode::BAD_GATEWAY, &Value::Null).unwrap_err();
        assert!(error.is_uncertain());
        read(StatusCode::OK, &json!({})).unwrap_err();
    }

    #[test]
    fn parts_of_urls_are_escaped() {
        assert_eq!(encoded("crn:v1:a/b::"), "crn%3Av1%3Aa%2Fb%3A%3A");
        assert_eq!(encoded("a-b_c.d~ e+"), "a-b_c.d~%20e%2B");
    }
}
