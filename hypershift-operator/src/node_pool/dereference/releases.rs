//! Reads the release of a pool, and what the control plane of its cluster has and can do.

use std::sync::Arc;

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use payload::operator_image::{Candidate, Labels, Question, candidate, knows, released_labels};
use payload::{Capabilities, Mirrors, PullSecret, Release, Releases, Version, pull_secret};

use super::Reader;
use crate::node_pool::facts::Unread;
use crate::node_pool::haproxy;

/// The reason if the release cannot be read without a pull secret.
const NO_SECRET: &str = "SecretNotFound";

/// What registries have.
pub(super) struct Images {
    /// The pool's release.
    pub(super) release: Result<Arc<Release>, Unread>,
    /// The version that the cluster has.
    pub(super) cluster_version: Option<Version>,
    /// What the cluster's operator can do.
    pub(super) capabilities: Capabilities,
    /// The image of that operator as nodes pull it, if they may run it.
    pub(super) operator: Option<String>,
}

// === impl Reader ===

impl Reader<'_> {
    /// The pool's release, and what the control plane of its cluster has and can do.
    pub(super) async fn images(
        &self,
        pool: &NodePool,
        cluster: &HostedCluster,
        pull_secret: Option<&[u8]>,
    ) -> Images {
        let pull_secret = match pull_secret.map(PullSecret::parse) {
            Some(Ok(pull_secret)) => pull_secret,
            Some(Err(error)) => return Images::unread(Unread::secret(error.to_string())),
            None => {
                let name = &cluster.spec.pull_secret.name;
                let message = format!(
                    "Secret {name} with the key {} does not exist: create it",
                    pull_secret::KEY
                );
                return Images::unread(Unread::secret(message));
            }
        };
        let mirrors = Mirrors::of(&cluster.spec.image_content_sources);
        let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
        let releases = self
            .ctx
            .releases
            .for_tenant(namespace)
            .with_mirrors(&mirrors);
        // Nodes use the images of the release; image overrides of the operator are for the management cluster only.
        let of_nodes = releases.for_user();
        let release = release(&of_nodes, &pool.spec.release.image, &pull_secret).await;
        let of_cluster = match releases
            .get(&cluster.spec.release.image, &pull_secret)
            .await
        {
            Err(error) if error.is_in_progress() => return Images::unread(Unread::of(&error)),
            of_cluster => of_cluster.ok(),
        };
        let cluster_version =
            completed(cluster).or_else(|| of_cluster.as_ref().map(|it| it.version.clone()));
        let question = Question {
            cluster,
            capi_types: self.capi.types(),
            release: of_cluster.as_deref(),
            images: &self.ctx.images.operator,
        };
        match of_operator(&releases, &question, &pull_secret).await {
            Ok((capabilities, operator)) => Images {
                release,
                cluster_version,
                capabilities,
                operator,
            },
            Err(error) => Images::unread(Unread::of(&error)),
        }
    }
}

// === impl Images ===

impl Images {
    /// Nothing is known without the release.
    fn unread(reason: Unread) -> Self {
        Self {
            release: Err(reason),
            cluster_version: None,
            capabilities: Capabilities::unknown(),
            operator: None,
        }
    }
}

/// The capabilities of the cluster's operator, and its image. Fails only while labels are being read.
async fn of_operator(
    releases: &Releases,
    question: &Question<'_>,
    pull_secret: &PullSecret,
) -> Result<(Capabilities, Option<String>), payload::Error> {
    let capabilities = capabilities(releases, question, pull_secret).await?;
    if !haproxy::has_proxy(question.cluster) {
        return Ok((capabilities, None));
    }
    let labels = match released_labels(question, releases, pull_secret).await {
        Ok(labels) => Labels::Read(labels.unwrap_or_default()),
        Err(error) if error.is_in_progress() => return Err(error),
        Err(error) => Labels::Unreadable(support::error::chain(&error)),
    };
    Ok((capabilities, image_of_nodes(question, &labels)))
}

/// The image of the cluster's operator, without overrides.
fn image_of_nodes(question: &Question<'_>, labels: &Labels) -> Option<String> {
    let release = question.release.map(|it| it.clone().for_user());
    let question = Question {
        cluster: question.cluster,
        capi_types: question.capi_types,
        release: release.as_ref(),
        images: question.images,
    };
    candidate(&question).ok()?.settled(labels).ok()
}

async fn release(
    releases: &Releases,
    image: &str,
    pull_secret: &PullSecret,
) -> Result<Arc<Release>, Unread> {
    let release = releases.get(image, pull_secret).await;
    release.map_err(|error| Unread::of(&error))
}

