//! The part of Azure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use api::hypershift::v1beta1::platform::azure::private::AzurePrivateType;
use api::hypershift::v1beta1::platform::azure::{AzurePlatformSpec, AzureTopology};
use api::hypershift::v1beta1::services::ServiceType;
use api::hypershift::v1beta1::{AzurePrivateLinkService, HostedControlPlane};
use control_plane_component::Objects;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use support::controller::{DEADLINE, Settings};

use super::client::{Client, Clients, cloud};
use super::endpoint::{Azure, Removal};
use super::plan::{Cluster, Link, OAUTH, ROUTER};
use super::status::{ERROR, Outcome, patch, status};
use crate::private_link::control::{self, DEBOUNCE, Next, Pass, RESYNC, Removed};
use crate::private_link::externals;
use crate::private_link::identity::TokenFile;
use crate::private_link::link;
use crate::private_link::problem::{Problem, no_token};

const FINALIZER: &str = "hypershift.openshift.io/azure-private-link-service";
/// The label of Services for names outside of the private zone.
const EXTERNAL: &str = "hypershift.openshift.io/azure-pls-external-private-svc";
/// The annotation of Services with an internal load balancer.
const INTERNAL: (&str, &str) = (
    "service.beta.kubernetes.io/azure-load-balancer-internal",
    "true",
);
/// The fields of the specification that follow the control plane. Others never change.
const FIELDS: [&str; 2] = ["loadBalancerIP", "additionalAllowedSubscriptions"];
/// The name of the file with the token.
const TOKEN: &str = "azure-private-link-token";

/// Azure.
pub(in crate::private_link) struct Provider {
    token: TokenFile,
    clients: Clients,
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
    async fn connect(
        &self,
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
    ) -> Result<(Cluster, Arc<Client>), Problem> {
        let Some(azure) = &hcp.spec.platform.azure else {
            let message = "spec.platform.azure is required: set it";
            return Err(Problem::input(ERROR, message));
        };
        let cluster = Cluster::of(hcp, live, cloud(azure)?.endpoints().management)?;
        let token = self.token.fresh().await.map_err(no_token(ERROR))?;
        let client = self.clients.get(azure, token).await?;
        Ok((cluster, client))
    }

    async fn try_ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        link: &Link,
    ) -> Outcome {
        let (cluster, client) = match self.connect(hcp, live).await {
            Ok(connected) => connected,
            Err(problem) => return Outcome::failed(problem),
        };
        let azure = Azure::new(&cluster, &*client);
        match azure.connect(link).await {
            Ok(made) => {
                let zones = azure.publish(link, &made.address).await;
                Outcome {
                    endpoint: Ok(made),
                    zones: Some(zones),
                }
            }
            Err(problem) => Outcome::failed(problem),
        }
    }

    /// The names go first. Those that cannot be changed do not hold up what costs money.
    async fn try_remove(
        &self,
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        link: &Link,
    ) -> Result<Removal, Problem> {
        let (cluster, client) = self.connect(hcp, live).await?;
        let azure = Azure::new(&cluster, &*client);
        let withdrawn = azure.withdraw(link).await;
        let removal = azure.disconnect(link).await?;
        withdrawn?;
        Ok(removal)
    }
}

impl control::Provider for Provider {
    type Link = AzurePrivateLinkService;

    const SETTINGS: Settings = Settings {
        controller: "azureprivatelinkservice",
        kind: "AzurePrivateLinkService",
        // Links of one cluster share a zone.
        concurrency: 1,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    const SERVICES: &'static [&'static str] = &[ROUTER, OAUTH];
    const FINALIZER: &'static str = FINALIZER;
    const HOLD: Option<&'static str> = Some("hypershift.openshift.io/azure-pls-endpoint-cleanup");
    const EXTERNAL: &'static str = EXTERNAL;

    fn is_private(hcp: &HostedControlPlane) -> bool {
        let azure = hcp.spec.platform.azure.as_ref();
        azure.is_some_and(|azure| {
            let type_ = azure.private.as_ref().map(|it| it.type_);
            let is_public = azure.topology.is_none_or(|it| it == AzureTopology::Public);
            !is_public && type_ == Some(AzurePrivateType::PrivateLink)
        })
    }

    fn link(hcp: &HostedControlPlane, objects: &Objects, service: &str) -> Option<Value> {
        let address = link::address(objects, service, INTERNAL)?;
        let azure = hcp.spec.platform.azure.as_ref()?;
        let spec = spec(hcp, azure, &address);
        Some(link::link(hcp, service, &[FINALIZER], &spec))
    }

    fn has(live: &AzurePrivateLinkService, desired: &Value) -> bool {
        link::has(&json!(live), desired, &FIELDS)
    }

    fn is_offered(live: &AzurePrivateLinkService) -> bool {
        !link_of(live, &[]).alias.is_empty()
    }

