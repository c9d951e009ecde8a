//! What a request asks for. Pure.

use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{
    FromDer, GeneralName, ParsedExtension, X509CertificationRequest, X509Name,
};

/// Certificates by which kubelets ask the API server.
pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Certificates that kubelets show.
pub(super) const SERVING: &str = "kubernetes.io/kubelet-serving";

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) signer: String,
    /// Who asks, as the API server knows.
    pub(super) username: String,
    pub(super) groups: Vec<String>,
    pub(super) usages: Vec<String>,
    /// Whom the certificate would name.
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    /// Alternative names of other sorts, and extensions beyond alternative names.
    pub(super) has_more: bool,
}

// === impl Request ===

impl Request {
    /// Reads an object.
    pub(super) fn read(object: &CertificateSigningRequest) -> Result<Self, &'static str> {
        let spec = &object.spec;
        let der = CertificateSigningRequestDer::from_pem_slice(&spec.request.0);
        let der = der.map_err(|_| "it holds no request in PEM")?;
        let parsed = X509CertificationRequest::from_der(&der);
        let (rest, parsed) = parsed.map_err(|_| "its request cannot be read")?;
        if !rest.is_empty() {
            return Err("something follows its request");
        }
        let subject = &parsed.certification_request_info.subject;
        let mut request = Self {
            signer: spec.signer_name.clone(),
            username: spec.username.clone().unwrap_or_default(),
            groups: spec.groups.clone().unwrap_or_default(),
            usages: spec.usages.clone().unwrap_or_default(),
            common_name: common_name(subject)?,
            organizations: organizations(subject)?,
            has_more: has_other_attributes(subject),
            ..Self::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            request.add(extension);
        }
        Ok(request)
    }

    fn add(&mut self, extension: &ParsedExtension<'_>) {
        let ParsedExtension::SubjectAlternativeName(names) = extension else {
            self.has_more = true;
            return;
        };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => self.names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => match address(bytes) {
                    Some(address) => self.addresses.push(address),
                    None => self.has_more = true,
                },
                _ => self.has_more = true,
            }
        }
    }
}

/// Exactly one: another parser might read the second.
fn common_name(subject: &X509Name<'_>) -> Result<String, &'static str> {
    let mut names = subject.iter_common_name();
    match (names.next(), names.next()) {
        (Some(name), None) => {
            let name = name.as_str().map_err(|_| "its name is no text")?;
            Ok(name.to_owned())
        }
        _ => Err("it has not one common name"),
    }
}

fn organizations(subject: &X509Name<'_>) -> Result<Vec<String>, &'static str> {
    let names = subject.iter_organization();
    let names: Result<Vec<_>, _> = names.map(|name| name.as_str().map(str::to_owned)).collect();
    names.map_err(|_| "an organisation of it is no text")
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
