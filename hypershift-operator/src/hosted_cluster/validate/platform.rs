//! The platform: whether it is supported, its requirements, and its credentials.

use api::group::CapiTypes;
use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::platform::{PlatformSpec, PlatformType};
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use serde_json::json;

use super::services::{host_name, name};
use super::{Finding, Problems, auto_node, azure, kubevirt, power_vs};
use crate::facts::{AgentNamespace, Facts};
use crate::hosted_cluster::operator_image::{Unfit, operator_image};
use crate::names::AGENT_CONSUMERS;
use crate::platform::{gcp, infrastructure, openstack};

/// Whether this operator can run such a cluster.
pub(super) fn supported(facts: &Facts) -> Finding {
    let bad = |message| Finding::bad("UnsupportedHostedCluster", message);
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    if facts.capi.types() == CapiTypes::Private && facts.images.capi_proxy.is_none() {
        let message = "the cluster uses private Cluster API types, and the operator has no proxy image: run `hypershift install` with --capi-proxy-image";
        return bad(message.to_owned());
    }
    let lacks = preview(facts);
    let lacks = lacks.or_else(|| platform.provider_image(facts).err());
    let lacks = lacks.or_else(|| no_operator(facts));
    let lacks = lacks.or_else(|| missing_crds(facts));
    let lacks = lacks.or_else(|| azure::unsupported(facts));
    let lacks = lacks.or_else(|| auto_node::unsupported(facts));
    let lacks = lacks.or_else(|| gcp::infrastructure::unsupported(facts));
    match lacks.or_else(|| private_endpoints(facts)) {
        None => Finding::Good,
        Some(problem) => bad(problem),
    }
}

/// Whether the platform is part of the technology preview, and the operator is not.
fn preview(facts: &Facts) -> Option<String> {
    let platform = facts.cluster.spec.platform.type_;
    let needed = platform.features();
    let name = json!(platform);
    let name = name.as_str().unwrap_or_default();
    (!facts.cloud.features.includes(needed)).then(|| {
        format!(
            "platform {name} is part of the feature set {needed}, and the operator has {}: run `hypershift install` \
             with --tech-preview-no-upgrade",
            facts.cloud.features
        )
    })
}

/// Why the control plane is not supported. An unreadable release has a condition of its own.
fn no_operator(facts: &Facts) -> Option<String> {
    match operator_image(facts) {
        Ok(_) | Err(Unfit::NoRelease) => None,
        Err(unfit) => Some(unfit.to_string()),
    }
}

/// Which CRDs are missing. Without them the Cluster API controllers would be started only to fail.
fn missing_crds(facts: &Facts) -> Option<String> {
    if facts.missing_crds.is_empty() {
        return None;
    }
    let what_to_do = match facts.capi.types() {
        CapiTypes::Private => {
            "run `hypershift install` with --private-capi-types and, if it has --limit-crd-install, with this platform in it"
        }
        CapiTypes::Standard => {
            "install them with the Cluster API of the management cluster; `hypershift install` installs private ones only"
        }
    };
    let missing = facts.missing_crds.join(", ");
    Some(format!(
        "the management cluster does not have the CustomResourceDefinitions {missing}: {what_to_do}"
    ))
}

/// Private connectivity on AWS needs VPC endpoint services, in the region of the cluster's network. A control plane that was
/// private before is not held up: its condition `AWSEndpointServiceAvailable` reports the same.
fn private_endpoints(facts: &Facts) -> Option<String> {
    let access = private_access(facts)?;
    if was_private(facts) {
        return None;
    }
    let region = &facts.cluster.spec.platform.aws.as_ref()?.region;
    match facts.cloud.aws_region.as_ref() {
        Some(own) if own == region => None,
        Some(own) => Some(format!(
            "spec.platform.aws.endpointAccess is {access}, and spec.platform.aws.region is {region}: this operator manages \
             VPC endpoint services in {own} only, which other regions do not reach. Create the cluster in {own}, or with \
             endpointAccess Public"
        )),
        None => Some(format!(
            "spec.platform.aws.endpointAccess is {access}, and this operator manages no VPC endpoint services: nodes would \
             not reach the control plane. Set it to Public, or have the administrator of the management cluster run the \
             operator with --aws-region and --aws-shared-credentials-file"
        )),
    }
}

/// How the cluster is reached privately, if it is.
fn private_access(facts: &Facts) -> Option<&'static str> {
    match facts.cluster.spec.platform.aws.as_ref()?.endpoint_access {
        AwsEndpointAccess::Public => None,
        AwsEndpointAccess::PublicAndPrivate => Some("PublicAndPrivate"),
        AwsEndpointAccess::Private => Some("Private"),
    }
}

