//! The copy of the boot image that the disks of virtual machines are clones of. It is created before their template, which
//! names it.

use api::conditions::{PoolCondition, Status};
use api::hypershift::v1beta1::node_pool::{KubevirtNodePoolStatus, NodePool};
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::kubevirt::KubevirtPlatformCredentials;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use support::controller::Action;
use support::error::chain;

use super::conditions::Conditions;
use super::control::Pools;
use super::error::Error;
use super::facts::Facts;
use super::validate::Evaluation;
use super::write::Writer;
use super::{RETRY_INTERVAL, confirm, os_stream};
use crate::control_plane_namespace::Namespace;
use crate::facts::InfraTime;
use crate::pause::pause;
use crate::platform::kubevirt::cache::{self, Wanted};
use crate::platform::kubevirt::client::{Given, InfraCluster, Place};

/// Has the copy created that the pool needs, and records it, and how its infrastructure cluster is reached, in the status.
/// Returns why the pool has none although it needs one.
pub(super) async fn record(facts: &mut Facts, pools: &Pools) -> Result<Option<String>, Error> {
    if facts.pool.spec.platform.type_ != PlatformType::KubeVirt {
        return Ok(None);
    }
    let kubevirt = facts.cluster.spec.platform.kubevirt.as_ref();
    let credentials = kubevirt.and_then(|it| it.credentials.clone());
    if credentials.is_some() || status(&facts.pool).is_some() {
        status_mut(&mut facts.pool)
            .credentials
            .clone_from(&credentials);
    }
    let (Some(wanted), Some(owned)) = (wanted(facts), &facts.owned) else {
        return Ok(None);
    };
    if pause(facts.pool.spec.paused_until.as_deref(), facts.now).is_paused() {
        return Ok(None);
    }
    let found = match &credentials {
        None => {
            confirm(facts, owned, pools).await?;
            let infra = InfraCluster::local(pools.ctx.client.clone(), &facts.namespace);
            cache::ensure(&infra, &facts.pool, &wanted).await
        }
        Some(credentials) => external(facts, credentials, &wanted, pools).await?,
    };
    let (name, missing) = match found {
        Ok(name) => (Some(name), None),
        Err(problem) => (None, Some(problem)),
    };
    status_mut(&mut facts.pool).cache_name = name;
    Ok(missing)
}

/// Reports why there is no template.
pub(super) fn report(missing: Option<&str>, found: &Evaluation, conditions: &mut Conditions) {
    if let (Some(problem), None) = (missing, &found.machine) {
        let about = PoolCondition::ValidMachineTemplate;
        conditions.set(about, Status::False, "BootImageNotCached", problem);
    }
}

/// Another infrastructure cluster is not watched.
pub(super) fn retry(is_missing: bool, action: Action) -> Action {
    if !is_missing {
        return action;
    }
    let next = action.requeue_after().unwrap_or(RETRY_INTERVAL);
    Action::requeue(next.min(RETRY_INTERVAL))
}

/// Deletes the copies of a pool. A server of a user that fails does not keep the pool from being deleted.
pub(super) async fn delete(
    pool: &NodePool,
    namespace: &Namespace,
    writer: &Writer,
) -> Result<(), Error> {
    if !cache::may_have_copies(pool) {
        return Ok(());
    }
    let client = writer.applier.client();
    let credentials = status(pool).and_then(|it| it.credentials.as_ref());
    let Some(credentials) = credentials else {
        let infra = InfraCluster::local(client.clone(), namespace.name());
        let deleted = cache::delete(&infra, pool).await;
        return deleted.map_err(Error::write(format!("DataVolumes of {}", namespace.name())));
    };
    let deleted = match kubeconfig(pool, credentials, client).await? {
        Ok(read) => {
            let deadline = InfraTime::default().deadline();
            let namespace = &credentials.infra_namespace;
            match InfraCluster::external(&read.given(), namespace, deadline).await {
                Ok(infra) => {
                    let deleted = cache::delete(&infra, pool).await;
                    deleted.map_err(|error| chain(&error))
                }
                Err(problem) => Err(problem),
            }
        }
        Err(problem) => Err(problem),
    };
    if let Err(error) = deleted {
        let (namespace, name) = (pool.namespace(), pool.name_any());
        tracing::warn!(
            namespace,
            name,
            error,
            "Boot images left in the infrastructure cluster"
        );
    }
    Ok(())
}

