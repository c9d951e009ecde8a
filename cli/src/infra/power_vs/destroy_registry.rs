//! Destroys the storage of the cluster's image registry, which its operator has created: buckets, credentials, and the
//! instance of Cloud Object Storage.

use anyhow::{Context as _, bail};
use futures::future::join_all;
use serde_json::Value;
use support::aws::Element;
use support::rest::{Calls, Error, Request};

use super::destroy::Left;
use super::executor::{Executor, Pace, id, is_deleted, required, text};

const INSTANCE: Pace = Pace::new(5, 10);
/// Deletions of objects at the same time.
const PARALLEL: usize = 16;

impl<C: Calls> Executor<'_, C> {
    /// The instance of Cloud Object Storage of the image registry.
    pub(super) async fn own_registry(&self, group: &str) -> anyhow::Result<Option<Value>> {
        let name = self.scope.registry();
        let what = format!("instance {name}");
        let found = self
            .list(&self.api.object_storages(group, &name), "resources")
            .await;
        let found = found.with_context(|| format!("failed to look for {what}"))?;
        let mut found = found.into_iter();
        let Some(found) = found.find(|it| it["name"] == name && !is_deleted(it)) else {
            return Ok(None);
        };
        self.is_tagged(&what, text(&found["crn"])).await?;
        Ok(Some(found))
    }

    pub(super) async fn delete_registry(&self, left: &Left) -> anyhow::Result<()> {
        let Some(instance) = self.own_registry(&left.group).await? else {
            return Ok(());
        };
        let what = format!("instance {}", self.scope.registry());
        let crn = required(&what, &instance, "crn")?;
        let guid = required(&what, &instance, "guid")?;
        self.delete_buckets(&crn).await?;
        self.delete_keys(left, &guid).await?;
        let delete = self.api.delete_instance(&guid);
        let look = self.api.instance(&guid);
        self.remove(&what, INSTANCE, &delete, &look).await
    }

    /// The buckets of the registry in the region of the cluster.
    async fn delete_buckets(&self, instance: &str) -> anyhow::Result<()> {
        let registry = self.scope.registry();
        let Some(region) = self.api.storage_region() else {
            bail!(
                "the region of the buckets of {registry} is not known for region {}: delete them yourself",
                self.scope.place.region
            );
        };
        let prefix = format!("{registry}-{region}");
        let listed = self.document(&self.api.buckets(instance)).await;
        let listed = listed.with_context(|| format!("failed to list buckets of {registry}"))?;
        let buckets = listed.map(|it| names(&it, "Buckets/Bucket", "Name"));
        for bucket in buckets.unwrap_or_default() {
            if !bucket.starts_with(&prefix) {
                continue;
            }
            let emptied = self.empty(&bucket).await;
            emptied.with_context(|| format!("failed to empty bucket {bucket}"))?;
            let delete = self.api.delete_stored(&bucket);
            self.delete(&format!("bucket {bucket}"), &delete).await?;
        }
        Ok(())
    }

    /// Lists and deletes until there is nothing to list.
    async fn empty(&self, bucket: &str) -> anyhow::Result<()> {
        loop {
            let listed = self.document(&self.api.objects(bucket)).await?;
            let keys = listed.map(|it| names(&it, "Contents", "Key"));
            let keys = keys.unwrap_or_default();
            if keys.is_empty() {
                return Ok(());
            }
            for keys in keys.chunks(PARALLEL) {
                let deletions = keys.iter().map(|key| self.delete_object(bucket, key));
                for deleted in join_all(deletions).await {
                    deleted?;
                }
            }
        }
    }

    async fn delete_object(&self, bucket: &str, key: &str) -> Result<(), Error> {
        let call = self.api.delete_stored(&format!("{bucket}/{key}"));
        match self.send(&call).await {
            Err(error) if !error.is_absent() => Err(error),
            _ => Ok(()),
        }
    }

    /// A document in XML. `None` if what the call names is not there.
    async fn document(&self, call: &Request) -> anyhow::Result<Option<Element>> {
        let Some(response) = self.find(call).await? else {
            return Ok(None);
        };
        let element = Element::parse(text(&response));
        element.map(Some).context("the response is no XML document")
    }

    /// The credentials of the instance, and the service IDs that were made for them.
    async fn delete_keys(&self, left: &Left, instance: &str) -> anyhow::Result<()> {
        let registry = self.scope.registry();
        let keys = self
            .list(&self.api.resource_keys(instance), "resources")
            .await;
        let keys = keys.with_context(|| format!("failed to list credentials of {registry}"))?;
        let own: Vec<_> = keys.iter().filter_map(|it| it.get("credentials")).collect();
        for key in &keys {
            // Before the credentials, which say what it is.
            let crn = text(&key["credentials"]["iam_serviceid_crn"]);
            if let Some(service_id) = crn.rsplit(':').next().filter(|it| !it.is_empty()) {
                self.delete_service_id_of(left, service_id, &own).await?;
            }
            let what = format!("credentials of {registry}");
            let id = match text(&key["guid"]) {
                "" => id(&what, key)?,
                guid => guid.to_owned(),
            };
            let delete = self.api.delete_resource_key(&id);
            self.delete(&what, &delete).await?;
        }
        Ok(())
    }

    /// A service ID, unless it has API keys beside those of the credentials of the instance: then it was not made for them.
    async fn delete_service_id_of(
        &self,
        left: &Left,
        service_id: &str,
        own: &[&Value],
    ) -> anyhow::Result<()> {
        let what = format!("service ID {service_id}");
        let iam_id = format!("iam-{service_id}");
        let is_own = |key: &Value| {
            own.iter().any(|credentials| {
                let has = |field: &str, of: &str| {
                    let value = text(&credentials[field]);
                    !value.is_empty() && value == text(&key[of])
                };
                has("iam_apikey_id", "id") || has("iam_apikey_name", "name")
            })
        };
        let keys = self.find_api_keys(&left.account, &iam_id).await?;
        if !keys.iter().all(is_own) {
            self.say(&format!("{what}: kept, because it has other API keys"));
            return Ok(());
        }
        for policy in self.find_policies(&left.account, &iam_id).await? {
            let what = format!("policy of {what}");
            let delete = self.api.delete_policy(&id(&what, &policy)?);
            self.delete(&what, &delete).await?;
        }
        let delete = self.api.delete_service_id(service_id);
        self.delete(&what, &delete).await
    }
}

/// The texts of elements at the end of a path, which may be there several times.
fn names(document: &Element, path: &str, name: &str) -> Vec<String> {
    let (parent, item) = match path.rsplit_once('/') {
        Some((parent, item)) => (document.at(parent), item),
        None => (Some(document), path),
    };
    let items = parent.into_iter().flat_map(|it| it.named(item));
    items.map(|it| it.text_at(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_documents() {
        let buckets = "<ListAllMyBucketsResult><Owner><ID>o</ID></Owner><Buckets><Bucket><Name>a</Name></Bucket>\
                       <Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>";
        let buckets = Element::parse(buckets).unwrap();
        assert_eq!(names(&buckets, "Buckets/Bucket", "Name"), ["a", "b"]);
        let objects = "<ListBucketResult><Name>a</Name><Contents><Key>k/1</Key></Contents></ListBucketResult>";
        let objects = Element::parse(objects).unwrap();
        assert_eq!(names(&objects, "Contents", "Key"), ["k/1"]);
        let none = Element::parse("<ListBucketResult></ListBucketResult>").unwrap();
        assert_eq!(names(&none, "Contents", "Key"), [""; 0]);
    }
}
