//! Pools that are no objects: another controller makes their machines, which get their configuration like those of a
//! NodePool, from the two Secrets of the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::annotations::node_pool::NODE_POOL;
use api::conditions::{ReadCondition as _, Status};
use api::features::FeatureSet;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use payload::{Capabilities, Release, Version};

use super::conditions::Conditions;
use super::config::{Content, Source};
use super::error::Error;
use super::facts::Facts;
use super::plan::{Plan, Token, plan as plan_objects};
use super::write::Writer;
use super::{mirrored, tuning, validate};
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::names::node_pool as names;

/// What the configuration of such a pool depends on.
pub(crate) struct Input {
    pub(crate) pool: NodePool,
    pub(crate) cluster: HostedCluster,
    pub(crate) types: CapiTypes,
    /// Where its Secrets are.
    pub(crate) namespace: ControlPlaneNamespace,
    pub(crate) release: Arc<Release>,
    /// The version that the cluster has rolled out.
    pub(crate) cluster_version: Option<Version>,
    pub(crate) capabilities: Capabilities,
    /// The image of the cluster's control-plane-operator.
    pub(crate) operator_image: String,
    pub(crate) pull_secret: Vec<u8>,
    pub(crate) trust_bundle: Option<String>,
    pub(crate) ssh_key: Option<String>,
    /// The certificate authority of the ignition server, PEM.
    pub(crate) ignition_ca: Option<Vec<u8>>,
    /// Manifests of the pool: where they are, and their text.
    pub(crate) own: Vec<(String, String)>,
    /// The same of the control plane, for all pools. One may have no text.
    pub(crate) core: Vec<(String, Option<String>)>,
    /// All Secrets in the namespace that may be of a pool.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) now: Timestamp,
}

/// The Secrets of a configuration, and what is to be done with those of older ones.
#[derive(Debug)]
pub(crate) struct Detached {
    facts: Facts,
    plan: Plan,
    /// The release with the boot images of the nodes.
    pub(crate) release: Arc<Release>,
}

/// Decides what is written. An error has what is waited for, or what is wrong; until then nothing new is written. `fresh` is
/// the token of a new configuration. Pure.
pub(crate) fn plan(input: Input, fresh: &str) -> Result<Detached, String> {
    let taken = taken(&input);
    let facts = facts(input);
    let mut conditions = Conditions::new(Vec::new(), None, facts.now);
    let (found, outcome) = validate::configuration(&facts, &mut conditions);
    let plan = match outcome {
        Ok(()) => plan_objects(&facts, &found, &conditions, fresh),
        Err(_) => None,
    };
    let Some((plan, release)) = plan.zip(found.release) else {
        return Err(problem(&conditions));
    };
    let secrets = [
        names::token(facts.name(), &plan.hash),
        names::user_data(facts.name(), &plan.hash),
    ];
    match secrets.into_iter().find(|it| taken.contains(it)) {
        Some(name) => Err(format!(
            "Secret {}/{name} is not of this pool: delete it, or rename what it is of",
            facts.namespace
        )),
        None => Ok(Detached {
            facts,
            plan,
            release,
        }),
    }
}

/// Whether a Secret is one of the pool.
fn is_of(metadata: &ObjectMeta, pool: &NodePool) -> bool {
    let annotations = metadata.annotations.as_ref();
    let owner = annotations.and_then(|it| it.get(NODE_POOL.key()));
    owner == Some(&names::reference(pool))
}

// === impl Detached ===

impl Detached {
    /// Identifies the configuration, with its release.
    pub(crate) fn hash(&self) -> &str {
        &self.plan.hash
    }

    /// Adds labels to both Secrets.
    pub(crate) fn label(&mut self, labels: &BTreeMap<String, String>) {
        let token = match &mut self.plan.token {
            Token::New(secret) | Token::Known(secret) => secret,
        };
        for secret in [token, &mut self.plan.user_data] {
            let all = secret.metadata.labels.get_or_insert_default();
            all.extend(labels.clone());
        }
    }

