//! What is there already: reads, and never writes.

use std::collections::{BTreeMap, BTreeSet};

use api::annotations::{MIGRATION_ROLLBACK, Protocol, ROLLBACK_REQUESTED};
use api::group::{CapiTypes, GroupTable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ownership::{Namespaces, ObservedGroups, evaluate, needs_legacy_operator};
use serde_json::Value;

use super::cluster::Cluster;
use super::external_dns::DnsSurroundings;
use super::kind::{Kind, text};
use super::object::Object;
use super::plan::Surroundings;
use super::preflight::{Loss, Observed, Version};
use super::{pruning, tenant_policy};

const NAMESPACES: &str = "/api/v1/namespaces";
const HOSTED_CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/hostedclusters";
/// Objects that a finding about a CRD names.
const NAMED: usize = 3;
/// Fields that a finding about an object names.
const FIELDS: usize = 5;

/// A kind of Cluster API, as it is served.
struct Served {
    group: String,
    plural: String,
    capi_types: CapiTypes,
    path: String,
}

/// The API server's version, if it reports one.
pub(crate) async fn version(cluster: &Cluster) -> kube::Result<Option<Version>> {
    Ok(Version::of(&cluster.get("/version").await?))
}

/// What the objects of an installation depend on.
pub(crate) async fn surroundings(
    cluster: &Cluster,
    installation: &str,
) -> kube::Result<Surroundings> {
    let kinds = cluster_api(cluster).await?;
    Ok(Surroundings {
        monitoring: has_monitoring(cluster).await?,
        console: cluster.find("/apis/console.openshift.io").await?.is_some(),
        legacy: legacy(cluster, &kinds).await?,
        tenant_policy: tenant_policy(cluster, installation).await?,
        // Only an installation with ExternalDNS looks.
        dns: DnsSurroundings::default(),
    })
}

/// What the tenant policy does unless a flag says otherwise: what it does now. Where it is new, nothing that authors of
/// existing hosted clusters do every day must begin to fail with an upgrade.
async fn tenant_policy(cluster: &Cluster, installation: &str) -> kube::Result<tenant_policy::Mode> {
    let path = tenant_policy::binding(installation).path();
    if let Some(binding) = cluster.find(&path).await? {
        return Ok(tenant_policy::Mode::of(&binding));
    }
    Ok(if cluster.holds_any(HOSTED_CLUSTERS).await? {
        tenant_policy::Mode::Warn
    } else {
        tenant_policy::Mode::Enforce
    })
}

async fn has_monitoring(cluster: &Cluster) -> kube::Result<bool> {
    let kinds = [Kind::ServiceMonitor, Kind::PodMonitor, Kind::PrometheusRule];
    let path = format!("/apis/{}", kinds[0].resource().api_version());
    let Some(served) = cluster.find(&path).await? else {
        return Ok(false);
    };
    let names: BTreeSet<&str> = resources(&served).map(|one| text(one, "/name")).collect();
    Ok(kinds
        .iter()
        .all(|kind| names.contains(kind.resource().plural)))
}

/// The namespaced kinds of Cluster API, each in the first version that serves it.
async fn cluster_api(cluster: &Cluster) -> kube::Result<Vec<Served>> {
    let table = GroupTable::default();
    let mut kinds: Vec<Served> = Vec::new();
    for (group, types) in table.pairs().iter().flat_map(|pair| {
        [CapiTypes::Standard, CapiTypes::Private].map(|types| (pair.name(types).to_owned(), types))
    }) {
        let Some(found) = cluster.find(&format!("/apis/{group}")).await? else {
            continue;
        };
        for version in found["versions"].as_array().into_iter().flatten() {
            let base = format!("/apis/{}", text(version, "/groupVersion"));
            let served = cluster.find(&base).await?.unwrap_or_default();
            for plural in namespaced(&served) {
                if kinds
                    .iter()
                    .all(|kind| kind.group != group || kind.plural != plural)
                {
                    kinds.push(Served {
                        path: format!("{base}/{plural}"),
                        group: group.clone(),
                        plural,
                        capi_types: types,
                    });
                }
            }
        }
    }
    Ok(kinds)
}

fn resources(list: &Value) -> impl Iterator<Item = &Value> {
    list["resources"].as_array().into_iter().flatten()
}

/// Resources with a namespace that are no subresources.
fn namespaced(list: &Value) -> Vec<String> {
    resources(list)
        .filter(|one| one["namespaced"] == true)
        .map(|one| text(one, "/name").to_owned())
        .filter(|name| !name.contains('/'))
        .collect()
}

/// The hosted clusters that need operator-legacy, by the operator's own rule on annotations and observed groups.
async fn legacy(cluster: &Cluster, kinds: &[Served]) -> kube::Result<Vec<String>> {
    let hosted = cluster.list_metadata(HOSTED_CLUSTERS).await?;
    if hosted.is_empty() {
        return Ok(Vec::new());
    }
    let namespaces = namespaces(&cluster.list_metadata(NAMESPACES).await?);
    let mut observed = BTreeMap::<String, ObservedGroups>::new();
    for kind in kinds {
        for object in cluster.list_metadata(&kind.path).await? {
            let namespace = text(&object, "/metadata/namespace").to_owned();
            let groups = observed.entry(namespace).or_default();
            *groups = groups.with(kind.capi_types);
        }
    }
    Ok(hosted
        .iter()
        .filter(|one| needs_legacy(one, &namespaces, &observed))
        .map(hosted_name)
        .collect())
}

/// The namespaces with their owners. One whose metadata has an unexpected form counts as absent.
fn namespaces(items: &[Value]) -> Namespaces {
    let metadata = items.iter().map(|item| item["metadata"].clone());
    metadata
        .filter_map(|metadata| serde_json::from_value::<ObjectMeta>(metadata).ok())
        .collect()
}

/// Whether a hosted cluster needs operator-legacy. In a namespace of another cluster neither the lock of this one nor
/// the observed objects count.
fn needs_legacy(
    hosted: &Value,
    namespaces: &Namespaces,
    observed: &BTreeMap<String, ObservedGroups>,
) -> bool {
    let annotations = &hosted["metadata"]["annotations"];
    // A rollback to standard types is requested.
    if annotations[MIGRATION_ROLLBACK] == ROLLBACK_REQUESTED {
        return true;
    }
    let annotations = serde_json::from_value(annotations.clone());
    let namespace = namespaces.of(
        text(hosted, "/metadata/namespace"),
        text(hosted, "/metadata/name"),
    );
    let protocol = namespace.protocol(Protocol::read(&annotations.unwrap_or_default()));
    let groups = observed.get(namespace.name());
    let groups = groups.filter(|_| !namespace.is_foreign()).copied();
    needs_legacy_operator([evaluate(&protocol, groups.unwrap_or_default())])
}

fn hosted_name(hosted: &Value) -> String {
    format!(
        "{}/{}",
        text(hosted, "/metadata/namespace"),
        text(hosted, "/metadata/name")
    )
}

/// All hosted clusters, by `namespace/name`.
pub(crate) async fn hosted_clusters(cluster: &Cluster) -> kube::Result<Vec<String>> {
    let hosted = cluster.list_metadata(HOSTED_CLUSTERS).await?;
    Ok(hosted.iter().map(hosted_name).collect())
}

/// What is there under the names of these objects.
pub(crate) async fn live(cluster: &Cluster, objects: &[Object]) -> kube::Result<Vec<Observed>> {
    let paths = objects.iter().map(|object| object.id.path()).collect();
    let found = cluster.find_all(paths).await?;
    Ok(objects
        .iter()
        .zip(found)
        .map(|(object, live)| Observed {
            id: object.id.clone(),
            live,
        })
        .collect())
}

/// What the new CRDs would do to stored objects. A CRD as it would be is what the API server answers, since others may
/// have added to it; where it refuses, it is what we want. All three are of the same order.
pub(crate) async fn losses(
    cluster: &Cluster,
    objects: &[Object],
    observed: &[Observed],
    answers: &[kube::Result<Value>],
) -> kube::Result<Vec<Loss>> {
    let mut losses = Vec::new();
    for ((object, observed), answer) in objects.iter().zip(observed).zip(answers) {
        let Some(live) = &observed.live else {
            continue;
        };
        if object.id.kind == Kind::Crd {
            let new = answer.as_ref().unwrap_or(&object.body);
            losses.extend(orphaned(new, live));
            losses.extend(pruned(cluster, new, live).await?);
        }
    }
    Ok(losses)
}

fn orphaned(new: &Value, live: &Value) -> Vec<Loss> {
    let stored = live["status"]["storedVersions"].as_array();
    stored
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|version| find_version(new, version).is_none())
        .map(|version| Loss::Orphaned {
            crd: text(new, "/metadata/name").to_owned(),
            version: version.to_owned(),
        })
        .collect()
}

