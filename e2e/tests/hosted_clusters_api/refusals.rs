//! Pools whose specification is refused: a condition has the reason and the way out, the pool goes on with what it has,
//! and what is corrected is rolled out.

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::payload::BOOT_IMAGE;
use testbed::raw::RawClient;
use testbed::wait;

use crate::hosted_clusters_api::cluster::Cluster;
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::further_pool::{FurtherPool, user_data};

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// The label that each refused pool gets, and the key of its taint.
const LABEL: &str = "example.com/refusal";
/// Prefix of labels of nodes on their machines, and the annotation with their taints.
const MANAGED: &str = "managed.hypershift.openshift.io.";
const TAINTS: &str = "hypershift.openshift.io/nodePoolTaints";
/// What a condition says while the machines keep what they are made of.
pub(crate) const KEPT: &str = "Until then nothing new is rolled out";
/// One image, and a list of images.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LIST: &str = "application/vnd.oci.image.index.v1+json";

/// A ConfigMap that a pool refers to: name, key and text.
pub(crate) type Source = (&'static str, &'static str, String);

/// A specification that is refused, and what it is corrected to.
struct Refusal {
    name: &'static str,
    sources: Vec<Source>,
    spec: Value,
    condition: &'static str,
    reason: &'static str,
    /// Parts of the message: the problem and the way out.
    message: Vec<&'static str>,
    corrected: Vec<Source>,
    correction: Value,
    then: Then,
}

/// What follows the correction.
enum Then {
    /// Machines get other user data.
    RollsOut,
    /// The tuning operator gets this ConfigMap.
    Tunes(&'static str),
}

/// Refuses each specification once, on pools of a cluster.
pub(crate) async fn hold_up_nothing(
    cluster: &Cluster,
    admin: &ApiClient,
    fixture: &Fixture,
) -> Result<()> {
    let [ahead, behind] = &fixture.skewed;
    let older = for_two_architectures(&fixture.older).await?;
    let newer = for_two_architectures(&fixture.release).await?;
    let configured = async {
        let pool = FurtherPool::new(cluster, admin, "refused");
        let mut refusals = vec![two_profiles(), no_yaml(), no_spec(), other_kind()];
        refusals.push(ahead_of_control_plane(ahead, &fixture.release));
        all(&pool, &pool.desired(&fixture.older)?, &refusals).await
    };
    let outdated = async {
        let pool = FurtherPool::new(cluster, admin, "outdated");
        let refusals = [too_far_behind(&fixture.older)];
        all(&pool, &pool.desired(behind)?, &refusals).await
    };
    let other_machines = async {
        let pool = FurtherPool::new(cluster, admin, "arm");
        let mut desired = pool.desired(&older)?;
        desired["spec"]["arch"] = json!("arm64");
        // Releases of tests have no boot image for it.
        desired["spec"]["platform"]["aws"]["ami"] = json!(BOOT_IMAGE);
        let refusals = [no_image_for_the_machines(&fixture.release, &newer)];
        all(&pool, &desired, &refusals).await
    };
    tokio::try_join!(configured, outdated, other_machines)?;
    Ok(())
}

/// Creates a pool with a machine, refuses its specifications, and deletes it.
async fn all(pool: &FurtherPool<'_>, desired: &Value, refusals: &[Refusal]) -> Result<()> {
    pool.admin.apply(std::slice::from_ref(desired)).await?;
    let made = pool
        .until("its MachineDeployment", |it| {
            ensure!(!user_data(it).is_empty(), "{}", it["spec"]);
            Ok(())
        })
        .await?;
    create_machine(pool, &made).await?;
    for refusal in refusals {
        let held = refusal.holds_up_nothing(pool).await;
        held.context(refusal.name)?;
    }
    pool.admin.delete(&machine_path(pool)).await?;
    pool.is_deleted().await
}

// === impl Refusal ===

impl Refusal {
    async fn holds_up_nothing(&self, pool: &FurtherPool<'_>) -> Result<()> {
        let before = pool.admin.get(&pool.deployment_path()).await?;
        put(pool.admin, &self.sources).await?;
        pool.change(&self.spec).await?;
        self.is_reported(pool).await?;
        let count = before["spec"]["replicas"].as_i64().context("replicas")? + 1;
        let meanwhile = json!({
            "replicas": count,
            "nodeLabels": { LABEL: self.name },
            "taints": [{ "key": LABEL, "value": self.name, "effect": "NoSchedule" }],
        });
        pool.change(&meanwhile).await?;
        let held = pool
            .until("the number of machines to follow", |it| {
                let found = &it["spec"]["replicas"];
                ensure!(*found == count, "it is {found}");
                Ok(())
            })
            .await?;
        self.reaches_the_machine(pool).await?;
        // Release, user data, template and all else that a machine is made of.
        let (old, new) = (&before["spec"]["template"], &held["spec"]["template"]);
        ensure!(old == new, "{old} became {new}");
        self.is_reported(pool).await?;
        put(pool.admin, &self.corrected).await?;
        pool.change(&self.correction).await?;
        pool.reports(self.condition, ("True", "AsExpected"), &[])
            .await?;
        self.continues(pool, user_data(&held)).await
    }