/// The capabilities of the cluster's operator. Fails only while labels are being read.
async fn capabilities(
    releases: &Releases,
    question: &Question<'_>,
    pull_secret: &PullSecret,
) -> Result<Capabilities, payload::Error> {
    if let Some(labels) = question.annotated_labels() {
        return Ok(Capabilities::of_labels(&labels));
    }
    let of = async |image: String| match releases.labels(&image, pull_secret).await {
        Ok(labels) => Ok(Some(Capabilities::of_labels(&labels))),
        Err(error) if error.is_in_progress() => Err(error),
        Err(_) => Ok(None),
    };
    let found = match candidate(question) {
        Ok(Candidate::Chosen(image)) => of(image).await?,
        Ok(Candidate::IfItKnows {
            released: own,
            otherwise,
            ..
        }) => match (of(own).await?, otherwise) {
            (Some(own), Some(otherwise)) if !knows(&own) => of(otherwise).await?,
            (own, _) => own,
        },
        Err(_) => None,
    };
    Ok(found.unwrap_or_else(Capabilities::unknown))
}

// === impl Unread ===

impl Unread {
    fn of(error: &payload::Error) -> Self {
        Self {
            reason: error.condition_reason().to_owned(),
            message: support::error::chain(error),
            retry_after: error.retry_after(),
        }
    }

    fn secret(message: String) -> Self {
        Self {
            reason: NO_SECRET.to_owned(),
            message,
            retry_after: None,
        }
    }

    /// Whether it changes with a Secret, and not with a registry.
    pub(crate) fn is_watched(&self) -> bool {
        self.reason == NO_SECRET
    }
}

/// The newest release that the cluster has rolled out.
fn completed(cluster: &HostedCluster) -> Option<Version> {
    let version = cluster.status.as_ref()?.version.as_ref()?;
    let mut history = version.history.iter();
    let completed = history.find(|it| it.state == "Completed")?;
    completed.version.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use api::annotations::cluster::CONTROL_PLANE_OPERATOR_IMAGE_LABELS;
    use api::group::CapiTypes;
    use ownership::Scope;
    use payload::operator_image::OperatorImages;
    use payload::{Capability, Overrides};

    use super::*;
    use crate::config::Config;
    use crate::facts::fixture;

    #[tokio::test]
    async fn capabilities_are_read_on_every_platform() {
        let config = Config::for_tests(Scope::Private);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let pull_secret = PullSecret::parse(br#"{"auths":{}}"#).unwrap();
        let images = OperatorImages::default();
        for platform in ["aws", "agent", "kubevirt", "none"] {
            let mut cluster = fixture::hosted_cluster(platform);
            // Labels of an annotation are known without a registry.
            let annotations = cluster.metadata.annotations.get_or_insert_default();
            annotations.insert(
                CONTROL_PLANE_OPERATOR_IMAGE_LABELS.key().to_owned(),
                format!("{}=true", Capability::SkipsHaproxy.label()),
            );
            let question = Question {
                cluster: &cluster,
                capi_types: CapiTypes::Private,
                release: None,
                images: &images,
            };
            let found = capabilities(&releases, &question, &pull_secret).await;
            let has = found.unwrap().has(Capability::SkipsHaproxy);
            assert!(has, "{platform}");
        }
    }

    #[test]
    fn nodes_pull_the_operator_of_the_release_without_overrides() {
        let pairs = [("images.example.com", "mirror.example.com")];
        let overrides = Overrides::new(pairs.map(|(from, to)| (from.to_owned(), to.to_owned())));
        let references = serde_json::json!({
            "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
            "metadata": { "name": "4.22.0" },
            "spec": { "tags": [{
                "name": "hypershift",
                "from": { "kind": "DockerImage", "name": "images.example.com/operator@sha256:1" },
            }] },
        });
        let text = references.to_string();
        let release = Release::from_image_references("a", text.as_bytes(), &overrides).unwrap();
        let images = OperatorImages {
            fallback: Some("images.example.com/own:1".to_owned()),
            ..OperatorImages::default()
        };
        let cluster = fixture::hosted_cluster("agent");
        let knows = Labels::Read([(Capability::PrivateTypes.label(), "true".to_owned())].into());
        for (types, release, labels, expected) in [
            (
                CapiTypes::Private,
                Some(&release),
                &knows,
                Some("images.example.com/operator@sha256:1"),
            ),
            (
                CapiTypes::Standard,
                Some(&release),
                &Labels::Read([].into()),
                Some("images.example.com/operator@sha256:1"),
            ),
            (
                CapiTypes::Private,
                Some(&release),
                &Labels::Read([].into()),
                Some("images.example.com/own:1"),
            ),
            (
                CapiTypes::Private,
                Some(&release),
                &Labels::Unreadable("no access".to_owned()),
                None,
            ),
            (CapiTypes::Private, None, &knows, None),
        ] {
            let question = Question {
                cluster: &cluster,
                capi_types: types,
                release,
                images: &images,
            };
            let found = image_of_nodes(&question, labels);
            assert_eq!(found.as_deref(), expected, "{types:?} {labels:?}");
        }
    }
}
