//! The controller of AWSEndpointServices: reads, asks AWS, and writes what has become of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::{AwsEndpointService, AwsEndpointServiceStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::{Part, merge};
use support::aws::{self, Client, Source, credentials};
use support::controller::{
    Action, DEADLINE, Failure, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::shutdown::Drain;
use tokio::sync::{Mutex, OnceCell};

use super::endpoint_service::{self, Removal};
use super::inputs::{self, Owner};
use super::plan::{self, Problem};
use super::requests;
use crate::cache;
use crate::context::Context;
use crate::error::{Error, step};
use crate::names::CLUSTER;

/// How AWSEndpointServices are reconciled.
const SETTINGS: Settings = Settings {
    controller: "awsendpointservice",
    kind: "AWSEndpointService",
    concurrency: 10,
    debounce: Duration::from_millis(100),
    deadline: DEADLINE,
};
const MANAGER: &str = "hypershift-operator-private-link";
/// The finalizer of this controller: the endpoint service goes first.
const FINALIZER: &str = "hypershift.openshift.io/hypershift-operator-finalizer";
/// The finalizer of the control-plane-operator: the endpoint goes first.
pub(crate) const CONTROL_PLANE_FINALIZER: &str =
    "hypershift.openshift.io/control-plane-operator-finalizer";
/// Name of the session of a role.
const SESSION: &str = "hypershift-operator-private-link";
/// When AWS is asked again whether all is as it is to be.
const RESYNC: Duration = Duration::from_mins(5);
/// When a deletion goes on.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The API resource of AWSEndpointServices.
pub(crate) fn resource() -> ApiResource {
    ApiResource::erase::<AwsEndpointService>(&())
}

/// Reconciles AWSEndpointServices.
struct Controller {
    ctx: Arc<Context>,
    store: Store<DynamicObject>,
    /// The client of AWS, and what its credentials come from.
    client: Mutex<Option<(Source, Arc<Client>)>>,
    infrastructure: OnceCell<Option<String>>,
}

/// Why there is no client of AWS.
enum NoClient {
    Unconfigured,
    Aws(aws::Error),
}

/// Reconciles until the shutdown begins. Reconciles in flight are completed.
pub(crate) async fn run(ctx: Arc<Context>, drain: Drain) {
    let writer = Writer::new(resource());
    let store = writer.as_reader();
    let requests = requests::all(&ctx, writer);
    let synced = Arc::clone(&ctx.cache);
    let ready = async { synced.until_synced().await };
    let controller = Controller {
        ctx: Arc::clone(&ctx),
        store,
        client: Mutex::default(),
        infrastructure: OnceCell::new(),
    };
    ctx.controllers
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = cache::get(&self.store, resource(), key) else {
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        let Some(id) = inputs::id(&found, &self.ctx) else {
            // Not an object of a control plane, or its namespace has not been seen yet: when it is, that requests a reconcile.
            return Ok(Action::requeue(RESYNC));
        };
        let _pass = self.ctx.in_flight.begin(&id).await;
        let Some(owner) = inputs::owner(id, &found, &self.ctx).await? else {
            return Ok(Action::requeue(RESYNC));
        };
        if found.metadata.deletion_timestamp.is_some() {
            return self.remove(&found).await;
        }
        self.ensure(&found, &owner).await
    }

    async fn failed(&self, _: &ObjectKey, failure: &Failure<Error>) {
        self.ctx.metrics.error(step(failure), failure.reason());
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = cache::get(&self.store, resource(), key)?;
        let object = found.object_ref(&resource());
        Some((self.ctx.recorder.clone(), object))
    }
}

impl Controller {
    async fn ensure(&self, found: &DynamicObject, owner: &Owner) -> Result<Action, Error> {
        let aws = owner
            .cluster
            .as_ref()
            .and_then(|it| it.spec.platform.aws.as_ref());
        let namespace = found.namespace().unwrap_or_default();
        let name = found.name_any();
        let Some(aws) = aws.filter(|_| plan::service_of(&name, &namespace).is_some()) else {
            return Ok(Action::await_change());
        };
        let subnets = match inputs::subnets(owner, &self.ctx).await? {
            Ok(subnets) => subnets,
            Err(problem) => return self.report(found, &Err(problem)).await,
        };
        if let Some(patch) = metadata(found, owner, &subnets) {
            self.merge(found, Part::Main, patch).await?;
            // The change requests the next reconcile.
            return Ok(Action::requeue(POLL_INTERVAL));
        }
        let link: AwsEndpointService = inputs::typed(found, SETTINGS.kind)?;
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
        self.report(found, &made).await
    }

    async fn remove(&self, found: &DynamicObject) -> Result<Action, Error> {
        let mut finalizers = found.finalizers().to_vec();
        finalizers.retain(|it| it != FINALIZER);
        if finalizers.len() == found.finalizers().len() {
            return Ok(Action::await_change());
        }
        let link: AwsEndpointService = inputs::typed(found, SETTINGS.kind)?;
        let target = inputs::target(&link, &self.ctx).await?;
        let removed = match self.client().await {
            Ok(client) => endpoint_service::remove(&*client, &target).await,
            Err(no_client) => Err(no_client.into()),
        };
        match removed {
            Ok(Removal::Done) => {
                let patch = json!({ "metadata": { "finalizers": finalizers } });
                self.merge(found, Part::Main, patch).await?;
                Ok(Action::await_change())
            }
            Ok(Removal::Waiting) => Ok(Action::requeue(POLL_INTERVAL)),
            Err(problem) => self.report(found, &Err(problem)).await,
        }
    }

    /// Writes the status, if it is another one.
    async fn report(
        &self,
        found: &DynamicObject,
        made: &Result<String, Problem>,
    ) -> Result<Action, Error> {
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
        if after != before {
            let patch = json!({ "status": {
                "endpointServiceName": after.endpoint_service_name,
                "conditions": after.conditions,
            }});
            self.merge(found, Part::Status, patch).await?;
        }
        let uid = found.uid().unwrap_or_default();
        Ok(Action::requeue(match made {
            Ok(_) => RESYNC,
            Err(_) => plan::retry(&uid),
        }))
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

    /// Changes the object, if it is still as it was read.
    async fn merge(&self, found: &DynamicObject, part: Part, change: Value) -> Result<(), Error> {
        let namespace = found.namespace().unwrap_or_default();
        let client = self.ctx.client.clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, &namespace, &resource());
        let merged = merge(&api, &found.metadata, part, change, MANAGER).await;
        merged.map_err(|source| Error::Write {
            object: format!("AWSEndpointService {namespace}/{}", found.name_any()),
            source,
        })
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

/// The change of metadata and specification, if there is one. Pure.
pub(super) fn metadata(found: &DynamicObject, owner: &Owner, subnets: &[String]) -> Option<Value> {
    let cluster = owner.id.to_string();
    let mut finalizers = found.finalizers().to_vec();
    let has_finalizer = finalizers.iter().any(|it| it == FINALIZER);
    let is_annotated = found.annotations().get(CLUSTER) == Some(&cluster);
    let live = found.data["spec"]["subnetIDs"].as_array();
    let live = live.into_iter().flatten().filter_map(Value::as_str);
    if has_finalizer && is_annotated && live.eq(subnets.iter().map(String::as_str)) {
        return None;
    }
    if !has_finalizer {
        finalizers.push(FINALIZER.to_owned());
    }
    Some(json!({
        "metadata": { "finalizers": finalizers, "annotations": { CLUSTER: cluster } },
        "spec": { "subnetIDs": subnets },
    }))
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
