//! Requests of the query protocol, which the token service and EC2 have: a form is sent, and the response is XML.

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::Request;
use jiff::Timestamp;

use super::signature::{Credentials, Scope, sign};
use super::{Error, refused};
use crate::outbound::Http;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// URL of the service, without a slash at the end.
    pub url: &'a str,
    /// What is requested.
    pub action: &'a str,
    /// The version of the API.
    pub version: &'a str,
    /// The parameters of the action.
    pub parameters: &'a [(&'a str, &'a str)],
    /// What the request is about, for errors.
    pub about: &'a str,
}

/// Who signs a request, and for which service.
#[derive(Debug, Clone, Copy)]
pub struct Signer<'a> {
    /// The credentials.
    pub credentials: &'a Credentials,
    /// The region of the service.
    pub region: &'a str,
    /// The name of the service.
    pub service: &'a str,
}

// === impl Query ===

impl Query<'_> {
    /// Sends the request, and returns the document of a response that is a success.
    pub async fn send(&self, http: &Http, signer: Option<Signer<'_>>) -> Result<String, Error> {
        let form = form(self.action, self.version, self.parameters);
        let build = || {
            let mut request = post(self.url, &form)?;
            if let Some(signer) = &signer {
                let scope = Scope {
                    region: signer.region,
                    service: signer.service,
                    time: Timestamp::now(),
                };
                sign(&mut request, signer.credentials, &scope)?;
            }
            Ok(request)
        };
        let response = http.send(build).await.map_err(|source| Error::Http {
            what: self.what(),
            source,
        })?;
        let body = String::from_utf8_lossy(response.body()).into_owned();
        if response.status().is_success() {
            return Ok(body);
        }
        Err(refused(self.what(), response.status(), &body))
    }

    /// The error of a response that has no use.
    pub fn unexpected(&self, problem: impl Into<String>) -> Error {
        Error::Response {
            what: self.what(),
            problem: problem.into(),
        }
    }

    fn what(&self) -> String {
        format!("{} for {}", self.action, self.about)
    }
}

/// The form of an action with its parameters.
pub(super) fn form<T: AsRef<str>>(action: &str, version: &str, parameters: &[(T, T)]) -> String {
    Serializer::new(String::new())
        .append_pair("Action", action)
        .append_pair("Version", version)
        .extend_pairs(parameters)
        .finish()
}

/// A request with a form, which is not signed yet.
pub(super) fn post(url: &str, form: &str) -> http::Result<Request<Bytes>> {
    Request::post(format!("{url}/"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::copy_from_slice(form.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded() {
        let query = Query {
            url: "https://ec2.eu-west-1.amazonaws.com",
            action: "DescribeInstanceTypes",
            version: "2016-11-15",
            parameters: &[("InstanceType.1", "m5.large&Action=RunInstances")],
            about: "m5.large",
        };
        assert_eq!(
            form(query.action, query.version, query.parameters),
            "Action=DescribeInstanceTypes&Version=2016-11-15&InstanceType.1=m5.large%26Action%3DRunInstances"
        );
        assert_eq!(
            query.unexpected("it is empty").to_string(),
            "failed to read the response of DescribeInstanceTypes for m5.large: it is empty"
        );
    }
}
