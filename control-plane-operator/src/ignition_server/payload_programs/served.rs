//! The payload as the machine-config-server serves it, and the certificate that it serves with.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

/// The pause between requests.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(5);
/// The largest payload.
const LARGEST: usize = 32 << 20;
/// The form that machines read.
const ACCEPTED: &str = "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1";
/// Versions of Ignition that readers of 3.2 accept.
const VERSIONS: [&str; 3] = ["3.0.0", "3.1.0", "3.2.0"];
/// The name in the certificate.
const NAME: &str = "machine-config-server";
/// How long a certificate is valid.
const VALID: SignedDuration = SignedDuration::from_hours(24);
/// How long before its end it is replaced.
const REPLACED: SignedDuration = SignedDuration::from_hours(1);

/// The certificate of the server, which is made seldom.
#[derive(Debug, Default)]
pub(super) struct Certificates(Mutex<Option<(Timestamp, (String, String))>>);

/// Waits until the payload is served, for this time at most. An error says what the server did last.
pub(super) async fn fetch(url: &str, limit: Duration) -> Result<Vec<u8>, String> {
    let client: Client<HttpConnector, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let end = Instant::now() + limit;
    loop {
        let problem = match timeout(REQUEST, request(&client, url)).await {
            Ok(Ok(payload)) => return checked(payload),
            Ok(Err(problem)) => problem,
            Err(_) => "it did not respond in time".to_owned(),
        };
        if Instant::now() + PAUSE >= end {
            return Err(format!(
                "did not serve the payload within {limit:?} ({problem})"
            ));
        }
        sleep(PAUSE).await;
    }
}

async fn request(
    client: &Client<HttpConnector, Empty<Bytes>>,
    url: &str,
) -> Result<Vec<u8>, String> {
    let request = Request::get(url).header(ACCEPT, ACCEPTED);
    let request = request
        .body(Empty::new())
        .map_err(|error| error.to_string())?;
    let response = client.request(request).await;
    let response = response.map_err(|_| "it refused the connection".to_owned())?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(format!("it responded with {status}"));
    }
    let body = Limited::new(response.into_body(), LARGEST).collect().await;
    let body = body.map_err(|error| format!("its response cannot be read: {error}"))?;
    Ok(body.to_bytes().to_vec())
}

/// Machines that get another version do not start.
fn checked(payload: Vec<u8>) -> Result<Vec<u8>, String> {
    let ignition: Option<Value> = serde_json::from_slice(&payload).ok();
    let version = ignition
        .as_ref()
        .and_then(|it| it["ignition"]["version"].as_str());
    match version {
        Some(version) if VERSIONS.contains(&version) => Ok(payload),
        Some(version) => Err(format!(
            "served Ignition {version:?}, which machines with Ignition 3.2 do not read"
        )),
        None => Err("served a document that is not Ignition".to_owned()),
    }
}

// === impl Certificates ===

impl Certificates {
    /// The certificate and its key, PEM. Nothing if there are no random bytes.
    pub(super) fn get(&self, now: Timestamp) -> Option<(String, String)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((replaced, pair)) = &*known
            && now < *replaced
        {
            return Some(pair.clone());
        }
        let pair = self_signed(now).ok()?;
        *known = Some((now + VALID - REPLACED, pair.clone()));
        Some(pair)
    }
}

fn self_signed(now: Timestamp) -> Result<(String, String), rcgen::Error> {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let mut params = CertificateParams::default();
    params.not_before = now;
    params.not_after = now + Duration::from_secs(VALID.as_secs().unsigned_abs());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
    ];
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationalUnitName, "openshift");
    subject.push(DnType::CommonName, NAME);
    params.distinguished_name = subject;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use x509_parser::pem::parse_x509_pem;

    use super::*;

    #[test]
    fn only_ignition_that_machines_read_is_accepted() {
        let of = |version: &str| format!(r#"{{"ignition":{{"version":"{version}"}}}}"#);
        for (payload, expected) in [
            (of("3.2.0"), None),
            (of("3.1.0"), None),
            (of("3.4.0"), Some("served Ignition \"3.4.0\"")),
            (of("2.2.0"), Some("served Ignition \"2.2.0\"")),
            ("{}".to_owned(), Some("is not Ignition")),
            ("<html>".to_owned(), Some("is not Ignition")),
        ] {
            let checked = checked(payload.clone().into_bytes());
            match (checked, expected) {
                (Ok(served), None) => assert_eq!(served, payload.as_bytes()),
                (Err(error), Some(text)) => assert!(error.contains(text), "{error}"),
                (checked, _) => panic!("{payload}: {checked:?}"),
            }
        }
    }

    #[test]
    fn the_certificate_is_replaced_an_hour_before_its_end() {
        let certificates = Certificates::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let at = |minutes| {
            let time = start + SignedDuration::from_mins(minutes);
            certificates.get(time).unwrap().0
        };
        let first = at(0);
        assert_eq!(at(22 * 60 + 59), first);
        assert_ne!(at(23 * 60), first);
        let (_, pem) = parse_x509_pem(first.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        assert!(certificate.is_ca());
        let subject = certificate.subject().to_string();
        assert!(subject.contains("CN=machine-config-server"), "{subject}");
    }
}
