//! Stock Cluster API and its AWS provider, as pods from a payload's images, make instances in the fake cloud: machines
//! run as soon as their nodes have joined, and the cloud is empty again when they are no longer needed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::cloud::FakeCloud;
use testbed::node::{NodeTestbed, condition, supported};
use testbed::payload::{BOOT_IMAGE, Payload, Pushed};
use testbed::{crds, fixtures, wait};

use crate::guest::user_data;

const NAMESPACE: &str = "guest";
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const CLUSTERS: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "clusters");
const MACHINE_DEPLOYMENTS: Resource<'_> =
    Resource::new("cluster.x-k8s.io/v1beta2", "machinedeployments");
const MACHINES: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "machines");
const AWS_CLUSTERS: Resource<'_> =
    Resource::new("infrastructure.cluster.x-k8s.io/v1beta2", "awsclusters");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_of_the_stock_provider_become_nodes() -> Result<()> {
    if let Err(reason) = supported() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    let testbed = NodeTestbed::builder("guest-provider").start().await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let cloud = FakeCloud::start(testbed).await?;
    let payload = Payload::build(&testbed.progress).await?;
    let pushed = payload.push(&testbed.registry).await?;
    let outcome = scales(testbed, &cloud, &pushed).await;
    if outcome.is_err() {
        testbed.progress.note(&cloud.said());
        for name in ["deployment/cluster-api", "deployment/capi-provider"] {
            let said = testbed
                .kubectl_says(["-n", NAMESPACE, "logs", name, "--tail=20"])
                .await;
            testbed
                .progress
                .note(&format!("--- {name}\n{}", said.unwrap_or_default()));
        }
    }
    outcome
}

async fn scales(testbed: &NodeTestbed, cloud: &FakeCloud, pushed: &Pushed) -> Result<()> {
    let step = testbed.progress.step("starting the stock managers");
    managers(testbed, cloud, pushed).await?;
    step.done();
    let step = testbed.progress.step("two machines join");
    pool(testbed, cloud).await?;
    machines_run(testbed, 2).await?;
    step.done();
    let step = testbed.progress.step("they go again");
    let path = MACHINE_DEPLOYMENTS.named(NAMESPACE, "guest");
    let none = json!({ "spec": { "replicas": 0 } });
    testbed.admin.patch(&path, Patch::Merge, &none).await?;
    machines_run(testbed, 0).await?;
    wait::until("an empty cloud", WITHIN, async || {
        let instances = cloud.client.instances().await?;
        ensure!(!instances.iter().any(testbed::cloud::Instance::runs));
        ensure!(cloud.machines().is_empty(), "machines run");
        Ok(())
    })
    .await?;
    step.done();
    Ok(())
}

async fn managers(testbed: &NodeTestbed, cloud: &FakeCloud, pushed: &Pushed) -> Result<()> {
    let mut definitions = crds::cluster_api(CapiTypes::Standard).await?;
    definitions.extend(aws_crds().await?);
    crds::install(&testbed.admin, &definitions).await?;
    let image = |tag: &str| {
        let image = pushed.components.get(tag);
        image.with_context(|| format!("the payload has no {tag}"))
    };
    let values = [
        ("NAMESPACE", NAMESPACE),
        ("CORE_IMAGE", image("cluster-capi-controllers")?),
        ("PROVIDER_IMAGE", image("aws-cluster-api-controllers")?),
        ("CLOUD", &cloud.url()),
    ];
    let mut objects = fixtures::render("guest/provider", &values)?;
    let own = &testbed.control_plane.authority;
    let serving = own.server("guest-webhooks")?;
    let text = |path| std::fs::read_to_string(path);
    objects.insert(
        1,
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": NAMESPACE, "name": "serving" },
            "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": text(&serving.certificate)?, "tls.key": text(&serving.key)? },
        }),
    );
    testbed.admin.apply(&objects).await?;
    for name in ["cluster-api", "capi-provider"] {
        wait::until(name, WITHIN, async || {
            let path = DEPLOYMENTS.named(NAMESPACE, name);
            condition(&testbed.admin.get(&path).await?, "Available")
        })
        .await?;
    }
    Ok(())
}

/// The provider's CRDs, with the label by which Cluster API finds the version that it supports.
async fn aws_crds() -> Result<Vec<Value>> {
    let read = || {
        let module = "sigs.k8s.io/cluster-api-provider-aws/v2".parse()?;
        anyhow::Ok(cli::crds::source::module::read(&module)?)
    };
    let batch = tokio::task::spawn_blocking(read).await??;
    let each = batch.documents.into_iter().map(|document| {
        let mut crd = document.value;
        if let Some(spec) = crd["spec"].as_object_mut() {
            spec.remove("conversion");
        }
        crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta1"] = json!("v1beta1_v1beta2");
        crd
    });
    Ok(each.collect())
}

/// A pool of two, of a cluster with the testbed's own API server.
async fn pool(testbed: &NodeTestbed, cloud: &FakeCloud) -> Result<()> {
    let admin = &testbed.admin;
    cloud
        .client
        .create_instance_profile("guest-worker-profile")
        .await?;
    let token = fixtures::render("guest/bootstrap", &[])?;
    admin.apply(&token).await?;
    let user_data = user_data::document(testbed)?.to_string();
    let view = ["config", "view", "--raw", "--flatten"];
    let kubeconfig = testbed.kubectl_says(view).await?;
    for (name, kind, data) in [
        ("user-data", "Opaque", user_data),
        ("guest-kubeconfig", "cluster.x-k8s.io/secret", kubeconfig),
    ] {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "namespace": NAMESPACE,
                "name": name,
                "labels": { "cluster.x-k8s.io/cluster-name": "guest" },
            },
            "type": kind,
            // Without a format: for Ignition's format, the provider requires a bucket.
            "stringData": { "value": data },
        });
        admin.apply(&[secret]).await?;
    }
    let host = testbed.namespaces().subnets().node(1).to_string();
    let network = &cloud.network;
    let values = [
        ("NAMESPACE", NAMESPACE),
        ("HOST", host.as_str()),
        ("VPC", &network.vpc),
        ("SUBNET", &network.subnet),
        ("SECURITY_GROUP", &network.security_group),
        ("AMI", BOOT_IMAGE),
    ];
    admin
        .apply(&fixtures::render("guest/pool", &values)?)
        .await?;
    // What a provider of control planes would say.
    let ready = json!({ "status": { "ready": true } });
    let path = AWS_CLUSTERS.named(NAMESPACE, "guest") + "/status";
    admin.patch(&path, Patch::Merge, &ready).await?;
    let initialized = json!({ "status": {
        "initialization": { "controlPlaneInitialized": true },
        "conditions": [{
            "type": "ControlPlaneInitialized",
            "status": "True",
            "reason": "Initialized",
            "message": "",
            "lastTransitionTime": "2026-11-22T00:00:00Z",
        }],
    } });
    let path = CLUSTERS.named(NAMESPACE, "guest") + "/status";
    admin.patch(&path, Patch::Merge, &initialized).await?;
    Ok(())
}

async fn machines_run(testbed: &NodeTestbed, count: usize) -> Result<()> {
    wait::until(&format!("{count} running machines"), WITHIN, async || {
        let machines = testbed.admin.list(&MACHINES.within(NAMESPACE)).await?;
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
