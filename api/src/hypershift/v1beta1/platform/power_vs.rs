//! A hosted cluster on IBM Power Virtual Server.

use k8s_openapi::api::core::v1::LocalObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Settings for IBM Power Virtual Server.
/// The five credentials are Secrets in the HostedCluster's namespace, each with an IBM Cloud API
/// key for one job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerVsPlatformSpec {
    /// ID of the IBM Cloud account that the cluster's resources belong to.
    #[serde(rename = "accountID")]
    #[schemars(length(max = 255))]
    pub account_id: String,
    /// Cloud resource name of the Internet Services instance that holds the cluster's DNS domain.
    /// It begins with `crn:`.
    #[serde(rename = "cisInstanceCRN")]
    #[schemars(length(max = 255), regex(pattern = "^crn:"))]
    pub cis_instance_crn: String,
    /// Name of the resource group in which resources are created.
    #[schemars(length(max = 255))]
    pub resource_group: String,
    /// Region of Power Virtual Server, for example `us-south`.
    #[schemars(length(max = 255))]
    pub region: String,
    /// Zone of Power Virtual Server within the region, for example `us-south`.
    #[schemars(length(max = 255))]
    pub zone: String,
    /// ID of the Power Virtual Server service instance (its GUID) that the nodes run in.
    #[serde(rename = "serviceInstanceID")]
    #[schemars(length(max = 255))]
    pub service_instance_id: String,
    /// Network of the service instance that the nodes are attached to.
    pub subnet: PowerVsResourceReference,
    /// The VPC of the load balancers that make the cluster's services reachable.
    pub vpc: PowerVsVpc,
    /// Credential of the cloud controller manager, which keeps nodes and load balancers up to date.
    /// It needs rights on the VPC and on the service instance.
    #[schemars(with = "schema::LocalObjectReference")]
    pub kube_cloud_controller_creds: LocalObjectReference,
    /// Credential of the Cluster API provider, which creates and deletes the machines.
    /// It needs rights on the service instance and on the network.
    #[schemars(with = "schema::LocalObjectReference")]
    pub node_pool_management_creds: LocalObjectReference,
    /// Credential of the ingress operator, which writes DNS records.
    /// It needs rights on the Internet Services instance.
    #[schemars(with = "schema::LocalObjectReference")]
    pub ingress_operator_cloud_creds: LocalObjectReference,
    /// Credential of the storage operator, which creates and attaches volumes.
    /// It needs rights on the service instance.
    #[schemars(with = "schema::LocalObjectReference")]
    pub storage_operator_cloud_creds: LocalObjectReference,
    /// Credential of the image registry operator, which keeps images in object storage.
    /// It needs rights on Cloud Object Storage.
    #[schemars(with = "schema::LocalObjectReference")]
    pub image_registry_operator_cloud_creds: LocalObjectReference,
}

/// A VPC of IBM Cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerVsVpc {
    /// Name of the VPC.
    #[schemars(length(max = 255))]
    pub name: String,
    /// Region of the VPC, for example `us-south`.
    #[schemars(length(max = 255))]
    pub region: String,
    /// Zone of the VPC for the load balancers; without a value one is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub zone: Option<String>,
    /// Subnet of the VPC for load balancers; without a value all its subnets are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub subnet: Option<String>,
}

/// A resource of Power Virtual Server, by ID or by name. Give one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerVsResourceReference {
    /// ID of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub id: Option<String>,
    /// Name of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
}
