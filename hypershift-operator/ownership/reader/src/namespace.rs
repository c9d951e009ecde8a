//! Reads the namespaces of control planes, by metadata only.

use api::names::control_plane_namespace;
use k8s_openapi::api::core::v1;
use kube::api::ListParams;
use kube::{Api, Client};
use ownership::{Namespace, Namespaces};

use crate::Error;

/// Namespaces in one page of a list.
const PAGE: u32 = 500;

/// Reads the control plane namespace of a HostedCluster.
pub async fn find_namespace(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Namespace, Error> {
    let control_plane = control_plane_namespace(namespace, name);
    let api: Api<v1::Namespace> = Api::all(client.clone());
    let found = api.get_metadata_opt(&control_plane).await;
    let found = found.map_err(|source| Error::Get {
        what: format!("Namespace {control_plane}"),
        source,
    })?;
    let metadata = found.map(|found| found.metadata);
    Ok(Namespace::evaluate(namespace, name, metadata.as_ref()))
}

/// Reads all namespaces.
pub async fn list_namespaces(client: &Client) -> Result<Namespaces, Error> {
    let api: Api<v1::Namespace> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let list = api.list_metadata(&params).await;
        let list = list.map_err(Error::list("Namespaces"))?;
        all.extend(list.items.into_iter().map(|one| one.metadata));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ownership::CLUSTER_ANNOTATION;
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn all_namespaces_are_listed_with_their_owners() {
        let item = |name: &str, owner: &str| json!({ "metadata": { "name": name, "annotations": { CLUSTER_ANNOTATION: owner } } });
        let scenario = Scenario::new([Expect::get("/api/v1/namespaces").answer(Answer::list(&[
            item("clusters-a-b", "clusters-a/b"),
            json!({ "metadata": { "name": "clusters-c" } }),
        ]))]);
        let namespaces = list_namespaces(&scenario.client()).await.unwrap();
        scenario.finish();
        assert!(namespaces.of("clusters", "a-b").is_foreign());
        assert!(namespaces.of("clusters-a", "b").owned().is_some());
        assert_eq!(
            namespaces.of("clusters", "c"),
            Namespace::Unclaimed("clusters-c".to_owned())
        );
    }
}
