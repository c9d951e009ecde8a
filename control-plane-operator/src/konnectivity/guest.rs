//! Services of the hosted cluster, read with a kubeconfig that is read again when it changes, or with a given client.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use support::args::ApiServerArgs;
use support::client;

use super::resolver::ServiceName;

/// Timeout of a request: a connection waits for it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The API of the hosted cluster.
pub(crate) struct GuestApi(Access);

enum Access {
    /// By a file.
    Kubeconfig {
        path: PathBuf,
        loaded: Mutex<Option<Loaded>>,
    },
    /// By a client that does not change.
    Client(Client),
}

#[derive(Clone)]
struct Loaded {
    contents: Vec<u8>,
    client: Client,
}

/// The API cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The kubeconfig cannot be read.
    #[error("failed to read kubeconfig {}: check the volume mounts, or set --kubeconfig", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The kubeconfig is not valid.
    #[error("failed to use the kubeconfig of the hosted cluster")]
    Config(#[from] client::Error),
    /// The client or a request failed.
    #[error("failed to get Service {service} of the hosted cluster")]
    Get {
        service: String,
        source: kube::Error,
    },
    /// No client.
    #[error("failed to create a client of the hosted cluster")]
    Client(#[source] kube::Error),
    /// No answer in time.
    #[error(
        "failed to get Service {0} of the hosted cluster: no answer from its API server within {REQUEST_TIMEOUT:?}"
    )]
    TimedOut(String),
}

// === impl GuestApi ===

impl GuestApi {
    /// Reads the kubeconfig.
    pub(crate) async fn load(kubeconfig: PathBuf) -> Result<Self, Error> {
        let api = Self(Access::Kubeconfig {
            path: kubeconfig,
            loaded: Mutex::default(),
        });
        api.client().await?;
        Ok(api)
    }

    /// The API that this client is connected to.
    pub(crate) fn of(client: Client) -> Self {
        Self(Access::Client(client))
    }

    /// The cluster IP of a Service; none if it does not exist or has none.
    pub(crate) async fn cluster_ip(&self, service: &ServiceName) -> Result<Option<IpAddr>, Error> {
        let ServiceName { name, namespace } = service;
        let id = || format!("{namespace}/{name}");
        let api: Api<Service> = Api::namespaced(self.client().await?, namespace);
        let found = tokio::time::timeout(REQUEST_TIMEOUT, api.get_opt(name)).await;
        let found = found.map_err(|_| Error::TimedOut(id()))?;
        let found = found.map_err(|source| Error::Get {
            service: id(),
            source,
        })?;
        let address = found
            .and_then(|service| service.spec)
            .and_then(|spec| spec.cluster_ip);
        // Headless Services have the text `None`.
        Ok(address.and_then(|address| address.parse().ok()))
    }

    async fn client(&self) -> Result<Client, Error> {
        let (path, loaded) = match &self.0 {
            Access::Kubeconfig { path, loaded } => (path, loaded),
            Access::Client(client) => return Ok(client.clone()),
        };
        let contents = fs::read(path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let known = lock(loaded).clone();
        if let Some(known) = known.filter(|known| known.contents == contents) {
            return Ok(known.client);
        }
        let args = ApiServerArgs {
            kubeconfig: Some(path.clone()),
            context: None,
        };
        let client = client::connect(&client::config(&args).await?).map_err(Error::Client)?;
        *lock(loaded) = Some(Loaded {
            contents,
            client: client.clone(),
        });
        Ok(client)
    }
}

fn lock(loaded: &Mutex<Option<Loaded>>) -> MutexGuard<'_, Option<Loaded>> {
    loaded.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DNS, Fixture, Guest};
    use super::*;

    async fn cluster_ip(api: &GuestApi, name: &str) -> Option<String> {
        let service = ServiceName {
            name: name.to_owned(),
            namespace: "shop".to_owned(),
        };
        let found = api.cluster_ip(&service).await.unwrap();
        found.map(|address| address.to_string())
    }

    #[tokio::test]
    async fn services_are_read_with_the_current_kubeconfig() {
        let first = Guest {
            services: &[("shop/api", DNS), ("shop/headless", "None")],
            ..Guest::default()
        };
        let second = Guest {
            services: &[("shop/api", "fd00::1")],
            ..Guest::default()
        };
        let (first, second) = (Fixture::start(&first).await, Fixture::start(&second).await);
        let kubeconfig = first.dir.path().join("kubeconfig");
        let api = GuestApi::load(kubeconfig.clone()).await.unwrap();
        for (name, expected) in [("api", Some(DNS)), ("headless", None), ("other", None)] {
            assert_eq!(cluster_ip(&api, name).await.as_deref(), expected, "{name}");
        }
        fs::copy(second.dir.path().join("kubeconfig"), &kubeconfig).unwrap();
        assert_eq!(cluster_ip(&api, "api").await.as_deref(), Some("fd00::1"));
        fs::remove_file(&kubeconfig).unwrap();
        let service = ServiceName::of("api.shop").unwrap();
        let error = api.cluster_ip(&service).await.unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error}");
    }
}
