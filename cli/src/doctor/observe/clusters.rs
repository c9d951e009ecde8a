//! The hosted clusters, and which groups hold their Cluster API objects.

use api::group::GroupTable;
use kube::Client;
use ownership_reader::{Reader, find_namespace};
use serde_json::Value;

use super::{OWN_GROUP, found, get};
use crate::doctor::observation::{ClusterFacts, Found};
use support::error::chain;

pub(super) async fn observe(
    client: &Client,
    table: &GroupTable,
) -> kube::Result<Found<Vec<ClusterFacts>>> {
    let path = format!("/apis/{OWN_GROUP}/v1beta1/hostedclusters");
    let list = match found(get(client, &path).await)? {
        Found::Read(list) => list,
        Found::Unknown => return Ok(Found::Unknown),
        Found::Refused(reason) => return Ok(Found::Refused(reason)),
    };
    let reader = Reader::new(client.clone(), table.clone());
    let mut facts = Vec::new();
    for cluster in list["items"].as_array().into_iter().flatten() {
        facts.push(one(client, &reader, cluster).await);
    }
    Ok(Found::Read(facts))
}

async fn one(client: &Client, reader: &Reader, cluster: &Value) -> ClusterFacts {
    let metadata = &cluster["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let found = find_namespace(client, namespace, name).await;
    ClusterFacts {
        name: format!("{namespace}/{name}"),
        annotations: annotations
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        refusal: found
            .as_ref()
            .ok()
            .and_then(|it| it.refusal(namespace, name)),
        observed: match found {
            Ok(found) => reader.of(&found).await.map_err(|error| chain(&error)),
            Err(error) => Err(chain(&error)),
        },
    }
}
