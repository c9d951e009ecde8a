//! Aggregated API servers of a hosted control plane, before a real API server: with the certificates that PKI issues,
//! the flags that components render, and the registrations that hosted-cluster-config-operator writes.

mod control_plane;
mod server;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use control_plane_operator::hosted_cluster_config::resources::desired::{
    Guest, Input, STEPS, Settings, Writer,
};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource, status_code};
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::node::condition;
use testbed::progress::Progress;
use testbed::service_account::ensure_namespace;
use testbed::wait;

use control_plane::ControlPlane;

const ROUTES: Resource<'_> = Resource::new("route.openshift.io/v1", "routes");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const NAMESPACES: Resource<'_> = Resource::new("v1", "namespaces");
const CLIENTS: &str = "/apis/oauth.openshift.io/v1/oauthclients";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Garbage collection looks for new kinds every 30 s.
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test]
async fn aggregated_apis_answer_through_the_api_server() -> Result<()> {
    let mut control_plane = ControlPlane::start("aggregated-apis", Progress::detect()).await?;
    let outcome = scenario(&mut control_plane).await;
    control_plane.finish(outcome)
}

async fn scenario(control_plane: &mut ControlPlane) -> Result<()> {
    let admin = control_plane.admin().clone();
    let step = control_plane
        .progress
        .step("eleven groups are registered and available");
    are_available(control_plane).await?;
    step.done();
    let step = control_plane
        .progress
        .step("objects are created, watched, changed, and deleted");
    objects_are_served(&admin).await?;
    oauth_clients_are_written_once(control_plane).await?;
    step.done();
    let step = control_plane
        .progress
        .step("permissions of users and of direct clients");
    users_need_permission(control_plane).await?;
    direct_clients_are_authenticated(control_plane).await?;
    step.done();
    let step = control_plane
        .progress
        .step("namespaces are deleted, and dependents collected");
    control_plane.start_controller_manager().await?;
    dependents_are_collected(&admin).await?;
    namespaces_are_deleted(&admin).await?;
    step.done();
    Ok(())
}

/// The API server has reached each of them, and has verified the server's certificate.
async fn are_available(control_plane: &ControlPlane) -> Result<()> {
    let names = control_plane.register().await?;
    ensure!(names.len() == 11, "{names:?}");
    for name in names {
        let path = format!("{API_SERVICES}/{name}");
        wait::until(
            &format!("APIService {name} to be available"),
            PATIENCE,
            async || condition(&control_plane.admin().get(&path).await?, "Available"),
        )
        .await?;
    }
    let groups = control_plane.admin().get("/apis").await?;
    for group in [
        "route.openshift.io",
        "user.openshift.io",
        "project.openshift.io",
    ] {
        let groups = groups["groups"].as_array().into_iter().flatten();
        ensure!(groups.into_iter().any(|it| it["name"] == group), "{group}");
    }
    Ok(())
}

async fn objects_are_served(admin: &ApiClient) -> Result<()> {
    ensure_namespace(admin, "one").await?;
    let path = ROUTES.within("one");
    let version = admin.get(&path).await?["metadata"]["resourceVersion"].clone();
    let version = version.as_str().context("a list without a version")?;
    let created = admin.create(&path, &route("a")).await?;
    ensure!(created["metadata"]["uid"].is_string(), "{created}");
    let named = ROUTES.named("one", "a");
    let label = json!({ "metadata": { "labels": { "app": "x" } } });
    admin.patch(&named, Patch::Merge, &label).await?;
    let selected = admin
        .list(&format!("{}?labelSelector=app%3Dx", ROUTES.all()))
        .await?;
    ensure!(selected.len() == 1, "{selected:?}");
    admin.delete(&named).await?;
    ensure!(admin.find(&named).await?.is_none());
    let seen = changes(admin, version).await?;
    ensure!(seen == ["ADDED", "MODIFIED", "DELETED"], "{seen:?}");
    Ok(())
}

/// The changes of Routes after a version.
async fn changes(admin: &ApiClient, version: &str) -> Result<Vec<&'static str>> {
    use futures::TryStreamExt as _;
    let kind = GroupVersionKind::gvk("route.openshift.io", "v1", "Route");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(admin.kube().clone(), "one", &resource);
    let params = WatchParams::default().timeout(1);
    let events = api
        .watch(&params, version)
        .await?
        .map_ok(|event| match event {
            WatchEvent::Added(_) => "ADDED",
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
            WatchEvent::Bookmark(_) => "BOOKMARK",
            WatchEvent::Error(_) => "ERROR",
        });
    Ok(events.try_collect().await?)
}

