//! Reads everything that a reconcile depends on, and decides nothing.

mod agents;
mod auto_node;
mod copies;
mod ignition;
mod live_cluster;
mod private_links;
mod public_subnets;

use std::collections::{BTreeMap, BTreeSet};

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::{HostedCluster, HostedControlPlane};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::ApiResource;
use payload::operator_image::released_labels;
use payload::{Mirrors, PullSecret, Releases};
use support::error::chain;

use super::build::{virtual_machines, webhook_tls};
use super::inputs;
use super::operator_image::{operator_image, question};
use crate::cache::Snapshot;
use crate::capi::Capi;
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::error::Error;
use crate::facts::references::{Kind, Purpose, Reference, references};
use crate::facts::{Facts, Found, InfraTime, Labels, Management, ReleaseIs};
use crate::names;
use crate::platform::infrastructure;
use crate::platform::kubevirt::{rights, virtualization};

/// Deployments of the control plane namespace that are read.
const DEPLOYMENTS: [&str; 4] = [
    names::CAPI_PROVIDER,
    names::CLUSTER_API,
    names::CONTROL_PLANE_OPERATOR,
    "ignition-server",
];

/// Facts of a HostedCluster before anything else is read.
pub(super) fn empty_facts(cluster: HostedCluster, capi: Capi, ctx: &Context) -> Facts {
    let id = Id::of(&cluster.metadata);
    Facts {
        namespace: id.control_plane_namespace(),
        id,
        capi,
        control_plane: None,
        referenced: Vec::new(),
        occupied: Vec::new(),
        agent_namespace: None,
        release: ReleaseIs::NoPullSecret,
        control_plane_release: None,
        is_partial: false,
        released_operator: Labels::Unreadable("the labels have not been read".to_owned()),
        operator_labels: BTreeMap::new(),
        deployments: BTreeMap::new(),
        handed_out: BTreeMap::new(),
        ignition: None,
        management: Management::default(),
        missing_crds: Vec::new(),
        virtualization: None,
        missing_rights: Vec::new(),
        infra_policy: None,
        infra_time: InfraTime::default(),
        no_base_domain: None,
        no_encryption_key: None,
        infrastructure_name: None,
        live_migration: Some(BTreeMap::new()),
        images: ctx.images.clone(),
        cloud: ctx.cloud.clone(),
        oidc_documents: None,
        private_links: Vec::new(),
        public_subnets: BTreeSet::new(),
        auto_node: None,
        webhook_tls: None,
        cluster,
    }
}

