//! What the operator's service account may do, as the API server says.

use api::group::{CapiTypes, GroupTable};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::OWN_GROUP;
use crate::doctor::observation::PermissionFacts;

/// The operator's service account.
const ACCOUNT: &str = "operator";
/// The lease by which its replicas find their leader.
const LEASE: &str = "hypershift-operator-leader-elect";
const READ: [&str; 3] = ["get", "list", "watch"];
/// What hosted clusters are marked with.
const WRITE: [&str; 1] = ["patch"];

/// A resource and what must be allowed on it.
struct Need {
    verbs: Vec<&'static str>,
    group: String,
    resource: &'static str,
    namespace: Option<String>,
    /// Only the object of this name.
    name: Option<&'static str>,
}

pub(super) async fn observe(
    client: &Client,
    namespace: &str,
    table: &GroupTable,
) -> kube::Result<Vec<PermissionFacts>> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let mut permissions = Vec::new();
    for need in needs(namespace, table) {
        for verb in &need.verbs {
            let review = review(&user, verb, &need);
            let answer = api.create(&PostParams::default(), &review).await?;
            permissions.push(PermissionFacts {
                verb: (*verb).to_owned(),
                resource: qualified(&need),
                allowed: answer.status.is_some_and(|status| status.allowed),
            });
        }
    }
    Ok(permissions)
}

/// What the operator cannot do without, whatever else it is installed with.
fn needs(namespace: &str, table: &GroupTable) -> Vec<Need> {
    let mut needs = vec![
        Need {
            verbs: READ.into_iter().chain(WRITE).collect(),
            group: OWN_GROUP.to_owned(),
            resource: "hostedclusters",
            namespace: None,
            name: None,
        },
        lease(vec!["create"], namespace, None),
        lease(vec!["get", "update"], namespace, Some(LEASE)),
    ];
    // Both types, since which of them has a cluster's objects decides who owns it.
    let core = table.pairs().first();
    for types in [CapiTypes::Standard, CapiTypes::Private] {
        needs.extend(core.map(|pair| Need {
            verbs: vec!["list"],
            group: pair.name(types).to_owned(),
            resource: "clusters",
            namespace: None,
            name: None,
        }));
    }
    needs
}

fn lease(verbs: Vec<&'static str>, namespace: &str, name: Option<&'static str>) -> Need {
    Need {
        verbs,
        group: "coordination.k8s.io".to_owned(),
        resource: "leases",
        namespace: Some(namespace.to_owned()),
        name,
    }
}

fn review(user: &str, verb: &str, need: &Need) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.to_owned()),
            resource_attributes: Some(ResourceAttributes {
                group: Some(need.group.clone()),
                resource: Some(need.resource.to_owned()),
                verb: Some(verb.to_owned()),
                namespace: need.namespace.clone(),
                name: need.name.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

fn qualified(need: &Need) -> String {
    format!("{}.{}", need.resource, need.group)
}
