//! The controllers: they read from the cache, decide in pure modules, and write with preconditions.

pub(super) mod requests;
pub(super) mod revocation;
pub(super) mod rotation;

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use support::reconcile::{Report, Retry, client_reason, is_conflict};

use super::cache::Cache;
use super::rotation::Lifetimes;

/// Field manager, and source of Events.
pub(super) const MANAGER: &str = "control-plane-pki-operator";
/// Longest message of an Event, in characters.
const MESSAGE: usize = 1000;

/// What all controllers share.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) client: kube::Client,
    pub(super) namespace: String,
    /// The HostedControlPlane.
    pub(super) owner: OwnerReference,
    pub(super) lifetimes: Lifetimes,
    pub(super) cache: Cache,
}

/// A step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// An object could not be read.
    #[error("failed to get {object}")]
    Read { object: String, source: kube::Error },
    /// An object could not be written.
    #[error("failed to write {object}")]
    Write { object: String, source: kube::Error },
    /// A certificate could not be issued.
    #[error(transparent)]
    Issue(#[from] super::issue::Error),
    /// The thread that generates keys has ended.
    #[error("failed to generate a key")]
    Thread(#[from] tokio::task::JoinError),
    /// No random bytes.
    #[error("failed to generate a user name: the system has no random bytes")]
    Random,
    /// The public key of a request cannot be used.
    #[error("failed to read the public key of CertificateSigningRequest {name}")]
    Key { name: String, source: rcgen::Error },
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => client_reason(source),
            Self::Issue(_) | Self::Thread(_) | Self::Random | Self::Key { .. } => "IssueFailed",
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Write { source, .. } if is_conflict(source) => Retry::AtOnce,
            _ => Retry::Backoff,
        }
    }
}

// === impl Context ===

impl Context {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn get<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        let found = self.api::<K>().get_opt(name).await;
        found.map_err(|source| Error::Read {
            object: self.object::<K>(name),
            source,
        })
    }

    /// Creates an object, or replaces the version that it was read with.
    async fn write<K>(&self, object: &K) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let api = self.api::<K>();
        let name = object.name_any();
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let written = match object.meta().resource_version {
            None => api.create(&params, object).await,
            Some(_) => api.replace(&name, &params, object).await,
        };
        written.map_err(|source| Error::Write {
            object: self.object::<K>(&name),
            source,
        })
    }

    fn object<K: Resource<DynamicType = ()>>(&self, name: &str) -> String {
        format!("{} {}/{name}", K::kind(&()), self.namespace)
    }

    /// Sends an Event. Its own failure changes nothing.
    async fn event(&self, involved: ObjectReference, type_: &str, reason: &str, message: &str) {
        let now = Some(Time(now()));
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}.", involved.name.as_deref().unwrap_or_default())),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: involved,
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.chars().take(MESSAGE).collect()),
            source: Some(k8s_openapi::api::core::v1::EventSource {
                component: Some(MANAGER.to_owned()),
                ..Default::default()
            }),
            first_timestamp: now.clone(),
            last_timestamp: now,
            count: Some(1),
            ..Event::default()
        };
        if let Err(error) = self
            .api::<Event>()
            .create(&PostParams::default(), &event)
            .await
        {
            tracing::debug!(
                error = support::error::chain(&error),
                "Failed to create Event"
            );
        }
    }
}

/// Now, in whole seconds, as certificates and statuses have it.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
