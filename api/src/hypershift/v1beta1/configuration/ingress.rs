//! Domain and certificates of routes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{self, immutable, list_map};

/// Domain and certificates of routes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressConfiguration {
    /// Domain of the default ingress controller. It is made from the cluster's name and base
    /// domain, and cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "the domain of routes is fixed when the cluster is created; use appsDomain for a \
             domain of your own"
        ),
    )]
    pub domain: Option<String>,
    /// Domain for routes that are created without a host, in place of `domain`. Certificates and
    /// DNS records for it are up to you.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apps_domain: Option<String>,
    /// Names and certificates of routes that components of OpenShift have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 250), transform = list_map(["namespace", "name"]))]
    pub component_routes: Vec<ComponentRoute>,
    /// Strict transport security that routes must have in order to be accepted. The first policy
    /// counts that matches the domain and the namespace.
    #[serde(
        rename = "requiredHSTSPolicies",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required_hsts_policies: Vec<RequiredHstsPolicy>,
    /// Load balancer of the default ingress controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<IngressLoadBalancer>,
}

/// Name and certificate of a component's route.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentRoute {
    /// Namespace of the route, for example `openshift-console`.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: String,
    /// Name of the route as the component knows it, for example `console`.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Host name that the route is to have.
    #[schemars(regex(
        pattern = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$|^(([a-z0-9][-a-z0-9]{0,61}[a-z0-9]|[a-z0-9]{1,63})[\.]){0,}([a-z0-9][-a-z0-9]{0,61}[a-z0-9]|[a-z0-9]{1,63})$"
    ))]
    pub hostname: String,
    /// TLS Secret with a certificate for the host name. It is needed if the default certificate of
    /// routes does not hold for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_cert_key_pair_secret: Option<NameReference>,
}

/// Strict transport security that routes must have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredHstsPolicy {
    /// Hosts of routes that must comply: names, or `*.` and a domain.
    #[schemars(length(min = 1))]
    pub domain_patterns: Vec<String>,
    /// Namespaces of routes that must comply, by label. Without it they are all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub namespace_selector: Option<LabelSelector>,
    /// Time that browsers must remember to use TLS, at least and at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<HstsMaxAge>,
    /// Whether the host must have the `preload` directive, with which browsers include it in their preload lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preload_policy: Option<HstsPreloadPolicy>,
    /// Whether TLS must be required for subdomains too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_sub_domains_policy: Option<HstsIncludeSubDomainsPolicy>,
}

/// Bounds of a time, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HstsMaxAge {
    /// Shortest time that is allowed, in seconds. Without a value there is no such bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub smallest_max_age: Option<i32>,
    /// Longest time that is allowed, in seconds; 0 makes browsers forget. Without a value there is
    /// no such bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub largest_max_age: Option<i32>,
}

/// Load balancer of the default ingress controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressLoadBalancer {
    /// Settings for the cluster's cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<IngressPlatformSpec>,
}

/// Settings of a load balancer for a cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressPlatformSpec {
    /// The cloud.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<IngressPlatformType>,
    /// Settings for AWS, when `type` is `AWS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsIngressSpec>,
}

/// Load balancer for routes on AWS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsIngressSpec {
    /// The kind of load balancer.
    #[serde(rename = "type")]
    pub type_: AwsIngressLoadBalancerType,
}

/// A kind of load balancer of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsIngressLoadBalancerType {
    /// A network load balancer.
    #[serde(rename = "NLB")]
    Nlb,
    /// A classic load balancer.
    Classic,
}

/// Whether a host must have the `preload` directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HstsPreloadPolicy {
    /// It must.
    RequirePreload,
    /// It must not.
    RequireNoPreload,
    /// It may.
    NoOpinion,
}

/// Whether TLS must be required for subdomains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HstsIncludeSubDomainsPolicy {
    /// It must.
    RequireIncludeSubDomains,
    /// It must not.
    RequireNoIncludeSubDomains,
    /// It may.
    NoOpinion,
}

/// A cloud, or what is used in place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IngressPlatformType {
    /// None is named.
    #[serde(rename = "")]
    Unset,
    /// Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Machines without a cloud.
    BareMetal,
    /// Google Cloud.
    #[serde(rename = "GCP")]
    Gcp,
    /// Virtual machines by libvirt.
    Libvirt,
    /// OpenStack.
    OpenStack,
    /// No cloud.
    None,
    /// VMware vSphere.
    VSphere,
    /// oVirt.
    #[serde(rename = "oVirt")]
    Ovirt,
    /// IBM Cloud.
    #[serde(rename = "IBMCloud")]
    IbmCloud,
    /// Virtual machines by KubeVirt.
    KubeVirt,
    /// Equinix Metal.
    EquinixMetal,
    /// IBM Power Virtual Server.
    #[serde(rename = "PowerVS")]
    PowerVs,
    /// Alibaba Cloud.
    AlibabaCloud,
    /// Nutanix.
    Nutanix,
    /// A cloud that OpenShift does not know.
    External,
}
