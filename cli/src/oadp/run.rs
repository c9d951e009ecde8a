//! Printing the objects, or creating them after a look at the management cluster. Only here is anything written.

use anyhow::{Context as _, bail};
use api::group::{CapiTypes, core};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use super::args::{BackupArgs, CommonArgs, ContentArgs, RestoreArgs, ScheduleArgs};
use super::{checks, names, objects};
use crate::crds::output::{Format, stream};
use crate::hosted::{Hosted, named, refused};
use crate::install::cluster::status_code;
use crate::install::display::{Display, print};

/// Creates a backup, or prints it.
pub(super) async fn backup(args: &BackupArgs) -> anyhow::Result<()> {
    let BackupArgs { common, content } = args;
    let name = name_of(common);
    if common.render {
        let platform = Box::pin(rendered_platform(common, content)).await;
        return render(&objects::backup(args, platform, &name));
    }
    let hosted = Hosted::connect(&common.target.access()).await?;
    Box::pin(create_backup(args, &name, &hosted)).await?;
    print_name(common, &name)
}

/// Creates a schedule, or prints it.
pub(super) async fn schedule(args: &ScheduleArgs) -> anyhow::Result<()> {
    let (common, content) = (&args.common, &args.content);
    let name = name_of(common);
    if common.render {
        let platform = Box::pin(rendered_platform(common, content)).await;
        return render(&objects::schedule(args, platform, &name));
    }
    let hosted = Hosted::connect(&common.target.access()).await?;
    Box::pin(create_schedule(args, &name, &hosted)).await?;
    print_name(common, &name)
}

/// Creates a restore, or prints it.
pub(super) async fn restore(args: &RestoreArgs) -> anyhow::Result<()> {
    let common = &args.common;
    let name = name_of(common);
    if common.render {
        return render(&[objects::restore(args, &name)]);
    }
    let hosted = Hosted::connect(&common.target.access()).await?;
    Box::pin(create_restore(args, &name, &hosted)).await?;
    print_name(common, &name)
}

pub(super) async fn create_backup(
    args: &BackupArgs,
    name: &str,
    hosted: &Hosted,
) -> anyhow::Result<()> {
    let BackupArgs { common, content } = args;
    let display = Display::new(common.quiet);
    let cluster = cluster(common, hosted).await?;
    checks::not_migrating(&cluster, &named_cluster(common))?;
    warn(&display, checks::warnings(&cluster, common, content));
    check_oadp(common, hosted, &display).await?;
    let objects = objects::backup(args, cluster.spec.platform.type_, name);
    create(&objects, common, hosted, &display).await
}

pub(super) async fn create_schedule(
    args: &ScheduleArgs,
    name: &str,
    hosted: &Hosted,
) -> anyhow::Result<()> {
    let (common, content) = (&args.common, &args.content);
    let display = Display::new(common.quiet);
    let cluster = cluster(common, hosted).await?;
    warn(&display, checks::warnings(&cluster, common, content));
    check_oadp(common, hosted, &display).await?;
    let objects = objects::schedule(args, cluster.spec.platform.type_, name);
    create(&objects, common, hosted, &display).await
}

pub(super) async fn create_restore(
    args: &RestoreArgs,
    name: &str,
    hosted: &Hosted,
) -> anyhow::Result<()> {
    let common = &args.common;
    let display = Display::new(common.quiet);
    if find_cluster(common, hosted).await?.is_some() {
        display.say(&format!(
            "warning: {} exists: its objects are handled by --existing-resource-policy {}. To restore all of it, delete it \
             first",
            named_cluster(common),
            args.existing_resource_policy.as_str()
        ));
    }
    check_oadp(common, hosted, &display).await?;
    let namespace = common.oadp_namespace.as_str();
    if let Some(backup) = &args.from_backup {
        let found = find(hosted, "Backup", namespace, backup).await?;
        checks::completed(found.as_ref(), &format!("Backup {namespace}/{backup}"))?;
    }
    if let Some(schedule) = &args.from_schedule {
        let found = find(hosted, "Schedule", namespace, schedule).await?;
        checks::active(found.as_ref(), &format!("Schedule {namespace}/{schedule}"))?;
    }
    if !has_private_types(hosted).await {
        warn(&display, vec![checks::without_private_types()]);
    }
    let objects = [objects::restore(args, name)];
    create(&objects, common, hosted, &display).await
}

/// The name that the user gives, or one that is made.
fn name_of(common: &CommonArgs) -> String {
    let made = || names::of_cluster(&common.hc_namespace, &common.hc_name, &names::random());
    common.name.clone().unwrap_or_else(made)
}

/// Prints the name, which other commands take.
fn print_name(common: &CommonArgs, name: &str) -> anyhow::Result<()> {
    if common.dry_run {
        return Ok(());
    }
    print(&format!("{name}\n"))
}

fn render(objects: &[Value]) -> anyhow::Result<()> {
    let text = stream(objects, Format::Yaml)?;
    print(&format!("---\n{text}"))
}

