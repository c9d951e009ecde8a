//! OpenShift's APIs in the hosted cluster: the servers are pods of the control plane, and the API server forwards to them.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::client::Resource;
use testbed::hosted::{Fixture, Guest};
use testbed::node::condition;

const API_SERVICES: Resource<'_> = Resource::new("apiregistration.k8s.io/v1", "apiservices");
const ROUTES: Resource<'_> = Resource::new("route.openshift.io/v1", "routes");
const NAMESPACES: Resource<'_> = Resource::new("v1", "namespaces");
const OAUTH_CLIENTS: Resource<'_> = Resource::new("oauth.openshift.io/v1", "oauthclients");
/// One of each server.
const GROUPS: [&str; 2] = ["v1.route.openshift.io", "v1.oauth.openshift.io"];
const NAMESPACE: &str = "aggregated";

/// Each server answers; a namespace with an object of one is deleted completely.
pub(crate) async fn apis_answer(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let client = &guest.client;
    let stage = "aggregated APIs are available";
    fixture
        .stage(stage, async || {
            for group in GROUPS {
                let path = format!("{}/{group}", API_SERVICES.all());
                condition(&client.get(&path).await?, "Available")?;
            }
            // What hosted-cluster-config-operator writes through them.
            let clients = client.list(&OAUTH_CLIENTS.all()).await?;
            ensure!(clients.len() == 3, "{} OAuthClients", clients.len());
            Ok(())
        })
        .await?;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
    });
    client.apply(&[namespace]).await?;
    let route = json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": { "name": "a" },
        "spec": { "host": "a.example.com", "to": { "kind": "Service", "name": "a" } },
    });
    client.create(&ROUTES.within(NAMESPACE), &route).await?;
    let found = client.get(&ROUTES.named(NAMESPACE, "a")).await?;
    ensure!(found["spec"] == route["spec"], "{found}");
    let path = format!("{}/{NAMESPACE}", NAMESPACES.all());
    client.delete(&path).await?;
    fixture
        .stage("a namespace with a Route is deleted", async || {
            let left = client.find(&path).await?;
            ensure!(left.is_none(), "{}", left.unwrap_or_default()["status"]);
            Ok(())
        })
        .await?;
    let left = client.list(&ROUTES.all()).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
