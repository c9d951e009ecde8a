//! Reads all inputs of a pool. The only part that knows where they are.

use std::sync::Arc;

use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, LocalObjectReference, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use payload::operator_image::{Candidate, Question, candidate, knows};
use payload::{Capabilities, Mirrors, PullSecret, Release, Releases, Version, pull_secret};
use support::reconcile::is_missing;

use super::config::{self, Content, Source};
use super::error::Error;
use super::facts::{Facts, Unread};
use super::observed::{
    Machine, ObservedCondition, PlatformMachine, Template, Workload, observed_condition,
};
use super::tuning::{self, Role, Written};
use super::workload;
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::Namespace;
use crate::names::node_pool as names;
use crate::platform::machines;

/// ConfigMaps from the control plane for every pool.
const CORE: &str = "hypershift.openshift.io/core-ignition-config=true";
/// ConfigMaps that the tuning operator made.
const TUNING: &str = "hypershift.openshift.io/nto-generated-machine-config=true";
/// The reason if the release cannot be read without a pull secret.
const NO_SECRET: &str = "SecretNotFound";
/// The Secret with the certificate authority of the ignition server.
const IGNITION_CA: &str = "ignition-server-ca-cert";

/// All facts of a pool of a cluster of these types.
pub(crate) async fn facts(
    pool: NodePool,
    cluster: HostedCluster,
    types: CapiTypes,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Facts, Error> {
    let reader = Reader {
        ctx,
        home: cluster.namespace().unwrap_or_default(),
        away: namespace.name().to_owned(),
        capi: Capi::new(types),
    };
    let pull_secret = reader.pull_secret(&cluster).await?;
    let (release, cluster_version, capabilities) = reader
        .releases(&pool, &cluster, pull_secret.as_deref())
        .await;
    let infra_id = cluster.spec.infra_id.clone().unwrap_or_default();
    let label = names::generation(&infra_id, &pool.spec.cluster_name, names::of(&pool));
    let machines: Vec<_> = reader.list(&reader.capi.machine(), Some(&label)).await?;
    let kind = workload::kind(reader.capi, pool.spec.management.upgrade_type);
    let sets: Vec<_> = reader.list(&reader.capi.machine_set(), None).await?;
    let (tokens, user_data) = reader.secrets(&pool).await?;
    let facts = Facts {
        release,
        cluster_version,
        capabilities,
        pull_secret: pull_secret.unwrap_or_default(),
        trust_bundle: reader.trust_bundle(&cluster).await?,
        ssh_key: reader.ssh_key(&cluster).await?,
        own: reader.sources(&pool.spec.config, config::KEY).await?,
        core: reader.labelled(CORE, |_| true).await?,
        tuning: reader.labelled(TUNING, |it| belongs(it, &pool)).await?,
        tuning_inputs: reader.tuning(&pool, &cluster).await?,
        ignition_ca: reader.key(&reader.away, IGNITION_CA, "tls.crt").await?,
        tokens,
        user_data,
        platform_machines: reader.platform_machines(&pool, &machines).await?,
        machines: machines.iter().map(Machine::read).collect(),
        machine_sets: sets.iter().map(Workload::read).collect(),
        workload: reader
            .get(&kind, names::of(&pool))
            .await?
            .as_ref()
            .map(Workload::read),
        templates: reader.templates(&pool).await?,
        remediation: reader.remediation(&pool).await?,
        now: Timestamp::now(),
        namespace: reader.away,
        owned: namespace.owned().cloned(),
        types,
        pool,
        cluster,
    };
    Ok(facts)
}

/// The shared inputs of all reads.
struct Reader<'a> {
    ctx: &'a Context,
    /// Where the HostedCluster is, and where its control plane is.
    home: String,
    away: String,
    capi: Capi,
}

// === impl Reader ===

