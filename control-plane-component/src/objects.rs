//! Objects of the hosted control plane's namespace, indexed by group, kind and name.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::render::Identity;

/// Group, kind and name: kinds of different groups may have the same name.
type Key = (String, String, String);

/// Objects of one namespace. A clone shares them: each component is rendered with one, to which its manifests are added.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<Arc<Key>, Arc<Value>>);

// === impl Objects ===

impl Objects {
    /// Adds an object, or replaces it. An object without a kind or a name is ignored.
    pub fn insert(&mut self, object: Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str();
        let name = object["metadata"]["name"].as_str();
        if let (Some(kind), Some(name)) = (kind, name) {
            let key = key(group(api_version), kind, name);
            self.0.insert(Arc::new(key), Arc::new(object));
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, identity: &Identity) {
        self.0
            .remove(&key(identity.group(), &identity.kind, &identity.name));
    }

    /// Returns an object. The core group is the empty string.
    pub fn get(&self, group: &str, kind: &str, name: &str) -> Option<&Value> {
        self.0.get(&key(group, kind, name)).map(Arc::as_ref)
    }

    /// Returns the object with this identity, ignoring the API version.
    pub fn find(&self, identity: &Identity) -> Option<&Value> {
        self.get(identity.group(), &identity.kind, &identity.name)
    }

    /// Returns all objects of a kind, sorted by name.
    pub fn of_kind<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0
            .range::<Key, _>(key(group, kind, "")..)
            .take_while(move |(key, _)| key.0 == group && key.1 == kind)
            .map(|(key, object)| (key.2.as_str(), object.as_ref()))
    }

    /// Returns an object as a type, or `None` if it does not deserialize.
    pub fn typed<K: DeserializeOwned>(&self, group: &str, kind: &str, name: &str) -> Option<K> {
        self.get(group, kind, name)
            .and_then(|object| K::deserialize(object).ok())
    }

    /// A Secret.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.typed("", "Secret", name)
    }

    /// A value of a Secret.
    pub fn secret_value(&self, name: &str, key: &str) -> Option<Vec<u8>> {
        self.secret(name)?.data?.remove(key).map(|value| value.0)
    }

    /// A `ConfigMap`.
    pub fn config_map(&self, name: &str) -> Option<ConfigMap> {
        self.typed("", "ConfigMap", name)
    }

    /// A value of a `ConfigMap`.
    pub fn config_value(&self, name: &str, key: &str) -> Option<String> {
        self.config_map(name)?.data?.remove(key)
    }
}

impl FromIterator<Value> for Objects {
    fn from_iter<I: IntoIterator<Item = Value>>(objects: I) -> Self {
        let mut all = Self::default();
        objects.into_iter().for_each(|object| all.insert(object));
        all
    }
}

fn key(group: &str, kind: &str, name: &str) -> Key {
    (group.to_owned(), kind.to_owned(), name.to_owned())
}

/// The group of an `apiVersion`.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Finding F11: a Knative Service is not a core Service.
    #[test]
    fn objects_of_different_groups_are_distinct() {
        let object = |version: &str| json!({ "apiVersion": version, "kind": "Service", "metadata": { "name": "a" } });
        let core = Identity {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name: "a".to_owned(),
        };
        let other = "serving.knative.dev";
        let mut objects: Objects = [object("v1"), object("serving.knative.dev/v1")]
            .into_iter()
            .collect();
        assert_eq!(objects.find(&core), Some(&object("v1")));
        assert_eq!(objects.of_kind(other, "Service").count(), 1);
        objects.remove(&core);
        assert_eq!(objects.find(&core), None);
        assert!(objects.get(other, "Service", "a").is_some());
    }
}
