//! What an AWSEndpointService means in AWS: whose endpoint services are, who may connect, which connections go. Pure.
//!
//! The author of a HostedCluster chooses the image of the program that writes AWSEndpointServices, with their status. Names in
//! them prove nothing. An endpoint service is the cluster's in two cases: it has the tag with the UID of the AWSEndpointService,
//! which only this operator writes; or its load balancer is the one of the Service in the control plane's namespace, by the
//! status of that Service, which only the management cluster writes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::AwsEndpointServiceStatus;
use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use support::aws;
use support::ec2::Tags;

use super::cloud::{Connection, EndpointService, LoadBalancer};

/// The tag with the UID of the AWSEndpointService that an endpoint service was created for.
pub(super) const OWNER: &str = "hypershift.openshift.io/aws-endpoint-service-uid";
/// Where the private router was published in early versions of HyperShift: `router-<namespace>`.
const LEGACY: &str = "router-";
pub(super) const ROUTER: &str = "private-router";
/// The Services that are reached by private links.
const SERVICES: [&str; 2] = ["kube-apiserver-private", ROUTER];
/// The most subnets of an AWSEndpointService.
const MOST_SUBNETS: usize = 10;

/// An AWSEndpointService, as far as it can be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uid: String,
    /// The endpoint service that the status names. It may be another cluster's.
    pub(super) recorded: Option<String>,
    /// The load balancer that the specification names, and the name under which the Service says that it is reached.
    pub(super) balancer: Option<(String, String)>,
    /// The load balancer of the AWSEndpointService that replaces this one. Its endpoint service stays.
    pub(super) successor: Option<(String, String)>,
}

/// What is to be in AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) target: Target,
    pub(super) tags: Tags,
    pub(super) principals: BTreeSet<String>,
}

/// What becomes of the connections of an endpoint service that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Connections {
    /// These are rejected.
    Reject(Vec<String>),
    /// They go by themselves.
    Wait,
}

/// Why an endpoint service is not as it is to be.
#[derive(Debug)]
pub(super) enum Problem {
    /// Something is not there yet, or an input is wrong: the message says so.
    Input(String),
    Aws(aws::Error),
}

// === impl Problem ===

impl From<aws::Error> for Problem {
    fn from(error: aws::Error) -> Self {
        Self::Aws(error)
    }
}

impl Problem {
    /// For the author of the cluster: what only administrators may see is in the log.
    pub(super) fn message(&self) -> String {
        const TO_ADMINISTRATORS: &str = "the administrator of the management cluster finds the cause in the log of the \
             operator, and checks --aws-region and --aws-shared-credentials-file";
        match self {
            Self::Input(message) => message.clone(),
            Self::Aws(error) => match error.code() {
                "" => format!(
                    "failed to reconcile the VPC endpoint service: AWS could not be used. It is tried again; {TO_ADMINISTRATORS}"
                ),
                "InvalidPrincipal" => "failed to reconcile the VPC endpoint service: AWS does not know one of the principals \
                     that may connect: correct spec.platform.aws.additionalAllowedPrincipals or \
                     spec.platform.aws.rolesRef.controlPlaneOperatorARN of the HostedCluster"
                    .to_owned(),
                code => format!(
                    "failed to reconcile the VPC endpoint service: AWS refuses it ({code}): {TO_ADMINISTRATORS}"
                ),
            },
        }
    }
}

/// The Service whose load balancer an AWSEndpointService of this name is for.
pub(super) fn service_of<'a>(name: &'a str, namespace: &str) -> Option<&'a str> {
    if is_legacy(name, namespace) {
        return Some(ROUTER);
    }
    SERVICES.contains(&name).then_some(name)
}

/// Whether an AWSEndpointService is the one of the router in early versions of HyperShift.
pub(super) fn is_legacy(name: &str, namespace: &str) -> bool {
    name.strip_prefix(LEGACY) == Some(namespace)
}

/// Whether nodes can use an AWSEndpointService: this operator has made the endpoint service, and the control-plane-operator
/// the endpoint and its names.
pub(super) fn is_available(status: Option<&AwsEndpointServiceStatus>) -> bool {
    let is_true = |condition: ClusterCondition| {
        let mut all = status.iter().flat_map(|it| &it.conditions);
        all.any(|it| it.type_ == condition.as_str() && it.status == "True")
    };
    is_true(ClusterCondition::AwsEndpointServiceAvailable)
        && is_true(ClusterCondition::AwsEndpointAvailable)
}

