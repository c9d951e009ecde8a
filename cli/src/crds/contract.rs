//! Contract labels: how a controller finds out which version of a provider's kind to use.
//!
//! A controller that meets a reference without a version reads the CRD of its kind and looks for a label whose key is
//! the contract and whose value lists the versions that fulfil it. Without the label it fails on every reference.
//! The keys keep their standard spelling on private CRDs: keys are not groups.

use std::{collections::BTreeMap, fmt, str::FromStr};

use api::group::{CapiTypes, GroupPair, GroupTable};
use serde_json::{Map, Value};

use super::{Refusal, kube_version::KubeVersion};

/// What every contract label's key starts with. It is a prefix of keys that happens to look like a group.
const KEY_PREFIX: &str = "cluster.x-k8s.io/";

/// Groups of Cluster API itself, by what stands before the first dot: nothing refers to their kinds by contract, and
/// upstream ships them without labels. All others hold providers' kinds.
const WITHOUT_CONTRACT: [&str; 4] = ["cluster", "addons", "ipam", "runtime"];

/// How the plurals of kinds end that Cluster API looks up by contract: those that its own objects refer to.
const LOOKED_UP: [&str; 8] = [
    "clusters",
    "machines",
    "machinepools",
    "machinepoolmachines",
    "configs",
    "controlplanes",
    "remediations",
    // Of each of them.
    "templates",
];

/// A contract label: `cluster.x-k8s.io/<contract>=<version>[_<version>...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractLabel {
    key: String,
    versions: String,
}

/// A label that is not a contract label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a contract label: write {KEY_PREFIX}CONTRACT=VERSION[_VERSION...], \
     for example {KEY_PREFIX}v1beta1=v1beta1_v1beta2"
)]
pub struct InvalidContractLabel {
    text: String,
}

// === impl ContractLabel ===

impl FromStr for ContractLabel {
    type Err = InvalidContractLabel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, versions) = text.split_once('=').unwrap_or((text, ""));
        let valid = contract_of(key).is_some() && newest(versions).is_some();
        valid
            .then(|| Self {
                key: key.to_owned(),
                versions: versions.to_owned(),
            })
            .ok_or_else(|| InvalidContractLabel {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for ContractLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.versions)
    }
}

/// Adds the given labels to a CRD that needs contract labels and has none, and refuses one that then still has none.
pub(super) fn ensure(
    metadata: &mut Map<String, Value>,
    pair: &GroupPair,
    given: &[ContractLabel],
) -> Result<(), Refusal> {
    if !required(pair) || has_contract(metadata) {
        return Ok(());
    }
    if given.is_empty() {
        return Err(Refusal::ContractLabelMissing);
    }
    let labels = metadata
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    let labels = labels.as_object_mut().ok_or(Refusal::Malformed {
        field: "metadata.labels",
    })?;
    for label in given {
        labels.insert(label.key.clone(), label.versions.clone().into());
    }
    Ok(())
}

/// The contract labels among `labels`: contracts, and the versions that fulfil them.
pub(crate) fn read(labels: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    labels
        .iter()
        .filter_map(|(key, versions)| {
            let contract = key.strip_prefix(KEY_PREFIX)?;
            KubeVersion::parse(contract)?;
            Some((contract, versions.as_str()))
        })
        .collect()
}

/// The contract and the version that a controller picks: the newest, and of it the newest.
pub(crate) fn picked(labels: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    read(labels)
        .into_iter()
        .filter_map(|(contract, versions)| {
            let rank = KubeVersion::parse(contract)?;
            Some((rank, contract, newest(versions)?))
        })
        .max_by(|(a, ..), (b, ..)| a.cmp(b))
        .map(|(_, contract, version)| (contract, version))
}

/// Checks that the newest contract leads controllers to a version that is served, and refuses the CRD otherwise. Of a kind
/// that nothing looks up by contract the label has no effect, so the refusal is given as a warning.
pub(super) fn check_served(
    metadata: &Map<String, Value>,
    plural: &str,
    served: &[String],
) -> Result<Option<Refusal>, Refusal> {
    let Some((label, version)) = chosen(metadata) else {
        return Ok(None);
    };
    if served.contains(&version) {
        return Ok(None);
    }
    let refusal = Refusal::ContractVersionNotServed {
        label,
        version,
        served: served.join(", "),
    };
    if is_looked_up(plural) {
        return Err(refusal);
    }
    Ok(Some(refusal))
}

