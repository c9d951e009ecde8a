//! The part of Azure: reads, asks Azure, and says what has become of it.

use std::sync::Arc;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use api::hypershift::v1beta1::{
    AzurePrivateLinkService, AzurePrivateLinkServiceStatus, HostedCluster,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Map, Value, json};
use support::azure_resources::{is_id, is_name, is_same, name_of};
use support::conditions::{with, with_summary};

use super::client::{Client, Clients};
use super::plan::{self, Desired, SERVICES, Target};
use super::service::{Azure, CREATION, LOOKUP, Made, Progress, Removal, Seen};
use crate::cache::AZURE_LINKS;
use crate::config::AzurePrivateLink;
use crate::context::Context;
use crate::error::Error;
use crate::private_link::control::{self, Kind, POLL_INTERVAL, RESYNC, Step};
use crate::private_link::inputs::{Owner, balancer, typed};
use crate::private_link::problem::{Problem, failed};

/// The kind.
pub(in crate::private_link) static KIND: Kind = Kind {
    controller: "azureprivatelinkservice",
    name: "AzurePrivateLinkService",
    resource: || ApiResource::erase::<AzurePrivateLinkService>(&()),
    watch: AZURE_LINKS,
    // Two of them would choose the same range for their subnets.
    concurrency: 1,
    finalizer: "hypershift.openshift.io/azure-pls-cleanup",
    recorded: &[],
};
/// The finalizer of the control-plane-operator.
pub(in crate::private_link) const CONTROL_PLANE_FINALIZER: &str =
    "hypershift.openshift.io/azure-private-link-service";
/// Annotation with the ID of the subnet that is created for the cluster.
pub(super) const SUBNET: &str = "hypershift.openshift.io/azure-pls-nat-subnet";
/// The reason of a failure that is not one of a step, and that of success.
const ERROR: &str = "AzureError";
const SUCCESS: &str = "AzureSuccess";
/// What is made, and what to do if it is not, in messages.
const WHAT: &str = "private link service";
const ADVICE: &str = "The administrator of the management cluster finds the cause in the log of the operator, and checks \
                      --azure-resource-group, --azure-subscription-id and the permissions of its credentials there";
/// The conditions of which `AzurePrivateLinkServiceAvailable` is the summary.
const PARTS: [ClusterCondition; 4] = [
    ClusterCondition::AzureInternalLoadBalancerAvailable,
    ClusterCondition::AzurePlsCreated,
    ClusterCondition::AzurePrivateEndpointAvailable,
    ClusterCondition::AzurePrivateDnsAvailable,
];

/// Azure.
pub(in crate::private_link) struct Provider {
    ctx: Arc<Context>,
    clients: Clients,
}

// === impl Provider ===

impl control::Provider for Provider {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    async fn ensure(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        let name = found.name_any();
        let spec = owner
            .cluster
            .as_ref()
            .and_then(|it| Some((it, it.spec.platform.azure.as_ref()?)));
        let Some((cluster, azure)) = spec.filter(|_| SERVICES.contains(&name.as_str())) else {
            return Ok(Step::Ignore);
        };
        if let Some(change) = control::change(found, owner, KIND.finalizer, &Map::new()) {
            return Ok(Step::Change(change));
        }
        let link: AzurePrivateLinkService = typed(found, KIND.name)?;
        let target = self.target(&link, owner).await?;
        let claimed = link.spec.load_balancer_ip.as_deref();
        let desired = desired(cluster, azure, &name, claimed, target);
        let mut made = Made::default();
        let result = self.try_ensure(desired, &mut made).await;
        Ok(match result {
            Ok(Progress::Record(id)) => Step::Change(json!({
                "metadata": { "annotations": { SUBNET: id } },
            })),
            Ok(Progress::Done) => report(found, &made, &Ok(())),
            Err(problem) => report(found, &made, &Err(problem)),
        })
    }

    async fn remove(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        let link: AzurePrivateLinkService = typed(found, KIND.name)?;
        let target = self.target(&link, owner).await?;
        Ok(match self.try_remove(&target).await {
            Ok(Removal::Done) => Step::Removed,
            Ok(Removal::Waiting) => Step::Report(None, POLL_INTERVAL),
            Err(problem) => report(found, &Made::default(), &Err(problem)),
        })
    }
}

