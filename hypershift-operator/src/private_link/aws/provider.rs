//! The part of AWS: reads, asks AWS, and says what has become of it.

use std::path::Path;
use std::sync::Arc;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::{AwsEndpointService, AwsEndpointServiceStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Map, Value, json};
use support::aws::{self, Client, Source, credentials};
use support::error::chain;
use tokio::sync::{Mutex, OnceCell};

use super::endpoint_service::{self, Removal};
use super::inputs;
use super::plan::{self, Problem};
use crate::cache::ENDPOINT_SERVICES;
use crate::context::Context;
use crate::error::Error;
use crate::private_link::control::{self, Kind, POLL_INTERVAL, RESYNC, Step};
use crate::private_link::inputs::{Owner, typed};

/// The kind.
pub(in crate::private_link) static KIND: Kind = Kind {
    controller: "awsendpointservice",
    name: "AWSEndpointService",
    resource: || ApiResource::erase::<AwsEndpointService>(&()),
    watch: ENDPOINT_SERVICES,
    concurrency: 10,
    finalizer: "hypershift.openshift.io/hypershift-operator-finalizer",
    recorded: &["endpointServiceName"],
};
/// The finalizer of the control-plane-operator.
pub(in crate::private_link) const CONTROL_PLANE_FINALIZER: &str =
    "hypershift.openshift.io/control-plane-operator-finalizer";
/// Name of the session of a role.
const SESSION: &str = "hypershift-operator-private-link";

/// AWS.
pub(in crate::private_link) struct Provider {
    ctx: Arc<Context>,
    /// The client of AWS, and what its credentials come from.
    client: Mutex<Option<(Source, Arc<Client>)>>,
    infrastructure: OnceCell<Option<String>>,
}

/// Why there is no client of AWS.
enum NoClient {
    Unconfigured,
    Aws(aws::Error),
}

// === impl Provider ===

impl control::Provider for Provider {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    async fn ensure(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        let aws = owner
            .cluster
            .as_ref()
            .and_then(|it| it.spec.platform.aws.as_ref());
        let namespace = found.namespace().unwrap_or_default();
        let name = found.name_any();
        let Some(aws) = aws.filter(|_| plan::service_of(&name, &namespace).is_some()) else {
            return Ok(Step::Ignore);
        };
        let successor = inputs::successor(found, owner, &self.ctx).await?;
        if successor.is_some_and(|it| plan::is_available(it.status.as_ref())) {
            // HyperShift deletes it once both exist. Nodes use it until the other one is available.
            return Ok(Step::Delete);
        }
        let subnets = match inputs::subnets(owner, &self.ctx).await? {
            Ok(subnets) => subnets,
            Err(problem) => return Ok(report(found, &Err(problem))),
        };
        if let Some(change) = metadata(found, owner, &subnets) {
            return Ok(Step::Change(change));
        }
        let link: AwsEndpointService = typed(found, KIND.name)?;
        let infrastructure = self
            .infrastructure
            .get_or_try_init(|| inputs::infrastructure(&self.ctx))
            .await?;
        let infrastructure = infrastructure.as_deref();
        let desired = inputs::desired(&link, aws, owner, infrastructure, &self.ctx).await?;
        let made = match self.client().await {
            Ok(client) => endpoint_service::ensure(&*client, &desired).await,
            Err(no_client) => Err(no_client.into()),
        };
        Ok(report(found, &made))
    }

    async fn remove(&self, found: &DynamicObject, owner: &Owner) -> Result<Step, Error> {
        let link: AwsEndpointService = typed(found, KIND.name)?;
        let mut target = inputs::target(&link, &self.ctx).await?;
        if let Some(successor) = inputs::successor(found, owner, &self.ctx).await? {
            target.successor = inputs::target(&successor, &self.ctx).await?.balancer;
        }
        let removed = match self.client().await {
            Ok(client) => endpoint_service::remove(&*client, &target).await,
            Err(no_client) => Err(no_client.into()),
        };
        Ok(match removed {
            Ok(Removal::Done) => Step::Removed,
            Ok(Removal::Waiting) => Step::Report(None, POLL_INTERVAL),
            Err(problem) => report(found, &Err(problem)),
        })
    }
}

