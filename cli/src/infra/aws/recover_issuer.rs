//! Creates the documents and the identity provider of an issuer again, after they were lost.

use std::time::Duration;

use anyhow::{Context as _, bail};
use support::aws::Error;
use support::aws::oidc::KEYS;

use super::bucket::Store;
use super::call::{Call, Calls, Tags};
use super::create_identity::has_clients;
use super::executor::Executor;
use super::issuer_recovery::{Documents, Found, FoundProvider, Place, Recreate, thumbprints};
use super::scope::tags;

/// Tag of a bucket for several clusters that this command has created: it belongs to none of them.
const SHARED: &str = "hypershift.openshift.io/oidc-documents";
const ABSENT: [&str; 1] = ["NoSuchEntity"];
const BUSY: [&str; 3] = ["ServiceUnavailable", "Throttling", "ConcurrentModification"];
/// How often the result is looked at, until it is complete, and the pause between two looks.
const LOOKS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(3);

/// What is asked for.
#[derive(Debug)]
pub(crate) struct RecoveryRequest {
    pub(crate) place: Place,
    /// The documents, if the key that signs tokens is known.
    pub(crate) documents: Option<Documents>,
    pub(crate) recreate: Recreate,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    NothingMissing,
    Done,
}

// === impl RecoveryRequest ===

impl RecoveryRequest {
    fn bucket(&self) -> &str {
        match &self.place.issuer.store {
            Store::Own(bucket) | Store::Shared(bucket) => bucket,
            Store::Elsewhere => "",
        }
    }

    fn is_complete(&self, found: &Found) -> bool {
        found.missing.is_empty() && !self.recreates_provider(found)
    }

    fn recreates_provider(&self, found: &Found) -> bool {
        self.recreate == Recreate::All || !found.provider.is_complete()
    }

    /// The documents that are to be written.
    fn wanted(&self, found: &Found) -> anyhow::Result<Option<&Documents>> {
        match (&self.documents, self.recreate) {
            (Some(documents), Recreate::All) => Ok(Some(documents)),
            (_, _) if found.missing.is_empty() => Ok(None),
            (Some(documents), Recreate::Missing) => Ok(Some(documents)),
            (None, _) => bail!(
                "{} of {} is missing in bucket {}, and only the hosted cluster has the key for the documents: name it with \
                 --hc-name and --hc-namespace",
                found.missing.join(" and "),
                self.place.issuer.url,
                self.bucket()
            ),
        }
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates what is lost, and checks that it is there.
    pub(crate) async fn recover_issuer(
        &self,
        request: &RecoveryRequest,
    ) -> anyhow::Result<Recovery> {
        let found = self.found(request).await?;
        self.say_found(request, &found);
        if request.is_complete(&found) {
            return Ok(Recovery::NothingMissing);
        }
        if let Some(documents) = request.wanted(&found)? {
            self.check_keys(request, documents, &found).await?;
            self.ensure_store(request).await?;
            self.write_documents(request, documents).await?;
        }
        if request.recreates_provider(&found) {
            self.recreate_provider(request, &found.provider).await?;
        }
        self.verify(request).await?;
        Ok(Recovery::Done)
    }

    /// Says what is lost and what would be created, and creates nothing.
    pub(crate) async fn report_recovery(&self, request: &RecoveryRequest) -> anyhow::Result<()> {
        let found = self.found(request).await?;
        self.say_found(request, &found);
        if let Some(documents) = request.wanted(&found)? {
            self.check_keys(request, documents, &found).await?;
            self.say(&format!(
                "documents in bucket {}: would be written",
                request.bucket()
            ));
        }
        if request.recreates_provider(&found) {
            self.say(&format!(
                "identity provider {}: would be created",
                request.place.issuer.url
            ));
        }
        Ok(())
    }

    fn say_found(&self, request: &RecoveryRequest, found: &Found) {
        let url = &request.place.issuer.url;
        let documents = match found.missing.as_slice() {
            [] => "exist".to_owned(),
            missing => format!("{} is missing", missing.join(" and ")),
        };
        self.say(&format!(
            "documents in bucket {}: {documents}",
            request.bucket()
        ));
        let provider = match &found.provider {
            FoundProvider::Absent => "is missing",
            FoundProvider::Incomplete(_) => "has not all clients",
            FoundProvider::Complete(_) => "exists",
        };
        self.say(&format!("identity provider {url}: {provider}"));
    }

    /// What there is. A provider of another cluster is refused.
    async fn found(&self, request: &RecoveryRequest) -> anyhow::Result<Found> {
        let bucket = request.bucket();
        let missing = self.missing_documents(bucket).await;
        let missing = missing.with_context(|| format!("failed to look into bucket {bucket}"))?;
        let provider = self.found_provider(request).await?;
        Ok(Found { missing, provider })
    }

    /// The paths of documents that are not in a bucket.
    async fn missing_documents(&self, bucket: &str) -> Result<Vec<&'static str>, Error> {
        let mut missing = Documents::paths().to_vec();
        if !self.has_bucket(bucket).await? {
            return Ok(missing);
        }
        for path in Documents::paths() {
            let key = self.document_key(path);
            let call = Call::s3("ListObjectsV2")
                .with("Bucket", bucket)
                .with("prefix", &key);
            let response = self.calls.call(&call).await?;
            if response
                .named("Contents")
                .any(|it| it.text_at("Key") == key)
            {
                missing.retain(|it| *it != path);
            }
        }
        Ok(missing)
    }

