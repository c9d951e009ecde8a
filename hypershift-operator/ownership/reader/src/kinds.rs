//! The kinds of Cluster API that the API server has, in standard and private groups.
//!
//! They are taken from the list of CRDs: discovery lags behind after a start of the API server, and a kind that is not
//! served yet must not be taken for one that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use api::group::{CapiTypes, GroupTable};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource};
use kube::Api;
use kube::api::{ApiResource, ListParams};

use crate::Error;

/// CRDs in one page of a list.
const PAGE: u32 = 500;

/// A kind whose objects decide the owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Whether its group is a standard or a private one.
    pub capi_types: CapiTypes,
    /// Where its objects are.
    pub resource: ApiResource,
}

/// All such kinds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kinds(Vec<Kind>);

/// The plurals of a group's CRDs.
type Plurals = BTreeSet<String>;

// === impl Kind ===

impl Kind {
    /// The name of its CRD.
    pub fn name(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }
}

// === impl Kinds ===

impl Kinds {
    pub(crate) fn all(&self) -> Vec<Kind> {
        self.0.clone()
    }

    pub(crate) fn of(&self, types: CapiTypes) -> Vec<Kind> {
        let kinds = self.0.iter().filter(|kind| kind.capi_types == types);
        kinds.cloned().collect()
    }
}

/// Finds the kinds.
pub(crate) async fn discover(client: &kube::Client, table: &GroupTable) -> Result<Kinds, Error> {
    let names = crd_names(client).await?;
    let mut kinds = Kinds::default();
    for (group, plurals) in by_group(table, &names) {
        let Some((_, types)) = table.find(group.as_bytes()) else {
            continue;
        };
        let served = served(client, &group).await?;
        kinds.0.extend(pick(types, &group, &plurals, &served)?);
    }
    Ok(kinds)
}

async fn crd_names(client: &kube::Client) -> Result<Vec<String>, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut names = Vec::new();
    loop {
        let list = api.list_metadata(&params).await;
        let list = list.map_err(Error::list("CustomResourceDefinitions"))?;
        names.extend(list.items.into_iter().filter_map(|crd| crd.metadata.name));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(names),
        }
    }
}

/// The CRDs of the table's groups. A CRD's name is `<plural>.<group>`.
fn by_group(table: &GroupTable, names: &[String]) -> BTreeMap<String, Plurals> {
    let mut groups = BTreeMap::<String, Plurals>::new();
    for name in names {
        if let Some((plural, group)) = name.split_once('.')
            && table.find(group.as_bytes()).is_some()
        {
            let plurals = groups.entry(group.to_owned()).or_default();
            plurals.insert(plural.to_owned());
        }
    }
    groups
}

/// What a group serves: each version with its resources, the preferred version first.
async fn served(
    client: &kube::Client,
    group: &str,
) -> Result<Vec<(String, Vec<APIResource>)>, Error> {
    let failed = |source| Error::Get {
        what: format!("API group {group}"),
        source,
    };
    let request = Request::get(format!("/apis/{group}")).body(Vec::new());
    let request = request.map_err(|source| failed(kube::Error::HttpError(source)))?;
    let found: APIGroup = client.request(request).await.map_err(failed)?;
    let preferred = found.preferred_version.map(|version| version.version);
    let mut versions: Vec<_> = found.versions.into_iter().map(|one| one.version).collect();
    versions.sort_by_key(|version| Some(version) != preferred.as_ref());
    let mut served = Vec::new();
    for version in versions {
        let list = client
            .list_api_group_resources(&format!("{group}/{version}"))
            .await
            .map_err(failed)?;
        served.push((version, list.resources));
    }
    Ok(served)
}

/// The kind of each CRD, in the first version that serves it. Objects without a namespace belong to no hosted cluster.
fn pick(
    capi_types: CapiTypes,
    group: &str,
    plurals: &Plurals,
    served: &[(String, Vec<APIResource>)],
) -> Result<Vec<Kind>, Error> {
    let mut kinds = Vec::new();
    for plural in plurals {
        let found = served.iter().find_map(|(version, resources)| {
            let resource = resources.iter().find(|one| one.name == *plural)?;
            Some((version, resource))
        });
        let Some((version, resource)) = found else {
            return Err(Error::NotServed {
                name: format!("{plural}.{group}"),
            });
        };
        if resource.namespaced {
            kinds.push(Kind {
                capi_types,
                resource: ApiResource {
                    group: group.to_owned(),
                    version: version.clone(),
                    api_version: format!("{group}/{version}"),
                    kind: resource.kind.clone(),
                    plural: plural.clone(),
                },
            });
        }
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, namespaced: bool) -> APIResource {
        APIResource {
            name: name.to_owned(),
            namespaced,
            ..APIResource::default()
        }
    }

    #[test]
    fn only_groups_of_the_table_are_read() {
        let names = [
            "clusters.cluster.x-k8s.io",
            "machines.cluster.hypershift.openshift.io",
            "machines.machine.openshift.io",
            "providers.clusterctl.cluster.x-k8s.io",
            "hostedclusters.hypershift.openshift.io",
        ];
        let groups = by_group(&GroupTable::default(), &names.map(str::to_owned));
        let groups: Vec<_> = groups.keys().map(String::as_str).collect();
        assert_eq!(
            groups,
            ["cluster.hypershift.openshift.io", "cluster.x-k8s.io"]
        );
    }

    /// Check O01.
    #[test]
    fn a_crd_that_is_not_served_is_an_error() {
        let plurals = Plurals::from(["machines".to_owned(), "clusters".to_owned()]);
        let served = [("v1".to_owned(), vec![resource("machines", true)])];
        let error = pick(CapiTypes::Standard, "a.b", &plurals, &served).unwrap_err();
        assert!(error.to_string().contains("clusters.a.b"), "{error}");
    }

    #[test]
    fn each_kind_is_read_in_the_first_version_that_has_it() {
        let plurals = ["machines", "pools", "identities"].map(str::to_owned);
        let served = [
            (
                "v2".to_owned(),
                vec![resource("machines", true), resource("identities", false)],
            ),
            (
                "v1".to_owned(),
                vec![resource("machines", true), resource("pools", true)],
            ),
        ];
        let kinds = pick(CapiTypes::Private, "a.b", &plurals.into(), &served).unwrap();
        let found: Vec<_> = kinds
            .iter()
            .map(|kind| (kind.name(), kind.resource.version.as_str()))
            .collect();
        let expected = [
            ("machines.a.b".to_owned(), "v2"),
            ("pools.a.b".to_owned(), "v1"),
        ];
        assert_eq!(found, expected);
    }
}
