//! The stages of a hosted cluster's life, each with what it waits for.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::client::{ApiClient, Patch, Resource};
use e2e::fixtures;
use e2e::node::{NodeTestbed, condition};
use e2e::{registry, wait};
use serde_json::{Value, json};

use crate::ground::{CONTROL_PLANE, Ground, INFRA, NAME, NAMESPACE};
use crate::{guest, is_held};

pub(crate) const HOSTED_CLUSTERS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedclusters");
pub(crate) const NODE_POOLS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "nodepools");
pub(crate) const COMPONENTS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "controlplanecomponents");
pub(crate) const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
pub(crate) const STATEFUL_SETS: Resource<'_> = Resource::new("apps/v1", "statefulsets");
pub(crate) const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
/// Of the private side.
pub(crate) const MACHINES: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta2", "machines");
/// For one stage. Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(4);
/// For one stage while somebody looks, and perhaps mends.
const HELD_WITHIN: Duration = Duration::from_hours(1);

/// Goes through all of them.
pub(crate) async fn run(testbed: &NodeTestbed, ground: &Ground) -> Result<()> {
    create(testbed, ground).await?;
    let admin = &testbed.admin;
    stage(testbed, "the cluster is found valid", async || {
        let cluster = cluster(admin).await?;
        for kind in [
            "ValidConfiguration",
            "ValidReleaseImage",
            "SupportedHostedCluster",
        ] {
            condition(&cluster, kind)?;
        }
        Ok(())
    })
    .await?;
    for name in ["control-plane-operator", "cluster-api", "capi-provider"] {
        if name == "capi-provider" {
            stage(
                testbed,
                "the provider is told where the cloud is",
                async || tell_where_the_cloud_is(admin, &ground.cloud.url()).await,
            )
            .await?;
        }
        deployment_is_there(testbed, name).await?;
    }
    available(testbed, &DEPLOYMENTS, "control-plane-operator").await?;
    available(testbed, &STATEFUL_SETS, "etcd").await?;
    for name in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ] {
        available(testbed, &DEPLOYMENTS, name).await?;
    }
    stage(testbed, "all components are rolled out", async || {
        rolled_out(admin).await
    })
    .await?;
    stage(testbed, "the cluster is available", async || {
        condition(&cluster(admin).await?, "Available")
    })
    .await?;
    let hosted = stage(
        testbed,
        "the user has a kubeconfig that works",
        async || guest::client(admin).await,
    )
    .await?;
    for name in ["cluster-api", "capi-provider"] {
        available(testbed, &DEPLOYMENTS, name).await?;
    }
    workers(testbed, ground, &hosted, 1).await?;
    guest::runs_a_workload(testbed, &hosted).await?;
    for count in [3, 0] {
        scale(admin, count).await?;
        workers(testbed, ground, &hosted, count).await?;
    }
    delete(testbed, ground).await
}

/// One stage: waits until `probe` succeeds, and names it in the error.
async fn stage<T>(
    testbed: &NodeTestbed,
    what: &str,
    probe: impl std::ops::AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let step = testbed.progress.step(what);
    let within = if is_held() { HELD_WITHIN } else { WITHIN };
    let found = wait::until(what, within, probe)
        .await
        .with_context(|| format!("stage {what:?}"))?;
    step.done();
    Ok(found)
}

async fn create(testbed: &NodeTestbed, ground: &Ground) -> Result<()> {
    let network = &ground.cloud.network;
    let machines = testbed.namespaces().subnets().machines();
    let values = [
        ("NAME", NAME),
        ("INFRA", INFRA),
        ("RELEASE", ground.release.image.as_str()),
        ("REGISTRY", registry::NAME),
        ("MACHINES", &machines),
        ("VPC", &network.vpc),
        ("ZONE", e2e::cloud::ZONE),
        ("SUBNET", &network.subnet),
        ("SECURITY_GROUP", &network.security_group),
    ];
    let objects = fixtures::render("hosted_cluster/aws", &values)?;
    testbed.admin.apply(&objects).await
}

pub(crate) async fn cluster(admin: &ApiClient) -> Result<Value> {
    admin.get(&HOSTED_CLUSTERS.named(NAMESPACE, NAME)).await
}

async fn deployment_is_there(testbed: &NodeTestbed, name: &str) -> Result<()> {
    let what = format!("{name} is deployed");
    stage(testbed, &what, async || {
        let path = DEPLOYMENTS.named(CONTROL_PLANE, name);
        testbed.admin.get(&path).await.map(drop)
    })
    .await
}

/// All replicas of a workload are ready, and of its newest template.
async fn available(testbed: &NodeTestbed, of: &Resource<'_>, name: &str) -> Result<()> {
    let what = format!("{name} is ready");
    stage(testbed, &what, async || {
        let workload = testbed.admin.get(&of.named(CONTROL_PLANE, name)).await?;
        let wanted = workload["spec"]["replicas"].as_i64().unwrap_or(1);
        let status = &workload["status"];
        let ready = status["readyReplicas"].as_i64().unwrap_or(0);
        let updated = status["updatedReplicas"].as_i64().unwrap_or(0);
        ensure!(
            ready == wanted && updated == wanted,
            "{ready} of {wanted} are ready, {updated} are up to date"
        );
        Ok(())
    })
    .await
}