async fn pruned(cluster: &Cluster, new: &Value, live: &Value) -> kube::Result<Vec<Loss>> {
    let storage = versions(live).find(|version| version["storage"] == true);
    let Some((name, old)) = storage.map(|version| (text(version, "/name"), schema(version))) else {
        return Ok(Vec::new());
    };
    let Some(schema) = find_version(new, name)
        .map(schema)
        .filter(|new| *new != old)
    else {
        return Ok(Vec::new());
    };
    let path = format!(
        "/apis/{}/{name}/{}",
        text(live, "/spec/group"),
        text(live, "/spec/names/plural")
    );
    let objects = cluster.list(&path, "").await?;
    Ok(objects
        .iter()
        .filter_map(|object| {
            let mut fields = pruning::dropped(object, schema);
            fields.truncate(FIELDS);
            (!fields.is_empty()).then(|| Loss::Pruned {
                crd: text(new, "/metadata/name").to_owned(),
                object: hosted_name(object),
                fields,
            })
        })
        .take(NAMED)
        .collect())
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

fn find_version<'v>(crd: &'v Value, name: &str) -> Option<&'v Value> {
    versions(crd).find(|version| version["name"] == name)
}

fn schema(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PREFIX: &str = "hypershift.openshift.io";

    /// HostedCluster `clusters/a.b`.
    fn hosted(annotations: &Value) -> Value {
        json!({ "metadata": { "namespace": "clusters", "name": "a.b", "annotations": annotations } })
    }

    /// Its control plane namespace, with this owner.
    fn owned_by(owner: &str) -> Namespaces {
        let annotations = json!({ ownership::CLUSTER_ANNOTATION: owner });
        namespaces(&[json!({ "metadata": { "name": "clusters-a-b", "annotations": annotations } })])
    }

    #[test]
    fn hosted_clusters_are_legacy_by_annotation_or_observed_groups() {
        let none = BTreeMap::new();
        let found = |groups| BTreeMap::from([("clusters-a-b".to_owned(), groups)]);
        let (standard, private) = (
            found(ObservedGroups::Standard),
            found(ObservedGroups::Private),
        );
        let table = [
            (json!({}), &none, false),
            (json!({}), &standard, true),
            (json!({}), &private, false),
            (json!({format!("{PREFIX}/scope"): "legacy"}), &none, true),
            (
                json!({format!("{PREFIX}/private-capi-types"): "true"}),
                &private,
                false,
            ),
            (
                json!({format!("{PREFIX}/private-capi-types"): "true"}),
                &standard,
                true,
            ),
            (
                json!({format!("{PREFIX}/migration-in-progress"): "true"}),
                &private,
                true,
            ),
        ];
        let namespaces = owned_by("clusters/a.b");
        for (annotations, observed, expected) in table {
            let needed = needs_legacy(&hosted(&annotations), &namespaces, observed);
            assert_eq!(needed, expected, "{annotations}");
        }
    }

    #[test]
    fn a_namespace_of_another_cluster_makes_no_cluster_legacy() {
        let standard = BTreeMap::from([("clusters-a-b".to_owned(), ObservedGroups::Standard)]);
        let foreign = owned_by("clusters-a/b");
        let locked = json!({
            format!("{PREFIX}/private-capi-types"): "true",
            format!("{PREFIX}/migration-in-progress"): "true",
        });
        for annotations in [json!({}), locked] {
            let needed = needs_legacy(&hosted(&annotations), &foreign, &standard);
            assert!(!needed, "{annotations}");
        }
        let legacy = json!({ format!("{PREFIX}/scope"): "legacy" });
        assert!(needs_legacy(&hosted(&legacy), &foreign, &BTreeMap::new()));
    }

    #[test]
    fn a_stored_version_that_goes_orphans_objects() {
        let new = json!({"metadata": {"name": "a"}, "spec": {"versions": [{"name": "v1"}]}});
        let live = json!({"status": {"storedVersions": ["v1beta1", "v1"]}});
        let orphaned = orphaned(&new, &live);
        let expected = Loss::Orphaned {
            crd: "a".to_owned(),
            version: "v1beta1".to_owned(),
        };
        assert_eq!(orphaned, [expected]);
    }
}