fn warn(display: &Display, warnings: Vec<String>) {
    for warning in warnings {
        display.say(&format!("warning: {warning}"));
    }
}

/// The platform of the cluster, as far as it can be read: manifests are also rendered elsewhere.
async fn rendered_platform(common: &CommonArgs, content: &ContentArgs) -> PlatformType {
    let display = Display::new(common.quiet);
    let read = async {
        let hosted = Hosted::connect(&common.target.access()).await?;
        cluster(common, &hosted).await
    };
    match read.await {
        Ok(cluster) => {
            warn(&display, checks::warnings(&cluster, common, content));
            cluster.spec.platform.type_
        }
        Err(error) => {
            let warning = format!("the platform is unknown, and AWS is assumed: {error:#}");
            warn(&display, vec![warning]);
            PlatformType::Aws
        }
    }
}

async fn cluster(common: &CommonArgs, hosted: &Hosted) -> anyhow::Result<HostedCluster> {
    let found = find_cluster(common, hosted).await?;
    found.with_context(|| {
        format!(
            "{} does not exist: check --hc-namespace and --hc-name",
            named_cluster(common)
        )
    })
}

async fn find_cluster(
    common: &CommonArgs,
    hosted: &Hosted,
) -> anyhow::Result<Option<HostedCluster>> {
    hosted.find(&common.hc_namespace, &common.hc_name).await
}

fn named_cluster(common: &CommonArgs) -> String {
    format!("HostedCluster {}/{}", common.hc_namespace, common.hc_name)
}

/// Refuses to write for an OADP that would not act.
async fn check_oadp(common: &CommonArgs, hosted: &Hosted, display: &Display) -> anyhow::Result<()> {
    let namespace = common.oadp_namespace.as_str();
    let deployments: Api<Deployment> = Api::namespaced(hosted.client().clone(), namespace);
    for name in checks::DEPLOYMENTS {
        let what = format!("Deployment {namespace}/{name}");
        let found = deployments.get_opt(name).await;
        let found =
            found.map_err(|error| refused(&error).context(format!("failed to get {what}")))?;
        checks::ready(found.as_ref(), &what)?;
    }
    let kind = GroupVersionKind::gvk("oadp.openshift.io", "v1alpha1", "DataProtectionApplication");
    let listed = api(hosted, &kind, namespace)
        .list(&ListParams::default())
        .await;
    let applications = match listed {
        Ok(list) => list.items,
        Err(error) if status_code(&error) == Some(404) => Vec::new(),
        Err(error) => {
            return Err(refused(&error).context(format!(
                "failed to list DataProtectionApplications in namespace {namespace}"
            )));
        }
    };
    let warning = checks::reconciled(&applications, namespace)?;
    warn(display, warning.into_iter().collect());
    Ok(())
}

fn api(hosted: &Hosted, kind: &GroupVersionKind, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(kind);
    Api::namespaced_with(hosted.client().clone(), namespace, &resource)
}

/// An object of Velero.
async fn find(
    hosted: &Hosted,
    kind: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<DynamicObject>> {
    let velero = GroupVersionKind::gvk("velero.io", "v1", kind);
    let found = api(hosted, &velero, namespace).get_opt(name).await;
    found.map_err(|error| {
        refused(&error).context(format!("failed to get {kind} {namespace}/{name}"))
    })
}

/// Whether there are private CRDs. A user who may not read CRDs gets no warning.
async fn has_private_types(hosted: &Hosted) -> bool {
    let definitions: Api<CustomResourceDefinition> = Api::all(hosted.client().clone());
    let name = format!("clusters.{}", core(CapiTypes::Private));
    !matches!(definitions.get_metadata_opt(&name).await, Ok(None))
}

/// Creates objects of which the API server accepts all.
async fn create(
    objects: &[Value],
    common: &CommonArgs,
    hosted: &Hosted,
    display: &Display,
) -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for object in objects {
        if object["kind"] == "ConfigMap" && has_policy(object, common, hosted).await? {
            continue;
        }
        hosted.insert(object, true).await?;
        missing.push(object);
    }
    for object in missing {
        let done = if common.dry_run {
            "would be created"
        } else {
            hosted.insert(object, false).await?;
            "created"
        };
        display.say(&format!("{}: {done}", named(object)));
    }
    Ok(())
}

/// Whether an earlier run has created the policy. One with other content is not the cluster's.
async fn has_policy(policy: &Value, common: &CommonArgs, hosted: &Hosted) -> anyhow::Result<bool> {
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    let found = hosted
        .config_maps(&common.oadp_namespace)
        .get_opt(name)
        .await;
    let found = found
        .map_err(|error| refused(&error).context(format!("failed to get {}", named(policy))))?;
    let Some(found) = found else {
        return Ok(false);
    };
    if json!(found.data) != policy["data"] {
        bail!(
            "{} exists and has another policy for volumes: delete it, so that the command creates it again",
            named(policy)
        );
    }
    Ok(true)
}