    async fn is_reported(&self, pool: &FurtherPool<'_>) -> Result<()> {
        let state = ("False", self.reason);
        pool.reports(self.condition, state, &self.message).await
    }

    /// Labels and taints of nodes are on the machine that runs.
    async fn reaches_the_machine(&self, pool: &FurtherPool<'_>) -> Result<()> {
        let path = machine_path(pool);
        wait::until("labels and taints on the machine", SOON, async || {
            let metadata = pool.admin.get(&path).await?["metadata"].take();
            let label = &metadata["labels"][format!("{MANAGED}{LABEL}")];
            ensure!(*label == self.name, "{label}");
            let taints = metadata["annotations"][TAINTS].as_str();
            let taints = taints.unwrap_or_default();
            ensure!(taints.contains(self.name), "{taints}");
            Ok(())
        })
        .await
    }

    async fn continues(&self, pool: &FurtherPool<'_>, old: &str) -> Result<()> {
        match self.then {
            Then::RollsOut => {
                let has_other = |it: &Value| {
                    let found = user_data(it);
                    ensure!(found != old, "its machines still have {found}");
                    Ok(())
                };
                pool.until("other user data", has_other).await.map(drop)
            }
            Then::Tunes(source) => {
                let name = format!("{source}-{}", pool.name);
                let path = CONFIG_MAPS.named(&pool.cluster.namespace(), &name);
                wait::until(&format!("{path} to be made"), SOON, async || {
                    pool.admin.get(&path).await.map(drop)
                })
                .await
            }
        }
    }
}

/// Each profile is valid.
fn two_profiles() -> Refusal {
    let profiles = ["refused-profile-a", "refused-profile-b"];
    let text = |name: &str| {
        format!(
            "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {{name: {name}}}\n\
             spec:\n  cpu: {{isolated: '1-3', reserved: '0'}}\n"
        )
    };
    let [first, second] = profiles;
    Refusal {
        name: "two-profiles",
        sources: profiles.map(|name| (name, "tuning", text(name))).into(),
        spec: json!({ "tuningConfig": [{ "name": first }, { "name": second }] }),
        condition: "ValidTuningConfig",
        reason: "ValidationFailed",
        message: vec![
            "a NodePool supports one PerformanceProfile, and 2 are given",
            first,
            second,
            "keep one of them",
        ],
        corrected: Vec::new(),
        correction: json!({ "tuningConfig": [{ "name": first }] }),
        then: Then::Tunes(first),
    }
}

fn no_yaml() -> Refusal {
    let text = "kind: MachineConfig\nspec: [\n".to_owned();
    let problem = "ConfigMap refused-yaml: document 1 is not valid YAML (line ";
    config("refused-yaml", text, problem)
}

fn no_spec() -> Refusal {
    let text = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 99-empty}\n";
    let problem =
        "ConfigMap refused-spec: MachineConfig 99-empty has no spec: add it, or remove the object";
    config("refused-spec", text.to_owned(), problem)
}

fn other_kind() -> Refusal {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n".to_owned();
    let problem = "ConfigMap refused-kind: document 1 is of kind \"Pod\" in \"v1\", which is not supported as node \
                   configuration: use MachineConfig, ";
    config("refused-kind", text, problem)
}

/// A ConfigMap that is refused, and then has a MachineConfig.
fn config(name: &'static str, text: String, problem: &'static str) -> Refusal {
    Refusal {
        name,
        sources: vec![(name, "config", text)],
        spec: json!({ "config": [{ "name": name }] }),
        condition: "ValidMachineConfig",
        reason: "ValidationFailed",
        message: vec![problem, KEPT],
        corrected: vec![(name, "config", machine_config(name))],
        correction: json!({}),
        then: Then::RollsOut,
    }
}

/// A MachineConfig that writes a file.
pub(crate) fn machine_config(name: &str) -> String {
    format!(
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {{name: 99-{name}}}\n\
         spec:\n  config:\n    ignition: {{version: 3.2.0}}\n    storage:\n      files:\n      \
         - {{path: /etc/{name}, mode: 420, contents: {{source: 'data:,{name}'}}}}\n"
    )
}