    /// The Secret with the user data.
    #[cfg(test)]
    pub(crate) fn user_data(&self) -> &Secret {
        &self.plan.user_data
    }

    /// Writes the Secrets, and expires or deletes older ones.
    pub(crate) async fn write(&self, client: kube::Client) -> Result<(), Error> {
        let Some(namespace) = &self.facts.owned else {
            return Ok(());
        };
        Writer::new(client)
            .apply(namespace, &self.facts, &self.plan)
            .await
    }
}

/// The names of Secrets that are not the pool's.
fn taken(input: &Input) -> BTreeSet<String> {
    let others = input
        .secrets
        .iter()
        .filter(|it| !is_of(&it.metadata, &input.pool));
    others.filter_map(|it| it.metadata.name.clone()).collect()
}

fn facts(input: Input) -> Facts {
    let Input {
        pool,
        cluster,
        types,
        namespace,
        release,
        cluster_version,
        capabilities,
        operator_image,
        pull_secret,
        trust_bundle,
        ssh_key,
        ignition_ca,
        own,
        core,
        secrets,
        now,
    } = input;
    let own_secrets = secrets.into_iter().filter(|it| is_of(&it.metadata, &pool));
    // A token's Secret is named by the pool and its hash, and so is that of user data.
    let is_token = |it: &Secret| has_prefix(it, "token-");
    let (tokens, rest): (Vec<_>, Vec<_>) = own_secrets.partition(is_token);
    let user_data = rest.into_iter().filter(|it| has_prefix(it, "user-data-"));
    let user_data = user_data.filter_map(|it| it.metadata.name).collect();
    Facts {
        pool,
        cluster,
        types,
        // Such pools select no stream.
        features: FeatureSet::Default,
        namespace: namespace.to_string(),
        owned: Some(namespace),
        now,
        release: Ok(release),
        cluster_version,
        capabilities,
        operator_image: Some(operator_image),
        pull_secret,
        trust_bundle,
        cloud_config: BTreeMap::new(),
        ssh_key,
        own: own
            .into_iter()
            .map(|(name, text)| source(name, Some(text)))
            .collect(),
        core: core
            .into_iter()
            .map(|(name, text)| source(name, text))
            .collect(),
        tuning: Vec::new(),
        tuning_inputs: tuning::Observed::default(),
        mirrored: mirrored::Observed::default(),
        ignition_ca,
        tokens,
        user_data,
        machines: Vec::new(),
        platform_machines: Vec::new(),
        machine_sets: Vec::new(),
        workload: None,
        templates: Vec::new(),
        capacity: None,
        remediation: None,
    }
}

fn has_prefix(secret: &Secret, prefix: &str) -> bool {
    let name = secret.metadata.name.as_deref();
    name.is_some_and(|it| it.starts_with(prefix))
}

fn source(name: String, text: Option<String>) -> Source {
    let content = text.map_or(Content::Empty, Content::Text);
    Source { name, content }
}