/// Reads everything; images with `releases`, which limits the wait for a registry. Adds objects whose names come from the
/// status of the control plane to the snapshot.
pub(super) async fn dereference(
    cluster: HostedCluster,
    capi: Capi,
    releases: &Releases,
    snapshot: Option<Snapshot>,
    ctx: &Context,
) -> Result<(Facts, Option<Snapshot>), Error> {
    let mut facts = empty_facts(cluster, capi, ctx);
    facts.control_plane = ctx
        .get::<HostedControlPlane>(&facts.namespace, &facts.id.name)
        .await?;
    facts.referenced = referenced(&facts.cluster, ctx).await?;
    crate::facts::aws_roles::resolve(&mut facts);
    facts.management = ctx.management.get(&ctx.client).await?;
    if virtual_machines::are_beside_control_plane(&facts) {
        let pods = ctx.management.pod_networks(&ctx.client).await?;
        facts.management.networks.extend(pods);
    }
    facts.virtualization = virtualization::find(&facts, &ctx.client, &ctx.virtualization).await;
    facts.missing_rights = rights::missing(&facts, &ctx.virtualization).await;
    facts.infrastructure_name = live_cluster::infrastructure_name(&facts, ctx).await?;
    if facts.cluster.spec.platform.type_ == PlatformType::KubeVirt {
        facts.live_migration = ctx.cache.live_migration(&facts.id);
    }
    facts.occupied = copies::occupied(&facts, ctx).await?;
    facts.agent_namespace = agents::consent(&facts, ctx).await?;
    for name in DEPLOYMENTS {
        let found = ctx.get::<Deployment>(&facts.namespace, name).await?;
        facts
            .deployments
            .extend(found.map(|it| (name.to_owned(), it)));
    }
    auto_node::read(&mut facts, ctx).await?;
    facts.private_links = private_links::of_cluster(&facts, ctx).await?;
    facts.public_subnets = public_subnets::of_pools(&facts, ctx).await?;
    facts.missing_crds = ctx.cache.missing_crds(&awaited_kinds(&facts));
    let handed_out = handed_out(&facts);
    let snapshot = snapshot.and_then(|snapshot| {
        inputs::of_control_plane(&facts.namespace, &handed_out, snapshot, &ctx.cache.index)
    });
    for name in handed_out {
        let found = ctx.get::<Secret>(&facts.namespace, &name).await?;
        facts.handed_out.extend(found.map(|it| (name, it)));
    }
    facts.ignition = ignition::endpoint(&facts, ctx).await?;
    read_releases(&mut facts, releases).await;
    let certificate = ctx
        .get::<Secret>(&facts.namespace, names::WEBHOOK_TLS)
        .await?;
    if certificate.is_none() {
        let year = Timestamp::now().to_zoned(TimeZone::UTC).year();
        facts.webhook_tls = Some(webhook_tls(year).map_err(Error::Certificate)?);
    }
    Ok((facts, snapshot))
}

/// The kinds that the Cluster API controllers of a cluster watch, until they are started: their pods fail while one has no
/// CRD.
fn awaited_kinds(facts: &Facts) -> Vec<ApiResource> {
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    let is_awaited =
        facts.has_machine_management() && !facts.deployments.contains_key(names::CLUSTER_API);
    let kinds = platform.kinds(facts.capi).filter(|_| is_awaited);
    let kinds = kinds
        .into_iter()
        .flat_map(|kinds| facts.capi.core_kinds().into_iter().chain(kinds));
    kinds.collect()
}

async fn namespace(ctx: &Context, name: &str) -> Result<Option<Namespace>, Error> {
    let api: Api<Namespace> = Api::all(ctx.client.clone());
    let found = api.get_opt(name).await;
    found.map_err(|source| Error::Read {
        what: format!("Namespace {name}"),
        source,
    })
}

async fn referenced(
    cluster: &HostedCluster,
    ctx: &Context,
) -> Result<Vec<(Reference, Found)>, Error> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let mut referenced = Vec::new();
    for reference in references(cluster) {
        let found = match reference.kind {
            Kind::Secret => ctx
                .get::<Secret>(namespace, &reference.name)
                .await?
                .map(|it| Found::Secret(Box::new(it))),
            Kind::ConfigMap => ctx
                .get::<ConfigMap>(namespace, &reference.name)
                .await?
                .map(|it| Found::ConfigMap(Box::new(it))),
        };
        referenced.push((reference, found.unwrap_or(Found::Missing)));
    }
    Ok(referenced)
}

/// The names of the Secrets that the control plane has created for the administrator.
fn handed_out(facts: &Facts) -> Vec<String> {
    let status = facts
        .control_plane
        .as_ref()
        .and_then(|it| it.status.as_ref());
    let Some(status) = status else {
        return Vec::new();
    };
    let named = [
        status.kube_config.as_ref().map(|it| it.name.clone()),
        status.custom_kubeconfig.as_ref().map(|it| it.name.clone()),
        status.kubeadmin_password.as_ref().map(|it| it.name.clone()),
    ];
    named.into_iter().flatten().collect()
}