impl Provider {
    pub(in crate::private_link) fn new(ctx: &Arc<Context>) -> Self {
        Self {
            ctx: Arc::clone(ctx),
            clients: Clients::default(),
        }
    }

    async fn target(&self, link: &AzurePrivateLinkService, owner: &Owner) -> Result<Target, Error> {
        let (namespace, name) = (link.namespace().unwrap_or_default(), link.name_any());
        let balancer = if SERVICES.contains(&name.as_str()) {
            balancer(&namespace, &name, &self.ctx).await?
        } else {
            None
        };
        Ok(Target {
            uid: link.uid().unwrap_or_default(),
            balancer,
            subnet: recorded(link, owner.cluster.as_ref()),
        })
    }

    async fn try_ensure(
        &self,
        desired: Result<Desired, Problem>,
        made: &mut Made,
    ) -> Result<Progress, Problem> {
        let desired = desired?;
        let (settings, client) = self.client().await?;
        let azure = Azure::new(&settings.group, &*client);
        azure.ensure(&desired, made).await
    }

    async fn try_remove(&self, target: &Target) -> Result<Removal, Problem> {
        let (settings, client) = self.client().await?;
        Azure::new(&settings.group, &*client).remove(target).await
    }

    async fn client(&self) -> Result<(&AzurePrivateLink, Arc<Client>), Problem> {
        let Some(settings) = &self.ctx.cloud.azure_private_link else {
            let message = "this operator manages no private link services: the administrator of the management cluster runs \
                           it with --azure-resource-group and --azure-subscription-id";
            return Err(Problem::input(ERROR, message));
        };
        let client = self.clients.get(settings).await.map_err(failed(ERROR))?;
        Ok((settings, client))
    }
}

/// The subnet that was created for the cluster. The control plane can write the annotation, so its name counts as well: without
/// the HostedCluster, that it is one of those that this operator creates. What others use is not deleted in any case.
pub(super) fn recorded(
    link: &AzurePrivateLinkService,
    cluster: Option<&HostedCluster>,
) -> Option<String> {
    let id = link.annotations().get(SUBNET)?;
    let name = name_of(id);
    let is_own = match cluster.map(|it| it.spec.infra_id.as_deref()) {
        Some(infra_id) => {
            infra_id.is_some_and(|it| name.eq_ignore_ascii_case(&plan::subnet_name(it)))
        }
        None => plan::is_created(name),
    };
    (is_own && is_id(id)).then(|| id.clone())
}

/// What is to be in Azure. Pure.
pub(super) fn desired(
    cluster: &HostedCluster,
    azure: &AzurePlatformSpec,
    name: &str,
    claimed: Option<&str>,
    target: Target,
) -> Result<Desired, Problem> {
    let id = |field: &str, value: Option<&String>| match value {
        Some(value) if is_name(value) => Ok(value.clone()),
        Some(_) => {
            let message = format!("{field} has characters that no name in Azure can have");
            Err(Problem::input(CREATION, message))
        }
        None => Err(Problem::input(CREATION, format!("waiting for {field}"))),
    };
    let infra_id = id("spec.infraID", cluster.spec.infra_id.as_ref())?;
    let cluster_id = id("spec.clusterID", cluster.spec.cluster_id.as_ref())?;
    let private_link = azure
        .private
        .as_ref()
        .and_then(|it| it.private_link.as_ref());
    let given_subnet = private_link.and_then(|it| it.nat_subnet_id.clone());
    if given_subnet.as_ref().is_some_and(|it| !is_id(it)) {
        let message = "spec.platform.azure.private.privateLink.natSubnetID is not the ID of a subnet: correct it";
        return Err(Problem::input(CREATION, message));
    }
    if let Some(own) = &target.balancer
        && claimed != Some(own.address.as_str())
    {
        let message = format!(
            "spec.loadBalancerIP is not the address of Service {name}, which is {}: waiting for the control-plane-operator to \
             correct it",
            own.address
        );
        return Err(Problem::input(LOOKUP, message));
    }
    let further = private_link
        .into_iter()
        .flat_map(|it| &it.additional_allowed_subscriptions);
    let subscriptions = further.map(|it| &it.0).chain([&azure.subscription_id]);
    Ok(Desired {
        name: plan::link_name(name, &cluster_id),
        cluster: cluster.name_any(),
        infra_id,
        subscriptions: subscriptions.map(|it| it.to_ascii_lowercase()).collect(),
        given_subnet,
        target,
    })
}

