//! Buckets of S3: the one with the documents of the issuer of tokens, and those of the image registry, which are deleted.

use anyhow::{Context as _, bail};
use serde_json::json;
use support::aws::{Error, domain};

use super::call::{Call, Calls, Tags};
use super::destroy_network::Pass;
use super::executor::Executor;
use super::scope::tags;
use super::signing_key::SigningKey;
use crate::Usage;

/// The region whose buckets are created without naming it.
const FIRST_REGION: &str = "us-east-1";
/// The end of the name of a bucket that is created for one infrastructure.
const OWN_BUCKET: &str = "oidc";
const REGISTRY: &str = "image-registry-";
/// Responses about a bucket that has just been created.
const NEW_BUCKET: [&str; 2] = ["NoSuchBucket", "OperationAborted"];
/// What a request says that is about a bucket that does not exist; the response of HEAD has no body.
const ABSENT: [&str; 2] = ["NoSuchBucket", "404"];

/// Who issues the tokens of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) store: Store,
}

/// Where its documents are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    /// In a bucket of the infrastructure.
    Own(String),
    /// In a bucket that exists, under the name of the infrastructure.
    Shared(String),
    /// They are not the business of this command.
    Elsewhere,
}

// === impl Issuer ===

impl Issuer {
    /// The issuer of flags.
    pub(crate) fn new(
        infra_id: &str,
        region: &str,
        bucket: Option<&str>,
        url: Option<&str>,
    ) -> Result<Self, Usage> {
        if let Some(url) = url {
            if !url.starts_with("https://") {
                return Err(Usage::new(&format!(
                    "--oidc-issuer-url {url:?}: write a URL with https://"
                )));
            }
            return Ok(Self {
                url: url.trim_end_matches('/').to_owned(),
                store: Store::Elsewhere,
            });
        }
        let own = format!("{infra_id}-{OWN_BUCKET}");
        let host = format!("{}.s3.{region}", bucket.unwrap_or(&own));
        Ok(Self {
            url: format!("https://{host}.{}/{infra_id}", domain(region)),
            store: match bucket {
                Some(bucket) => Store::Shared(bucket.to_owned()),
                None => Store::Own(own),
            },
        })
    }

    /// The URL as providers of IAM have it.
    pub(crate) fn host_and_path(&self) -> &str {
        self.url.trim_start_matches("https://")
    }
}

/// The bucket in the URL of an issuer, if it is in S3.
pub(crate) fn bucket_of(provider: &str) -> Option<&str> {
    let (_, host) = provider.split_once(":oidc-provider/")?;
    let (bucket, _) = host.split_once(".s3.")?;
    (!bucket.contains('/')).then_some(bucket)
}

