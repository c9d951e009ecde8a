//! A hosted cluster as its user requests it, without a cloud that validates references.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::fixtures;

/// A cluster on AWS with a pool of one node, both of a release, and the pull secret for the registry of that.
pub fn desired(name: &str, release: &str) -> Result<Vec<Value>> {
    let infra = format!("{name}-x7k2p");
    let registry = release.split('/').next().unwrap_or_default();
    let values = [
        ("NAME", name),
        ("INFRA", &infra),
        ("RELEASE", release),
        ("REGISTRY", registry),
        ("MACHINES", "10.0.0.0/16"),
        ("VPC", "vpc-1"),
        ("ZONE", "us-east-1a"),
        ("SUBNET", "subnet-1"),
        ("SECURITY_GROUP", "sg-1"),
    ];
    fixtures::render("hosted_cluster/aws", &values)
}

/// The key of a cluster that encrypts Secrets: 32 bytes in base64, the same for each cluster.
const ENCRYPTION_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// The same, with everything switched on that has components of its own on AWS: forwarding of metrics, encryption of
/// Secrets, the handler of interruptions, and catalogs in the control plane.
pub fn desired_with_all(name: &str, release: &str) -> Result<Vec<Value>> {
    let mut objects = desired(name, release)?;
    let mut clusters = objects.iter_mut();
    let cluster = clusters.find(|object| object["kind"] == "HostedCluster");
    let cluster = cluster.context("the fixture has no HostedCluster")?;
    let namespace = cluster["metadata"]["namespace"].clone();
    for catalog in ["certified", "community", "redhat"] {
        let key = format!("hypershift.openshift.io/{catalog}-operators-catalog-image");
        let image = format!("images.example.com/{catalog}-operator-index@{DIGEST}");
        cluster["metadata"]["annotations"][key] = json!(image);
    }
    let spec = &mut cluster["spec"];
    spec["olmCatalogPlacement"] = json!("management");
    spec["monitoring"] = json!({ "metricsForwarding": { "mode": "Forward" } });
    let key = format!("{name}-encryption-key");
    spec["secretEncryption"] =
        json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": key } } });
    spec["platform"]["aws"]["terminationHandlerQueueURL"] =
        json!("https://sqs.us-east-1.amazonaws.com/123456789012/queue");
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": key },
        "data": { "key": ENCRYPTION_KEY },
    });
    // Before the cluster that refers to it.
    objects.insert(1, secret);
    Ok(objects)
}
