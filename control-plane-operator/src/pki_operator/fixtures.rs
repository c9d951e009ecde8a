//! Certificates, their objects, and what controllers share, for tests.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use support::testing::Scenario;

use super::cache::testing::{self, Contents};
use super::class::Class;
use super::controllers::Context;
use super::issue::{self, Pair, Subject};
use super::objects::{self, Kind, Meta};
use super::rotation::Lifetimes;
use super::x509::Certificate;

pub(super) const DAY: Duration = Duration::from_hours(24);

/// An hour of the tests.
pub(super) fn at(hour: u32) -> Timestamp {
    let hours = Duration::from_hours(u64::from(hour));
    Timestamp::from_second(1_800_000_000).unwrap() + hours
}

/// A signer that begins then, for seven days. Its key is generated fast.
pub(super) fn signer(from: Timestamp) -> Pair {
    let key = rcgen::KeyPair::generate().unwrap();
    let name = format!(
        "clusters-a_customer-system-admin-signer@{}",
        from.as_second()
    );
    let pem = issue::self_signed(&name, &key, DAY * 7, from).unwrap();
    Pair {
        certificate: Certificate::parse(pem.as_bytes()).unwrap(),
        key: key.serialize_pem().into_bytes(),
    }
}

/// A client certificate for 36 hours.
pub(super) fn client(signer: &Pair, now: Timestamp) -> Pair {
    let subject = Subject::user("system:customer-break-glass:x", None, None);
    issue::short_lived(signer, &subject, now + DAY * 3 / 2, now).unwrap()
}

/// The owner of all objects.
pub(super) fn owner() -> OwnerReference {
    OwnerReference {
        api_version: "hypershift.openshift.io/v1beta1".to_owned(),
        kind: "HostedControlPlane".to_owned(),
        name: "a".to_owned(),
        uid: "hcp".to_owned(),
        ..OwnerReference::default()
    }
}

/// What controllers share, with a cache of these objects.
pub(super) fn context(scenario: &Scenario, contents: Contents) -> Context {
    Context {
        client: scenario.client(),
        namespace: "clusters-a".to_owned(),
        owner: owner(),
        lifetimes: Lifetimes::scaled(DAY),
        cache: testing::cache(contents),
    }
}

/// The Secret with a certificate of the customer class, as the API server has it.
pub(super) fn secret(kind: Kind, pair: &Pair) -> Secret {
    let class = Class::Customer;
    let name = match kind {
        Kind::Signer => class.signer(),
        Kind::Client | Kind::Bundle => class.client(),
    };
    let meta = Meta {
        kind,
        name: &name,
        issuer: "",
        refresh: DAY,
        description: "",
    };
    let mut secret = objects::secret(None, meta, pair, &owner());
    secret.metadata.resource_version = Some("7".to_owned());
    secret
}

/// The ConfigMap with a bundle, as the API server has it.
pub(super) fn bundle(name: &str, certificates: &[Certificate]) -> ConfigMap {
    let mut config_map = objects::config_map(None, name, certificates, &owner());
    config_map.metadata.resource_version = Some("7".to_owned());
    config_map
}
