//! How the cluster autoscaler knows what a machine has while a pool has none: pure.
//!
//! The template says so where its provider does. Elsewhere this operator asks the cloud, if it may, and annotates the
//! MachineDeployment or MachineSet.

use std::collections::BTreeMap;
use std::time::Duration;

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;

use super::facts::Facts;
use crate::platform::capacity::{Capacity, Question, Unknown};

/// What a machine has, as annotations of the autoscaler.
const PROCESSORS: &str = "machine.openshift.io/vCPU";
const MEMORY: &str = "machine.openshift.io/memoryMb";
const GPUS: &str = "machine.openshift.io/GPU";
/// Until the cloud is asked again.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// What the autoscaler can know of a machine that does not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FromZero<'a> {
    /// Nothing: one machine is kept.
    Impossible,
    /// What the status of the template says.
    Template,
    /// What the cloud says.
    Known(Capacity),
    /// What the cloud said before, in the annotations of the workload: it cannot be asked now.
    Kept(Option<&'a BTreeMap<String, String>>),
}

/// What to ask the cloud about, if the autoscaler has to know the capacity of the pool's machines.
pub(crate) fn question<'a>(pool: &'a NodePool, cluster: &'a HostedCluster) -> Option<Question<'a>> {
    pool.spec.auto_scaling.as_ref()?;
    let (of_pool, of_cluster) = (&pool.spec.platform, &cluster.spec.platform);
    match of_pool.type_ {
        PlatformType::Aws => Some(Question::Aws {
            region: &of_cluster.aws.as_ref()?.region,
            instance_type: &of_pool.aws.as_ref()?.instance_type,
        }),
        PlatformType::Azure => Some(Question::Azure {
            location: &of_cluster.azure.as_ref()?.location,
            vm_size: &of_pool.azure.as_ref()?.vm_size,
        }),
        PlatformType::Agent
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => None,
    }
}

/// How the autoscaler knows the capacity of machines of this template.
pub(crate) fn from_zero<'a>(facts: &'a Facts, template: &str) -> FromZero<'a> {
    let mut templates = facts.templates.iter();
    if templates.any(|it| it.name == template && it.has_capacity) {
        return FromZero::Template;
    }
    match &facts.capacity {
        None => FromZero::Impossible,
        Some(Ok(capacity)) => FromZero::Known(*capacity),
        Some(Err(_)) => FromZero::Kept(facts.workload.as_ref().map(|it| &it.annotations)),
    }
}

/// Whether the pool may have no machine. A cloud that does not respond adds none.
pub(crate) fn is_possible(facts: &Facts) -> bool {
    facts.capacity.is_some() || facts.templates.iter().any(|it| it.has_capacity)
}

/// Why the autoscaler cannot add the first machine.
pub(crate) fn problem(facts: &Facts) -> Option<String> {
    let unknown = unknown(facts)?;
    Some(format!(
        "the capacity of a machine is needed to add the first one, and {unknown}"
    ))
}

/// When the cloud is asked again, if its answer can change.
pub(crate) fn retry(facts: &Facts) -> Option<Duration> {
    let unknown = unknown(facts)?;
    (!unknown.is_permanent()).then_some(RETRY_INTERVAL)
}

/// Why the capacity of a machine is not known, if it is needed.
fn unknown(facts: &Facts) -> Option<&Unknown> {
    let unknown = facts.capacity.as_ref()?.as_ref().err()?;
    let is_in_template = facts.templates.iter().any(|it| it.has_capacity);
    (!is_in_template).then_some(unknown)
}

// === impl FromZero ===

