//! Objects of the hosted control plane's namespace that are there, by kind and name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Objects of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<(String, String), Value>);

// === impl Objects ===

impl Objects {
    /// Adds an object, or replaces it. What has no kind or no name is left out.
    pub fn insert(&mut self, object: Value) {
        let kind = object["kind"].as_str().map(str::to_owned);
        let name = object["metadata"]["name"].as_str().map(str::to_owned);
        if let (Some(kind), Some(name)) = (kind, name) {
            self.0.insert((kind, name), object);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, kind: &str, name: &str) {
        self.0.remove(&(kind.to_owned(), name.to_owned()));
    }

    /// An object as it is.
    pub fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }

    /// All objects of a kind, by name.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0
            .iter()
            .filter(move |((found, _), _)| found == kind)
            .map(|((_, name), object)| (name.as_str(), object))
    }

    /// An object as a type. What does not have the type's form counts as absent.
    pub fn typed<K: DeserializeOwned>(&self, kind: &str, name: &str) -> Option<K> {
        self.get(kind, name)
            .and_then(|object| K::deserialize(object).ok())
    }

    /// A Secret.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        self.typed("Secret", name)
    }

    /// A value of a Secret.
    pub fn secret_value(&self, name: &str, key: &str) -> Option<Vec<u8>> {
        self.secret(name)?.data?.remove(key).map(|value| value.0)
    }

    /// A `ConfigMap`.
    pub fn config_map(&self, name: &str) -> Option<ConfigMap> {
        self.typed("ConfigMap", name)
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
