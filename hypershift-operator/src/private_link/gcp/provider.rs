//! The part of Google Cloud: reads, asks Google Cloud, and says what has become of it.

use std::sync::Arc;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::platform::gcp::GcpPlatformSpec;
use api::hypershift::v1beta1::{GcpPrivateServiceConnect, GcpPrivateServiceConnectStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Map, Value, json};
use support::conditions::with;
use support::google_resources::{Region, is_name};
use tokio::sync::OnceCell;

use super::attachment::{CREATION, ERROR, Google, Progress, Removal};
use super::client::{self, Client};
use super::plan::{self, ATTACHMENTS, Desired, ROUTER, Target};
use crate::cache::GCP_LINKS;
use crate::context::Context;
use crate::error::Error;
use crate::private_link::control::{self, Kind, POLL_INTERVAL, RESYNC, Step};
use crate::private_link::inputs::{Owner, balancer, typed};
use crate::private_link::problem::{Problem, failed};

/// The kind.
pub(in crate::private_link) static KIND: Kind = Kind {
    controller: "gcpprivateserviceconnect",
    name: "GCPPrivateServiceConnect",
    resource: || ApiResource::erase::<GcpPrivateServiceConnect>(&()),
    watch: GCP_LINKS,
    // Two of them would choose the same subnet.
    concurrency: 1,
    finalizer: "hypershift.openshift.io/gcp-private-service-connect",
    recorded: &[],
};
/// The finalizer of the control-plane-operator.
pub(in crate::private_link) const CONTROL_PLANE_FINALIZER: &str =
    "hypershift.openshift.io/gcp-psc-customer";
const SUCCESS: &str = "GCPSuccess";
/// What is made, and what to do if it is not, in messages.
const WHAT: &str = "service attachment";
const ADVICE: &str = "The administrator of the management cluster finds the cause in the log of the operator, and checks \
                      --gcp-project, --gcp-region and the permissions of its credentials there";

/// Google Cloud.
pub(in crate::private_link) struct Provider {
    ctx: Arc<Context>,
    client: OnceCell<Client>,
}

// === impl Provider ===

impl control::Provider for Provider {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    async fn ensure(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        let spec = owner
            .cluster
            .as_ref()
            .and_then(|it| Some((it, it.spec.platform.gcp.as_ref()?)));
        let Some((cluster, gcp)) = spec.filter(|_| found.name_any() == ROUTER) else {
            return Ok(Step::Ignore);
        };
        if let Some(change) = control::change(found, owner, KIND.finalizer, &Map::new()) {
            return Ok(Step::Change(change));
        }
        let link: GcpPrivateServiceConnect = typed(found, KIND.name)?;
        let target = self.target(&link).await?;
        let cluster_id = cluster.spec.cluster_id.as_deref();
        let desired = desired(&link, gcp, cluster_id, target);
        Ok(match self.try_ensure(desired).await {
            Ok(Progress::Record(rule)) => Step::Change(json!({
                "spec": { "forwardingRuleName": rule },
            })),
            Ok(Progress::Done(name)) => self.report(found, &Ok(name)),
            Err(problem) => self.report(found, &Err(problem)),
        })
    }

    async fn remove(&self, found: &DynamicObject, _: &Owner) -> Result<Step, Error> {
        let link: GcpPrivateServiceConnect = typed(found, KIND.name)?;
        let target = self.target(&link).await?;
        Ok(match self.try_remove(&target).await {
            Ok(Removal::Done) => Step::Removed,
            Ok(Removal::Waiting) => Step::Report(None, POLL_INTERVAL),
            Err(problem) => self.report(found, &Err(problem)),
        })
    }
}

impl Provider {
    pub(in crate::private_link) fn new(ctx: &Arc<Context>) -> Self {
        Self {
            ctx: Arc::clone(ctx),
            client: OnceCell::new(),
        }
    }

    async fn target(&self, link: &GcpPrivateServiceConnect) -> Result<Target, Error> {
        let namespace = link.namespace().unwrap_or_default();
        Ok(Target {
            uid: link.uid().unwrap_or_default(),
            balancer: balancer(&namespace, ROUTER, &self.ctx).await?,
            service: format!("{namespace}/{ROUTER}"),
        })
    }

