//! The hosted clusters, and which groups hold their Cluster API objects.

use api::group::GroupTable;
use api::names::control_plane_namespace;
use hypershift_operator::evidence::Reader;
use kube::Client;
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
        facts.push(one(&reader, cluster).await);
    }
    Ok(Found::Read(facts))
}

async fn one(reader: &Reader, cluster: &Value) -> ClusterFacts {
    let metadata = &cluster["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let inner = control_plane_namespace(namespace, name);
    ClusterFacts {
        name: format!("{namespace}/{name}"),
        annotations: annotations
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        evidence: reader.of(&inner).await.map_err(|error| chain(&error)),
    }
}
