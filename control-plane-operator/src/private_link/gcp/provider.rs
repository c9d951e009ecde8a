//! The part of Google Cloud.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::platform::gcp::GcpEndpointAccess;
use api::hypershift::v1beta1::{GcpPrivateServiceConnect, HostedControlPlane};
use control_plane_component::Objects;
use control_plane_component::render::owner;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use support::controller::{DEADLINE, Settings};

use super::client::{Client, Clients};
use super::endpoint::{Google, Removal};
use super::plan::{Attachment, Cluster, ROUTER};
use super::status::{ERROR, Outcome, patch, status};
use crate::hosted_control_plane::tokens::NoToken;
use crate::private_link::control::{self, DEBOUNCE, Next, Pass, RESYNC, Removed};
use crate::private_link::externals;
use crate::private_link::identity::TokenFile;
use crate::private_link::link;
use crate::private_link::problem::{Problem, no_token};

const FINALIZER: &str = "hypershift.openshift.io/gcp-psc-customer";
/// The label of Services for names outside of the private zone.
const EXTERNAL: &str = "hypershift.openshift.io/gcp-psc-external-private-svc";
/// The annotation of Services with an internal load balancer.
const INTERNAL: (&str, &str) = ("networking.gke.io/load-balancer-type", "Internal");
/// The fields of the specification that follow the control plane.
const FIELDS: [&str; 2] = ["loadBalancerIP", "consumerAcceptList"];
/// The name of the file with the token.
const TOKEN: &str = "gcp-private-service-connect-token";
/// When it is tried again after a request that Google Cloud does not understand: someone has to correct something.
const INVALID: Duration = Duration::from_mins(5);

/// Google Cloud.
pub(in crate::private_link) struct Provider {
    token: TokenFile,
    clients: Clients,
}

/// Why there is no client.
enum NoClient {
    /// The hosted cluster has no API server that issues tokens: it never had one, or its Secret is lost.
    NoKubeconfig(Problem),
    Problem(Problem),
}

// === impl Provider ===

impl Provider {
    pub(in crate::private_link) fn new(client: &kube::Client, namespace: &str) -> Self {
        Self {
            token: TokenFile::new(client, namespace, TOKEN),
            clients: Clients::default(),
        }
    }

    /// The cluster, and a client of its cloud.
    async fn connect(&self, hcp: &HostedControlPlane) -> Result<(Cluster, Arc<Client>), NoClient> {
        let cluster = Cluster::of(hcp)?;
        let Some(gcp) = &hcp.spec.platform.gcp else {
            let message = "spec.platform.gcp is required: set it";
            return Err(Problem::input(ERROR, message).into());
        };
        let token = self.token.fresh().await?;
        let client = self.clients.get(&gcp.workload_identity, token).await?;
        Ok((cluster, client))
    }

    /// The names go first. Those that cannot be changed do not hold up what costs money.
    async fn try_remove(
        &self,
        hcp: &HostedControlPlane,
        live: &GcpPrivateServiceConnect,
    ) -> Result<Removal, NoClient> {
        let (cluster, client) = self.connect(hcp).await?;
        let google = Google::new(&cluster, &*client);
        let status = live.status.as_ref();
        let address = status.and_then(|it| it.endpoint_ip.as_deref());
        let withdrawn = google.withdraw(address.unwrap_or_default()).await;
        let removal = match Attachment::of(live) {
            Some(attachment) => google.disconnect(&attachment).await?,
            // There was never an endpoint.
            None => Removal::Done,
        };
        withdrawn?;
        Ok(removal)
    }
}

impl control::Provider for Provider {
    type Link = GcpPrivateServiceConnect;

    const SETTINGS: Settings = Settings {
        controller: "gcpprivateserviceconnect",
        kind: "GCPPrivateServiceConnect",
        concurrency: 1,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    const SERVICES: &'static [&'static str] = &[ROUTER];
    const FINALIZER: &'static str = FINALIZER;
    const HOLD: Option<&'static str> = None;
    const EXTERNAL: &'static str = EXTERNAL;

    fn is_private(hcp: &HostedControlPlane) -> bool {
        hcp.spec.platform.gcp.is_some()
    }

    fn link(hcp: &HostedControlPlane, objects: &Objects, service: &str) -> Option<Value> {
        let address = link::address(objects, service, INTERNAL)?;
        let gcp = hcp.spec.platform.gcp.as_ref()?;
        let spec = json!({ "loadBalancerIP": address, "consumerAcceptList": [gcp.project] });
        // It gets its finalizer before anything is made for it.
        Some(link::link(hcp, service, &[], &spec))
    }

    fn has(live: &GcpPrivateServiceConnect, desired: &Value) -> bool {
        link::has(&json!(live), desired, &FIELDS)
    }

    fn is_offered(live: &GcpPrivateServiceConnect) -> bool {
        Attachment::of(live).is_some()
    }

    fn digest(hcp: &HostedControlPlane, live: &GcpPrivateServiceConnect, _: &[String]) -> u64 {
        let (spec, status) = (&hcp.spec, live.status.as_ref());
        let read = json!([
            spec.platform.gcp,
            spec.services,
            spec.dns.base_domain,
            spec.infra_id,
            spec.cluster_id,
            live.metadata.uid,
            live.metadata.deletion_timestamp,
            live.metadata.finalizers,
            status.map(|it| (&it.service_attachment_name, &it.service_attachment_uri)),
        ]);
        let mut hasher = DefaultHasher::new();
        read.to_string().hash(&mut hasher);
        hasher.finish()
    }