/// Nothing while the release is not known, or if there is no need.
fn wanted(facts: &Facts) -> Option<Wanted> {
    let release = facts.release.as_ref().ok()?;
    let release = os_stream::with_selected(facts, release)?;
    Wanted::of(&facts.machine_inputs(&release))
}

/// The copy in another cluster. It is asked rarely, whatever happens.
async fn external(
    facts: &Facts,
    credentials: &KubevirtPlatformCredentials,
    wanted: &Wanted,
    pools: &Pools,
) -> Result<Result<String, String>, Error> {
    let client = &pools.ctx.client;
    let read = match kubeconfig(&facts.pool, credentials, client).await? {
        Ok(read) => read,
        Err(problem) => return Ok(Err(problem)),
    };
    let user = &read.given();
    let uid = facts.pool.uid().unwrap_or_default();
    let (secret, version) = &user.place;
    let place: Place = Some((
        format!("{secret}/{uid}"),
        format!("{version}/{}", wanted.hash()),
    ));
    let request = |deadline| async move {
        let infra = InfraCluster::external(user, &credentials.infra_namespace, deadline).await;
        let infra = infra.map_err(|why| {
            format!("the kubeconfig of the infrastructure cluster {why}: correct its Secret")
        })?;
        cache::ensure(&infra, &facts.pool, wanted).await
    };
    let home = facts.pool.namespace().unwrap_or_default();
    let copies = &pools.ctx.virtualization.copies;
    let time = InfraTime::default();
    let found = copies.once(&home, place, &time, request).await;
    Ok(found.unwrap_or_else(|| Err(user.silence())))
}

/// The kubeconfig of another cluster, as it was read.
struct Kubeconfig {
    /// UID and key of the Secret, and its version.
    place: (String, String),
    bytes: Vec<u8>,
    /// Namespace and name of the Secret.
    secret: String,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    fn given(&self) -> Given<'_> {
        Given {
            place: self.place.clone(),
            kubeconfig: &self.bytes,
            secret: self.secret.clone(),
        }
    }
}

/// The kubeconfig of another cluster, or what is missing.
async fn kubeconfig(
    pool: &NodePool,
    credentials: &KubevirtPlatformCredentials,
    client: &Client,
) -> Result<Result<Kubeconfig, String>, Error> {
    let Some(reference) = &credentials.infra_kube_config_secret else {
        let field = "spec.platform.kubevirt.credentials.infraKubeConfigSecret";
        return Ok(Err(format!(
            "{field} of the HostedCluster is required: set it"
        )));
    };
    let namespace = pool.namespace().unwrap_or_default();
    let (name, key) = (&reference.name, &reference.key);
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let found = api.get_opt(name).await;
    let found = found.map_err(Error::read(format!("Secret {namespace}/{name}")))?;
    let kubeconfig = found.and_then(|secret| {
        let uid = format!("{}/{key}", secret.uid().unwrap_or_default());
        Some(Kubeconfig {
            place: (uid, secret.resource_version().unwrap_or_default()),
            bytes: secret.data?.remove(key)?.0,
            secret: format!("{namespace}/{name}"),
        })
    });
    Ok(kubeconfig.ok_or_else(|| {
        format!("Secret {namespace}/{name} with the key {key} does not exist: create it")
    }))
}

fn status(pool: &NodePool) -> Option<&KubevirtNodePoolStatus> {
    let platform = pool.status.as_ref()?.platform.as_ref()?;
    platform.kube_virt.as_ref()
}