impl Provider {
    pub(in crate::private_link) fn new(ctx: &Arc<Context>) -> Self {
        Self {
            ctx: Arc::clone(ctx),
            client: Mutex::default(),
            infrastructure: OnceCell::new(),
        }
    }

    /// The client, with the credentials as they are now: the file may be replaced.
    async fn client(&self) -> Result<Arc<Client>, NoClient> {
        let cloud = &self.ctx.cloud;
        let region = cloud.aws_region.as_deref().ok_or(NoClient::Unconfigured)?;
        let source = source(cloud.aws_credentials.as_deref()).map_err(NoClient::Aws)?;
        let source = source.ok_or(NoClient::Unconfigured)?;
        let mut known = self.client.lock().await;
        if let Some((before, client)) = &*known
            && *before == source
        {
            return Ok(Arc::clone(client));
        }
        let client = Client::new(source.clone(), None, region, SESSION, &variable);
        let client = Arc::new(client);
        *known = Some((source, Arc::clone(&client)));
        Ok(client)
    }
}

// === impl Problem ===

impl From<NoClient> for Problem {
    fn from(no_client: NoClient) -> Self {
        match no_client {
            NoClient::Aws(error) => Self::Aws(error),
            NoClient::Unconfigured => Self::Input(
                "this operator manages no VPC endpoint services: the administrator of the management cluster runs it with \
                 --aws-region and --aws-shared-credentials-file"
                    .to_owned(),
            ),
        }
    }
}

fn source(file: Option<&Path>) -> Result<Option<Source>, aws::Error> {
    match file {
        Some(file) => credentials::of_file(file, &variable).map(Some),
        None => credentials::of_environment(&variable),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What is written to the status, if it is another one, and when AWS is asked again.
fn report(found: &DynamicObject, made: &Result<String, Problem>) -> Step {
    if let Err(Problem::Aws(error)) = made {
        tracing::warn!(
            error = chain(error),
            "Failed to reconcile a VPC endpoint service"
        );
    }
    let before = &found.data["status"];
    let before: AwsEndpointServiceStatus =
        serde_json::from_value(before.clone()).unwrap_or_default();
    let after = status(&before, made, found.metadata.generation, Timestamp::now());
    let change = (after != before).then(|| {
        json!({ "status": {
            "endpointServiceName": after.endpoint_service_name,
            "conditions": after.conditions,
        }})
    });
    let again = match made {
        Ok(_) => RESYNC,
        Err(_) => plan::retry(&found.uid().unwrap_or_default()),
    };
    Step::Report(change, again)
}

/// The change of metadata and specification, if there is one. Pure.
pub(super) fn metadata(found: &DynamicObject, owner: &Owner, subnets: &[String]) -> Option<Value> {
    let spec = Map::from_iter([("subnetIDs".to_owned(), json!(subnets))]);
    control::change(found, owner, KIND.finalizer, &spec)
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &AwsEndpointServiceStatus,
    made: &Result<String, Problem>,
    generation: Option<i64>,
    now: Timestamp,
) -> AwsEndpointServiceStatus {
    let (status, reason, message) = match made {
        Ok(name) => (
            "True",
            "AWSSuccess",
            format!("VPC endpoint service {name} is available"),
        ),
        Err(problem) => ("False", "AWSError", problem.message()),
    };
    let condition = Condition {
        type_: ClusterCondition::AwsEndpointServiceAvailable
            .as_str()
            .to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    AwsEndpointServiceStatus {
        endpoint_service_name: match made {
            Ok(name) => Some(name.clone()),
            Err(_) => before.endpoint_service_name.clone(),
        },
        conditions: support::conditions::with(&before.conditions, condition),
        ..before.clone()
    }
}
