//! One kind: where its objects are, and what its definition promises of them.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::{ApiClient, Resource};

/// A kind, by its definition.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The definition's name.
    pub(crate) name: String,
    definition: Value,
    api_version: String,
    plural: String,
    namespaced: bool,
    has_status: bool,
}

impl Kind {
    pub(crate) fn of(definition: &Value) -> Result<Self> {
        let spec = &definition["spec"];
        let text = |value: &Value| {
            let text = value.as_str().map(str::to_owned);
            text.with_context(|| format!("{} is not whole", definition["metadata"]["name"]))
        };
        let version = &spec["versions"][0];
        Ok(Self {
            name: text(&definition["metadata"]["name"])?,
            api_version: format!("{}/{}", text(&spec["group"])?, text(&version["name"])?),
            plural: text(&spec["names"]["plural"])?,
            namespaced: spec["scope"] == "Namespaced",
            has_status: version["subresources"].get("status").is_some(),
            definition: definition.clone(),
        })
    }

    /// Where all objects are.
    pub(crate) fn collection(&self) -> String {
        self.resource().all()
    }

    /// Where an object is created.
    pub(crate) fn path_for(&self, object: &Value) -> String {
        match (self.namespaced, object["metadata"]["namespace"].as_str()) {
            (true, namespace) => self.resource().within(namespace.unwrap_or("default")),
            (false, _) => self.resource().all(),
        }
    }

    /// Where an object is.
    pub(crate) fn path_of(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", self.path_for(object))
    }

    fn resource(&self) -> Resource<'_> {
        Resource::new(&self.api_version, &self.plural)
    }

    fn schema(&self) -> &Value {
        &self.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    }

    /// Creates an object, with its status.
    pub(crate) async fn create(&self, admin: &ApiClient, object: &Value) -> Result<Value> {
        let stored = admin.create(&self.path_for(object), object).await?;
        self.write_status(admin, stored, object).await
    }

    /// Replaces a stored object, with its status.
    pub(crate) async fn update(
        &self,
        admin: &ApiClient,
        stored: &Value,
        object: &Value,
    ) -> Result<Value> {
        let object = with_version_of(stored, object);
        let stored = admin.replace(&self.path_of(&object), &object).await?;
        self.write_status(admin, stored, &object).await
    }

    async fn write_status(
        &self,
        admin: &ApiClient,
        stored: Value,
        object: &Value,
    ) -> Result<Value> {
        if !self.has_status || object["status"].is_null() {
            return Ok(stored);
        }
        let path = format!("{}/status", self.path_of(object));
        admin
            .replace(&path, &with_version_of(&stored, object))
            .await
    }

    /// The server accepted the names, the subresources and the descriptions.
    pub(crate) async fn is_as_defined(&self, admin: &ApiClient) -> Result<()> {
        let list = admin.get(&format!("/apis/{}", self.api_version)).await?;
        let resources = list["resources"].as_array().context("no resources")?;
        let find = |name: &str| resources.iter().find(|resource| resource["name"] == name);
        let found = find(&self.plural).with_context(|| format!("{} is not served", self.name))?;
        let names = &self.definition["spec"]["names"];
        for key in ["kind", "shortNames", "categories"] {
            ensure!(
                found.get(key) == names.get(key),
                "{key} of {}: {found}",
                self.name
            );
        }
        let subresources = &self.definition["spec"]["versions"][0]["subresources"];
        for name in ["status", "scale"] {
            let served = find(&format!("{}/{name}", self.plural)).is_some();
            ensure!(
                served == subresources.get(name).is_some(),
                "{name} of {}: served is {served}",
                self.name
            );
        }
        self.is_explained(admin).await
    }

    /// `kubectl explain` reads its descriptions from there.
    async fn is_explained(&self, admin: &ApiClient) -> Result<()> {
        let document = admin
            .get(&format!("/openapi/v3/apis/{}", self.api_version))
            .await?;
        let schemas = document["components"]["schemas"].as_object();
        let kind = &self.definition["spec"]["names"]["kind"];
        let published = schemas
            .into_iter()
            .flat_map(|schemas| schemas.values())
            .find(|schema| schema["x-kubernetes-group-version-kind"][0]["kind"] == *kind)
            .with_context(|| format!("{} is in no document", self.name))?;
        for part in ["spec", "status"] {
            same_words(
                &format!("{}.{part}", self.name),
                &self.schema()["properties"][part],
                &published["properties"][part],
            )?;
        }
        Ok(())
    }

    /// Wherever something is that has a default within, the default is there.
    pub(crate) fn has_its_defaults(&self, stored: &Value) -> Result<()> {
        defaults(&self.name, self.schema(), stored)
    }
}

fn same_words(path: &str, defined: &Value, published: &Value) -> Result<()> {
    ensure!(
        defined["description"] == published["description"],
        "{path} is explained by {}",
        published["description"]
    );
    for (name, property) in defined["properties"].as_object().into_iter().flatten() {
        let published = &published["properties"][name];
        same_words(&format!("{path}.{name}"), property, published)?;
    }
    Ok(())
}

fn defaults(path: &str, schema: &Value, value: &Value) -> Result<()> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match value.get(name) {
            Some(inner) => defaults(&path, property, inner)?,
            None => ensure!(
                property.get("default").is_none(),
                "{path} was not filled in: {value}"
            ),
        }
    }
    Ok(())
}

fn with_version_of(stored: &Value, object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    object
}
