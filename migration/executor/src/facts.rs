//! What a plan reads from the server besides its objects: definitions, rights, quotas. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::calls::{Calls, Depth};
use crate::response::Rejection;
use migration::failure::Reason;
use migration::groups::Groups;
use migration::inventory::{shared, target_key};
use migration::journal::Failure;
use migration::object::Resource;
use migration::preflight::{Definition, Denied, Facts, Quota};
use migration::snapshot::Snapshot;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// How many access reviews run concurrently.
const QUESTIONS: usize = 8;
/// The verbs that are used on the groups of both types.
const MOVING: [&str; 5] = ["create", "get", "list", "patch", "delete"];
/// What is done with dependents.
const REPARENTING: [&str; 2] = ["get", "patch"];
/// What is done for the copies of objects of the whole cluster.
const SHARING: [&str; 3] = ["create", "get", "patch"];

/// One right.
#[derive(Debug, Clone)]
struct Right {
    verb: &'static str,
    resource: Arc<Resource>,
    subresource: &'static str,
    namespace: String,
}

/// Asks for everything.
pub(crate) async fn facts(
    calls: &Calls,
    groups: &Groups,
    snapshot: &Snapshot,
    namespaces: &[String],
) -> Result<Facts, Failure> {
    let mut quotas = Vec::new();
    for namespace in namespaces {
        quotas.extend(free(calls, namespace).await?);
    }
    Ok(Facts {
        definitions: definitions(calls, groups).await?,
        denied: denied(calls, rights(groups, snapshot, namespaces)).await?,
        quotas,
    })
}

/// The definitions of the groups' kinds; nothing without permission to read them.
async fn definitions(calls: &Calls, groups: &Groups) -> Result<Vec<Definition>, Failure> {
    let kind = Resource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespaced: false,
        has_status: true,
        served: vec!["v1".to_owned()],
    };
    let found = match calls.list(&kind, "", Depth::Whole).await {
        Err(Rejection::Refused {
            reason: Reason::PermissionDenied,
            ..
        }) => Vec::new(),
        found => found.map_err(|fault| fault.into_failure("list CustomResourceDefinitions"))?,
    };
    let all = found.into_iter().map(definition);
    let known = |definition: &Definition| {
        let table = groups.table();
        table.find(definition.group.as_bytes()).is_some()
    };
    Ok(all.filter(known).collect())
}

fn definition(mut crd: Value) -> Definition {
    let text = |at: &str| {
        crd.pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    let mut definition = Definition {
        group: text("/spec/group"),
        kind: text("/spec/names/kind"),
        established: conditions
            .filter(|condition| condition["type"] == "Established")
            .any(|condition| condition["status"] == "True"),
        stored: String::new(),
        schemas: BTreeMap::new(),
    };
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default().to_owned();
        if version["storage"] == true {
            definition.stored.clone_from(&name);
        }
        if version["served"] == true {
            let schema = version["schema"]["openAPIV3Schema"].take();
            definition.schemas.insert(name, schema);
        }
    }
    definition
}

/// The rights that a migration needs.
fn rights(groups: &Groups, snapshot: &Snapshot, namespaces: &[String]) -> Vec<Right> {
    let mut rights = Vec::new();
    for namespace in namespaces {
        for resource in snapshot.resources().filter(|resource| resource.namespaced) {
            let mut need = |verb, subresource| {
                rights.push(Right {
                    verb,
                    resource: Arc::clone(resource),
                    subresource,
                    namespace: namespace.clone(),
                });
            };
            let moved = groups.is_source(&resource.group) || groups.is_target(&resource.group);
            if moved {
                for verb in MOVING {
                    need(verb, "");
                }
                if resource.has_status {
                    need("patch", "status");
                }
            } else if is_dependent(snapshot, resource, groups) {
                for verb in REPARENTING {
                    need(verb, "");
                }
            }
        }
    }
    rights.extend(rights_on_shared(groups, snapshot));
    rights
}

/// Those on the kinds of the whole cluster of which a copy lacks.
fn rights_on_shared(groups: &Groups, snapshot: &Snapshot) -> Vec<Right> {
    let missing = shared(groups, snapshot).into_iter().filter_map(|original| {
        let target = target_key(groups, original.key())?;
        let lacks = snapshot.get(&target).is_none();
        let resource = snapshot.resource(&target.group, &target.kind);
        resource.filter(|_| lacks)
    });
    let kinds: BTreeSet<_> = missing.collect();
    let rights = kinds.into_iter().flat_map(|resource| {
        SHARING.map(|verb| Right {
            verb,
            resource: Arc::clone(resource),
            subresource: "",
            namespace: String::new(),
        })
    });
    rights.collect()
}

/// Whether an object of this kind has an owner that is moved.
fn is_dependent(snapshot: &Snapshot, resource: &Resource, groups: &Groups) -> bool {
    let objects = snapshot.objects().filter(|object| {
        let key = object.key();
        key.group == resource.group && key.kind == resource.kind
    });
    let mut owners = objects.flat_map(migration::object::Object::owners);
    owners.any(|owner| groups.is_source(owner.group()))
}

async fn denied(calls: &Calls, rights: Vec<Right>) -> Result<Vec<Denied>, Failure> {
    let reviews: Vec<_> = rights.into_iter().map(|right| ask(calls, right)).collect();
    let reviews = stream::iter(reviews).buffered(QUESTIONS);
    let denied: Vec<_> = reviews.try_collect().await?;
    Ok(denied.into_iter().flatten().collect())
}

/// The right, if it lacks.
async fn ask(calls: &Calls, right: Right) -> Result<Option<Denied>, Failure> {
    let response = calls.create(REVIEWS, &right.review()).await;
    let response = response.map_err(|fault| fault.into_failure("ask what it may do"))?;
    Ok((response["status"]["allowed"] != true).then(|| right.denied()))
}

/// How many objects quotas still allow in a namespace.
async fn free(calls: &Calls, namespace: &str) -> Result<Vec<Quota>, Failure> {
    let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let found = match calls.find(&path).await {
        Err(Rejection::Refused {
            reason: Reason::PermissionDenied,
            ..
        }) => None,
        found => found.map_err(|fault| fault.into_failure("list ResourceQuotas"))?,
    };
    let mut found = found.unwrap_or_default();
    let mut quotas = Vec::new();
    for quota in found["items"].as_array_mut().into_iter().flatten() {
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        let number = |of: &str, counted: &str| -> Option<u64> {
            quota["status"][of][counted].as_str()?.parse().ok()
        };
        let hard = quota["status"]["hard"].as_object();
        for counted in hard.into_iter().flatten().map(|(counted, _)| counted) {
            let (hard, used) = (number("hard", counted), number("used", counted));
            if let (true, Some(hard), Some(used)) = (counted.starts_with("count/"), hard, used) {
                quotas.push(Quota {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    counted: counted.clone(),
                    free: hard.saturating_sub(used),
                });
            }
        }
    }
    Ok(quotas)
}

// === impl Right ===

impl Right {
    fn review(&self) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "verb": self.verb,
                    "group": self.resource.group,
                    "resource": self.resource.plural,
                    "subresource": self.subresource,
                    "namespace": self.namespace,
                },
            },
        })
    }

    fn denied(&self) -> Denied {
        let below = if self.subresource.is_empty() { "" } else { "/" };
        Denied {
            verb: self.verb.to_owned(),
            resource: format!("{}{below}{}", self.resource, self.subresource),
            namespace: self.namespace.clone(),
        }
    }
}
