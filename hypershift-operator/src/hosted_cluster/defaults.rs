//! Defaults of fields that the author omitted: pure and deterministic.
//!
//! Both names are made from the object's uid, so that an operator that is killed between two writes does not choose
//! others when it comes back.

use api::hypershift::v1beta1::HostedCluster;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::names::FINALIZER;

/// The longest generated infrastructure ID: names of cloud resources append to it.
const LONGEST: usize = 27;
/// Characters of the suffix: no vowels, so that they form no words, and no lookalikes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of its last part.
const SUFFIX: usize = 5;

/// The missing fields to apply, if any.
pub(super) fn missing(cluster: &HostedCluster) -> Option<Value> {
    let mut spec = Map::new();
    let given = |value: &Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
    if !given(&cluster.spec.cluster_id) {
        spec.insert("clusterID".to_owned(), json!(cluster.uid()));
    }
    if !given(&cluster.spec.infra_id) {
        spec.insert("infraID".to_owned(), json!(infra_id(cluster)));
    }
    let finalized = cluster.finalizers().iter().any(|it| it == FINALIZER);
    (!finalized || !spec.is_empty())
        .then(|| json!({ "metadata": { "finalizers": [FINALIZER] }, "spec": spec }))
}

/// A unique name: the truncated name of the cluster, and a few characters derived from its UID.
fn infra_id(cluster: &HostedCluster) -> String {
    let name = cluster.name_any().replace('.', "-");
    let cut = name.chars().take(LONGEST - SUFFIX - 1).collect::<String>();
    let base = cut.trim_end_matches('-');
    format!("{base}-{}", suffix(&cluster.uid().unwrap_or_default()))
}

fn suffix(uid: &str) -> String {
    let mut hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::new();
    for _ in 0..SUFFIX {
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
        assert_eq!(missing(&fixture::hosted_cluster("none")), None);
    }
}