    async fn try_ensure(&self, desired: Result<Desired, Problem>) -> Result<Progress, Problem> {
        let desired = desired?;
        let (region, client) = self.client().await?;
        Google::new(region, client).ensure(&desired).await
    }

    async fn try_remove(&self, target: &Target) -> Result<Removal, Problem> {
        let (region, client) = self.client().await?;
        Google::new(region, client).remove(target).await
    }

    async fn client(&self) -> Result<(&Region, &Client), Problem> {
        let Some(region) = &self.ctx.cloud.gcp_private_service_connect else {
            let message = "this operator manages no service attachments: the administrator of the management cluster runs it \
                           with --gcp-project and --gcp-region";
            return Err(Problem::input(ERROR, message));
        };
        let client = self.client.get_or_try_init(|| async { client::connect() });
        Ok((region, client.await.map_err(failed(ERROR))?))
    }

    /// What is written to the status, if it is another one, and when Google Cloud is asked again.
    fn report(&self, found: &DynamicObject, made: &Result<String, Problem>) -> Step {
        let again = match made {
            Ok(_) => RESYNC,
            Err(problem) => {
                problem.log();
                problem.pause()
            }
        };
        let before = &found.data["status"];
        let before: GcpPrivateServiceConnectStatus =
            serde_json::from_value(before.clone()).unwrap_or_default();
        let region = self.ctx.cloud.gcp_private_service_connect.as_ref();
        let made = match (made, region) {
            (Ok(name), Some(region)) => Ok((name.as_str(), region)),
            (Ok(_), None) => return Step::Report(None, again),
            (Err(problem), _) => Err(problem),
        };
        let generation = found.metadata.generation;
        let after = status(&before, made, generation, Timestamp::now());
        Step::Report(patch(&before, &after), again)
    }
}

/// What is to be in Google Cloud. Pure.
pub(super) fn desired(
    link: &GcpPrivateServiceConnect,
    gcp: &GcpPlatformSpec,
    cluster_id: Option<&str>,
    target: Target,
) -> Result<Desired, Problem> {
    let Some(cluster_id) = cluster_id else {
        return Err(Problem::input(CREATION, "waiting for spec.clusterID"));
    };
    if !is_name(cluster_id) {
        let message = "spec.clusterID has characters that no name in Google Cloud can have";
        return Err(Problem::input(CREATION, message));
    }
    let claimed = &link.spec.load_balancer_ip;
    if let Some(own) = &target.balancer
        && own.address != *claimed
    {
        let message = format!(
            "spec.loadBalancerIP is not the address of Service {ROUTER}, which is {}: waiting for the control-plane-operator \
             to correct it",
            own.address
        );
        return Err(Problem::input(ERROR, message));
    }
    let projects = link.spec.consumer_accept_list.iter().map(|it| &it.0);
    Ok(Desired {
        name: plan::attachment_name(cluster_id),
        projects: projects.chain([&gcp.project]).cloned().collect(),
        subnet: link.spec.nat_subnet.clone(),
        recorded_rule: link.spec.forwarding_rule_name.clone(),
        target,
    })
}

/// The change of the status, if there is one. Fields of the control-plane-operator are left out.
pub(super) fn patch(
    before: &GcpPrivateServiceConnectStatus,
    after: &GcpPrivateServiceConnectStatus,
) -> Option<Value> {
    (after != before).then(|| {
        json!({ "status": {
            "serviceAttachmentName": after.service_attachment_name,
            "serviceAttachmentURI": after.service_attachment_uri,
            "conditions": after.conditions,
        }})
    })
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &GcpPrivateServiceConnectStatus,
    made: Result<(&str, &Region), &Problem>,
    generation: Option<i64>,
    now: Timestamp,
) -> GcpPrivateServiceConnectStatus {
    let mut after = before.clone();
    let (status, reason, message) = match made {
        Ok((name, region)) => {
            after.service_attachment_name = Some(name.to_owned());
            after.service_attachment_uri = Some(region.full_name(ATTACHMENTS, name));
            let message = format!("service attachment {name} is available");
            ("True", SUCCESS, message)
        }
        Err(problem) => ("False", problem.reason, problem.message(WHAT, ADVICE)),
    };
    let condition = Condition {
        type_: ClusterCondition::GcpServiceAttachmentAvailable
            .as_str()
            .to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    after.conditions = with(&before.conditions, condition);
    after
}