/// Its nodes would be newer than their API server.
fn ahead_of_control_plane(ahead: &str, release: &str) -> Refusal {
    Refusal {
        name: "ahead",
        sources: Vec::new(),
        spec: of_release(ahead),
        condition: "ValidReleaseImage",
        reason: "InvalidImage",
        message: vec![
            "nodes of 4.23.0 cannot join a control plane of 4.22.0",
            "upgrade the control plane first",
            KEPT,
        ],
        corrected: Vec::new(),
        correction: of_release(release),
        then: Then::RollsOut,
    }
}

/// The pool has been created with such a release: its nodes are supported no more, and are not taken away.
fn too_far_behind(release: &str) -> Refusal {
    Refusal {
        name: "behind",
        sources: Vec::new(),
        spec: json!({}),
        condition: "SupportedVersionSkew",
        reason: "UnsupportedSkew",
        message: vec![
            "nodes of 4.18.5 are more than 3 minor versions behind",
            "upgrade the pool to 4.19 or newer",
        ],
        corrected: Vec::new(),
        correction: of_release(release),
        then: Then::RollsOut,
    }
}

/// The pool has another architecture than the release.
fn no_image_for_the_machines(amd64_only: &str, release: &str) -> Refusal {
    Refusal {
        name: "architecture",
        sources: Vec::new(),
        spec: of_release(amd64_only),
        condition: "ValidArchPlatform",
        reason: "InvalidArchPlatform",
        message: vec![
            "the release is for Amd64 only, and the pool's machines are Arm64",
            "choose a multi-architecture release",
            KEPT,
        ],
        corrected: Vec::new(),
        correction: of_release(release),
        then: Then::RollsOut,
    }
}

fn of_release(image: &str) -> Value {
    json!({ "release": { "image": image } })
}

pub(crate) async fn put(admin: &ApiClient, sources: &[Source]) -> Result<()> {
    for (name, key, text) in sources {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "namespace": NAMESPACE, "name": name },
            "data": { *key: text },
        });
        admin.apply(&[map]).await?;
    }
    Ok(())
}

/// A machine as Cluster API would make it.
async fn create_machine(pool: &FurtherPool<'_>, deployment: &Value) -> Result<()> {
    let template = &deployment["spec"]["template"];
    let mut machine = json!({
        "apiVersion": pool.cluster.version(false),
        "kind": "Machine",
        "metadata": template["metadata"],
        "spec": template["spec"],
    });
    machine["metadata"]["namespace"] = json!(pool.cluster.namespace());
    machine["metadata"]["name"] = json!(machine_name(pool));
    let infrastructure = &mut machine["spec"]["infrastructureRef"];
    infrastructure["kind"] = json!("AWSMachine");
    infrastructure["name"] = json!(machine_name(pool));
    pool.admin.apply(&[machine]).await
}

fn machine_name(pool: &FurtherPool<'_>) -> String {
    format!("{}-1", pool.name)
}

fn machine_path(pool: &FurtherPool<'_>) -> String {
    let machines = Resource::new(pool.cluster.version(false), "machines");
    machines.named(&pool.cluster.namespace(), &machine_name(pool))
}

/// Pushes a list that has the release for two architectures; gives its name.
async fn for_two_architectures(image: &str) -> Result<String> {
    let (place, version) = image.rsplit_once(':').context("it has no tag")?;
    let (host, repository) = place.split_once('/').context("it has no registry")?;
    let registry = RawClient::new(&format!("http://{host}"), None)?;
    let manifests = format!("/v2/{repository}/manifests");
    let request = Request::get(format!("{manifests}/{version}"))
        .header(header::ACCEPT, MANIFEST)
        .body(Vec::new())?;
    let response = registry.send(request).await?;
    ensure!(response.status == StatusCode::OK, "{}", response.status);
    let manifest = response.bytes().await?;
    let digest = format!("sha256:{:x}", Sha256::digest(&manifest));
    let images = ["amd64", "arm64"].map(|architecture| {
        json!({
            "mediaType": MANIFEST,
            "digest": digest,
            "size": manifest.len(),
            "platform": { "architecture": architecture, "os": "linux" },
        })
    });
    let list = json!({ "schemaVersion": 2, "mediaType": LIST, "manifests": images });
    let tag = format!("{version}-multi");
    let request = Request::put(format!("{manifests}/{tag}"))
        .header(header::CONTENT_TYPE, LIST)
        .body(list.to_string().into_bytes())?;
    let response = registry.send(request).await?;
    ensure!(
        response.status == StatusCode::CREATED,
        "{}",
        response.status
    );
    Ok(format!("{place}:{tag}"))
}
