//! Nodes that a provisioner makes as pods need them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{rule, with};

/// Nodes that are made as pods need them, without node pools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoNode {
    /// What makes the nodes.
    pub provisioner_config: ProvisionerConfig,
}

/// What makes nodes as pods need them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.name == 'Karpenter') == has(self.karpenter)",
        "karpenter is required with name Karpenter; add it"
    ),
)]
pub struct ProvisionerConfig {
    /// The program: `Karpenter` is the only one.
    pub name: Provisioner,
    /// Settings for Karpenter, when `name` is `Karpenter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub karpenter: Option<KarpenterConfig>,
}

/// Settings for Karpenter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.platform == 'AWS') == has(self.aws)",
        "aws is required with platform AWS; add it"
    ),
)]
pub struct KarpenterConfig {
    /// The cloud that nodes are made on: `AWS` is the only one.
    #[schemars(transform = with("maxLength", 100))]
    pub platform: KarpenterPlatform,
    /// Settings for AWS, when `platform` is `AWS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<KarpenterAwsConfig>,
}

/// Settings for Karpenter on AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarpenterAwsConfig {
    /// ARN of the IAM role that Karpenter assumes to run and end instances.
    /// It must trust the cluster's OIDC issuer, and needs the rights that Karpenter documents.
    #[serde(rename = "roleARN")]
    #[schemars(
        length(max = 2048),
        transform = rule(
            "self.matches('^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/.+$')",
            "roleARN must be the ARN of an IAM role, such as \
             arn:aws:iam::123456789012:role/karpenter"
        ),
    )]
    pub role_arn: String,
}

/// A program that makes nodes as pods need them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Provisioner {
    /// Karpenter.
    #[default]
    Karpenter,
}

/// A cloud that Karpenter makes nodes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KarpenterPlatform {
    /// Amazon Web Services.
    #[default]
    #[serde(rename = "AWS")]
    Aws,
}

/// What Karpenter has made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct AutoNodeStatus {
    /// Nodes of it that are part of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_count: Option<i32>,
    /// Nodes that it has requested, whether they exist yet or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_claim_count: Option<i32>,
    /// Virtual CPUs of all these nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub vcpus: Option<i32>,
}