    /// Refuses to replace documents of another key: the author of a hosted cluster chooses the name of its infrastructure, and
    /// tokens of the key would be valid for roles of the cluster that has the documents.
    async fn check_keys(
        &self,
        request: &RecoveryRequest,
        documents: &Documents,
        found: &Found,
    ) -> anyhow::Result<()> {
        if found.missing.contains(&KEYS) {
            return Ok(());
        }
        let (bucket, key) = (request.bucket(), self.document_key(KEYS));
        let call = Call::s3("GetObject")
            .with("Bucket", bucket)
            .with("Key", &key);
        let stored = self.call(&call).await;
        let stored = stored.with_context(|| format!("failed to read s3://{bucket}/{key}"))?;
        if !documents.has_keys(&stored.text) {
            bail!(
                "s3://{bucket}/{key} has another key than the hosted cluster: it belongs to another cluster, or the key was \
                 replaced. If no other cluster has the infrastructure name {}, delete the object, and run the command again",
                self.scope.infra_id
            );
        }
        Ok(())
    }

    async fn found_provider(&self, request: &RecoveryRequest) -> anyhow::Result<FoundProvider> {
        let url = &request.place.issuer.url;
        let what = || format!("failed to look for the identity provider of {url}");
        let suffix = format!("/{}", request.place.issuer.host_and_path());
        let Some(arn) = self.find_provider(&suffix).await.with_context(what)? else {
            return Ok(FoundProvider::Absent);
        };
        let call = Call::iam("GetOpenIDConnectProvider").with("OpenIDConnectProviderArn", &arn);
        let response = self.find_call(&call, &ABSENT).await.with_context(what)?;
        let found = response.as_ref();
        let Some(provider) = found.and_then(|it| it.at("GetOpenIDConnectProviderResult")) else {
            return Ok(FoundProvider::Absent);
        };
        if !self.may_change(provider) {
            bail!("{arn} belongs to another cluster: check --infra-id and --issuer");
        }
        if has_clients(provider) {
            return Ok(FoundProvider::Complete(arn));
        }
        Ok(FoundProvider::Incomplete(arn))
    }

    /// Makes sure that there is a bucket for documents, which all may read.
    async fn ensure_store(&self, request: &RecoveryRequest) -> anyhow::Result<()> {
        match &request.place.issuer.store {
            Store::Shared(bucket) => {
                let ensured = self.ensure_shared_bucket(bucket).await;
                ensured.with_context(|| format!("failed to create bucket {bucket}"))
            }
            Store::Own(_) | Store::Elsewhere => self.ensure_bucket(&request.place.issuer).await,
        }
    }

    /// Creates a bucket for several clusters. The settings of one that others have made are kept.
    async fn ensure_shared_bucket(&self, bucket: &str) -> anyhow::Result<()> {
        if self.has_bucket(bucket).await? {
            if !self.is_unfinished(bucket).await? {
                return Ok(());
            }
        } else {
            self.create_bucket(bucket).await?;
        }
        let tag = Tags::from([(SHARED.to_owned(), "shared".to_owned())]);
        self.publish_bucket(bucket, &tag).await
    }

    /// Whether this command has created a bucket: it has our tag, or nothing at all.
    async fn is_unfinished(&self, bucket: &str) -> Result<bool, Error> {
        let call = Call::s3("GetBucketTagging").with("Bucket", bucket);
        let found = self.find_call(&call, &["NoSuchTagSet"]).await?;
        if let Some(found) = found {
            return Ok(tags(found.items("TagSet")).contains_key(SHARED));
        }
        let list = Call::s3("ListObjectsV2").with("Bucket", bucket);
        let page = self.calls.call(&list).await?;
        Ok(page.named("Contents").next().is_none())
    }

    async fn write_documents(
        &self,
        request: &RecoveryRequest,
        documents: &Documents,
    ) -> anyhow::Result<()> {
        let bucket = request.bucket();
        for (path, document) in documents.texts() {
            self.put_document(bucket, path, document).await?;
        }
        self.say(&format!("documents in bucket {bucket}: written"));
        Ok(())
    }

    async fn recreate_provider(
        &self,
        request: &RecoveryRequest,
        found: &FoundProvider,
    ) -> anyhow::Result<()> {
        let issuer = &request.place.issuer;
        let url = &issuer.url;
        let what = || format!("failed to create the identity provider of {url}");
        if let FoundProvider::Incomplete(arn) | FoundProvider::Complete(arn) = found {
            let call =
                Call::iam("DeleteOpenIDConnectProvider").with("OpenIDConnectProviderArn", arn);
            self.settle(&call, &ABSENT, &BUSY)
                .await
                .with_context(what)?;
        }
        let call = self.new_provider(url, thumbprints(issuer));
        // An earlier attempt whose response was lost has created it.
        let done = ["EntityAlreadyExists"];
        self.settle(&call, &done, &BUSY).await.with_context(what)?;
        self.say(&format!("identity provider {url}: created"));
        Ok(())
    }

    /// Waits until what was created can be seen.
    async fn verify(&self, request: &RecoveryRequest) -> anyhow::Result<()> {
        for _ in 0..LOOKS {
            let found = self.found(request).await?;
            if found.missing.is_empty() && found.provider.is_complete() {
                return Ok(());
            }
            self.calls.pause(INTERVAL).await;
        }
        bail!(
            "documents and identity provider of {} were created, and cannot be seen yet: run the command again",
            request.place.issuer.url
        );
    }
}
