//! What is lost of an issuer of tokens after a disaster, and where it belongs. Pure.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use support::aws::is_region;
use support::aws::oidc::{self, DISCOVERY, KEYS};

use super::bucket::{Issuer, Store};
use super::create_identity::THUMBPRINT;
use crate::Usage;

/// Why a container waits that ends as soon as it starts.
const CRASHES: &str = "CrashLoopBackOff";

/// The documents of an issuer, by their paths below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Documents([(&'static str, String); 2]);

/// Where the documents of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) issuer: Issuer,
    /// The region of the bucket.
    pub(crate) region: String,
}

/// What is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recreate {
    /// What is missing.
    Missing,
    /// The documents, if the key is known, and the identity provider.
    All,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Paths of documents that are missing.
    pub(super) missing: Vec<&'static str>,
    pub(super) provider: FoundProvider,
}

/// The identity provider, by its ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FoundProvider {
    Absent,
    Incomplete(String),
    Complete(String),
}

// === impl FoundProvider ===

impl FoundProvider {
    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete(_))
    }
}

// === impl Documents ===

impl Documents {
    /// Those by which tokens of a key are verified; the key is public, in PEM.
    pub(crate) fn new(issuer: &str, pem: &str) -> anyhow::Result<Self> {
        let keys = oidc::keys(pem).context("the key that signs tokens cannot be read")?;
        let documents = [(DISCOVERY, oidc::discovery(issuer)), (KEYS, keys)];
        Ok(Self(
            documents.map(|(path, document)| (path, format!("{document:#}"))),
        ))
    }

    /// The paths of all documents.
    pub(super) fn paths() -> [&'static str; 2] {
        [DISCOVERY, KEYS]
    }

    /// Whether a stored set of keys is that of these documents.
    pub(super) fn has_keys(&self, stored: &str) -> bool {
        let id = |text: &str| -> Option<String> {
            let set: Value = serde_json::from_str(text).ok()?;
            set["keys"][0]["kid"].as_str().map(str::to_owned)
        };
        let own = self.texts().find(|(path, _)| *path == KEYS);
        let own = own.and_then(|(_, text)| id(text));
        own.is_some() && own == id(stored)
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(path, text)| (*path, text.as_str()))
    }
}

// === impl Place ===

impl Place {
    /// Where they are, by the URL of the issuer and by flags. Without a URL it is the one that `create iam aws` makes.
    pub(crate) fn new(
        infra_id: &str,
        region: &str,
        url: Option<&str>,
        bucket: Option<&str>,
    ) -> Result<Self, Usage> {
        let Some(url) = url else {
            return Ok(Self {
                issuer: Issuer::new(infra_id, region, bucket, None)?,
                region: region.to_owned(),
            });
        };
        let host_and_path = url.strip_prefix("https://").ok_or_else(|| {
            Usage::new(&format!(
                "the issuer is {url:?}, which is no https URL: give another one with --issuer"
            ))
        })?;
        let host_and_path = host_and_path.trim_end_matches('/');
        let Some((named, region_of_bucket, path)) = in_s3(host_and_path) else {
            let bucket = bucket.ok_or_else(|| {
                Usage::new(&format!(
                    "the issuer {url} does not name a bucket of S3: give the one with its documents with --oidc-bucket"
                ))
            })?;
            return Ok(Self::of(url, infra_id, bucket, region));
        };
        if path != infra_id {
            return Err(Usage::new(&format!(
                "the issuer {url} is not that of infrastructure {infra_id}, whose URL ends with /{infra_id}: check --issuer"
            )));
        }
        if bucket.is_some_and(|bucket| bucket != named) {
            return Err(Usage::new(&format!(
                "the issuer {url} is in bucket {named}: leave out --oidc-bucket"
            )));
        }
        Ok(Self::of(url, infra_id, named, region_of_bucket))
    }

    fn of(url: &str, infra_id: &str, bucket: &str, region: &str) -> Self {
        let bucket_name = bucket.to_owned();
        Self {
            issuer: Issuer {
                url: url.trim_end_matches('/').to_owned(),
                store: if bucket == format!("{infra_id}-oidc") {
                    Store::Own(bucket_name)
                } else {
                    Store::Shared(bucket_name)
                },
            },
            region: region.to_owned(),
        }
    }
}

