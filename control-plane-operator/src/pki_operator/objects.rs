//! The form of certificates and bundles in Secrets and ConfigMaps, which is that of OpenShift's certificate rotation. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::class::BUNDLE_KEY;
use super::issue::{self, Pair};
use super::revocation::Saved;
use super::rotation::{FORCE, Stored};
use super::x509::{Certificate, bundle_text, parse_bundle};
use crate::components::go_duration;

/// Label of all objects that this operator reads.
pub(super) const MANAGED: &str = "auth.openshift.io/managed-certificate-type";
const NOT_BEFORE: &str = "auth.openshift.io/certificate-not-before";
const NOT_AFTER: &str = "auth.openshift.io/certificate-not-after";
const ISSUER: &str = "auth.openshift.io/certificate-issuer";
const REFRESH: &str = "certificates.openshift.io/refresh-period";
const COMPONENT: &str = "openshift.io/owning-component";
const DESCRIPTION: &str = "openshift.io/description";
const OWNER: &str = "HyperShift";
const TYPE: &str = "kubernetes.io/tls";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Signer,
    Bundle,
    Client,
}

/// Names and times of a certificate in its Secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    /// Common name of the issuer.
    pub(super) issuer: &'a str,
    pub(super) refresh: Duration,
    pub(super) description: &'a str,
}

// === impl Kind ===

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Self::Signer => "signer",
            Self::Bundle => "ca-bundle",
            Self::Client => "target",
        }
    }
}

/// Reads a Secret.
pub(super) fn stored(secret: Option<&Secret>) -> Stored {
    let Some(secret) = secret else {
        return Stored::default();
    };
    let annotations = secret.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|all| all.get(key)).cloned();
    Stored {
        pair: pair(secret),
        annotations: [annotation(NOT_BEFORE), annotation(NOT_AFTER)],
    }
}

fn pair(secret: &Secret) -> Option<Pair> {
    let data = secret.data.as_ref()?;
    issue::read(&data.get(CERTIFICATE)?.0, &data.get(KEY)?.0)
}

/// Reads the signer that a request has saved.
pub(super) fn saved(secret: Option<&Secret>, request_uid: &str) -> Option<Saved> {
    let secret = secret?;
    let mut owners = secret.metadata.owner_references.iter().flatten();
    let is_own = owners.any(|owner| owner.uid == request_uid);
    Some(
        pair(secret)
            .filter(|_| is_own)
            .map_or(Saved::Foreign, Saved::Own),
    )
}

/// The Secret with a certificate. Other labels and annotations of the existing one are kept.
pub(super) fn secret(
    existing: Option<&Secret>,
    meta: Meta<'_>,
    made: &Pair,
    owner: &OwnerReference,
) -> Secret {
    let mut secret = existing.cloned().unwrap_or_default();
    let certificate = &made.certificate;
    let refresh = go_duration::format(meta.refresh);
    describe(
        &mut secret.metadata,
        meta.kind,
        meta.name,
        owner,
        [
            (NOT_BEFORE, certificate.not_before.to_string()),
            (NOT_AFTER, certificate.not_after.to_string()),
            (ISSUER, meta.issuer.to_owned()),
            (REFRESH, refresh),
            (DESCRIPTION, meta.description.to_owned()),
        ],
    );
    // The type of a Secret is immutable.
    secret.type_.get_or_insert_with(|| TYPE.to_owned());
    secret.data = Some(data(made));
    secret
}

/// The Secret with the signer before a revocation; it is deleted with the request.
pub(super) fn saved_secret(name: &str, pair: &Pair, owner: OwnerReference) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some(TYPE.to_owned()),
        data: Some(data(pair)),
        ..Secret::default()
    }
}

/// The Secret, with its renewal requested.
pub(super) fn forced(existing: &Secret) -> Secret {
    let mut secret = existing.clone();
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert(NOT_AFTER.to_owned(), FORCE.to_owned());
    secret
}

/// Whether this operator watches the object.
pub(super) fn is_labelled(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(MANAGED))
}

/// The Secret, with the label by which it is watched.
pub(super) fn labelled(existing: &Secret, kind: Kind) -> Secret {
    let mut secret = existing.clone();
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(MANAGED.to_owned(), kind.label().to_owned());
    secret
}

/// Reads the certificates of a bundle.
pub(super) fn bundle(config_map: Option<&ConfigMap>) -> Vec<Certificate> {
    let data = config_map.and_then(|config_map| config_map.data.as_ref());
    let text = data.and_then(|data| data.get(BUNDLE_KEY));
    text.map(|text| parse_bundle(text)).unwrap_or_default()
}