/// What is written to the status, if it is another one, and when Azure is asked again.
fn report(found: &DynamicObject, made: &Made, result: &Result<(), Problem>) -> Step {
    if let Err(problem) = result {
        problem.log();
    }
    let before = &found.data["status"];
    let before: AzurePrivateLinkServiceStatus =
        serde_json::from_value(before.clone()).unwrap_or_default();
    let after = status(
        &before,
        made,
        result,
        found.metadata.generation,
        Timestamp::now(),
    );
    let again = match result {
        Ok(()) => RESYNC,
        Err(problem) => problem.pause(),
    };
    Step::Report(patch(&before, &after), again)
}

/// The change of the status, if there is one. Fields of the control-plane-operator are left out.
pub(super) fn patch(
    before: &AzurePrivateLinkServiceStatus,
    after: &AzurePrivateLinkServiceStatus,
) -> Option<Value> {
    (after != before).then(|| {
        json!({ "status": {
            "internalLoadBalancerID": after.internal_load_balancer_id,
            "privateLinkServiceID": after.private_link_service_id,
            "privateLinkServiceAlias": after.private_link_service_alias,
            "conditions": after.conditions,
        }})
    })
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &AzurePrivateLinkServiceStatus,
    made: &Made,
    result: &Result<(), Problem>,
    generation: Option<i64>,
    now: Timestamp,
) -> AzurePrivateLinkServiceStatus {
    let mut after = before.clone();
    match &made.balancer {
        Seen::Unknown => {}
        Seen::Absent => after.internal_load_balancer_id = None,
        Seen::There(id) => update(&mut after.internal_load_balancer_id, id),
    }
    match &made.service {
        Seen::Unknown => {}
        Seen::Absent => {
            after.private_link_service_id = None;
            after.private_link_service_alias = None;
        }
        Seen::There(id) => {
            update(&mut after.private_link_service_id, id);
            after.private_link_service_alias =
                Some(made.alias.clone()).filter(|alias| !alias.is_empty());
        }
    }
    let condition =
        |about: ClusterCondition, status: &str, reason: &str, message: String| Condition {
            type_: about.as_str().to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
            last_transition_time: Time(now),
        };
    let good = |about, message: &str| condition(about, "True", SUCCESS, message.to_owned());
    let [balancer, service, ..] = PARTS;
    let problem = result.as_ref().err();
    let bad = problem.map(|it| (it, it.reason == LOOKUP || it.reason == ERROR));
    let mut all = Vec::new();
    match bad {
        Some((problem, true)) => {
            let message = problem.message(WHAT, ADVICE);
            all.push(condition(balancer, "False", problem.reason, message));
        }
        Some((problem, false)) => {
            if matches!(made.balancer, Seen::There(_)) {
                all.push(good(balancer, "the internal load balancer is found"));
            }
            let message = problem.message(WHAT, ADVICE);
            all.push(condition(service, "False", problem.reason, message));
        }
        None => {
            all.push(good(balancer, "the internal load balancer is found"));
            all.push(good(service, "the private link service is available"));
        }
    }
    for condition in all {
        after.conditions = with(&after.conditions, condition);
    }
    let about = ClusterCondition::AzurePrivateLinkServiceAvailable;
    let summary = good(about, "the private link is available");
    after.conditions = with_summary(
        &after.conditions,
        &PARTS.map(ClusterCondition::as_str),
        summary,
    );
    after
}

/// Azure does not always write an ID in the same case.
fn update(field: &mut Option<String>, id: &str) {
    if !field.as_deref().is_some_and(|it| is_same(it, id)) {
        *field = Some(id.to_owned());
    }
}