    async fn ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &GcpPrivateServiceConnect,
        _: &[String],
    ) -> Pass {
        let (cluster, client) = match self.connect(hcp).await.map_err(Problem::from) {
            Ok(connected) => connected,
            Err(problem) => {
                let pause = pause(&problem);
                let change = report(live, &Outcome::failed(problem));
                return Pass::reported(change, Next::Rest(pause));
            }
        };
        if let Some(pass) = Pass::add_finalizer(live, FINALIZER) {
            return pass;
        }
        let Some(attachment) = Attachment::of(live) else {
            return Pass::reported(None, Next::Rest(RESYNC));
        };
        let outcome = try_ensure(&Google::new(&cluster, &*client), &attachment).await;
        let change = report(live, &outcome);
        if let (Ok(address), Some(Ok(zones))) = (&outcome.endpoint, &outcome.zones) {
            return Pass {
                externals: Some(externals(hcp, address)),
                further: delegation(hcp, &zones.name_servers),
                ..Pass::reported(change, Next::Rest(RESYNC))
            };
        }
        let pause = outcome.problem().map_or(RESYNC, pause);
        Pass::reported(change, Next::Rest(pause))
    }

    async fn remove(
        &self,
        hcp: &HostedControlPlane,
        live: &GcpPrivateServiceConnect,
        _: &[String],
    ) -> Removed {
        let problem = match self.try_remove(hcp, live).await {
            Ok(Removal::Done) => return Removed::Done,
            Ok(Removal::Waiting) => return Removed::Waiting,
            Err(NoClient::NoKubeconfig(_)) if !may_have_endpoint(live) => {
                tracing::info!(
                    link = live.name_any(),
                    "Releasing a link for which no endpoint was made"
                );
                return Removed::Done;
            }
            Err(no_client) => Problem::from(no_client),
        };
        let pause = pause(&problem);
        Removed::Failed(report(live, &Outcome::failed(problem)), pause)
    }
}

// === impl NoClient ===

impl From<Problem> for NoClient {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<NoToken> for NoClient {
    fn from(cause: NoToken) -> Self {
        let has_no_server = matches!(cause, NoToken::NoKubeconfig);
        let problem = no_token(ERROR)(cause);
        if has_no_server {
            return Self::NoKubeconfig(problem);
        }
        Self::Problem(problem)
    }
}

impl From<NoClient> for Problem {
    fn from(no_client: NoClient) -> Self {
        match no_client {
            NoClient::NoKubeconfig(problem) | NoClient::Problem(problem) => problem,
        }
    }
}

async fn try_ensure(google: &Google<'_, Client>, attachment: &Attachment) -> Outcome {
    match google.connect(attachment).await {
        Ok(address) => {
            let zones = google.publish(&address).await;
            Outcome {
                endpoint: Ok(address),
                zones: Some(zones),
            }
        }
        Err(problem) => Outcome::failed(problem),
    }
}

/// Whether there may be something in the project of the cluster. An endpoint is made for a service attachment, and its address
/// is written down later: without an address, it may be there all the same.
fn may_have_endpoint(live: &GcpPrivateServiceConnect) -> bool {
    let status = live.status.as_ref();
    Attachment::of(live).is_some() || status.is_some_and(|it| it.endpoint_ip.is_some())
}

/// The change of the status, if there is one.
fn report(live: &GcpPrivateServiceConnect, outcome: &Outcome) -> Option<Value> {
    if let Some(problem) = outcome.problem() {
        problem.log();
    }
    let before = live.status.clone().unwrap_or_default();
    let after = status(&before, outcome, live.metadata.generation, Timestamp::now());
    patch(&before, &after)
}

fn pause(problem: &Problem) -> Duration {
    if problem.status() == Some(400) {
        return INVALID;
    }
    problem.pause()
}

/// The Services for names outside of the private zone.
pub(super) fn externals(hcp: &HostedControlPlane, address: &str) -> Vec<Value> {
    let gcp = hcp.spec.platform.gcp.as_ref();
    if gcp.is_none_or(|it| it.endpoint_access != GcpEndpointAccess::Private) {
        return Vec::new();
    }
    let mut services = externals::externals(hcp, EXTERNAL, address);
    for service in &mut services {
        service["spec"]["ports"] = json!([{ "name": "https", "port": 443, "protocol": "TCP" }]);
    }
    services
}

/// The delegation of the public zone, where external-dns writes records of the parent domain.
pub(super) fn delegation(
    hcp: &HostedControlPlane,
    name_servers: &[String],
) -> Vec<(ApiResource, Value)> {
    let Ok(cluster) = Cluster::of(hcp) else {
        return Vec::new();
    };
    if name_servers.is_empty() {
        return Vec::new();
    }
    let kind = GroupVersionKind::gvk("externaldns.k8s.io", "v1alpha1", "DNSEndpoint");
    let object = json!({
        "metadata": {
            "namespace": hcp.metadata.namespace,
            "name": format!("{}-ingress-delegation", cluster.name),
            "ownerReferences": [owner(hcp)],
        },
        "spec": cluster.delegation(name_servers),
    });
    vec![(ApiResource::from_gvk(&kind), object)]
}