/// Bucket, region and path of a URL without its scheme, if it is in S3.
fn in_s3(host_and_path: &str) -> Option<(&str, &str, &str)> {
    let (host, path) = host_and_path.split_once('/')?;
    let (bucket, rest) = host.split_once(".s3.")?;
    let (region, domain) = rest.split_once('.')?;
    let is_in_s3 =
        !bucket.is_empty() && is_region(region) && domain == support::aws::domain(region);
    is_in_s3.then_some((bucket, region, path))
}

/// The thumbprints that a provider gets. IAM finds out those of issuers outside of S3 itself.
pub(super) fn thumbprints(issuer: &Issuer) -> &'static [&'static str] {
    match in_s3(issuer.host_and_path()) {
        Some(_) => &[THUMBPRINT],
        None => &[],
    }
}

/// Whether a container of a pod ends again and again.
pub(crate) fn crashes(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let statuses = status.map(|it| [&it.init_container_statuses, &it.container_statuses]);
    let mut containers = statuses.into_iter().flatten().flatten().flatten();
    containers.any(|container| {
        let state = container.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        waiting.and_then(|waiting| waiting.reason.as_deref()) == Some(CRASHES)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn issuers_name_bucket_and_region() {
        let own = "https://a-x1-oidc.s3.eu-west-1.amazonaws.com/a-x1";
        let shared = "https://b.s3.us-east-2.amazonaws.com/a-x1";
        let elsewhere = "https://issuer.example.com/a-x1";
        for (url, bucket, store, region) in [
            (None, None, Store::Own("a-x1-oidc".to_owned()), "eu-west-1"),
            (None, Some("b"), Store::Shared("b".to_owned()), "eu-west-1"),
            (
                Some(own),
                None,
                Store::Own("a-x1-oidc".to_owned()),
                "eu-west-1",
            ),
            (
                Some(shared),
                None,
                Store::Shared("b".to_owned()),
                "us-east-2",
            ),
            (
                Some(shared),
                Some("b"),
                Store::Shared("b".to_owned()),
                "us-east-2",
            ),
            (
                Some(elsewhere),
                Some("b"),
                Store::Shared("b".to_owned()),
                "eu-west-1",
            ),
        ] {
            let place = Place::new("a-x1", "eu-west-1", url, bucket).unwrap();
            assert_eq!(place.issuer.store, store, "{url:?} {bucket:?}");
            assert_eq!(place.region, region, "{url:?} {bucket:?}");
            assert_eq!(place.issuer.url, url.unwrap_or(&place.issuer.url));
        }
        for (url, bucket, expected) in [
            (
                "http://b.s3.us-east-2.amazonaws.com/a-x1",
                None,
                "no https URL",
            ),
            (elsewhere, None, "--oidc-bucket"),
            (shared, Some("c"), "is in bucket b"),
            (
                "https://b.s3.us-east-2.amazonaws.com/a-x2",
                None,
                "not that of infrastructure a-x1",
            ),
            // Another domain is not S3.
            (
                "https://b.s3.us-east-2.example.com/a-x1",
                None,
                "--oidc-bucket",
            ),
        ] {
            let error = Place::new("a-x1", "eu-west-1", Some(url), bucket).unwrap_err();
            assert!(error.to_string().contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn thumbprints_are_those_of_s3() {
        let thumbprints = |url: &str| {
            let place = Place::new("a-x1", "eu-west-1", Some(url), Some("b")).unwrap();
            thumbprints(&place.issuer)
        };
        let in_s3 = thumbprints("https://b.s3.us-east-2.amazonaws.com/a-x1");
        assert_eq!(in_s3, [THUMBPRINT]);
        assert_eq!(thumbprints("https://issuer.example.com"), [""; 0]);
    }

    #[test]
    fn pods_crash_if_one_container_does() {
        let container = |name: &str, state: &Value| {
            json!({
                "name": name,
                "image": "i",
                "imageID": "i",
                "ready": false,
                "restartCount": 3,
                "state": state,
            })
        };
        let crashing = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let waiting = json!({ "waiting": { "reason": "ContainerCreating" } });
        let running = json!({ "running": {} });
        for (init, main, expected) in [
            (&running, &running, false),
            (&running, &waiting, false),
            (&running, &crashing, true),
            (&crashing, &waiting, true),
        ] {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": { "name": "a" },
                "status": {
                    "initContainerStatuses": [container("init", init)],
                    "containerStatuses": [container("main", main)],
                },
            }))
            .unwrap();
            assert_eq!(crashes(&pod), expected, "{init} {main}");
        }
        assert!(!crashes(&Pod::default()));
    }

    #[test]
    fn documents_need_a_public_key() {
        let error = Documents::new("https://issuer", "s3cret").unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("key that signs tokens"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