/// The load balancer with this name, if the Service is reached under its host: name and host are the arguments.
pub(super) fn proven<'a>(
    expected: Option<&(String, String)>,
    found: Option<&'a LoadBalancer>,
) -> Result<&'a LoadBalancer, String> {
    let Some((name, host)) = expected else {
        return Err("waiting for the Service to have a load balancer".to_owned());
    };
    match found {
        None => Err(format!(
            "waiting for load balancer {name}, which AWS does not have in the region of the management cluster"
        )),
        Some(found) if !found.host.eq_ignore_ascii_case(host) => Err(format!(
            "load balancer {name} is not the one of the Service, which is reached at {host}: waiting for the \
             control-plane-operator to correct spec.networkLoadBalancerName"
        )),
        Some(found) => Ok(found),
    }
}

/// Whether an endpoint service is the one of an AWSEndpointService, for whose load balancer there may be a proof.
pub(super) fn is_own(found: &EndpointService, target: &Target, balancer: Option<&str>) -> bool {
    let is_tagged = found.tags.get(OWNER) == Some(&target.uid) && !target.uid.is_empty();
    is_tagged || balancer.is_some_and(|arn| found.balancers == [arn])
}

/// The tags of an endpoint service: the user's do not replace those that say whose it is.
pub(super) fn tags<'a>(
    users: impl Iterator<Item = (&'a str, &'a str)>,
    infrastructure: Option<&str>,
    uid: &str,
) -> Tags {
    let mut tags: Tags = users
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let cluster = infrastructure.map(|name| format!("kubernetes.io/cluster/{name}"));
    tags.extend(cluster.map(|key| (key, "owned".to_owned())));
    tags.insert(OWNER.to_owned(), uid.to_owned());
    tags
}

/// Who may connect: the role of the control-plane-operator, and whom the user allows.
pub(super) fn principals(aws: &AwsPlatformSpec) -> BTreeSet<String> {
    let allowed = aws.additional_allowed_principals.iter().cloned();
    let role = without_path(&aws.roles_ref.control_plane_operator_arn);
    allowed.chain([role]).filter(|it| !it.is_empty()).collect()
}

/// An ARN of a role as a principal, which has no path.
fn without_path(arn: &str) -> String {
    match arn.split_once(":role/") {
        Some((account, path)) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            format!("{account}:role/{name}")
        }
        None => arn.to_owned(),
    }
}

/// Who is added, and who is removed.
pub(super) fn difference(
    desired: &BTreeSet<String>,
    live: &BTreeSet<String>,
) -> (Vec<String>, Vec<String>) {
    let added = desired.difference(live).cloned().collect();
    (added, live.difference(desired).cloned().collect())
}

/// What becomes of connections that hold up a deletion.
pub(super) fn connections(found: &[Connection]) -> Connections {
    const REJECTED: [&str; 3] = ["pendingacceptance", "pending", "available"];
    let open = found
        .iter()
        .filter(|it| REJECTED.contains(&it.state.to_ascii_lowercase().as_str()));
    let open: Vec<_> = open.map(|it| it.endpoint.clone()).collect();
    if open.is_empty() {
        return Connections::Wait;
    }
    Connections::Reject(open)
}

/// The subnets of an AWSEndpointService: those of NodePools and of Karpenter, sorted.
pub(super) fn subnets(all: impl Iterator<Item = String>) -> Result<Vec<String>, Problem> {
    let all: BTreeSet<_> = all.filter(|it| !it.is_empty()).collect();
    if all.len() > MOST_SUBNETS {
        return Err(Problem::Input(format!(
            "the NodePools of the HostedCluster are in {} subnets, and an AWSEndpointService has {MOST_SUBNETS} at most: put \
             NodePools of one availability zone into one subnet",
            all.len()
        )));
    }
    Ok(all.into_iter().collect())
}

/// The subnets in a ConfigMap of Karpenter: a list in JSON.
pub(super) fn karpenter_subnets(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

/// When it is tried again after a problem: 15 s and a little more, so that not all come at once.
pub(super) fn retry(uid: &str) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    Duration::from_secs(16 + hasher.finish() % 10)
}
