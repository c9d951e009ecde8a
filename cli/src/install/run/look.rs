//! Fills in the facts that checks are about.

use anyhow::Context;
use rustls::pki_types::UnixTime;
use serde_json::Value;

use crate::install::args::Outputs;
use crate::install::cluster::{Cluster, message, status_code};
use crate::install::conversion;
use crate::install::difference::Outcome;
use crate::install::external_dns;
use crate::install::kind::{Kind, Scope};
use crate::install::object::{Id, Object, is_ours, selector};
use crate::install::observe;
use crate::install::options::Options;
use crate::install::plan::Surroundings;
use crate::install::preflight::{Facts, Installed, Loss, Refusal, grants, handing_out, needed};
use crate::install::rbac;
use crate::install::workload::Operator;

/// What the API server says of each object, in their order.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The object as it would be; nothing where that could not be asked.
    pub(super) after: Vec<Option<Value>>,
}

/// Kinds that an installation makes, and takes away again when it no longer wants them.
const REMOVABLE: [Kind; 16] = [
    Kind::ServiceAccount,
    Kind::Secret,
    Kind::ConfigMap,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Role,
    Kind::RoleBinding,
    Kind::ValidatingAdmissionPolicy,
    Kind::ValidatingAdmissionPolicyBinding,
    Kind::NetworkPolicy,
    Kind::PodDisruptionBudget,
    Kind::Service,
    Kind::ServiceMonitor,
    Kind::PodMonitor,
    Kind::PrometheusRule,
    Kind::Deployment,
];

/// Version of the API server, and the permissions that everything else needs.
pub(super) async fn read_permissions(
    facts: &mut Facts,
    options: &Options,
    outputs: Outputs,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    facts.version = observe::version(cluster)
        .await
        .context("cannot ask the API server for its version")?;
    facts.denied = cluster
        .denied(needed(&options.namespace, outputs, false))
        .await
        .context("cannot ask the API server for your permissions")?;
    Ok(())
}

pub(super) async fn at_surroundings(
    options: &Options,
    cluster: &Cluster,
) -> anyhow::Result<Surroundings> {
    let mut surroundings = observe::surroundings(cluster, &options.namespace)
        .await
        .context("cannot read what the cluster has: get and list on hostedclusters and on Cluster API's kinds are needed")?;
    if options.external_dns.is_some() {
        surroundings.dns = external_dns::look::surroundings(cluster, &options.namespace)
            .await
            .context("cannot read what ExternalDNS depends on: get on namespace kube-system and on OpenShift's proxy are needed")?;
    }
    Ok(surroundings)
}

/// The permissions that the operators get, unless the user may hand out any.
pub(super) async fn at_grants(
    facts: &mut Facts,
    options: &Options,
    outputs: Outputs,
    cluster: &Cluster,
) -> anyhow::Result<()> {
    if !outputs.resources() {
        return Ok(());
    }
    let permissions = async {
        if cluster.denied(handing_out()).await?.is_empty() {
            return Ok(Vec::new());
        }
        let rules = rbac::rules(Operator::New, Operator::New.capi_types(&options.types));
        cluster.denied(grants(&options.namespace, &rules)).await
    };
    facts.not_held = permissions
        .await
        .context("cannot ask the API server for your permissions")?;
    Ok(())
}

/// What is there, what would be lost, what the API server would not take.
pub(super) async fn at_objects(
    facts: &mut Facts,
    options: &Options,
    objects: &mut [Object],
    cluster: &Cluster,
) -> anyhow::Result<Snapshot> {
    facts.observed = observe::live(cluster, objects)
        .await
        .context("cannot read what is installed")?;
    conversion::keep_trust(objects, &facts.observed);
    let objects = &*objects;
    facts.installed = installed(cluster, options)
        .await
        .context("cannot read the operator's Deployment")?;
    if let Some(setup) = options
        .private()
        .and_then(|private| private.conversion.as_ref())
    {
        facts.conversion = conversion::flaws(setup, objects, UnixTime::now());
    }
    let answers = cluster.try_all(objects, facts.take_over).await;
    facts.losses = observe::losses(cluster, objects, &facts.observed, &answers)
        .await
        .context("cannot read the objects of a CRD that is to change")?;
    let mut after = Vec::new();
    for (index, answer) in answers.into_iter().enumerate() {
        let observed = &facts.observed[index];
        match answer {
            Ok(answer) => after.push(Some(answer)),
            // Its namespace, or the role that it binds, is made before it.
            Err(error) if status_code(&error) == Some(404) && observed.live.is_none() => {
                after.push(None);
            }
            Err(error) => {
                after.push(None);
                let Some(code) = status_code(&error) else {
                    return Err(error).with_context(|| format!("cannot try {}", observed.id));
                };
                if !is_reported(&facts.losses, &observed.id) {
                    facts.refusals.push(Refusal {
                        id: observed.id.clone(),
                        code,
                        message: message(&error),
                    });
                }
            }
        }
    }
    Ok(Snapshot { after })
}

/// Whether a finding about a CRD says already what the API server says of it.
fn is_reported(losses: &[Loss], id: &Id) -> bool {
    id.kind == Kind::Crd
        && losses.iter().any(|loss| match loss {
            Loss::Orphaned { crd, .. } | Loss::Pruned { crd, .. } => *crd == id.name,
        })
}

async fn installed(cluster: &Cluster, options: &Options) -> kube::Result<Option<Installed>> {
    let id = Id {
        kind: Kind::Deployment,
        namespace: Some(options.namespace.clone()),
        name: Operator::New.name().to_owned(),
    };
    let deployment = cluster.find(&id.path()).await?;
    Ok(deployment.as_ref().and_then(Installed::of))
}

/// What an earlier installation made and this one does not want. The operator itself removes operator-legacy, by more
/// evidence than is looked at here.
pub(super) async fn prunable(
    cluster: &Cluster,
    options: &Options,
    steps: &[(Object, Outcome)],
) -> anyhow::Result<Vec<Object>> {
    let legacy = Operator::Legacy.name();
    let mut pruned = Vec::new();
    for kind in REMOVABLE {
        for object in ours(cluster, kind, options).await? {
            let wanted = steps.iter().any(|(planned, _)| planned.id == object.id);
            if !wanted {
                pruned.push(object);
            }
        }
    }
    let runs = |object: &Object| object.id.kind == Kind::Deployment && object.id.name == legacy;
    if pruned.iter().any(runs) {
        pruned.retain(|object| !object.id.name.ends_with(legacy));
    }
    pruned.reverse();
    Ok(pruned)
}

async fn ours(cluster: &Cluster, kind: Kind, options: &Options) -> anyhow::Result<Vec<Object>> {
    let resource = kind.resource();
    let namespace = match resource.scope {
        Scope::Cluster => None,
        Scope::Namespace => Some(options.namespace.as_str()),
    };
    let query = selector(&options.namespace);
    let found = cluster
        .list(&resource.path(namespace), &query)
        .await
        .with_context(|| format!("cannot list {}", resource.qualified()))?;
    Ok(found
        .into_iter()
        .filter(is_ours)
        .map(|live| Object::live(kind, live))
        .collect())
}