impl<C: Calls> Executor<'_, C> {
    /// Makes sure that there is a bucket for documents.
    pub(crate) async fn ensure_bucket(&self, issuer: &Issuer) -> anyhow::Result<()> {
        let Store::Own(bucket) = &issuer.store else {
            return Ok(());
        };
        let what = || format!("failed to create bucket {bucket}");
        if self.has_bucket(bucket).await.with_context(what)? {
            if !self.owns_bucket(bucket).await.with_context(what)? {
                bail!("bucket {bucket} belongs to another cluster: choose another --infra-id");
            }
            self.say(&format!("bucket {bucket}: exists"));
        } else {
            self.create_bucket(bucket).await.with_context(what)?;
        }
        let tags = self.scope.tags(bucket);
        self.publish_bucket(bucket, &tags).await.with_context(what)
    }

    /// Creates a bucket in the region of the cluster.
    pub(super) async fn create_bucket(&self, bucket: &str) -> anyhow::Result<()> {
        let create = Call::s3("CreateBucket").with("Bucket", bucket);
        let create = match self.scope.region.as_str() {
            FIRST_REGION => create,
            region => create.with("LocationConstraint", region),
        };
        let done = ["BucketAlreadyOwnedByYou"];
        self.settle(&create, &done, &["OperationAborted"]).await?;
        self.say(&format!("bucket {bucket}: created"));
        Ok(())
    }

    /// Tags a bucket, and lets everybody read its objects. The tags come first, so that an interrupted run is recognized.
    pub(super) async fn publish_bucket(&self, bucket: &str, tags: &Tags) -> anyhow::Result<()> {
        let named = |action| Call::s3(action).with("Bucket", bucket);
        let policy = json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": format!("arn:{}:s3:::{bucket}/*", self.scope.partition()),
            }],
        });
        for call in [
            named("PutBucketTagging").tags("Tag", tags),
            named("DeletePublicAccessBlock"),
            named("PutBucketPolicy").with("Policy", policy.to_string()),
        ] {
            self.settle(&call, &[], &NEW_BUCKET).await?;
        }
        Ok(())
    }

    /// Publishes the public part of the key that signs tokens.
    pub(crate) async fn put_documents(
        &self,
        issuer: &Issuer,
        key: &SigningKey,
    ) -> anyhow::Result<()> {
        let (Store::Own(bucket) | Store::Shared(bucket)) = &issuer.store else {
            return Ok(());
        };
        for (path, document) in key.documents(&issuer.url) {
            self.put_document(bucket, path, &document).await?;
        }
        self.say(&format!("documents of issuer {}: written", issuer.url));
        Ok(())
    }

    /// Writes one document of the issuer.
    pub(super) async fn put_document(
        &self,
        bucket: &str,
        path: &str,
        document: &str,
    ) -> anyhow::Result<()> {
        let key = self.document_key(path);
        let call = Call::s3("PutObject")
            .with("Bucket", bucket)
            .with("Key", &key)
            .with("Body", document);
        let written = self.settle(&call, &[], &NEW_BUCKET).await;
        written.with_context(|| format!("failed to write s3://{bucket}/{key}"))
    }

    /// The key of a document in a bucket, by its path below the issuer.
    pub(super) fn document_key(&self, path: &str) -> String {
        format!("{}/{path}", self.scope.infra_id)
    }

    /// Deletes the documents in the bucket of a provider, and the bucket of the infrastructure.
    pub(crate) async fn delete_documents(&self, shared: Option<&str>, pass: &mut Pass) {
        let own = self.scope.named(OWN_BUCKET);
        if let Some(bucket) = shared.filter(|bucket| *bucket != own) {
            let prefix = format!("{}/", self.scope.infra_id);
            let deleted = self.empty_bucket(bucket, &prefix).await;
            pass.check(&format!("documents in bucket {bucket}"), deleted);
        }
        let deleted = self.delete_if_owned(&own).await;
        pass.check(&format!("bucket {own}"), deleted);
    }

    /// The name of another infrastructure may begin with that of this one.
    async fn delete_if_owned(&self, bucket: &str) -> Result<(), Error> {
        if !self.has_bucket(bucket).await? || !self.owns_bucket(bucket).await? {
            return Ok(());
        }
        self.delete_bucket(bucket).await
    }

    /// Deletes the buckets of the image registry.
    pub(super) async fn delete_buckets(&self, pass: &mut Pass) {
        let prefix = self.scope.named(REGISTRY);
        let response = self.calls.call(&Call::s3("ListBuckets")).await;
        let names = response.map(|response| {
            let names = response.items("Buckets").iter();
            let names = names.map(|it| it.text_at("Name").to_owned());
            names
                .filter(|name| name.starts_with(&prefix))
                .collect::<Vec<_>>()
        });
        for bucket in pass.listed("buckets", names) {
            let deleted = self.delete_if_owned(&bucket).await;
            pass.check(&format!("bucket {bucket}"), deleted);
        }
    }

    pub(super) async fn has_bucket(&self, bucket: &str) -> Result<bool, Error> {
        let call = Call::s3("HeadBucket").with("Bucket", bucket);
        match self.calls.call(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn owns_bucket(&self, bucket: &str) -> Result<bool, Error> {
        let call = Call::s3("GetBucketTagging").with("Bucket", bucket);
        let found = self.find_call(&call, &["NoSuchTagSet"]).await?;
        let tags = found
            .map(|found| tags(found.items("TagSet")))
            .unwrap_or_default();
        Ok(self.scope.may_change(&tags))
    }

    async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        self.empty_bucket(bucket, "").await?;
        let call = Call::s3("DeleteBucket").with("Bucket", bucket);
        self.find_call(&call, &ABSENT).await.map(drop)
    }

    async fn empty_bucket(&self, bucket: &str, prefix: &str) -> Result<(), Error> {
        loop {
            let mut list = Call::s3("ListObjectsV2").with("Bucket", bucket);
            if !prefix.is_empty() {
                list = list.with("prefix", prefix);
            }
            let Some(page) = self.find_call(&list, &ABSENT).await? else {
                return Ok(());
            };
            let keys: Vec<_> = page.named("Contents").map(|it| it.text_at("Key")).collect();
            if keys.is_empty() {
                return Ok(());
            }
            let call = Call::s3("DeleteObjects")
                .with("Bucket", bucket)
                .list("Key", keys);
            let response = self.calls.call(&call).await?;
            if let Some(refused) = response.named("Error").next() {
                // The same objects would be listed again and again.
                return Err(Error::Refused {
                    what: format!("DeleteObjects of bucket {bucket}"),
                    status: 400,
                    code: refused.text_at("Code").to_owned(),
                    message: refused.text_at("Message").to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_in_a_bucket_unless_there_is_one() {
        for (bucket, url, expected, store) in [
            (
                None,
                None,
                "https://a-x1-oidc.s3.eu-west-1.amazonaws.com/a-x1",
                Store::Own("a-x1-oidc".to_owned()),
            ),
            (
                Some("b"),
                None,
                "https://b.s3.eu-west-1.amazonaws.com/a-x1",
                Store::Shared("b".to_owned()),
            ),
            (
                Some("b"),
                Some("https://issuer/"),
                "https://issuer",
                Store::Elsewhere,
            ),
        ] {
            let issuer = Issuer::new("a-x1", "eu-west-1", bucket, url).unwrap();
            assert_eq!((issuer.url.as_str(), &issuer.store), (expected, &store));
        }
        Issuer::new("a-x1", "eu-west-1", None, Some("http://issuer")).unwrap_err();
    }

    #[test]
    fn buckets_are_found_in_arns_of_providers() {
        let arn = |host: &str| format!("arn:aws:iam::1:oidc-provider/{host}");
        let found = arn("b.s3.eu-west-1.amazonaws.com/a-x1");
        assert_eq!(bucket_of(&found), Some("b"));
        for other in ["issuer.example.com/a-x1", "issuer/b.s3.x"] {
            assert_eq!(bucket_of(&arn(other)), None, "{other}");
        }
    }
}