/// Whether Cluster API looks up the version of a kind by contract, by the kind's plural.
pub(crate) fn is_looked_up(plural: &str) -> bool {
    LOOKED_UP.iter().any(|ending| plural.ends_with(ending))
}

/// Whether controllers look for contract labels on the CRDs of a group.
pub(crate) fn required(pair: &GroupPair) -> bool {
    let standard = pair.name(CapiTypes::Standard);
    let first_label = standard.split('.').next().unwrap_or_default();
    let own = GroupTable::default().find(standard.as_bytes()).is_some();
    !(own && WITHOUT_CONTRACT.contains(&first_label))
}

fn has_contract(metadata: &Map<String, Value>) -> bool {
    chosen(metadata).is_some()
}

/// The label and the version that a controller picks: the newest contract, and of it the newest version.
fn chosen(metadata: &Map<String, Value>) -> Option<(String, String)> {
    metadata
        .get("labels")?
        .as_object()?
        .iter()
        .filter_map(|(key, value)| Some((contract_of(key)?, key, newest(value.as_str()?)?)))
        .max_by(|(a, ..), (b, ..)| a.cmp(b))
        .map(|(_, key, version)| (key.clone(), version.to_owned()))
}

fn contract_of(key: &str) -> Option<KubeVersion> {
    KubeVersion::parse(key.strip_prefix(KEY_PREFIX)?)
}

/// The newest of versions joined by `_`; none when one of them is not a version.
fn newest(versions: &str) -> Option<&str> {
    let mut parsed = versions
        .split('_')
        .map(|text| Some((KubeVersion::parse(text)?, text)))
        .collect::<Option<Vec<_>>>()?;
    parsed.sort();
    parsed.pop().map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn takes_contract_labels_and_no_others() {
        for text in [
            "cluster.x-k8s.io/v1beta1=v1beta1_v1beta2",
            "cluster.x-k8s.io/v1=v1",
        ] {
            assert_eq!(text.parse::<ContractLabel>().unwrap().to_string(), text);
        }
        for text in [
            "cluster.x-k8s.io/v1beta1",
            "cluster.x-k8s.io/v1beta1=",
            "cluster.x-k8s.io/v1beta1=v1beta1_",
            "cluster.x-k8s.io/v1beta1=v1beta1,v1beta2",
            "cluster.x-k8s.io/provider=v1",
            "other.example.com/v1beta1=v1beta1",
        ] {
            assert!(text.parse::<ContractLabel>().is_err(), "{text}");
        }
    }

    #[test]
    fn picks_the_newest_contract_and_its_newest_version() {
        let metadata = json!({"labels": {
            "cluster.x-k8s.io/provider": "infrastructure-aws",
            "cluster.x-k8s.io/v1alpha4": "v1alpha4",
            "cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2",
        }});
        let metadata = metadata.as_object().unwrap();
        let check =
            |plural: &str, served: &str| check_served(metadata, plural, &[served.to_owned()]);
        let refusal = || Refusal::ContractVersionNotServed {
            label: "cluster.x-k8s.io/v1beta1".to_owned(),
            version: "v1beta2".to_owned(),
            served: "v1beta1".to_owned(),
        };
        for plural in ["awsmachines", "awsclustertemplates", "kubeadmconfigs"] {
            assert_eq!(check(plural, "v1beta2"), Ok(None), "{plural}");
            assert_eq!(check(plural, "v1beta1"), Err(refusal()), "{plural}");
        }
        // F13: nothing refers to these by contract.
        for plural in [
            "openstackservers",
            "openstackfloatingippools",
            "openstackclusteridentities",
        ] {
            assert_eq!(check(plural, "v1beta2"), Ok(None), "{plural}");
            assert_eq!(check(plural, "v1beta1"), Ok(Some(refusal())), "{plural}");
        }
    }

    #[test]
    fn providers_need_a_label_and_the_core_does_not() {
        let table = GroupTable::default()
            .with(
                "agent.example.com=agent.private.example.com"
                    .parse()
                    .unwrap(),
            )
            .unwrap();
        let needed: Vec<_> = table
            .pairs()
            .iter()
            .filter(|pair| required(pair))
            .map(|pair| pair.name(CapiTypes::Standard))
            .collect();
        assert_eq!(
            needed,
            [
                "infrastructure.cluster.x-k8s.io",
                "controlplane.cluster.x-k8s.io",
                "bootstrap.cluster.x-k8s.io",
                "agent.example.com",
            ]
        );
    }
}
