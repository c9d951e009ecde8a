//! Parses certificates, to compare them with the desired state.

use std::collections::BTreeSet;
use std::net::IpAddr;

use control_plane_component::certificate::Usage;
use jiff::Timestamp;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

/// A parsed certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) common_name: String,
    pub(super) organizations: BTreeSet<String>,
    pub(super) names: BTreeSet<String>,
    pub(super) usage: Usage,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// Parses the first certificate of a PEM file.
pub(super) fn certificate(pem: &[u8]) -> Option<Read> {
    let pem = Pem::iter_from_buffer(pem).next()?.ok()?;
    let certificate = pem.parse_x509().ok()?;
    Read::of(&certificate)
}

impl Read {
    fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        let subject = certificate.subject();
        let common_name = subject.iter_common_name().next();
        let organizations = subject.iter_organization();
        let validity = certificate.validity();
        let at = |time: &x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
        Some(Self {
            common_name: common_name
                .and_then(|name| name.as_str().ok())
                .unwrap_or_default()
                .to_owned(),
            organizations: organizations
                .filter_map(|name| name.as_str().ok())
                .map(str::to_owned)
                .collect(),
            names: names(certificate),
            usage: usage(certificate),
            from: at(&validity.not_before)?,
            until: at(&validity.not_after)?,
        })
    }
}

fn names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return BTreeSet::new();
    };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(address.to_string())
}

fn usage(certificate: &X509Certificate<'_>) -> Usage {
    let Ok(Some(extension)) = certificate.extended_key_usage() else {
        return Usage::Unrestricted;
    };
    match (extension.value.client_auth, extension.value.server_auth) {
        (true, true) => Usage::Both,
        (true, false) => Usage::Client,
        (false, true) => Usage::Server,
        (false, false) => Usage::Unrestricted,
    }
}