impl Reader<'_> {
    fn secrets_in(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.ctx.client.clone(), namespace)
    }

    fn config_maps_in(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.ctx.client.clone(), namespace)
    }

    fn api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.ctx.client.clone(), &self.away, kind)
    }

    /// A key of a Secret.
    async fn key(&self, namespace: &str, name: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let read = self.secrets_in(namespace).get_opt(name).await;
        let secret = read.map_err(Error::read(format!("Secret {namespace}/{name}")))?;
        Ok(secret.and_then(|it| it.data?.remove(key)).map(|it| it.0))
    }

    async fn config_map(&self, name: &str) -> Result<Option<ConfigMap>, Error> {
        let read = self.config_maps_in(&self.home).get_opt(name).await;
        read.map_err(Error::read(format!("ConfigMap {}/{name}", self.home)))
    }

    async fn pull_secret(&self, cluster: &HostedCluster) -> Result<Option<Vec<u8>>, Error> {
        let name = &cluster.spec.pull_secret.name;
        self.key(&self.home, name, pull_secret::KEY).await
    }

    async fn ssh_key(&self, cluster: &HostedCluster) -> Result<Option<String>, Error> {
        let Some(reference) = &cluster.spec.ssh_key else {
            return Ok(None);
        };
        let key = self.key(&self.home, &reference.name, "id_rsa.pub").await?;
        Ok(key.and_then(|it| String::from_utf8(it).ok()))
    }

    async fn trust_bundle(&self, cluster: &HostedCluster) -> Result<Option<String>, Error> {
        let Some(reference) = &cluster.spec.additional_trust_bundle else {
            return Ok(None);
        };
        let found = self.config_map(&reference.name).await?;
        Ok(found.and_then(|it| it.data?.remove("ca-bundle.crt")))
    }

    /// A key of ConfigMaps that a pool refers to.
    async fn sources(
        &self,
        references: &[LocalObjectReference],
        key: &str,
    ) -> Result<Vec<Source>, Error> {
        let mut sources = Vec::new();
        for reference in references {
            let found = self.config_map(&reference.name).await?;
            let content = found.map_or(Content::Missing, |it| content(it, key));
            let name = reference.name.clone();
            sources.push(Source { name, content });
        }
        Ok(sources)
    }

    /// ConfigMaps of the control plane with this label.
    async fn labelled(
        &self,
        label: &str,
        is_ours: impl Fn(&ConfigMap) -> bool,
    ) -> Result<Vec<Source>, Error> {
        let params = ListParams::default().labels(label);
        let listed = self.config_maps_in(&self.away).list(&params).await;
        let listed = listed.map_err(Error::read(format!("ConfigMaps with {label}")))?;
        let ours = listed.items.into_iter().filter(is_ours);
        Ok(ours
            .map(|it| Source {
                name: it.name_any(),
                content: content(it, config::KEY),
            })
            .collect())
    }

    /// What the tuning operator is to get and reports, and which ConfigMaps are not the pool's tuning: names that users
    /// choose are in the names of those that are written.
    async fn tuning(
        &self,
        pool: &NodePool,
        cluster: &HostedCluster,
    ) -> Result<tuning::Observed, Error> {
        let mut observed = tuning::Observed::default();
        if !tuning::is_enabled(cluster) {
            return Ok(observed);
        }
        observed.sources = self.sources(&pool.spec.tuning_config, tuning::KEY).await?;
        let api = self.config_maps_in(&self.away);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(Error::read(format!("ConfigMaps of {}", self.away)))?;
        for map in &listed.items {
            let name = map.name_any();
            let role = tuning::role(&map.metadata, pool);
            match role {
                Role::Tuned | Role::Profile => observed.written.push(Written {
                    name,
                    is_profile: role == Role::Profile,
                }),
                Role::Report => {
                    let read = api.get_opt(&name).await;
                    let read =
                        read.map_err(Error::read(format!("ConfigMap {}/{name}", self.away)))?;
                    let content = read.map(|it| content(it, tuning::REPORT_KEY));
                    let source = content.map(|content| Source {
                        name: name.clone(),
                        content,
                    });
                    observed.reports.extend(source);
                    // It is the tuning operator's, and not to be written.
                    observed.others.insert(name);
                }
                Role::Other => {
                    observed.others.insert(name);
                }
            }
        }
        Ok(observed)
    }

    /// The Secrets of the pool: tokens whole, and of user data the names.
    async fn secrets(&self, pool: &NodePool) -> Result<(Vec<Secret>, Vec<String>), Error> {
        let api = self.secrets_in(&self.away);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(Error::read(format!("Secrets of {}", self.away)))?;
        let reference = names::reference(pool);
        let ours = listed
            .items
            .iter()
            .filter(|it| it.annotations().get(NODE_POOL.key()) == Some(&reference));
        let (mut tokens, mut user_data) = (Vec::new(), Vec::new());
        for name in ours.map(kube::ResourceExt::name_any) {
            if name.starts_with("user-data-") {
                user_data.push(name);
            } else if name.starts_with("token-") {
                let read = api
                    .get_opt(&name)
                    .await
                    .map_err(Error::read(format!("Secret {name}")))?;
                tokens.extend(read);
            }
        }
        Ok((tokens, user_data))
    }

    async fn get(&self, kind: &ApiResource, name: &str) -> Result<Option<DynamicObject>, Error> {
        let read = self.api(kind).get_opt(name).await;
        read.map_err(Error::read(format!("{} {}/{name}", kind.kind, self.away)))
    }

    /// All objects of a kind, or those with a label. None if the kind is not served.
    async fn list(
        &self,
        kind: &ApiResource,
        label: Option<&str>,
    ) -> Result<Vec<DynamicObject>, Error> {
        let mut params = ListParams::default();
        if let Some(label) = label {
            params = params.labels(&format!("{label}={label}"));
        }
        match self.api(kind).list(&params).await {
            Ok(listed) => Ok(listed.items),
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(source) => Err(Error::read(format!("{} in {}", kind.plural, self.away))(
                source,
            )),
        }
    }

    async fn templates(&self, pool: &NodePool) -> Result<Vec<Template>, Error> {
        let Some(kind) = machines::template_kind(self.capi, pool.spec.platform.type_) else {
            return Ok(Vec::new());
        };
        let reference = names::reference(pool);
        let listed = self.list(&kind, None).await?;
        let ours = listed
            .iter()
            .filter(|it| it.annotations().get(NODE_POOL.key()) == Some(&reference));
        Ok(ours.map(Template::read).collect())
    }

    /// Only where something of them is changed while they run.
    async fn platform_machines(
        &self,
        pool: &NodePool,
        machines: &[DynamicObject],
    ) -> Result<Vec<PlatformMachine>, Error> {
        if pool.spec.platform.type_ != PlatformType::Aws || machines.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = machines
            .iter()
            .map(|it| Machine::read(it).infrastructure)
            .collect();
        let listed = self.list(&self.capi.aws_machine(), None).await?;
        let ours = listed
            .into_iter()
            .filter(|it| names.contains(&it.name_any()));
        let ours = ours.filter(|it| it.metadata.deletion_timestamp.is_none());
        Ok(ours
            .map(|it| PlatformMachine {
                name: it.name_any(),
                uid: it.uid(),
                spec: it.data["spec"].clone(),
            })
            .collect())
    }

    async fn remediation(&self, pool: &NodePool) -> Result<Option<ObservedCondition>, Error> {
        if !pool.spec.management.auto_repair {
            return Ok(None);
        }
        let check = self
            .get(&self.capi.machine_health_check(), names::of(pool))
            .await?;
        Ok(check.map(|it| observed_condition(&it.data, "RemediationAllowed")))
    }

    /// The pool's release, the version that the cluster has, and what its operator can do.
    async fn releases(
        &self,
        pool: &NodePool,
        cluster: &HostedCluster,
        pull_secret: Option<&[u8]>,
    ) -> (Result<Arc<Release>, Unread>, Option<Version>, Capabilities) {
        let pull_secret = match pull_secret.map(PullSecret::parse) {
            Some(Ok(pull_secret)) => pull_secret,
            Some(Err(error)) => {
                return (
                    Err(Unread::secret(error.to_string())),
                    None,
                    Capabilities::unknown(),
                );
            }
            None => {
                let name = &cluster.spec.pull_secret.name;
                let message = format!(
                    "Secret {name} with the key {} does not exist: create it",
                    pull_secret::KEY
                );
                return (Err(Unread::secret(message)), None, Capabilities::unknown());
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
            Err(error) if error.is_in_progress() => return Unread::in_progress(&error),
            of_cluster => of_cluster.ok(),
        };
        let version =
            completed(cluster).or_else(|| of_cluster.as_ref().map(|it| it.version.clone()));
        let question = Question {
            cluster,
            capi_types: self.capi.types(),
            release: of_cluster.as_deref(),
            images: &self.ctx.images.operator,
        };
        match capabilities(&releases, &question, &pull_secret).await {
            Ok(capabilities) => (release, version, capabilities),
            Err(error) => Unread::in_progress(&error),
        }
    }
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

    /// The reason while an image is being read.
    fn in_progress(
        error: &payload::Error,
    ) -> (Result<Arc<Release>, Self>, Option<Version>, Capabilities) {
        (Err(Self::of(error)), None, Capabilities::unknown())
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

fn content(map: ConfigMap, key: &str) -> Content {
    let text = map.data.and_then(|mut it| it.remove(key));
    text.map_or(Content::Empty, Content::Text)
}

fn belongs(map: &ConfigMap, pool: &NodePool) -> bool {
    map.annotations().get(NODE_POOL.key()) == Some(&names::reference(pool))
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
    use ownership::Scope;
    use payload::Capability;

    use super::*;
    use crate::config::Config;
    use crate::facts::fixture;

    #[tokio::test]
    async fn capabilities_are_read_on_every_platform() {
        let config = Config::for_tests(Scope::Private);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let pull_secret = PullSecret::parse(br#"{"auths":{}}"#).unwrap();
        let images = payload::operator_image::OperatorImages::default();
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
}
