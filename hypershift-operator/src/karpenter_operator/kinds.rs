//! API resources of the kinds in the hosted cluster that this program reads and writes.

use api::karpenter::v1::OpenshiftEc2NodeClass;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;

/// Settings of machines, as users write them.
pub(super) fn node_class() -> ApiResource {
    ApiResource::erase::<OpenshiftEc2NodeClass>(&())
}

/// The same as Karpenter reads them.
pub(super) fn ec2_node_class() -> ApiResource {
    resource("karpenter.k8s.aws", "EC2NodeClass", "ec2nodeclasses")
}

/// Which nodes Karpenter may make.
pub(super) fn node_pool() -> ApiResource {
    resource("karpenter.sh", "NodePool", "nodepools")
}

/// A machine of Karpenter.
pub(super) fn node_claim() -> ApiResource {
    resource("karpenter.sh", "NodeClaim", "nodeclaims")
}

pub(super) fn crd() -> ApiResource {
    ApiResource::erase::<CustomResourceDefinition>(&())
}

pub(super) fn admission_policy() -> ApiResource {
    ApiResource::erase::<ValidatingAdmissionPolicy>(&())
}

pub(super) fn admission_binding() -> ApiResource {
    ApiResource::erase::<ValidatingAdmissionPolicyBinding>(&())
}

/// Settings, in the control plane.
pub(super) fn config_map() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
