//! Pools that upstream's operator has made: they keep their machines when this one takes them over, and a later change
//! replaces these.
//!
//! What is there is written as that operator writes it, in its own words and under its own names, before this one sees
//! the pool.

use anyhow::{Context, Result, ensure};
use api::annotations::node_pool::{
    CURRENT_CONFIG, CURRENT_CONFIG_VERSION, PLATFORM_MACHINE_TEMPLATE,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::fixtures;
use testbed::payload::BOOT_IMAGE;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::{Cluster, SECRETS};
use crate::hosted_clusters_api::fixture::Fixture;
use crate::hosted_clusters_api::further_pool::{FurtherPool, user_data};

/// The version of the release.
const VERSION: &str = "4.22.0";
/// Hashes as the other operator has computed them.
const HASH: &str = "1a2b3c4d";
const WITHOUT_VERSION: &str = "0f0f0f0f";
const TEMPLATE_HASH: &str = "5e6f7a8b";
/// What a NodePool has until its machines are gone.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// The limit that nodes have, and another one.
const LIMITS: [&str; 2] = ["1024", "2048"];

/// The script that sets up the address of the API server on nodes.
const SETUP: &str =
    "#!/usr/bin/env bash\nset -x\nip addr add 172.20.0.1/32 brd 172.20.0.1 scope host dev lo\n";
/// The load balancer in front of the API server. Its lines are in another order than those of this operator.
const HAPROXY: &str = "global
  maxconn 7000
  log stdout local0

defaults
  mode tcp
  timeout connect 10s
  timeout client 10m
  timeout server 10m

frontend local_apiserver
  bind 172.20.0.1:6443
  default_backend remote_apiserver

backend remote_apiserver
  mode tcp
  option httpchk GET /version
  default-server inter 10s fall 3 rise 3
  server controlplane api.example.com:6443
";
/// Its pod. Releases of tests have images without a content.
const POD: &str = "apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels:
    k8s-app: kube-apiserver-proxy
  name: kube-apiserver-proxy
  namespace: kube-system
spec:
  containers:
  - command:
    - haproxy
    - -f
    - /usr/local/etc/haproxy
    image: registry.example.com/haproxy-router@sha256:0000000000000000000000000000000000000000000000000000000000000000
    name: haproxy
    resources: {}
  hostNetwork: true
  priorityClassName: system-node-critical
status: {}
";

/// A pool of a cluster is taken over, scaled, and changed.
pub(crate) async fn pools_keep_their_machines(
    cluster: &Cluster,
    testbed: &Testbed,
    fixture: &Fixture,
) -> Result<()> {
    let admin = &testbed.admin;
    let pool = FurtherPool::new(cluster, admin, "adopted");
    let [limit, other_limit] = LIMITS.map(limits);
    admin.apply(&limit?).await?;
    admin
        .apply(&objects(&pool, testbed, &fixture.release).await?)
        .await?;
    let before = admin.get(&pool.deployment_path()).await?;
    admin.apply(&[node_pool(&pool, &fixture.release)?]).await?;
    let message = format!("configuration {HASH}");
    pool.reports("ValidMachineConfig", ("True", "AsExpected"), &[&message])
        .await?;
    // It follows this operator now.
    pool.change(&json!({ "replicas": 3 })).await?;
    let after = pool
        .until("the number of machines to follow", |it| {
            let found = &it["spec"]["replicas"];
            ensure!(*found == 3, "it is {found}");
            Ok(())
        })
        .await?;
    let (old, new) = (&before["spec"]["template"], &after["spec"]["template"]);
    ensure!(old == new, "{old} became {new}");
    for kind in [
        "UpdatingConfig",
        "UpdatingVersion",
        "UpdatingPlatformMachineTemplate",
    ] {
        pool.reports(kind, ("False", "AsExpected"), &[]).await?;
    }
    has_nothing_new(&pool).await?;

    admin.apply(&other_limit?).await?;
    let changed = pool
        .until("other user data", |it| {
            let found = user_data(it);
            ensure!(found != user_data(&before), "it is {found}");
            Ok(())
        })
        .await?;
    let path = SECRETS.named(&cluster.namespace(), user_data(&changed));
    admin.get(&path).await?;
    let reference = |it: &Value| it["spec"]["template"]["spec"]["infrastructureRef"].clone();
    let (old, new) = (reference(&before), reference(&changed));
    ensure!(old == new, "{old} became {new}");
    pool.is_deleted().await
}

/// There are the objects of the other operator, and no others of their kinds.
async fn has_nothing_new(pool: &FurtherPool<'_>) -> Result<()> {
    let namespace = pool.cluster.namespace();
    let templates = Resource::new(pool.cluster.version(true), "awsmachinetemplates");
    let name = &pool.name;
    let tokens = format!("token-{name}-");
    let user_data = format!("user-data-{name}-");
    let machines = format!("{name}-");
    for (kind, prefix, hash) in [
        (&SECRETS, &tokens, HASH),
        (&SECRETS, &user_data, HASH),
        (&templates, &machines, TEMPLATE_HASH),
    ] {
        let listed = pool.admin.list(&kind.within(&namespace)).await?;
        let names = listed
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        let own: Vec<_> = names.filter(|it| it.starts_with(prefix.as_str())).collect();
        ensure!(own == [format!("{prefix}{hash}")], "{own:?}");
    }
    Ok(())
}

/// The NodePool with what the other operator records in it.
fn node_pool(pool: &FurtherPool<'_>, release: &str) -> Result<Value> {
    let mut desired = pool.desired(release)?;
    let metadata = &mut desired["metadata"];
    metadata["finalizers"] = json!([FINALIZER]);
    metadata["annotations"] = json!({
        CURRENT_CONFIG.key(): WITHOUT_VERSION,
        CURRENT_CONFIG_VERSION.key(): HASH,
        PLATFORM_MACHINE_TEMPLATE.key(): template(pool),
    });
    desired["spec"]["replicas"] = json!(2);
    desired["spec"]["config"] = json!([{ "name": "adopted-limits" }]);
    // Its health check would be one more object.
    desired["spec"]["management"]["autoRepair"] = json!(false);
    Ok(desired)
}

/// What is in the control plane's namespace.
async fn objects(pool: &FurtherPool<'_>, testbed: &Testbed, release: &str) -> Result<Vec<Value>> {
    let FurtherPool { cluster, name, .. } = pool;
    let infra = cluster.infra();
    let infrastructure = cluster.version(true);
    let (group, _) = infrastructure.split_once('/').context("it has no group")?;
    let values = [
        ("NAMESPACE", cluster.namespace()),
        ("POOL", name.clone()),
        ("HASH", HASH.to_owned()),
        ("TEMPLATE", template(pool)),
        ("RELEASE", release.to_owned()),
        ("VERSION", VERSION.to_owned()),
        ("CONFIG", STANDARD.encode(compressed(testbed).await?)),
        ("AMI", BOOT_IMAGE.to_owned()),
        ("CORE", cluster.version(false).to_owned()),
        ("INFRASTRUCTURE_GROUP", group.to_owned()),
        ("INFRASTRUCTURE", infrastructure.to_owned()),
        ("GENERATION", format!("{infra}-{}-{name}", cluster.name)),
        ("INFRA", infra),
    ];
    let values: Vec<_> = values.iter().map(|(key, it)| (*key, it.as_str())).collect();
    fixtures::render("adopted/aws", &values)
}

fn template(pool: &FurtherPool<'_>) -> String {
    format!("{}-{TEMPLATE_HASH}", pool.name)
}

/// The user's ConfigMap.
fn limits(files: &str) -> Result<Vec<Value>> {
    fixtures::render("adopted/limits", &[("FILES", files)])
}

/// The whole configuration of nodes, compressed.
async fn compressed(testbed: &Testbed) -> Result<Vec<u8>> {
    let encoded = [("SETUP", SETUP), ("HAPROXY", HAPROXY), ("POD", POD)];
    let encoded = encoded.map(|(key, text)| (key, STANDARD.encode(text)));
    let values = encoded.each_ref().map(|(key, text)| (*key, text.as_str()));
    let manifests = fixtures::render("adopted/configuration", &values)?;
    let mut texts = Vec::new();
    for manifest in &manifests {
        texts.push(serde_saphyr::to_string(manifest)?.trim_end().to_owned());
    }
    let path = testbed.path().join("configuration.yaml");
    std::fs::write(&path, texts.join("\n---\n"))?;
    let mut gzip = Command::new("gzip");
    let output = gzip.args(["--no-name", "--stdout"]).arg(&path).output();
    let output = output.await.context("cannot run gzip")?;
    ensure!(output.status.success(), "gzip: {}", output.status);
    Ok(output.stdout)
}
