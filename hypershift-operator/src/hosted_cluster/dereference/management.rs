//! What the management cluster has: asked now and then, since it hardly changes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Endpoints;
use kube::Api;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::Error;
use crate::hosted_cluster::facts::Management;

/// How long an answer is believed.
const BELIEVED: Duration = Duration::from_mins(1);
/// Group of OpenShift's routes.
const ROUTES: &str = "route.openshift.io";
/// Group of what chooses users on OpenShift.
const SECURITY: &str = "security.openshift.io";

/// The last answer.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    answer: Mutex<Option<(Instant, Management)>>,
}

// === impl Cache ===

impl Cache {
    /// What the management cluster has.
    pub(crate) async fn get(&self, client: &kube::Client) -> Result<Management, Error> {
        let mut answer = self.answer.lock().await;
        if let Some((at, known)) = &*answer
            && at.elapsed() < BELIEVED
        {
            return Ok(known.clone());
        }
        let known = ask(client).await?;
        *answer = Some((Instant::now(), known.clone()));
        Ok(known)
    }
}

async fn ask(client: &kube::Client) -> Result<Management, Error> {
    let groups = client
        .list_api_groups()
        .await
        .map_err(|source| Error::Read {
            what: "the API groups of the management cluster".to_owned(),
            source,
        })?;
    let has = |name: &str| groups.groups.iter().any(|group| group.name == name);
    Ok(Management {
        routes: has(ROUTES),
        chooses_users: has(SECURITY),
        api_server: api_server(client).await?,
    })
}

/// Addresses of the management cluster's own API server.
async fn api_server(client: &kube::Client) -> Result<Vec<String>, Error> {
    let api: Api<Endpoints> = Api::namespaced(client.clone(), "default");
    let found = api.get_opt("kubernetes").await;
    let found = found.map_err(|source| Error::Read {
        what: "Endpoints default/kubernetes".to_owned(),
        source,
    })?;
    let subsets = found.and_then(|it| it.subsets).into_iter().flatten();
    let addresses = subsets.filter_map(|it| it.addresses).flatten();
    let mut addresses: Vec<_> = addresses.map(|it| it.ip).collect();
    addresses.sort();
    Ok(addresses)
}