impl FromZero<'_> {
    pub(crate) fn is_possible(self) -> bool {
        self != Self::Impossible
    }

    /// The annotations with the capacity.
    pub(crate) fn annotations(self) -> BTreeMap<String, String> {
        let capacity = match self {
            Self::Impossible | Self::Template | Self::Kept(None) => return BTreeMap::new(),
            Self::Kept(Some(annotations)) => {
                let kept = annotations
                    .iter()
                    .filter(|(key, _)| [PROCESSORS, MEMORY, GPUS].contains(&key.as_str()));
                return kept
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
            }
            Self::Known(capacity) => capacity,
        };
        let Capacity {
            processors,
            memory,
            gpus,
        } = capacity;
        let mut annotations = BTreeMap::from([
            (PROCESSORS.to_owned(), processors.to_string()),
            (MEMORY.to_owned(), memory.to_string()),
        ]);
        if gpus > 0 {
            annotations.insert(GPUS.to_owned(), gpus.to_string());
        }
        annotations
    }
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::node_pool::NodePoolAutoScaling;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;
    use crate::node_pool::fixtures;
    use crate::node_pool::observed::Template;

    fn capacity(gpus: u32) -> Capacity {
        Capacity {
            processors: 4,
            memory: 16_384,
            gpus,
        }
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn only_autoscaled_pools_of_clouds_need_the_capacity() {
        let (mut pool, cluster) = (fixtures::pool(), fixtures::cluster());
        assert_eq!(question(&pool, &cluster), None);
        pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 0, max: 3 });
        let expected = Question::Aws {
            region: "us-east-1",
            instance_type: "m5.large",
        };
        assert_eq!(question(&pool, &cluster), Some(expected));
        pool.spec.platform.type_ = PlatformType::Agent;
        assert_eq!(question(&pool, &cluster), None);
        let azure = json!({
            "vmSize": "Standard_D4s_v5",
            "image": { "type": "ImageID", "imageID": "/images/1" },
            "osDisk": {},
            "subnetID": "/subnets/1",
        });
        pool.spec.platform.type_ = PlatformType::Azure;
        pool.spec.platform.azure = serde_json::from_value(azure).unwrap();
        let cluster = fixture::hosted_cluster("azure");
        let expected = Question::Azure {
            location: "eastus",
            vm_size: "Standard_D4s_v5",
        };
        assert_eq!(question(&pool, &cluster), Some(expected));
    }

    #[test]
    fn annotations_say_what_a_machine_has() {
        let small = texts(&[(PROCESSORS, "4"), (MEMORY, "16384")]);
        let large = texts(&[(PROCESSORS, "4"), (MEMORY, "16384"), (GPUS, "2")]);
        let mut earlier = large.clone();
        earlier.insert("other".to_owned(), "1".to_owned());
        for (from_zero, expected) in [
            (FromZero::Impossible, BTreeMap::new()),
            (FromZero::Template, BTreeMap::new()),
            (FromZero::Known(capacity(0)), small),
            (FromZero::Known(capacity(2)), large.clone()),
            (FromZero::Kept(Some(&earlier)), large),
            (FromZero::Kept(None), BTreeMap::new()),
        ] {
            assert_eq!(from_zero.annotations(), expected, "{from_zero:?}");
        }
    }

    /// A cloud that fails must neither start a machine that is not needed, nor remove what the autoscaler knows.
    #[test]
    fn the_template_counts_before_the_cloud() {
        let mut facts = fixtures::facts();
        facts.workload = Some(fixtures::workload(0));
        let kept = fixtures::workload(0).annotations;
        let unknown = Unknown::temporary("EC2 does not respond");
        for (name, from_cloud, has_capacity, expected, is_retried) in [
            ("no provider", None, false, FromZero::Impossible, false),
            ("the template", None, true, FromZero::Template, false),
            (
                "the cloud",
                Some(Ok(capacity(0))),
                false,
                FromZero::Known(capacity(0)),
                false,
            ),
            (
                "both",
                Some(Ok(capacity(0))),
                true,
                FromZero::Template,
                false,
            ),
            (
                "a failure",
                Some(Err(unknown.clone())),
                false,
                FromZero::Kept(Some(&kept)),
                true,
            ),
            (
                "the template, and a failure",
                Some(Err(unknown.clone())),
                true,
                FromZero::Template,
                false,
            ),
        ] {
            facts.capacity = from_cloud;
            facts.templates = vec![Template {
                name: "workers-a".to_owned(),
                has_capacity,
                ..Template::default()
            }];
            assert_eq!(from_zero(&facts, "workers-a"), expected, "{name}");
            let is_possible = expected != FromZero::Impossible;
            assert_eq!(super::is_possible(&facts), is_possible, "{name}");
            assert_eq!(retry(&facts).is_some(), is_retried, "{name}");
            assert_eq!(problem(&facts).is_some(), is_retried, "{name}");
        }
        // Azure does not have the VM size: asking again does not help.
        facts.capacity = Some(Err(Unknown::permanent("Azure does not have it")));
        facts.templates.clear();
        assert!(retry(&facts).is_none() && problem(&facts).is_some());
        assert_eq!(from_zero(&facts, "workers-a"), FromZero::Kept(Some(&kept)));
        // The capacity of another template's machines says nothing about this one's.
        facts.capacity = None;
        assert_eq!(from_zero(&facts, "workers-b"), FromZero::Impossible);
    }
}