async fn rolled_out(admin: &ApiClient) -> Result<()> {
    let components = admin.list(&COMPONENTS.within(CONTROL_PLANE)).await?;
    ensure!(!components.is_empty(), "there are no components");
    for component in &components {
        for kind in ["Available", "RolloutComplete"] {
            condition(component, kind)
                .with_context(|| format!("{}", component["metadata"]["name"]))?;
        }
    }
    Ok(())
}

/// The provider asks AWS unless its SDK is told otherwise, which variables do: one for all services, and one for the
/// service that credentials come from, which is asked before the first is read.
async fn tell_where_the_cloud_is(admin: &ApiClient, url: &str) -> Result<()> {
    let path = DEPLOYMENTS.named(CONTROL_PLANE, "capi-provider");
    let found = admin.get(&path).await?;
    let containers = found["spec"]["template"]["spec"]["containers"].as_array();
    let manager = containers
        .and_then(|containers| containers.first())
        .context("there is no container")?;
    let wanted = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "namespace": CONTROL_PLANE, "name": "capi-provider" },
        "spec": { "template": { "spec": { "containers": [{
            "name": manager["name"],
            "env": [
                { "name": "AWS_ENDPOINT_URL", "value": url },
                { "name": "AWS_ENDPOINT_URL_STS", "value": url },
            ],
        }] } } },
    });
    admin.patch(&path, Patch::Apply, &wanted).await.map(drop)
}

/// As many instances, machines and nodes as the pool wants, each ready and told apart by its provider's name.
async fn workers(
    testbed: &NodeTestbed,
    ground: &Ground,
    hosted: &ApiClient,
    count: usize,
) -> Result<()> {
    let what = format!("the cloud runs {count} instances");
    stage(testbed, &what, async || {
        let instances = ground.cloud.client.instances().await?;
        let running = instances.iter().filter(|instance| instance.runs()).count();
        ensure!(running == count, "{running} run");
        Ok(())
    })
    .await?;
    let what = format!("{count} workers have joined and are ready");
    stage(testbed, &what, async || {
        let nodes = hosted.list("/api/v1/nodes").await?;
        ensure!(nodes.len() == count, "there are {} nodes", nodes.len());
        for node in &nodes {
            condition(node, "Ready")?;
        }
        Ok(())
    })
    .await?;
    let what = format!("the pool has {count} machines that run");
    stage(testbed, &what, async || {
        let machines = testbed.admin.list(&MACHINES.within(CONTROL_PLANE)).await?;
        ensure!(machines.len() == count, "there are {}", machines.len());
        for machine in &machines {
            ensure!(
                machine["status"]["phase"] == "Running",
                "{}",
                machine["status"]
            );
        }
        Ok(())
    })
    .await
}

async fn scale(admin: &ApiClient, count: usize) -> Result<()> {
    let path = NODE_POOLS.named(NAMESPACE, &format!("{NAME}-workers"));
    let wanted = json!({ "spec": { "replicas": count } });
    admin.patch(&path, Patch::Merge, &wanted).await.map(drop)
}

/// Deletes the cluster; nothing of it is left, here or in the cloud.
async fn delete(testbed: &NodeTestbed, ground: &Ground) -> Result<()> {
    let admin = &testbed.admin;
    let path = HOSTED_CLUSTERS.named(NAMESPACE, NAME);
    admin.delete(&path).await?;
    stage(testbed, "the cluster is gone", async || {
        gone(admin, &path).await?;
        let pool = NODE_POOLS.named(NAMESPACE, &format!("{NAME}-workers"));
        gone(admin, &pool).await?;
        gone(admin, &format!("/api/v1/namespaces/{CONTROL_PLANE}")).await
    })
    .await?;
    stage(testbed, "its volumes are gone", async || {
        let left = admin.list("/api/v1/persistentvolumes").await?.len();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await?;
    stage(testbed, "nothing runs in the cloud", async || {
        let instances = ground.cloud.client.instances().await?;
        ensure!(!instances.iter().any(e2e::cloud::Instance::runs));
        Ok(())
    })
    .await
}

async fn gone(admin: &ApiClient, path: &str) -> Result<()> {
    match admin.find(path).await? {
        None => Ok(()),
        Some(left) => {
            let metadata = &left["metadata"];
            let conditions = diagnosed(&left);
            bail!(
                "{path} is there, held by {} {conditions}",
                metadata["finalizers"]
            )
        }
    }
}

/// The messages of conditions that are not true.
fn diagnosed(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let each = conditions.into_iter().flatten();
    let bad = each.filter(|one| one["status"] != "True");
    let texts = bad.map(|one| format!("{}: {}", one["type"], one["message"]));
    texts.collect::<Vec<_>>().join("; ")
}