/// As hosted-cluster-config-operator writes them; the second time there is nothing to write.
async fn oauth_clients_are_written_once(control_plane: &ControlPlane) -> Result<()> {
    let step = STEPS
        .iter()
        .find(|step| step.name == "OAuth clients")
        .context("no step")?;
    let writer = Writer::new(control_plane.admin().kube().clone(), "test");
    let hcp = json!({ "spec": {} });
    let mut guest = Guest::default();
    let mut versions = Vec::new();
    for _ in 0..2 {
        let settings = Settings::default();
        let input = Input {
            hcp: &hcp,
            release: &control_plane_component::Release::default(),
            sources: &control_plane_component::Objects::default(),
            guest: &guest,
            settings: &settings,
            random: &[7; 96],
            now: k8s_openapi::jiff::Timestamp::now(),
        };
        let objects = step.build(&input).objects;
        for object in objects.iter().filter(|it| it.key().kind == "OAuthClient") {
            let live = guest.get(&object.key()).cloned();
            let written = writer.write(object, live.as_ref()).await?;
            guest.insert(written.context("it was deleted")?);
        }
        let list = control_plane.admin().get(CLIENTS).await?;
        ensure!(list["items"].as_array().map(Vec::len) == Some(3), "{list}");
        versions.push(list["metadata"]["resourceVersion"].clone());
    }
    ensure!(
        versions[0] == versions[1],
        "the second pass wrote: {versions:?}"
    );
    Ok(())
}

async fn users_need_permission(control_plane: &ControlPlane) -> Result<()> {
    let ann = control_plane.user("ann").await?;
    let path = ROUTES.within("one");
    let refused = ann.get(&path).await.err().context("ann may read Routes")?;
    ensure!(status_code(&refused) == Some(403), "{refused:#}");
    let rules = json!([{
        "apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["list"],
    }]);
    let name = json!({ "name": "routes", "namespace": "one" });
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({ "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": name, "rules": rules });
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": name,
        "roleRef": { "apiGroup": rbac, "kind": "Role", "name": "routes" },
        "subjects": [{ "apiGroup": rbac, "kind": "User", "name": "ann" }],
    });
    control_plane.admin().apply(&[role, binding]).await?;
    wait::until("ann to be allowed to list Routes", PATIENCE, async || {
        ann.get(&path).await.map(drop)
    })
    .await
}

/// Only the front proxy's certificate vouches for a user; the authenticator may only ask for token reviews.
async fn direct_clients_are_authenticated(control_plane: &ControlPlane) -> Result<()> {
    let users = "/apis/user.openshift.io/v1/users";
    let reviews = "/apis/oauth.openshift.io/v1/tokenreviews";
    let oauth = &control_plane.oauth;
    let anonymous = oauth.client(None).await?;
    let refused = anonymous
        .get(users)
        .await
        .err()
        .context("anonymous users are served")?;
    ensure!(status_code(&refused) == Some(401), "{refused:#}");
    let authenticator = control_plane.credentials("openshift-authenticator-cert")?;
    let authenticator = oauth.client(Some(authenticator)).await?;
    let refused = authenticator
        .get(users)
        .await
        .err()
        .context("it may list users")?;
    ensure!(status_code(&refused) == Some(403), "{refused:#}");
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": "sha256~x" },
    });
    let answer = authenticator.create(reviews, &review).await?;
    ensure!(answer["status"]["authenticated"] == false, "{answer}");
    // Signed by an authority of another purpose, with the front proxy's headers missing.
    let proxy = control_plane.credentials("kas-aggregator-crt")?;
    let refused = oauth.client(Some(proxy)).await?.get(users).await;
    let refused = refused.err().context("a proxy without a user is served")?;
    ensure!(status_code(&refused) == Some(401), "{refused:#}");
    let stranger = control_plane.credentials("konnectivity-client")?;
    ensure!(
        oauth
            .client(Some(stranger))
            .await?
            .get(users)
            .await
            .is_err()
    );
    Ok(())
}

async fn dependents_are_collected(admin: &ApiClient) -> Result<()> {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "owner", "namespace": "one" },
    });
    admin.apply(&[owner]).await?;
    let owner = CONFIG_MAPS.named("one", "owner");
    let mut dependent = route("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": admin.get(&owner).await?["metadata"]["uid"],
    }]);
    admin.create(&ROUTES.within("one"), &dependent).await?;
    admin.delete(&owner).await?;
    let dependent = ROUTES.named("one", "dependent");
    wait::until("the owner's Route to be collected", PATIENCE, async || {
        ensure!(admin.find(&dependent).await?.is_none(), "it exists");
        Ok(())
    })
    .await
}

async fn namespaces_are_deleted(admin: &ApiClient) -> Result<()> {
    ensure_namespace(admin, "two").await?;
    admin.create(&ROUTES.within("two"), &route("last")).await?;
    let path = format!("{}/two", NAMESPACES.all());
    admin.delete(&path).await?;
    wait::until("namespace two to be deleted", PATIENCE, async || {
        let found = admin.find(&path).await?;
        ensure!(found.is_none(), "{}", found.unwrap_or_default()["status"]);
        Ok(())
    })
    .await?;
    let left = admin.list(&ROUTES.within("two")).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

fn route(name: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": { "name": name },
        "spec": { "host": format!("{name}.example.com"), "to": { "kind": "Service", "name": "a" } },
    })
}

// === impl ControlPlane ===

impl ControlPlane {
    /// A client for a user without permissions.
    async fn user(&self, name: &str) -> Result<ApiClient> {
        let certificate = self.testbed.authority.client(name, name, None)?;
        let endpoint = self.testbed.endpoint();
        let path = self.work_dir.join(format!("{name}.kubeconfig"));
        let credentials = Credentials::Certificate(&certificate);
        write_kubeconfig(
            &path,
            &endpoint.server,
            Some(&endpoint.authority),
            credentials,
        )?;
        ApiClient::from_kubeconfig(&path).await
    }
}
