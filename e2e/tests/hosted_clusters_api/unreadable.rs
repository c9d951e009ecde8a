//! Check T04: HostedClusters and NodePools that do not deserialize, written straight into etcd as an API server of another
//! version would have stored them. All others are reconciled, and the odd ones report why they are not.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::hosted_clusters_api::cluster::{Cluster, HOSTED_CLUSTERS, NODE_POOLS};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// More than an int32 holds.
const TOO_LARGE: i64 = 4_294_967_296;
/// What holds a NodePool until the operator has deleted what belongs to it.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// No value of any enum.
const UNKNOWN: &str = "Sometimes";

/// An object that does not deserialize.
struct Odd {
    plural: &'static str,
    name: &'static str,
    /// Where the value is in the specification.
    field: &'static str,
    value: Value,
    /// A value that deserializes.
    valid: Value,
    /// The condition that names it.
    condition: &'static str,
}

/// One of each: a number that is too large and an unknown value of an enum, in a HostedCluster and in a NodePool.
fn all() -> [Odd; 4] {
    let odd = |plural, name, field, [value, valid]: [Value; 2], condition| Odd {
        plural,
        name,
        field,
        value,
        valid,
        condition,
    };
    let (pools, clusters) = ("nodepools", "hostedclusters");
    [
        odd(
            pools,
            "odd-number",
            "/replicas",
            [json!(TOO_LARGE), json!(0)],
            "ReconciliationActive",
        ),
        odd(
            pools,
            "odd-value",
            "/management/upgradeType",
            [json!(UNKNOWN), json!("Replace")],
            "ReconciliationActive",
        ),
        odd(
            clusters,
            "odd-number",
            "/networking/apiServer",
            [json!({ "port": TOO_LARGE }), json!({})],
            "ValidConfiguration",
        ),
        odd(
            clusters,
            "odd-value",
            "/controllerAvailabilityPolicy",
            [json!(UNKNOWN), json!("SingleReplica")],
            "ValidConfiguration",
        ),
    ]
}

// === impl Odd ===

impl Odd {
    fn path(&self) -> String {
        let resource = if self.plural == "nodepools" {
            NODE_POOLS
        } else {
            HOSTED_CLUSTERS
        };
        resource.named(NAMESPACE, self.name)
    }

    /// A patch that makes it valid.
    fn correction(&self) -> Value {
        let fields = self.field.trim_start_matches('/').rsplit('/');
        let spec = fields.fold(self.valid.clone(), |value, field| json!({ field: value }));
        json!({ "spec": spec })
    }

    /// What its condition has to name.
    fn named(&self) -> String {
        let is_number = !self.value.is_string();
        let (number, unknown) = (TOO_LARGE.to_string(), UNKNOWN.to_owned());
        if is_number { number } else { unknown }
    }
}

/// They come, each cluster's pool is scaled meanwhile, and they go.
pub(crate) async fn objects_hold_up_no_other(testbed: &Testbed) -> Result<()> {
    let admin = &testbed.admin;
    let [cluster, _] = &Cluster::ALL;
    let all = all();
    for (number, odd) in all.iter().enumerate() {
        let source = if odd.plural == "nodepools" {
            cluster.pool()
        } else {
            cluster.name.to_owned()
        };
        store(testbed, odd, number, &source).await?;
    }
    for odd in &all {
        says(admin, &odd.path(), odd.condition, &odd.named()).await?;
    }
    for cluster in Cluster::ALL {
        is_scaled(admin, &cluster).await.context(cluster.name)?;
    }
    for odd in &all {
        is_deleted(admin, odd).await?;
    }
    Ok(())
}

/// Deletes the object. If the API server accepts no change of it, a condition names the finalizer, and the deletion
/// continues after the field is corrected.
async fn is_deleted(admin: &ApiClient, odd: &Odd) -> Result<()> {
    let path = &odd.path();
    admin.delete(path).await?;
    let what = format!("{path} to be deleted or to report its finalizer");
    let is_held = wait::until(&what, SOON, async || {
        let Some(object) = admin.find(path).await? else {
            return Ok(false);
        };
        let reported = find(&object, odd.condition).context("it has no condition")?;
        let message = reported["message"].as_str().unwrap_or_default();
        ensure!(message.contains(FINALIZER), "it says {message}");
        Ok(true)
    })
    .await?;
    if is_held {
        admin.patch(path, Patch::Merge, &odd.correction()).await?;
    }
    wait::until(&format!("{path} to be deleted"), SOON, async || {
        ensure!(admin.find(path).await?.is_none(), "it exists");
        Ok(())
    })
    .await
}

/// Stores a changed copy of the object `source`.
async fn store(testbed: &Testbed, odd: &Odd, number: usize, source: &str) -> Result<()> {
    let etcd = &testbed.control_plane.etcd;
    let within = format!(
        "/registry/hypershift.openshift.io/{}/{NAMESPACE}/",
        odd.plural
    );
    let stored = etcd.stored(&format!("{within}{source}")).await?;
    let source = stored.first().context("it is not stored")?;
    let mut object: Value = serde_json::from_slice(&source.value)?;
    object["metadata"] = json!({
        "namespace": NAMESPACE,
        "name": odd.name,
        "uid": format!("00000000-0000-4000-8000-{number:012}"),
        "generation": 1,
        // So their deletion waits for the operator.
        "finalizers": if odd.plural == "nodepools" { json!([FINALIZER]) } else { json!([]) },
        "creationTimestamp": object["metadata"]["creationTimestamp"],
    });
    object["status"] = json!({});
    let (parent, field) = odd.field.rsplit_once('/').context("no field")?;
    let parent = object.pointer_mut(&format!("/spec{parent}"));
    parent.context("the field has no parent")?[field] = odd.value.clone();
    etcd.put(
        &format!("{within}{}", odd.name),
        object.to_string().as_bytes(),
    )
    .await
}

/// Waits until a condition is False and names the value.
async fn says(admin: &ApiClient, path: &str, condition: &str, value: &str) -> Result<()> {
    wait::until(&format!("{path} to report the failure"), SOON, async || {
        let object = admin.get(path).await?;
        let reported = find(&object, condition);
        let reported = reported.with_context(|| format!("it says {}", untrue(&object)))?;
        let message = reported["message"].as_str().unwrap_or_default();
        ensure!(
            reported["status"] == "False" && message.contains(value),
            "{condition} is {reported}"
        );
        Ok(())
    })
    .await
}

/// Scales a pool, and waits for its MachineDeployment to follow.
async fn is_scaled(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    let deployments = Resource::new(cluster.version(false), "machinedeployments");
    let deployment = deployments.named(&cluster.namespace(), &cluster.pool());
    let pool = NODE_POOLS.named(NAMESPACE, &cluster.pool());
    for replicas in [4, 3] {
        let change = json!({ "spec": { "replicas": replicas } });
        admin.patch(&pool, Patch::Merge, &change).await?;
        wait::until("the MachineDeployment to follow", SOON, async || {
            let found = &admin.get(&deployment).await?["spec"]["replicas"];
            ensure!(*found == replicas, "it has {found}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