fn status_mut(pool: &mut NodePool) -> &mut KubevirtNodePoolStatus {
    let status = pool.status.get_or_insert_default();
    let platform = status.platform.get_or_insert_default();
    platform.kube_virt.get_or_insert_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use payload::Releases;
    use prometheus_client::registry::Registry;
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::config::Config;
    use crate::context::Context;
    use crate::metrics::Metrics;
    use crate::node_pool::fixtures;
    use ownership::Scope;

    const COPIES: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/clusters-dev/datavolumes";

    fn pools(scenario: &Scenario) -> Pools {
        let config = Config::for_tests(Scope::Private);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let metrics = Metrics::new(&mut Registry::default());
        let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
        Pools::new(Arc::new(ctx))
    }

    /// A pool of virtual machines.
    fn facts(strategy: &str, credentials: &Value) -> Facts {
        let mut facts = fixtures::facts();
        let root = json!({ "rootVolume": { "cacheStrategy": { "type": strategy } } });
        let platform = json!({ "type": "KubeVirt", "kubevirt": root });
        facts.pool.spec.platform = serde_json::from_value(platform).unwrap();
        let platform = json!({ "type": "KubeVirt", "kubevirt": { "credentials": credentials } });
        facts.cluster.spec.platform = serde_json::from_value(platform).unwrap();
        facts
    }

    fn credentials() -> Value {
        json!({
            "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
            "infraNamespace": "machines",
        })
    }

    fn copy() -> Answer {
        Answer::ok(&json!({ "metadata": { "name": "kv-boot-image-cache-x7k2p" } }))
    }

    #[tokio::test]
    async fn the_copy_is_recorded_before_the_template_names_it() {
        let annotations = json!({ "hypershift.openshift.io/cluster": "clusters/dev" });
        let namespace = json!({ "metadata": { "name": "clusters-dev", "uid": "ns", "annotations": annotations } });
        let scenario = Scenario::new([
            Expect::get("/api/v1/namespaces/clusters-dev").answer(Answer::ok(&namespace)),
            Expect::get(COPIES).answer(Answer::list(&[])),
            Expect::post(COPIES).answer(copy()),
        ]);
        let mut facts = facts("PVC", &Value::Null);
        let missing = record(&mut facts, &pools(&scenario)).await.unwrap();
        assert_eq!(missing, None);
        let name = status(&facts.pool).unwrap().cache_name.as_deref();
        assert_eq!(name, Some("kv-boot-image-cache-x7k2p"));
        scenario.finish();
    }

    #[tokio::test]
    async fn pools_without_a_copy_make_no_requests() {
        let cases: [fn() -> Facts; 3] = [
            fixtures::facts,
            || facts("None", &Value::Null),
            || {
                let mut paused = facts("PVC", &Value::Null);
                paused.pool.spec.paused_until = Some("true".to_owned());
                paused
            },
        ];
        for case in cases {
            let mut facts = case();
            let scenario = Scenario::new([]);
            let missing = record(&mut facts, &pools(&scenario)).await.unwrap();
            assert_eq!(missing, None);
            assert_eq!(facts.pool.status, None);
            scenario.finish();
        }
    }

    /// Check F05: a copy that cannot be made is reported, and tried again.
    #[tokio::test]
    async fn failures_are_reported_and_retried() {
        let secret = "/api/v1/namespaces/clusters/secrets/infra";
        let kubeconfig = json!({ "metadata": { "uid": "s" }, "data": { "kubeconfig": "e30=" } });
        for (answer, expected) in [
            (
                Answer::error(404, "NotFound"),
                "Secret clusters/infra with the key kubeconfig",
            ),
            (
                Answer::ok(&kubeconfig),
                "the kubeconfig of the infrastructure cluster",
            ),
        ] {
            let scenario = Scenario::new([Expect::get(secret).answer(answer)]);
            let mut facts = facts("PVC", &credentials());
            let missing = record(&mut facts, &pools(&scenario)).await.unwrap();
            scenario.finish();
            let problem = missing.clone().unwrap();
            assert!(problem.contains(expected), "{problem}");
            let recorded = status(&facts.pool).unwrap();
            assert_eq!(recorded.cache_name, None);
            let namespace = &recorded.credentials.as_ref().unwrap().infra_namespace;
            assert_eq!(namespace, "machines");
            let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
            report(missing.as_deref(), &Evaluation::default(), &mut conditions);
            assert!(conditions.has(PoolCondition::ValidMachineTemplate));
            let action = retry(missing.is_some(), Action::await_change());
            assert_eq!(action, Action::requeue(RETRY_INTERVAL));
        }
    }

    #[tokio::test]
    async fn servers_of_users_do_not_keep_pools_from_being_deleted() {
        let secret = Expect::get("/api/v1/namespaces/clusters/secrets/infra");
        let secret = secret.answer(Answer::error(404, "NotFound"));
        let list = || Expect::get(COPIES);
        let refused = Answer::error(403, "Forbidden");
        for (credentials, call, is_deleted) in [
            (credentials(), secret, true),
            (Value::Null, list().answer(Answer::list(&[])), true),
            (Value::Null, list().answer(refused), false),
        ] {
            let mut facts = facts("PVC", &Value::Null);
            let recorded = json!({ "credentials": credentials });
            *status_mut(&mut facts.pool) = serde_json::from_value(recorded).unwrap();
            let scenario = Scenario::new([call]);
            let writer = Writer::new(scenario.client());
            let namespace = Namespace::Absent("clusters-dev".to_owned());
            let deleted = delete(&facts.pool, &namespace, &writer).await;
            assert_eq!(deleted.is_ok(), is_deleted, "{credentials}");
            scenario.finish();
        }
    }
}
