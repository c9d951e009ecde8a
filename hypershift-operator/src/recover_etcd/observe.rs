//! What is read: the members of etcd and their health, the `StatefulSet` and its pods.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use kube::{Api, Resource};
use support::etcd::{self, Connection, Credentials, MemberUrls, Timeouts};

use super::Error;
use super::evaluation::{Health, Member, Rollout, State, evaluate};
use crate::args::RecoverEtcdFlags;

/// A member that does not respond within these is unhealthy.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    request: Duration::from_secs(5),
};
/// Name of the `StatefulSet`, of its container, and of the label of its pods.
const ETCD: &str = "etcd";

/// Access to one control plane.
pub(super) struct Control {
    pub(super) namespace: String,
    /// URL at which any member answers.
    pub(super) endpoint: String,
    /// The URLs at which the health of members is checked.
    pub(super) urls: MemberUrls,
    credentials: Credentials,
    client: kube::Client,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) members: Vec<Member>,
    pub(super) rollout: Rollout,
    /// Pods whose container waits after it has failed.
    pub(super) failing: Vec<String>,
    stateful_set: Option<String>,
}

// === impl Control ===

impl Control {
    pub(super) fn new(args: &RecoverEtcdFlags, client: kube::Client) -> Self {
        let namespace = args.namespace.clone();
        let endpoint = format!("https://etcd-client.{namespace}.svc:2379");
        Self {
            urls: MemberUrls::new(&namespace, args.endpoint.as_ref()),
            endpoint: args.endpoint.as_ref().map_or(endpoint, ToString::to_string),
            credentials: Credentials {
                ca: args.etcd_ca_cert.clone(),
                certificate: args.etcd_client_cert.clone(),
                key: args.etcd_client_key.clone(),
            },
            namespace,
            client,
        }
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) fn connect(&self, url: &str) -> Result<Connection, etcd::Error> {
        Connection::open_with(&self.credentials, url, TIMEOUTS)
    }

    /// Where other members reach the pod of a member.
    pub(super) fn peer_url(&self, member: &str) -> String {
        format!(
            "https://{member}.etcd-discovery.{}.svc:2380",
            self.namespace
        )
    }

    pub(super) fn pod_id(&self, member: &str) -> String {
        format!("Pod {}/{member}", self.namespace)
    }

    pub(super) fn claim_id(&self, member: &str) -> String {
        format!("PersistentVolumeClaim {}/data-{member}", self.namespace)
    }

    pub(super) async fn observe(&self) -> Result<Observed, Error> {
        let members = self.members().await?;
        let id = format!("StatefulSet {}/{ETCD}", self.namespace);
        let get = |source| Error::Get { object: id, source };
        let stateful_set = self.api::<StatefulSet>().get(ETCD).await.map_err(get)?;
        let id = format!("Pods of StatefulSet {}/{ETCD}", self.namespace);
        let get = |source| Error::Get { object: id, source };
        let params = ListParams::default().labels(&format!("app={ETCD}"));
        let pods = self.api::<Pod>().list(&params).await.map_err(get)?;
        let status = stateful_set.status.unwrap_or_default();
        let rollout = Rollout {
            current: status.current_revision.unwrap_or_default(),
            update: status.update_revision.unwrap_or_default(),
        };
        let mut observed = Observed::new(members, rollout, stateful_set.metadata.uid);
        let failing = pods
            .items
            .iter()
            .filter(|pod| observed.owns(&pod.metadata) && fails(pod));
        observed.failing = failing
            .filter_map(|pod| pod.metadata.name.clone())
            .collect();
        observed.failing.sort();
        Ok(observed)
    }

    async fn members(&self) -> Result<Vec<Member>, Error> {
        let listed = match self.connect(&self.endpoint) {
            Ok(connection) => connection.members().await,
            Err(error) => Err(error),
        };
        let listed = listed.map_err(|source| Error::Members {
            endpoint: self.endpoint.clone(),
            source,
        })?;
        // Of all members, before the first URL is followed.
        let urls = listed.iter().map(|member| self.urls.of(member));
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        let mut members = Vec::new();
        for (member, url) in listed.iter().zip(urls) {
            let health = match url {
                Some(url) => self.health(url).await,
                // It has not started.
                None => Health::Unhealthy,
            };
            members.push(Member {
                name: member.name.clone(),
                health,
            });
        }
        Ok(members)
    }

    async fn health(&self, url: &str) -> Health {
        let checked = match self.connect(url) {
            Ok(connection) => connection.check_health(TIMEOUTS.request).await,
            Err(error) => Err(error),
        };
        match checked {
            Ok(()) => Health::Healthy,
            Err(error) => {
                tracing::info!(
                    url,
                    error = support::error::chain(&error),
                    "Member is unhealthy"
                );
                Health::Unhealthy
            }
        }
    }

    /// The UID of a member's pod; none if there is no pod, or it cannot be read.
    pub(super) async fn pod_uid(&self, member: &str) -> Option<String> {
        self.api::<Pod>().get_opt(member).await.ok()??.metadata.uid
    }
}

// === impl Observed ===

impl Observed {
    /// Without failing pods.
    pub(super) fn new(
        members: Vec<Member>,
        rollout: Rollout,
        stateful_set: Option<String>,
    ) -> Self {
        Self {
            members,
            rollout,
            failing: Vec::new(),
            stateful_set,
        }
    }

    pub(super) fn state(&self) -> State {
        evaluate(&self.members)
    }

    /// Whether a pod belongs to the `StatefulSet`.
    pub(super) fn owns(&self, pod: &ObjectMeta) -> bool {
        let owners = pod.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| owner.controller == Some(true));
        owners.any(|owner| {
            owner.kind == "StatefulSet" && Some(&owner.uid) == self.stateful_set.as_ref()
        })
    }

    pub(super) fn is_healthy(&self, member: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|it| it.name == member && it.health == Health::Healthy)
    }
}

/// Whether the container of etcd waits after it has failed.
fn fails(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .iter()
        .flat_map(|it| it.container_statuses.iter().flatten());
    let mut statuses = statuses.filter(|it| it.name == ETCD && it.restart_count > 0);
    statuses.any(|it| {
        it.state
            .as_ref()
            .is_some_and(|state| state.waiting.is_some())
    })
}