/// What the conditions say that is not as it should be.
fn problem(conditions: &Conditions) -> String {
    let unmet = conditions
        .list()
        .iter()
        .filter(|it| it.status() != Status::True);
    let messages: Vec<_> = unmet.filter_map(|it| it.message.clone()).collect();
    if messages.is_empty() {
        return "Waiting for the control plane".to_owned();
    }
    messages.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::control_plane_namespace;
    use crate::node_pool::fixtures;

    const TAINT: &str = "
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: a}
spec: {kubeletConfig: {maxPods: 300}}
";

    fn input() -> Input {
        let facts = fixtures::facts();
        let mut pool = fixtures::pool();
        pool.metadata.namespace = Some("clusters-dev".to_owned());
        pool.metadata.name = Some("default-karpenter".to_owned());
        pool.spec.platform.aws = None;
        Input {
            pool,
            cluster: facts.cluster,
            types: facts.types,
            namespace: control_plane_namespace::for_tests("clusters-dev"),
            release: facts.release.unwrap(),
            cluster_version: facts.cluster_version,
            capabilities: facts.capabilities,
            operator_image: facts.operator_image.unwrap(),
            pull_secret: facts.pull_secret,
            trust_bundle: None,
            ssh_key: None,
            ignition_ca: Some(b"PEM".to_vec()),
            own: vec![("a".to_owned(), TAINT.to_owned())],
            core: Vec::new(),
            secrets: Vec::new(),
            now: facts.now,
        }
    }

    fn secret(name: &str, owner: &str) -> Secret {
        let secret = json!({ "metadata": {
            "name": name, "namespace": "clusters-dev",
            "annotations": { NODE_POOL.key(): owner },
        } });
        serde_json::from_value(secret).unwrap()
    }

    #[test]
    fn both_secrets_get_the_labels_and_name_the_pool() {
        let mut made = plan(input(), "fresh").unwrap();
        let label = ("example.com/a".to_owned(), "b".to_owned());
        made.label(&BTreeMap::from([label.clone()]));
        let user_data = &made.user_data().metadata;
        let expected = format!("user-data-default-karpenter-{}", made.hash());
        assert_eq!(user_data.name.as_ref(), Some(&expected));
        assert_eq!(user_data.labels, Some([label].into()));
        let mut pool = input().pool;
        assert!(is_of(user_data, &pool));
        assert_eq!(names::user_data(names::of(&pool), made.hash()), expected);
        pool.metadata.namespace = Some("clusters".to_owned());
        assert!(!is_of(user_data, &pool));
    }

    #[test]
    fn the_configuration_is_in_the_hash() {
        let before = plan(input(), "fresh").unwrap();
        let same = plan(input(), "other").unwrap();
        assert_eq!(before.hash(), same.hash());
        let mut changed = input();
        changed.own[0].1 = TAINT.replace("300", "200");
        assert_ne!(plan(changed, "fresh").unwrap().hash(), before.hash());
    }

    /// Check T09: the Secrets of a NodePool are in the same namespace.
    #[test]
    fn secrets_of_others_are_not_taken() {
        let hash = plan(input(), "fresh").unwrap().hash().to_owned();
        let name = format!("user-data-default-karpenter-{hash}");
        for (owner, is_free) in [
            ("clusters-dev/default-karpenter", true),
            ("clusters/default-karpenter", false),
        ] {
            let mut input = input();
            input.secrets = vec![secret(&name, owner)];
            let made = plan(input, "fresh");
            assert_eq!(made.is_ok(), is_free, "{owner}: {made:?}");
        }
    }

    #[test]
    fn user_data_of_older_configurations_is_deleted() {
        let mut input = input();
        let (pool, other) = ("clusters-dev/default-karpenter", "clusters-dev/a-karpenter");
        input.secrets = vec![
            secret("user-data-default-karpenter-0a1b2c3d", pool),
            secret("user-data-a-karpenter-0a1b2c3d", other),
        ];
        let made = plan(input, "fresh").unwrap();
        let outdated = &made.plan.outdated_user_data;
        assert_eq!(*outdated, ["user-data-default-karpenter-0a1b2c3d"]);
    }

    #[test]
    fn what_is_missing_is_reported() {
        type Change = fn(&mut Input);
        let changes: [(&str, Change); 3] = [
            ("ignition certificate authority", |it| it.ignition_ca = None),
            ("ConfigMap a", |it| it.own[0].1 = "kind: Pod".to_owned()),
            ("cannot join", |it| {
                it.cluster_version = Some("4.21.0".parse().unwrap());
            }),
        ];
        for (expected, change) in changes {
            let mut input = input();
            change(&mut input);
            let problem = plan(input, "fresh").unwrap_err();
            assert!(problem.contains(expected), "{expected}: {problem}");
        }
    }
}
