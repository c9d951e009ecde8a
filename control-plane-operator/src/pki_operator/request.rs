//! Decides about a `CertificateSigningRequest` for a break-glass signer. Pure.
//!
//! A request is approved by a `CertificateSigningRequestApproval` of its name in the namespace of the hosted control
//! plane. An approval holds for requests that are created within a day of it, so that a name that is used again later is
//! not approved by accident.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::SubjectPublicKeyInfo;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, ParsedExtension, X509CertificationRequest, X509Name};

use super::class::Class;
use super::issue::Subject;

/// The usage that a request must have.
const CLIENT_AUTH: &str = "client auth";
/// The usages that it may have, too.
const OTHER_USAGES: [&str; 2] = ["digital signature", "key encipherment"];
/// The shortest lifetime.
const SHORTEST: Duration = Duration::from_mins(10);
/// A certificate of at least this lifetime ends earlier, by the skew for which it is backdated.
const LONG: Duration = Duration::from_mins(500);
const CLOCK_SKEW: Duration = Duration::from_mins(5);
/// How long an approval holds for requests that do not exist yet.
pub(super) const APPROVAL_LIFETIME: Duration = Duration::from_hours(24);

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Leave it, with the reason.
    Ignore(&'static str),
    /// Approve it.
    Approve(Class),
    /// Sign it.
    Sign(Class, Order),
    /// Mark it as failed, with the reason.
    Refuse(Class, String),
}

/// What is signed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) subject: Subject,
    /// Public key, DER.
    key: Vec<u8>,
    /// The requested lifetime, if any.
    lifetime: Option<Duration>,
}

/// Decides about a request with an approval.
pub(super) fn decide(
    request: &CertificateSigningRequest,
    namespace: &str,
    approved_at: Option<Timestamp>,
) -> Decision {
    let signer = &request.spec.signer_name;
    let class = Class::ALL
        .into_iter()
        .find(|class| class.signer_name(namespace) == *signer);
    let Some(class) = class else {
        return Decision::Ignore("it is for another signer");
    };
    let has = |type_: &str| has_condition(request, type_);
    if has("Denied") {
        return Decision::Ignore("it is denied");
    }
    if has("Failed") {
        return Decision::Ignore("it has failed");
    }
    let status = request.status.as_ref();
    if status
        .and_then(|status| status.certificate.as_ref())
        .is_some_and(|it| !it.0.is_empty())
    {
        return Decision::Ignore("it is signed");
    }
    if !has("Approved") {
        let created = request
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        return match created.zip(approved_at) {
            Some((created, approved)) if created <= approved + APPROVAL_LIFETIME => {
                Decision::Approve(class)
            }
            Some(_) => Decision::Ignore("its approval is more than a day older"),
            None => Decision::Ignore("its creation time, or that of its approval, is unknown"),
        };
    }
    match Order::read(request, class) {
        Ok(order) => Decision::Sign(class, order),
        Err(problem) => Decision::Refuse(class, problem),
    }
}

fn has_condition(request: &CertificateSigningRequest, type_: &str) -> bool {
    let status = request.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == type_ && condition.status == "True")
}

// === impl Order ===

impl Order {
    fn read(request: &CertificateSigningRequest, class: Class) -> Result<Self, String> {
        let spec = &request.spec;
        check_usages(spec.usages.as_deref().unwrap_or_default())?;
        let der = CertificateSigningRequestDer::from_pem_slice(&spec.request.0)
            .map_err(|_| "the request is not PEM")?;
        let (_, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|_| "the request is not valid DER")?;
        let names = parsed.requested_extensions().into_iter().flatten();
        for extension in names {
            if matches!(extension, ParsedExtension::SubjectAlternativeName(_)) {
                return Err(
                    "the request has subject alternative names, which are not allowed".to_owned(),
                );
            }
        }
        let info = &parsed.certification_request_info;
        let subject = subject(&info.subject)?;
        check_name(&subject, class)?;
        SubjectPublicKeyInfo::from_der(info.subject_pki.raw)
            .map_err(|error| format!("the public key is not supported: {error}"))?;
        let seconds = spec.expiration_seconds;
        Ok(Self {
            subject,
            key: info.subject_pki.raw.to_vec(),
            lifetime: seconds
                .and_then(|it| u64::try_from(it).ok())
                .map(Duration::from_secs),
        })
    }

    /// The public key.
    pub(super) fn key(&self) -> Result<SubjectPublicKeyInfo, rcgen::Error> {
        SubjectPublicKeyInfo::from_der(&self.key)
    }

    /// When the certificate ends, if its signer does not end earlier.
    pub(super) fn until(&self, longest: Duration, now: Timestamp) -> Timestamp {
        let requested = self.lifetime.unwrap_or(longest);
        let lifetime = requested.max(SHORTEST).min(longest);
        let backdated = if lifetime >= LONG {
            CLOCK_SKEW
        } else {
            Duration::ZERO
        };
        now + lifetime.saturating_sub(backdated)
    }
}

fn check_usages(usages: &[String]) -> Result<(), String> {
    let is_allowed = |usage: &str| usage == CLIENT_AUTH || OTHER_USAGES.contains(&usage);
    if let Some(other) = usages.iter().find(|usage| !is_allowed(usage)) {
        return Err(format!("usage {other:?} is not allowed"));
    }
    if !usages.iter().any(|usage| usage == CLIENT_AUTH) {
        return Err(format!("usage {CLIENT_AUTH:?} is required"));
    }
    Ok(())
}

/// Requires exactly one common name, because parsers differ in which one they read.
fn check_name(subject: &Subject, class: Class) -> Result<(), String> {
    let prefix = class.user_prefix();
    let names = subject
        .attributes
        .iter()
        .filter(|(oid, _)| *oid == [2, 5, 4, 3]);
    let names: Vec<_> = names.map(|(_, name)| name).collect();
    match names.as_slice() {
        [name] if name.starts_with(&prefix) => {}
        [name] => {
            return Err(format!(
                "the common name {name:?} does not begin with {prefix:?}"
            ));
        }
        _ => return Err("the subject must have exactly one common name".to_owned()),
    }
    match subject.name() {
        Some(_) => Ok(()),
        None => Err(
            "the subject has more values of an attribute than are supported: \
                     two organizations, and one value of any other"
                .to_owned(),
        ),
    }
}

fn subject(name: &X509Name<'_>) -> Result<Subject, String> {
    let attributes = name.iter_attributes().map(|attribute| {
        let oid = attribute.attr_type();
        let parts: Option<Vec<u64>> = oid.iter().map(Iterator::collect);
        let value = attribute
            .as_str()
            .map_err(|_| "an attribute of the subject is not text")?;
        let parts = parts.ok_or("an attribute of the subject has no valid type")?;
        Ok((parts, value.to_owned()))
    });
    let attributes: Result<_, &str> = attributes.collect();
    Ok(Subject {
        attributes: attributes?,
    })
}

#[cfg(test)]
mod tests;