/// Whether nodes reach the control plane by private links.
pub(crate) fn has_private_links(facts: &Facts) -> bool {
    let platform = &facts.cluster.spec.platform;
    match platform.type_ {
        PlatformType::Aws => private_access(facts).is_some(),
        PlatformType::Azure => platform.azure.as_ref().is_some_and(azure::has_private_link),
        PlatformType::Gcp => true,
        PlatformType::Agent
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => false,
    }
}

fn was_private(facts: &Facts) -> bool {
    let control_plane = facts.control_plane.as_ref();
    let aws = control_plane.and_then(|it| it.spec.platform.aws.as_ref());
    aws.is_some_and(|it| it.endpoint_access != AwsEndpointAccess::Public)
}

/// Whether the platform's credentials are complete.
pub(super) fn credentials(facts: &Facts) -> Finding {
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    // Where none are needed, none are missing.
    let problems = platform.credentials(facts).unwrap_or_default();
    if problems.is_empty() {
        return Finding::Good;
    }
    Finding::bad("PlatformCredentialsNotFound", problems.join("; "))
}

/// Requirements of the platform for the configuration.
pub(super) fn problems(facts: &Facts) -> Problems {
    let spec = &facts.cluster.spec.platform;
    let mut problems = section(spec);
    problems.extend(auto_node::problems(facts));
    match spec.type_ {
        PlatformType::Aws => problems.extend(aws(facts)),
        PlatformType::Agent => problems.extend(agent(facts)),
        PlatformType::KubeVirt => problems.extend(kubevirt::problems(facts)),
        PlatformType::PowerVs => problems.extend(power_vs::problems(facts)),
        PlatformType::Azure => problems.extend(azure::problems(facts)),
        PlatformType::OpenStack => problems.extend(openstack::infrastructure::problems(facts)),
        PlatformType::Gcp | PlatformType::IbmCloud | PlatformType::None => {}
    }
    problems
}

/// The field of the platform type is set.
fn section(spec: &PlatformSpec) -> Problems {
    let (field, is_there) = match spec.type_ {
        PlatformType::Aws => ("aws", spec.aws.is_some()),
        PlatformType::Agent => ("agent", spec.agent.is_some()),
        PlatformType::Azure => ("azure", spec.azure.is_some()),
        PlatformType::Gcp => ("gcp", spec.gcp.is_some()),
        PlatformType::KubeVirt => return Problems::new(),
        PlatformType::OpenStack => ("openstack", spec.openstack.is_some()),
        PlatformType::PowerVs => ("powervs", spec.powervs.is_some()),
        PlatformType::IbmCloud | PlatformType::None => return Problems::new(),
    };
    if is_there {
        return Problems::new();
    }
    vec![format!("spec.platform.{field} is required: set it")]
}

fn aws(facts: &Facts) -> Problems {
    let spec = &facts.cluster.spec;
    let Some(aws) = &spec.platform.aws else {
        return Problems::new();
    };
    let private = aws.endpoint_access == AwsEndpointAccess::Private;
    spec.services
        .iter()
        .filter_map(|it| {
            let way = it.service_publishing_strategy.type_;
            let service = name(it.service);
            match (it.service, way) {
                (ServiceType::ApiServer, PublishingStrategyType::Route)
                    if aws.endpoint_access == AwsEndpointAccess::Public
                        && host_name(&it.service_publishing_strategy).is_none() =>
                {
                    Some(format!(
                        "spec.services publishes {service} by a Route without hostname, which public clusters on AWS require: set it"
                    ))
                }
                (ServiceType::Oidc | ServiceType::OvnSbDb, _)
                | (_, PublishingStrategyType::Route)
                | (ServiceType::ApiServer, PublishingStrategyType::LoadBalancer) => None,
                (ServiceType::ApiServer, _) if private => Some(format!(
                    "spec.services: the {service} of a private cluster on AWS is published by Route or LoadBalancer"
                )),
                (ServiceType::ApiServer, PublishingStrategyType::NodePort) => None,
                _ => Some(format!("spec.services: on AWS {service} is published by Route")),
            }
        })
        .collect()
}

fn agent(facts: &Facts) -> Problems {
    let agent = facts.cluster.spec.platform.agent.as_ref();
    let Some((agent, consent)) = agent.zip(facts.agent_namespace) else {
        return Problems::new();
    };
    let (field, namespace) = ("spec.platform.agent.agentNamespace", &agent.agent_namespace);
    match consent {
        AgentNamespace::Allowed | AgentNamespace::Grandfathered => Problems::new(),
        AgentNamespace::Missing => vec![format!(
            "{field}: Namespace {namespace} does not exist: create it, or name another"
        )],
        AgentNamespace::Refused => {
            let home = &facts.id.namespace;
            vec![format!(
                "{field}: Namespace {namespace} does not allow HostedClusters of namespace {home} to use its Agents: \
                 have its owner add {home} to the Namespace's annotation {AGENT_CONSUMERS} (a list separated by \
                 commas), or create the HostedCluster in {namespace}"
            )]
        }
    }
}
