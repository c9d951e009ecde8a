//! Settings of operators that a hosted cluster has.

pub mod cluster_version;
pub mod ingress;
pub mod network;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::operator_configuration::cluster_version::ClusterVersionOperatorSpec;
use crate::hypershift::v1beta1::operator_configuration::ingress::IngressOperatorSpec;
use crate::hypershift::v1beta1::operator_configuration::network::ClusterNetworkOperatorSpec;
use crate::schema::tech_preview;

/// Settings of operators that a hosted cluster has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorConfiguration {
    /// Settings of the cluster network operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_operator: Option<ClusterNetworkOperatorSpec>,
    /// Settings of the ingress operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_operator: Option<IngressOperatorSpec>,
    /// Settings of the cluster version operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub cluster_version_operator: Option<ClusterVersionOperatorSpec>,
}
