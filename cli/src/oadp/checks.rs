//! Whether the management cluster is ready for a backup or a restore, by what was read of it. Pure.

use anyhow::bail;
use api::annotations::Protocol;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::DynamicObject;
use serde_json::Value;

use super::args::{CommonArgs, ContentArgs};
use super::objects::namespaces;
use super::resources::lacks;

/// Deployments of OADP and of Velero.
pub(super) const DEPLOYMENTS: [&str; 2] = ["openshift-adp-controller-manager", "velero"];
/// Velero's plugin for HyperShift.
const PLUGIN: &str = "hypershift";
const DOCUMENT: &str = "docs/backup.md";

/// Refuses a backup in the middle of a migration: it would have some objects in one group and some in the other.
pub(super) fn not_migrating(cluster: &HostedCluster, named: &str) -> anyhow::Result<()> {
    if protocol(cluster).in_progress {
        bail!(
            "{named} is being migrated: a backup would not be consistent. Wait until hypershift migrate status reports it \
             as done"
        );
    }
    Ok(())
}

/// What the user should know of a backup that can be made.
pub(super) fn warnings(
    cluster: &HostedCluster,
    common: &CommonArgs,
    content: &ContentArgs,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let agents = cluster.spec.platform.agent.as_ref();
    let agents = agents.map_or("", |agent| agent.agent_namespace.as_str());
    if !agents.is_empty() && !namespaces(common).iter().any(|it| it == agents) {
        warnings.push(format!(
            "the hosts of the cluster are in namespace {agents}, which is not backed up: include it with \
             --include-additional-namespaces {agents}"
        ));
    }
    let types = if protocol(cluster).private {
        CapiTypes::Private
    } else {
        CapiTypes::Standard
    };
    if lacks(&content.included_resources, types) {
        warnings.push(format!(
            "Cluster API's objects of the cluster are in the {types} groups, of which --included-resources names none: name \
             clusters.{} and others",
            api::group::core(types)
        ));
    }
    warnings
}

fn protocol(cluster: &HostedCluster) -> Protocol {
    let annotations = cluster.metadata.annotations.clone();
    Protocol::read(&annotations.unwrap_or_default())
}

/// Refuses a Deployment that does not exist, or that has too few pods.
pub(super) fn ready(found: Option<&Deployment>, named: &str) -> anyhow::Result<()> {
    let Some(deployment) = found else {
        bail!("{named} does not exist: install OADP, or name its namespace with --oadp-namespace");
    };
    let spec = deployment.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.as_ref();
    let ready = status
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();
    if ready < 1 || ready < wanted {
        bail!("{named} is not ready ({ready}/{wanted} pods): see why its pods do not start");
    }
    Ok(())
}

/// Refuses OADP without a configuration that it has reconciled. The warning is about the plugin.
pub(super) fn reconciled(
    applications: &[DynamicObject],
    namespace: &str,
) -> anyhow::Result<Option<String>> {
    let Some(first) = applications.first() else {
        bail!(
            "there is no DataProtectionApplication in namespace {namespace}: create one, or name the namespace of OADP with \
             --oadp-namespace"
        );
    };
    let reconciled = applications.iter().find(|it| is_reconciled(&it.data));
    let Some(application) = reconciled else {
        let name = name(first);
        bail!(
            "DataProtectionApplication {namespace}/{name} is not reconciled{}: see its conditions",
            message(&first.data)
        );
    };
    let plugins = application
        .data
        .pointer("/spec/configuration/velero/defaultPlugins");
    let plugins = plugins.and_then(Value::as_array);
    if plugins.is_some_and(|plugins| plugins.iter().any(|it| it == PLUGIN)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "DataProtectionApplication {namespace}/{} does not have {PLUGIN} in spec.configuration.velero.defaultPlugins: the \
         hosted cluster is not paused during a backup, and etcd may not be consistent",
        name(application)
    )))
}

fn is_reconciled(application: &Value) -> bool {
    condition(application).is_some_and(|condition| condition["status"] == "True")
}

/// What the condition says, in a form that follows a sentence.
fn message(application: &Value) -> String {
    let message = condition(application).and_then(|condition| condition["message"].as_str());
    message.map_or_else(String::new, |message| format!(" ({message})"))
}

