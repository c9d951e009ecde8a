//! The platform: whether there is one, what it wants of a cluster, and its credentials.

use api::group::Side;
use api::hypershift::v1beta1::platform::aws::{AwsEndpointAccess, AwsPlatformSpec};
use api::hypershift::v1beta1::platform::{PlatformSpec, PlatformType};
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};

use super::services::{host_name, name};
use super::{Problems, Verdict, kubevirt};
use crate::config::Cloud;
use crate::hosted_cluster::facts::Facts;
use crate::hosted_cluster::operator_image::{Unfit, operator_image};
use crate::platform::infrastructure;

/// Whether this operator can run such a cluster.
pub(super) fn supported(facts: &Facts) -> Verdict {
    let bad = |message| Verdict::bad("UnsupportedHostedCluster", message);
    let platform = match infrastructure(facts.cluster.spec.platform.type_) {
        Ok(platform) => platform,
        Err(unsupported) => return bad(unsupported.to_string()),
    };
    if facts.capi.side() == Side::Private && facts.images.capi_proxy.is_none() {
        let message = "the cluster is on private Cluster API types, and this operator has no image of the proxy: \
                       install it with --capi-proxy-image";
        return bad(message.to_owned());
    }
    let lacks = platform.provider_image(facts).err();
    let lacks = lacks.or_else(|| no_operator(facts));
    match lacks.or_else(|| private_endpoints(facts)) {
        None => Verdict::Good,
        Some(problem) => bad(problem),
    }
}

/// Why nobody can run the control plane. That the release cannot be read is told as that.
fn no_operator(facts: &Facts) -> Option<String> {
    match operator_image(facts) {
        Ok(_) | Err(Unfit::NoRelease) => None,
        Err(unfit) => Some(unfit.to_string()),
    }
}

/// The endpoints of a private cluster on AWS are made by the operator itself, in the region that it works in.
fn private_endpoints(facts: &Facts) -> Option<String> {
    let aws = facts.cluster.spec.platform.aws.as_ref()?;
    let AwsPlatformSpec {
        endpoint_access,
        region,
        ..
    } = aws;
    let access = match endpoint_access {
        AwsEndpointAccess::Public => return None,
        AwsEndpointAccess::PublicAndPrivate => "PublicAndPrivate",
        AwsEndpointAccess::Private => "Private",
    };
    let Cloud {
        aws_region,
        aws_credentials,
    } = &facts.cloud;
    let given = format!("spec.platform.aws.endpointAccess is {access}");
    match aws_region {
        None => Some(format!(
            "{given}, and this operator works in no region of AWS: start it with --aws-region {region} (AWS_REGION)"
        )),
        Some(own) if own != region => Some(format!(
            "{given} in spec.platform.aws.region {region}, and this operator works in {own} (AWS_REGION): create the \
             cluster in {own}, or on a management cluster whose operator works in {region}"
        )),
        Some(_) if aws_credentials.is_none() => Some(format!(
            "{given}, and this operator has no credentials on AWS: start it with --aws-shared-credentials-file \
             (AWS_SHARED_CREDENTIALS_FILE)"
        )),
        Some(_) => None,
    }
}

/// Whether the platform's credentials are there.
pub(super) fn credentials(facts: &Facts) -> Option<Verdict> {
    let platform = infrastructure(facts.cluster.spec.platform.type_).ok()?;
    let problems = platform.credentials(facts)?;
    if problems.is_empty() {
        return Some(Verdict::Good);
    }
    Some(Verdict::bad(
        "PlatformCredentialsNotFound",
        problems.join("; "),
    ))
}

/// What the platform wants of the configuration.
pub(super) fn problems(facts: &Facts) -> Problems {
    let spec = &facts.cluster.spec.platform;
    let mut problems = section(spec);
    match spec.type_ {
        PlatformType::Aws => problems.extend(aws(facts)),
        PlatformType::Agent => problems.extend(agent(facts)),
        PlatformType::KubeVirt => problems.extend(kubevirt::problems(facts)),
        PlatformType::Azure
        | PlatformType::IbmCloud
        | PlatformType::PowerVs
        | PlatformType::None => {}
    }
    problems
}

/// The member that belongs to the type is there.
fn section(spec: &PlatformSpec) -> Problems {
    let (field, is_there) = match spec.type_ {
        PlatformType::Aws => ("aws", spec.aws.is_some()),
        PlatformType::Agent => ("agent", spec.agent.is_some()),
        PlatformType::Azure => ("azure", spec.azure.is_some()),
        PlatformType::KubeVirt => return Problems::new(),
        PlatformType::PowerVs => ("powervs", spec.powervs.is_some()),
        PlatformType::IbmCloud | PlatformType::None => return Problems::new(),
    };
    if is_there {
        return Problems::new();
    }
    vec![format!(
        "spec.platform has its type and nothing else: fill in spec.platform.{field}"
    )]
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
                        "spec.services publishes {service} by a Route without hostname: on AWS a public one needs it"
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
    let namespace = facts.cluster.spec.platform.agent.as_ref();
    let namespace = namespace
        .map(|it| it.agent_namespace.as_str())
        .unwrap_or_default();
    if facts.agent_namespace != Some(false) {
        return Problems::new();
    }
    vec![format!(
        "spec.platform.agent.agentNamespace is {namespace}, which is not there: create it, or name another"
    )]
}