    fn digest(
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        siblings: &[String],
    ) -> u64 {
        let (spec, status) = (&hcp.spec, live.status.as_ref());
        let read = json!([
            spec.platform.azure,
            spec.services,
            spec.infra_id,
            spec.cluster_id,
            live.metadata.uid,
            live.metadata.deletion_timestamp,
            live.spec,
            status.map(|it| &it.private_link_service_alias),
            siblings,
        ]);
        let mut hasher = DefaultHasher::new();
        read.to_string().hash(&mut hasher);
        hasher.finish()
    }

    async fn ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        siblings: &[String],
    ) -> Pass {
        if let Some(pass) = Pass::add_finalizer(live, FINALIZER) {
            return pass;
        }
        let link = link_of(live, siblings);
        let outcome = self.try_ensure(hcp, live, &link).await;
        let change = report(live, &outcome);
        if let Some(problem) = outcome.problem() {
            return Pass::reported(change, Next::Rest(problem.pause()));
        }
        let address = outcome.endpoint.as_ref().map(|it| it.address.as_str());
        let externals = || externals(hcp, address.unwrap_or_default());
        Pass {
            externals: (link.name == ROUTER).then(externals),
            ..Pass::reported(change, Next::Rest(RESYNC))
        }
    }

    async fn remove(
        &self,
        hcp: &HostedControlPlane,
        live: &AzurePrivateLinkService,
        siblings: &[String],
    ) -> Removed {
        let link = link_of(live, siblings);
        match self.try_remove(hcp, live, &link).await {
            Ok(Removal::Done) => Removed::Done,
            Ok(Removal::Waiting) => Removed::Waiting,
            Err(problem) => {
                let pause = problem.pause();
                Removed::Failed(report(live, &Outcome::failed(problem)), pause)
            }
        }
    }
}

/// The link of an object.
fn link_of(live: &AzurePrivateLinkService, siblings: &[String]) -> Link {
    let status = live.status.as_ref();
    let alias = status.and_then(|it| it.private_link_service_alias.clone());
    Link {
        name: live.name_any(),
        alias: alias.unwrap_or_default(),
        base_domain: live.spec.base_domain.clone().filter(|it| !it.is_empty()),
        has_oauth: siblings.iter().any(|it| it == OAUTH),
    }
}

/// The change of the status, if there is one.
fn report(live: &AzurePrivateLinkService, outcome: &Outcome) -> Option<Value> {
    if let Some(problem) = outcome.problem() {
        problem.log();
    }
    let before = live.status.clone().unwrap_or_default();
    let after = status(&before, outcome, live.metadata.generation, Timestamp::now());
    patch(&before, &after)
}

/// The specification of a link.
pub(super) fn spec(hcp: &HostedControlPlane, azure: &AzurePlatformSpec, address: &str) -> Value {
    let private_link = azure
        .private
        .as_ref()
        .and_then(|it| it.private_link.as_ref());
    let mut spec = json!({
        "loadBalancerIP": address,
        "subscriptionID": azure.subscription_id,
        "resourceGroupName": azure.resource_group,
        "location": azure.location.to_ascii_lowercase().replace(' ', ""),
        "guestSubnetID": azure.subnet_id,
        "guestVNetID": azure.vnet_id,
    });
    if let Some(subnet) = private_link.and_then(|it| it.nat_subnet_id.as_ref()) {
        spec["natSubnetID"] = json!(subnet);
    }
    let further = private_link.map(|it| &it.additional_allowed_subscriptions);
    if let Some(further) = further.filter(|it| !it.is_empty()) {
        spec["additionalAllowedSubscriptions"] = json!(further);
    }
    if let Some(domain) = base_domain(hcp) {
        spec["baseDomain"] = json!(domain);
    }
    spec
}

/// The domain in which names of the control plane are published: the one of the OAuth server, if its name is of the usual form,
/// or else that of the cluster.
fn base_domain(hcp: &HostedControlPlane) -> Option<String> {
    let prefix = format!("oauth-{}.", hcp.name_any());
    let mut services = hcp.spec.services.iter();
    let oauth = services.find(|it| it.service == ServiceType::OAuthServer);
    let route = oauth.and_then(|it| it.service_publishing_strategy.route.as_ref());
    let hostname = route.and_then(|it| it.hostname.as_deref());
    let published = hostname.and_then(|it| it.strip_prefix(&prefix));
    let domain = published.unwrap_or(&hcp.spec.dns.base_domain);
    Some(domain.to_owned()).filter(|it| !it.is_empty())
}

/// The Services for names outside of the private zone.
pub(super) fn externals(hcp: &HostedControlPlane, address: &str) -> Vec<Value> {
    let azure = hcp.spec.platform.azure.as_ref();
    let topology = azure.and_then(|it| it.topology);
    if topology != Some(AzureTopology::Private) {
        return Vec::new();
    }
    externals::externals(hcp, EXTERNAL, address)
}
