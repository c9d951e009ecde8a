//! Whether the certificate authorities of the proxy can be used.

use api::conditions::{ClusterCondition, CommonReason, Status};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::parse_x509_certificate;

use super::ConditionUpdate;
use crate::facts::Facts;
use crate::facts::references::CA_BUNDLE;

const FIELD: &str = "spec.configuration.proxy.trustedCA";

/// The condition; none without a proxy.
pub(super) fn condition(facts: &Facts, now: Timestamp) -> Option<ConditionUpdate> {
    let about = ClusterCondition::ValidProxyConfiguration;
    let configuration = facts.cluster.spec.configuration.as_ref()?;
    let authorities = configuration.proxy.as_ref()?.trusted_ca.as_ref();
    let name = authorities.map(|it| it.name.as_str());
    let name = name.filter(|it| !it.is_empty());
    let Some(problem) = name.and_then(|name| problem(facts, name, now)) else {
        return Some(ConditionUpdate::expected(about, Status::True));
    };
    let reason = CommonReason::InvalidConfiguration.as_str();
    Some(ConditionUpdate::new(about, Status::False, reason, problem))
}

/// What is wrong with the ConfigMap of this name.
fn problem(facts: &Facts, name: &str, now: Timestamp) -> Option<String> {
    let namespace = &facts.id.namespace;
    let subject = format!("{FIELD} names ConfigMap {namespace}/{name}");
    let Some(map) = facts.config_map(name) else {
        return Some(format!("{subject}, which does not exist: create it"));
    };
    let Some(bundle) = map.data.as_ref().and_then(|data| data.get(CA_BUNDLE)) else {
        return Some(format!("{subject}, which lacks {CA_BUNDLE}: add it"));
    };
    let problem = bundle_problem(bundle, now)?;
    Some(format!("{subject}, whose key {CA_BUNDLE} {problem}"))
}

/// What is wrong with certificates in PEM. Those that expired do no harm beside others.
fn bundle_problem(bundle: &str, now: Timestamp) -> Option<String> {
    let mut ends = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        let end = certificate.ok().and_then(|it| end(&it));
        let Some(end) = end else {
            return Some("has an invalid certificate: correct it".to_owned());
        };
        ends.push(end);
    }
    let Some(last) = ends.into_iter().max() else {
        return Some("has no certificates: add them as PEM".to_owned());
    };
    (last < now)
        .then(|| format!("only has expired certificates, the last one since {last}: replace them"))
}

/// When a certificate expires.
fn end(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use k8s_openapi::api::core::v1::ConfigMap;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use serde_json::json;

    use super::*;
    use crate::facts::{Found, fixture};

    /// A certificate that is valid until the end of this year, in PEM.
    fn certificate(year: i32) -> String {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    /// A cluster with this proxy, and what its ConfigMap is.
    fn facts(proxy: &serde_json::Value, map: Option<&[(&str, &str)]>) -> Facts {
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.configuration = serde_json::from_value(json!({ "proxy": proxy })).unwrap();
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        for (reference, found) in &mut facts.referenced {
            if reference.name == "proxy-ca" {
                *found = map.map_or(Found::Missing, |data| {
                    let data = data.iter();
                    let data = data.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
                    Found::ConfigMap(Box::new(ConfigMap {
                        data: Some(data.collect()),
                        ..ConfigMap::default()
                    }))
                });
            }
        }
        facts
    }

    #[test]
    fn certificate_authorities_of_the_proxy_are_checked() {
        let now: Timestamp = "2030-01-31T12:00:00Z".parse().unwrap();
        let (valid, expired) = (certificate(2031), certificate(2029));
        let both = format!("{expired}{valid}");
        let broken = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
        let mixed = format!("{valid}{broken}");
        let with = json!({ "httpProxy": "http://p:3128", "trustedCA": { "name": "proxy-ca" } });
        let without = json!({ "httpProxy": "http://p:3128" });
        let unnamed = json!({ "httpProxy": "http://p:3128", "trustedCA": { "name": "" } });
        let bundle = |text: &'static str| (CA_BUNDLE, text);
        for (name, proxy, map, expected) in [
            ("no authorities", &without, None, ""),
            ("no name", &unnamed, None, ""),
            ("valid", &with, Some((CA_BUNDLE, valid.as_str())), ""),
            ("one expired", &with, Some((CA_BUNDLE, both.as_str())), ""),
            (
                "no ConfigMap",
                &with,
                None,
                "clusters/proxy-ca, which does not exist",
            ),
            ("no key", &with, Some(("other", "")), "lacks ca-bundle.crt"),
            ("empty", &with, Some(bundle("")), "has no certificates"),
            ("text", &with, Some(bundle("hello")), "has no certificates"),
            (
                "broken",
                &with,
                Some(bundle(broken)),
                "has an invalid certificate",
            ),
            (
                "one broken",
                &with,
                Some((CA_BUNDLE, mixed.as_str())),
                "has an invalid certificate",
            ),
            (
                "expired",
                &with,
                Some((CA_BUNDLE, expired.as_str())),
                "only has expired certificates, the last one since 2029-12-31",
            ),
        ] {
            let map = map.map(|entry| [entry]);
            let facts = facts(proxy, map.as_ref().map(<[_; 1]>::as_slice));
            let found = condition(&facts, now).unwrap();
            assert_eq!(found.about, "ValidProxyConfiguration");
            let is_good = found.status == Status::True;
            assert_eq!(is_good, expected.is_empty(), "{name}: {found:?}");
            assert!(found.message.contains(expected), "{name}: {found:?}");
        }
    }

    #[test]
    fn clusters_without_a_proxy_have_no_condition() {
        let facts = fixture::facts(fixture::hosted_cluster("none"), CapiTypes::Private);
        assert_eq!(condition(&facts, Timestamp::UNIX_EPOCH), None);
    }
}
