//! Defaults of fields that the author omitted: pure and deterministic.
//!
//! Names are made from the object's uid, so that an operator that is killed between two writes does not choose others when
//! it comes back.

use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::names::FINALIZER;

/// The longest generated infrastructure ID: names of cloud resources append to it.
const LONGEST: usize = 27;
/// Characters of the suffix: no vowels, so that they form no words, and no lookalikes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of its last part.
const SUFFIX: usize = 5;
/// Characters that distinguish the domain of a cluster from others.
const GENERATED: usize = 10;

/// The missing fields to apply, if any. If one is missing, the others are among them with the values that they have:
/// an apply gives up what the same field manager applied before and does not apply again.
pub(super) fn missing(cluster: &HostedCluster) -> Option<Value> {
    let uid = cluster.uid().unwrap_or_default();
    let mut is_missing = false;
    let mut or = |given: Option<&String>, default: String| {
        let given = given.filter(|value| !value.is_empty());
        is_missing |= given.is_none();
        given.cloned().unwrap_or(default)
    };
    let mut spec = json!({
        "clusterID": or(cluster.spec.cluster_id.as_ref(), uid.clone()),
        "infraID": or(cluster.spec.infra_id.as_ref(), infra_id(cluster)),
    });
    if cluster.spec.platform.type_ == PlatformType::KubeVirt {
        let kubevirt = cluster.spec.platform.kubevirt.as_ref();
        let generated = kubevirt.and_then(|it| it.generate_id.as_ref());
        let generated = or(generated, characters(&uid, GENERATED));
        let mut fields = json!({ "generateID": generated });
        match kubevirt.and_then(|it| it.base_domain_passthrough) {
            Some(true) => fields["baseDomainPassthrough"] = json!(true),
            None if needs_domain(cluster) => {
                is_missing = true;
                fields["baseDomainPassthrough"] = json!(true);
            }
            Some(false) | None => {}
        }
        spec["platform"] = json!({ "kubevirt": fields });
    }
    if !is_missing {
        spec = json!({});
    }
    let finalized = cluster.finalizers().iter().any(|it| it == FINALIZER);
    (!finalized || is_missing)
        .then(|| json!({ "metadata": { "finalizers": [FINALIZER] }, "spec": spec }))
}

/// Whether the cluster gets its domain from the infrastructure cluster: it is new, and has none. One that is older than
/// this default keeps its names.
fn needs_domain(cluster: &HostedCluster) -> bool {
    let dns = cluster.spec.dns.as_ref();
    is_new(cluster) && dns.is_none_or(|it| it.base_domain.is_empty())
}

/// Whether no control plane of the cluster has reported its version yet.
pub(super) fn is_new(cluster: &HostedCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_none_or(|it| it.version.is_none())
}

/// A unique name: the truncated name of the cluster, and a few characters derived from its UID.
fn infra_id(cluster: &HostedCluster) -> String {
    let name = cluster.name_any().replace('.', "-");
    let cut = name.chars().take(LONGEST - SUFFIX - 1).collect::<String>();
    let base = cut.trim_end_matches('-');
    let uid = cluster.uid().unwrap_or_default();
    format!("{base}-{}", characters(&uid, SUFFIX))
}

/// Characters derived from a UID.
fn characters(uid: &str, count: usize) -> String {
    let mut hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::new();
    for _ in 0..count {
        let index = usize::try_from(hash % 27).unwrap_or_default();
        text.push(char::from(ALPHABET[index]));
        hash /= 27;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fixture;

    #[test]
    fn missing_fields_are_derived_from_the_uid() {
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.cluster_id = None;
        cluster.spec.infra_id = None;
        cluster.metadata.uid = Some("0c8d1c6a-2b1f-4c44-9d8f-3a1b7ad5f1c2".to_owned());
        let missing = missing(&cluster).unwrap();
        assert_eq!(
            missing["spec"]["clusterID"],
            "0c8d1c6a-2b1f-4c44-9d8f-3a1b7ad5f1c2"
        );
        let infra_id = missing["spec"]["infraID"].as_str().unwrap().to_owned();
        assert!(infra_id.starts_with("one-"), "{infra_id}");
        assert_eq!(super::infra_id(&cluster), infra_id, "o03: the same again");
        cluster.metadata.uid = Some("0c8d1c6a-2b1f-4c44-9d8f-3a1b7ad5f1c3".to_owned());
        assert_ne!(super::infra_id(&cluster), infra_id);
    }

    #[test]
    fn long_names_are_truncated_to_valid_names() {
        let mut cluster = fixture::hosted_cluster("none");
        for name in ["a.rather.long.name.of.a.cluster", "x"] {
            cluster.metadata.name = Some(name.to_owned());
            let id = infra_id(&cluster);
            assert!(
                id.len() <= LONGEST && !id.contains("--") && !id.contains('.'),
                "{id}"
            );
        }
    }

    #[test]
    fn a_complete_cluster_gets_no_defaults() {
        for platform in ["none", "kubevirt"] {
            let cluster = fixture::hosted_cluster(platform);
            assert_eq!(missing(&cluster), None, "{platform}");
        }
    }

    #[test]
    fn clusters_on_kubevirt_get_an_id_and_a_domain() {
        let kubevirt = |generated: &str, passthrough: Value, domain: &str| {
            let mut cluster = fixture::hosted_cluster("kubevirt");
            let fields = json!({ "generateID": generated, "baseDomainPassthrough": passthrough });
            cluster.spec.platform.kubevirt = serde_json::from_value(fields).unwrap();
            cluster.spec.dns = serde_json::from_value(json!({ "baseDomain": domain })).unwrap();
            cluster
        };
        let none = Value::Null;
        for (generated, passthrough, domain, expected) in [
            ("x7k2p", none.clone(), "example.com", None),
            ("x7k2p", json!(false), "", None),
            ("x7k2p", json!(true), "", None),
            (
                "x7k2p",
                none.clone(),
                "",
                Some(json!({ "generateID": "x7k2p", "baseDomainPassthrough": true })),
            ),
        ] {
            let cluster = kubevirt(generated, passthrough.clone(), domain);
            let found = missing(&cluster).map(|it| it["spec"]["platform"]["kubevirt"].clone());
            assert_eq!(found, expected, "{passthrough} {domain}");
        }
        let cluster = kubevirt("", json!(true), "");
        let found = missing(&cluster).unwrap();
        let fields = &found["spec"]["platform"]["kubevirt"];
        let generated = fields["generateID"].as_str().unwrap();
        assert_eq!(generated.len(), 10, "{generated}");
        assert_eq!(fields["baseDomainPassthrough"], true, "it is not given up");
        assert_eq!(found["spec"]["infraID"], "one-x7k2p", "nor is this");
        let mut old = kubevirt("x7k2p", none, "");
        let status = json!({ "version": {
            "desired": { "image": "", "version": "4.20.1" }, "observedGeneration": 1, "history": [],
        } });
        old.status = serde_json::from_value(status).unwrap();
        assert_eq!(missing(&old), None, "names of old clusters do not change");
    }
}