fn condition(application: &Value) -> Option<&Value> {
    let conditions = application.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|it| it["type"] == "Reconciled")
}

/// Refuses a backup that has no complete content.
pub(super) fn completed(backup: Option<&DynamicObject>, named: &str) -> anyhow::Result<()> {
    let Some(backup) = backup else {
        bail!("{named} does not exist: check --from-backup and --oadp-namespace");
    };
    match backup.data["status"]["phase"].as_str() {
        Some("Completed") => Ok(()),
        Some(phase) => bail!("{named} is {phase}: only a backup that is Completed is restored"),
        None => bail!("{named} was not started yet: wait until it is Completed"),
    }
}

/// Refuses a schedule that makes no backups.
pub(super) fn active(schedule: Option<&DynamicObject>, named: &str) -> anyhow::Result<()> {
    let Some(schedule) = schedule else {
        bail!("{named} does not exist: check --from-schedule and --oadp-namespace");
    };
    if schedule.data["spec"]["paused"] == true {
        bail!(
            "{named} is paused: its newest backup may be old. Choose a backup with --from-backup, or resume the schedule"
        );
    }
    Ok(())
}

/// What to know when objects of private types cannot be restored.
pub(super) fn without_private_types() -> String {
    format!(
        "the CRDs of Cluster API's private groups are not installed: a cluster on private types can only be restored after \
         hypershift install --private-capi-types ({DOCUMENT})"
    )
}

fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use api::annotations::PRIVATE_CAPI_TYPES;
    use clap::Parser;
    use serde_json::json;

    use super::super::args::BackupArgs;
    use super::*;
    use crate::hosted::bare_cluster;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: BackupArgs,
    }

    fn warned(platform: &Value, annotations: &Value, flags: &[&str]) -> Vec<String> {
        let mut cluster = bare_cluster("a");
        cluster["metadata"]["annotations"] = annotations.clone();
        cluster["spec"]["platform"] = platform.clone();
        let cluster: HostedCluster = serde_json::from_value(cluster).unwrap();
        let usual = ["oadp", "--hc-name=a", "--hc-namespace=clusters"];
        let line = Line::try_parse_from(usual.iter().chain(flags)).unwrap();
        warnings(&cluster, &line.args.common, &line.args.content)
    }

    #[test]
    fn what_is_not_in_a_backup_is_reported() {
        let agent = json!({ "type": "Agent", "agent": { "agentNamespace": "hosts" } });
        let none = json!({ "type": "None" });
        let (standard, private) = (json!({}), json!({ PRIVATE_CAPI_TYPES: "true" }));
        let resources = "--included-resources=secrets,machines.cluster.x-k8s.io";
        for (platform, annotations, flags, expected) in [
            (&none, &private, &[][..], None),
            (&none, &standard, &[resources][..], None),
            (&none, &private, &[resources][..], Some("private groups")),
            (&agent, &standard, &[][..], Some("namespace hosts")),
            (
                &agent,
                &standard,
                &["--include-additional-namespaces=hosts"][..],
                None,
            ),
        ] {
            let found = warned(platform, annotations, flags);
            match expected {
                Some(part) => assert!(
                    found.len() == 1 && found[0].contains(part),
                    "{part}: {found:?}"
                ),
                None => assert!(found.is_empty(), "{found:?}"),
            }
        }
    }

    #[test]
    fn a_missing_plugin_is_a_warning() {
        let application = |plugins: &Value| -> DynamicObject {
            serde_json::from_value(json!({
                "metadata": { "name": "dpa" },
                "spec": { "configuration": { "velero": { "defaultPlugins": plugins } } },
                "status": { "conditions": [{ "type": "Reconciled", "status": "True" }] },
            }))
            .unwrap()
        };
        for (plugins, expected) in [
            (json!(["hypershift", "openshift"]), false),
            (json!(["openshift"]), true),
            (json!(null), true),
        ] {
            let found = reconciled(&[application(&plugins)], "openshift-adp").unwrap();
            assert_eq!(found.is_some(), expected, "{plugins}: {found:?}");
        }
    }
}