/// Reads the releases, and the image labels of their control-plane-operator. A failure is recorded in the facts.
async fn read_releases(facts: &mut Facts, releases: &Releases) {
    let Some(pull_secret) = pull_secret(facts) else {
        return;
    };
    let mirrors = Mirrors::of(&facts.cluster.spec.image_content_sources);
    let releases = releases.with_mirrors(&mirrors);
    facts.release = release(&releases, &facts.cluster.spec.release.image, &pull_secret).await;
    if let Some(other) = &facts.cluster.spec.control_plane_release {
        facts.control_plane_release = Some(release(&releases, &other.image, &pull_secret).await);
    }
    let read = [Some(&facts.release), facts.control_plane_release.as_ref()];
    facts.is_partial = read
        .into_iter()
        .flatten()
        .any(|it| matches!(it, ReleaseIs::Unreadable(_)));
    match released_labels(&question(facts), &releases, &pull_secret).await {
        Ok(None) => {}
        Ok(Some(labels)) => facts.released_operator = Labels::Read(labels),
        Err(error) => {
            facts.released_operator = Labels::Unreadable(chain(&error));
            defer(facts, error);
        }
    }
    match operator_labels(facts, &releases, &pull_secret).await {
        Ok(labels) => facts.operator_labels = labels,
        Err(error) => defer(facts, error),
    }
}

/// The labels decide what is applied, so while they are being read, the release counts as being read, too. An operator
/// whose labels cannot be read counts as the newest.
fn defer(facts: &mut Facts, error: payload::Error) {
    facts.is_partial = true;
    if error.is_in_progress() {
        facts.release = ReleaseIs::Unreadable(error);
    }
}

async fn release(releases: &Releases, image: &str, pull_secret: &PullSecret) -> ReleaseIs {
    match releases.get(image, pull_secret).await {
        Ok(release) => ReleaseIs::Read(release),
        Err(error) => ReleaseIs::Unreadable(error),
    }
}

fn pull_secret(facts: &Facts) -> Option<PullSecret> {
    let mut referenced = facts.referenced.iter();
    let (_, found) = referenced.find(|(it, _)| it.purpose == Purpose::PullSecret)?;
    let Found::Secret(secret) = found else {
        return None;
    };
    let json = secret.data.as_ref()?.get(payload::pull_secret::KEY)?;
    PullSecret::parse(&json.0).ok()
}

/// Image labels of the control-plane-operator to run; empty without an image.
async fn operator_labels(
    facts: &Facts,
    releases: &Releases,
    pull_secret: &PullSecret,
) -> Result<BTreeMap<String, String>, payload::Error> {
    if let Some(labels) = question(facts).annotated_labels() {
        return Ok(labels);
    }
    let Ok(image) = operator_image(facts) else {
        return Ok(BTreeMap::new());
    };
    let labels = releases.labels(&image, pull_secret).await?;
    Ok(labels.as_ref().clone())
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn crds_are_awaited_until_controllers_run() {
        let plurals = |facts: &Facts| {
            let kinds = awaited_kinds(facts).into_iter();
            kinds.map(|it| it.plural).collect::<Vec<_>>()
        };
        let core = [
            "clusters",
            "machines",
            "machinedeployments",
            "machinesets",
            "machinehealthchecks",
        ];
        let aws = ["awsclusters", "awsmachinetemplates", "awsmachines"];
        for (platform, expected) in [
            ("aws", [&core[..], &aws].concat()),
            ("agent", core.to_vec()),
            ("none", Vec::new()),
        ] {
            let facts = fixture::facts(fixture::hosted_cluster(platform), CapiTypes::Private);
            assert_eq!(plurals(&facts), expected, "{platform}");
        }
        let mut running = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        let deployments = &mut running.deployments;
        deployments.insert(names::CLUSTER_API.to_owned(), Deployment::default());
        assert_eq!(plurals(&running), [""; 0], "they run");
        let mut cluster = fixture::hosted_cluster("aws");
        let disabled = api::annotations::cluster::DISABLE_MACHINE_MANAGEMENT.key();
        let annotations = cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(disabled.to_owned(), "true".to_owned());
        let facts = fixture::facts(cluster, CapiTypes::Private);
        assert_eq!(plurals(&facts), [""; 0], "there are none");
    }
}
