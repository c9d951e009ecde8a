//! A hosted cluster as its user requests it, without a cloud that validates references.

use anyhow::Result;
use serde_json::Value;

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
