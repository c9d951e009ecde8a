//! Lists of our kinds: an object that does not deserialize, because another version wrote it, is reported by name and
//! hides no other.

use std::fmt;

use kube::Resource;
use kube::api::{ApiResource, DynamicObject, ListParams, TypeMeta};
use kube::{Api, Client};
use serde::de::DeserializeOwned;

/// The objects of a list.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// An object that does not deserialize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    kind: String,
    /// `<namespace>/<name>`.
    pub(crate) name: String,
    problem: String,
}

/// The API of a kind, untyped.
pub(crate) fn api<T: Resource<DynamicType = ()>>(
    client: Client,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<T>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Lists all objects of a kind, in one namespace or in all, as the API server has them.
pub(crate) async fn objects<T: Resource<DynamicType = ()>>(
    client: Client,
    namespace: Option<&str>,
) -> kube::Result<Vec<DynamicObject>> {
    let list = api::<T>(client, namespace);
    let mut objects = list.list(&ListParams::default()).await?.items;
    // Items of a list have no types of their own.
    for object in &mut objects {
        object.types = Some(TypeMeta {
            api_version: T::api_version(&()).into_owned(),
            kind: T::kind(&()).into_owned(),
        });
    }
    Ok(objects)
}

/// The object with its Rust type.
pub(crate) fn typed<T: DeserializeOwned>(object: &DynamicObject) -> Result<T, Unreadable> {
    let typed = serde_json::to_value(object).and_then(serde_json::from_value);
    typed.map_err(|error| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let namespace = text(&object.metadata.namespace);
        let kind = object.types.as_ref().map(|types| types.kind.clone());
        Unreadable {
            kind: kind.unwrap_or_default(),
            name: format!("{namespace}/{}", text(&object.metadata.name)),
            problem: error.to_string(),
        }
    })
}

// === impl Listed ===

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

impl<T: DeserializeOwned> FromIterator<DynamicObject> for Listed<T> {
    fn from_iter<I: IntoIterator<Item = DynamicObject>>(objects: I) -> Self {
        let mut listed = Self::default();
        for object in objects {
            match typed(&object) {
                Ok(item) => listed.items.push(item),
                Err(unreadable) => listed.unreadable.push(unreadable),
            }
        }
        listed
    }
}

// === impl Unreadable ===

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            problem,
        } = self;
        write!(f, "failed to read {kind} {name}: {problem}")
    }
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::node_pool::NodePool;
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn pool(name: &str, replicas: &Value) -> Value {
        json!({
            "metadata": { "namespace": "clusters", "name": name },
            "spec": {
                "clusterName": "a",
                "release": { "image": "registry.example.com/release:1" },
                "platform": { "type": "None" },
                "management": { "upgradeType": "Replace" },
                "replicas": replicas,
            },
        })
    }

    #[tokio::test]
    async fn an_object_that_does_not_deserialize_hides_no_other() {
        let pools = [
            pool("one", &json!(1)),
            pool("odd", &json!("many")),
            pool("two", &json!(2)),
        ];
        let path = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools";
        let scenario = Scenario::new([Expect::get(path).answer(Answer::list(&pools))]);
        let objects = objects::<NodePool>(scenario.client(), Some("clusters")).await;
        scenario.finish();
        let listed: Listed<NodePool> = objects.unwrap().into_iter().collect();
        let replicas: Vec<_> = listed.items.iter().map(|it| it.spec.replicas).collect();
        assert_eq!(replicas, [Some(1), Some(2)]);
        let [odd] = listed.unreadable.as_slice() else {
            panic!("{:?}", listed.unreadable)
        };
        let odd = odd.to_string();
        assert!(
            odd.starts_with("failed to read NodePool clusters/odd: "),
            "{odd}"
        );
    }
}