/// The ConfigMap with a bundle.
pub(super) fn config_map(
    existing: Option<&ConfigMap>,
    name: &str,
    certificates: &[Certificate],
    owner: &OwnerReference,
) -> ConfigMap {
    let mut config_map = existing.cloned().unwrap_or_default();
    describe(&mut config_map.metadata, Kind::Bundle, name, owner, []);
    config_map.data = Some([(BUNDLE_KEY.to_owned(), bundle_text(certificates))].into());
    config_map
}

fn data(pair: &Pair) -> BTreeMap<String, ByteString> {
    let certificate = pair.certificate.pem().into_bytes();
    [(CERTIFICATE, certificate), (KEY, pair.key.clone())]
        .map(|(key, value)| (key.to_owned(), ByteString(value)))
        .into()
}

fn describe<const N: usize>(
    metadata: &mut ObjectMeta,
    kind: Kind,
    name: &str,
    owner: &OwnerReference,
    annotations: [(&str, String); N],
) {
    metadata.name = Some(name.to_owned());
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(MANAGED.to_owned(), kind.label().to_owned());
    let written = metadata.annotations.get_or_insert_default();
    written.insert(COMPONENT.to_owned(), OWNER.to_owned());
    written.extend(annotations.map(|(key, value)| (key.to_owned(), value)));
    let owners = metadata.owner_references.get_or_insert_default();
    owners.retain(|other| (&other.kind, &other.name) != (&owner.kind, &owner.name));
    owners.push(owner.clone());
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, signer};
    use super::*;

    fn owner(uid: &str) -> OwnerReference {
        OwnerReference {
            api_version: "hypershift.openshift.io/v1beta1".to_owned(),
            kind: "HostedControlPlane".to_owned(),
            name: "a".to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }
    }

    fn meta(name: &str) -> Meta<'_> {
        Meta {
            kind: Kind::Signer,
            name,
            issuer: "i",
            refresh: Duration::from_hours(48),
            description: "d",
        }
    }

    #[test]
    fn certificates_round_trip_and_keep_what_others_wrote() {
        let pair = signer(at(0));
        let first = secret(None, meta("s"), &pair, &owner("1"));
        let annotations = first.metadata.annotations.clone().unwrap();
        assert_eq!(annotations[NOT_BEFORE], at(0).to_string());
        assert_eq!(annotations[REFRESH], "48h0m0s");
        assert_eq!(first.metadata.labels.as_ref().unwrap()[MANAGED], "signer");
        assert_eq!(first.type_.as_deref(), Some(TYPE));
        let read = stored(Some(&first));
        assert_eq!(read.pair.as_ref(), Some(&pair));
        assert!(!read.is_forced());

        let mut other = forced(&first);
        other
            .metadata
            .labels
            .as_mut()
            .unwrap()
            .insert("x".into(), "y".into());
        other.metadata.resource_version = Some("7".into());
        assert!(stored(Some(&other)).is_forced());
        let renewed = secret(Some(&other), meta("s"), &signer(at(1)), &owner("2"));
        assert_eq!(renewed.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(renewed.metadata.labels.as_ref().unwrap()["x"], "y");
        assert!(!stored(Some(&renewed)).is_forced());
        let owners = renewed.metadata.owner_references.unwrap();
        assert_eq!(owners, [owner("2")]);
    }

    #[test]
    fn unusable_secrets_have_no_pair() {
        let pair = signer(at(0));
        assert_eq!(stored(None), Stored::default());
        for key in [CERTIFICATE, KEY] {
            let mut broken = secret(None, meta("s"), &pair, &owner("1"));
            broken.data.as_mut().unwrap().remove(key);
            assert_eq!(stored(Some(&broken)).pair, None);
        }
    }

    #[test]
    fn a_saved_signer_belongs_to_one_request() {
        let pair = signer(at(0));
        let secret = saved_secret("s", &pair, owner("1"));
        assert_eq!(saved(Some(&secret), "1"), Some(Saved::Own(pair)));
        assert_eq!(saved(Some(&secret), "2"), Some(Saved::Foreign));
        assert_eq!(saved(None, "1"), None);
    }

    #[test]
    fn bundles_round_trip() {
        let all = [0, 1].map(|hour| signer(at(hour)).certificate);
        let written = config_map(None, "b", &all, &owner("1"));
        assert_eq!(bundle(Some(&written)), all);
        assert_eq!(bundle(None), []);
        let other = ConfigMap::default();
        assert_eq!(bundle(Some(&other)), []);
    }
}
