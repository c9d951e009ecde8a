//! Parses a `CertificateSigningRequest`. Pure.

use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{
    FromDer, GeneralName, ParsedExtension, X509CertificationRequest, X509Name,
};

/// Signer of kubelet client certificates.
pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signer of kubelet serving certificates.
pub(super) const SERVING: &str = "kubernetes.io/kubelet-serving";

/// A parsed request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) signer: String,
    /// Authenticated user that created the request.
    pub(super) username: String,
    pub(super) groups: Vec<String>,
    pub(super) usages: Vec<String>,
    /// Common name of the subject.
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    /// Whether it has other kinds of names, or other extensions.
    pub(super) has_unsupported: bool,
}

// === impl Request ===

impl Request {
    /// Parses an object.
    pub(super) fn read(object: &CertificateSigningRequest) -> Result<Self, &'static str> {
        let spec = &object.spec;
        let der = CertificateSigningRequestDer::from_pem_slice(&spec.request.0);
        let der = der.map_err(|_| "the request is not PEM")?;
        let parsed = X509CertificationRequest::from_der(&der);
        let (rest, parsed) = parsed.map_err(|_| "the request is not valid DER")?;
        if !rest.is_empty() {
            return Err("trailing data after the request");
        }
        let subject = &parsed.certification_request_info.subject;
        let mut request = Self {
            signer: spec.signer_name.clone(),
            username: spec.username.clone().unwrap_or_default(),
            groups: spec.groups.clone().unwrap_or_default(),
            usages: spec.usages.clone().unwrap_or_default(),
            common_name: common_name(subject)?,
            organizations: organizations(subject)?,
            has_unsupported: has_other_attributes(subject),
            ..Self::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            request.add(extension);
        }
        Ok(request)
    }

    fn add(&mut self, extension: &ParsedExtension<'_>) {
        let ParsedExtension::SubjectAlternativeName(names) = extension else {
            self.has_unsupported = true;
            return;
        };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => self.names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => match address(bytes) {
                    Some(address) => self.addresses.push(address),
                    None => self.has_unsupported = true,
                },
                _ => self.has_unsupported = true,
            }
        }
    }
}

/// Requires exactly one common name, because parsers differ in which one they read.
fn common_name(subject: &X509Name<'_>) -> Result<String, &'static str> {
    let mut names = subject.iter_common_name();
    match (names.next(), names.next()) {
        (Some(name), None) => {
            let name = name.as_str().map_err(|_| "the common name is not text")?;
            Ok(name.to_owned())
        }
        _ => Err("the subject must have exactly one common name"),
    }
}

fn organizations(subject: &X509Name<'_>) -> Result<Vec<String>, &'static str> {
    let names = subject.iter_organization();
    let names: Result<Vec<_>, _> = names.map(|name| name.as_str().map(str::to_owned)).collect();
    names.map_err(|_| "an organization is not text")
}

fn has_other_attributes(subject: &X509Name<'_>) -> bool {
    let known = subject.iter_common_name().count() + subject.iter_organization().count();
    subject.iter_attributes().count() > known
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(bytes.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}
