//! Settings of operators that a hosted cluster has.

pub mod ingress;
pub mod network;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::operator_configuration::ingress::IngressOperatorSpec;
use crate::hypershift::v1beta1::operator_configuration::network::ClusterNetworkOperatorSpec;

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
}
