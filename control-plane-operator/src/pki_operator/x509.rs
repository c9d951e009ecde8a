//! Certificates and bundles of certificates. Pure.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A parsed certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(super) common_name: String,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    pub(super) der: Vec<u8>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    /// Identifier of its own key, and of its issuer's.
    keys: (Option<Vec<u8>>, Option<Vec<u8>>),
}

// === impl Certificate ===

impl Certificate {
    /// Parses the first certificate of a PEM text.
    pub(super) fn parse(pem: &[u8]) -> Option<Self> {
        let der = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
        Self::of(&der)
    }

    fn of(der: &[u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let common_name = parsed.subject().iter_common_name().next();
        let common_name = common_name.and_then(|name| name.as_str().ok());
        let at = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
        Some(Self {
            common_name: common_name.unwrap_or_default().to_owned(),
            not_before: at(parsed.validity().not_before)?,
            not_after: at(parsed.validity().not_after)?,
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
            keys: keys(&parsed),
            der: der.to_vec(),
        })
    }

    /// Whether this certificate names the other as its issuer.
    pub(super) fn is_issued_by(&self, signer: &Self) -> bool {
        let same_key = match (&self.keys.1, &signer.keys.0) {
            (Some(expected), Some(found)) => expected == found,
            _ => true,
        };
        self.issuer == signer.subject && same_key
    }

    /// The certificate as PEM.
    pub(crate) fn pem(&self) -> String {
        let body = crate::components::kubeconfig::base64(&self.der);
        let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for line in body.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
        text
    }
}

/// Identifiers of the subject's and of the issuer's key.
fn keys(parsed: &X509Certificate<'_>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let mut keys = (None, None);
    for extension in parsed.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => keys.0 = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                keys.1 = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
    }
    keys
}

/// Parses the certificates of a bundle. Invalid ones are skipped.
pub(crate) fn parse_bundle(pem: &str) -> Vec<Certificate> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .filter_map(|der| Certificate::of(&der))
        .collect()
}

/// The text of a bundle.
pub(crate) fn bundle_text(certificates: &[Certificate]) -> String {
    certificates.iter().map(Certificate::pem).collect()
}

/// The bundle of a class: the signer first, the others sorted by DER, without duplicates and expired ones.
pub(super) fn with_signer(
    signer: &Certificate,
    existing: &[Certificate],
    now: Timestamp,
) -> Vec<Certificate> {
    let mut others: Vec<_> = existing
        .iter()
        .filter(|one| one.not_after > now && *one != signer)
        .cloned()
        .collect();
    others.sort_by(|a, b| a.der.cmp(&b.der));
    others.dedup();
    others.insert(0, signer.clone());
    others
}

/// The union of bundles, in their order, without duplicates.
pub(super) fn union(bundles: &[Vec<Certificate>]) -> Vec<Certificate> {
    let mut all: Vec<Certificate> = Vec::new();
    for certificate in bundles.iter().flatten() {
        if !all.contains(certificate) {
            all.push(certificate.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, signer};
    use super::*;

    #[test]
    fn bundles_have_the_signer_first_and_no_expired_certificate() {
        let [old, older, new] = [10, 5, 20].map(|hour| signer(at(hour)).certificate);
        let mut sorted = [old.clone(), older.clone()];
        sorted.sort_by(|a, b| a.der.cmp(&b.der));
        let existing = [old.clone(), older.clone(), old.clone(), new.clone()];
        let bundle = with_signer(&new, &existing, at(21));
        assert_eq!(bundle[0], new);
        assert_eq!(bundle[1..], sorted);
        // `older` expires a week after its start.
        let bundle = with_signer(&new, &existing, at(5 + 7 * 24));
        assert_eq!(bundle, [new.clone(), old]);
        assert_eq!(with_signer(&new, &[], at(21)), [new]);
    }

    #[test]
    fn bundles_round_trip_through_text() {
        let all = [10, 5].map(|hour| signer(at(hour)).certificate);
        let text = format!("# comment\n{}", bundle_text(&all));
        assert_eq!(parse_bundle(&text), all);
        assert_eq!(Certificate::parse(text.as_bytes()).as_ref(), Some(&all[0]));
        assert_eq!(Certificate::parse(b"x"), None);
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(parse_bundle(&format!("{broken}{text}")), all);
    }

    #[test]
    fn unions_keep_the_order_and_drop_duplicates() {
        let [a, b, c] = [1, 2, 3].map(|hour| signer(at(hour)).certificate);
        let bundles = [vec![b.clone(), a.clone()], vec![a.clone(), c.clone()]];
        assert_eq!(union(&bundles), [b, a, c]);
    }
}
