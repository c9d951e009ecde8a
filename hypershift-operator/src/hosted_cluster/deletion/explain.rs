//! Why a deletion waits: which object, since when, which finalizer, and who would remove it.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;

use super::list;
use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;
use crate::names;

/// What a deletion waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) finalizers: Vec<String>,
    /// Since when it is being deleted.
    pub(crate) since: Option<String>,
    /// Which controllers have to remove its finalizers, and why they do not.
    pub(crate) detail: Option<String>,
}

// === impl Waiting ===

impl Waiting {
    /// An object that is being deleted.
    pub(super) fn of(kind: &str, metadata: &ObjectMeta) -> Self {
        let since = metadata.deletion_timestamp.as_ref();
        Self {
            kind: kind.to_owned(),
            name: metadata.name.clone().unwrap_or_default(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            since: since.map(|time| time.0.to_string()),
            detail: None,
        }
    }

    /// In words.
    pub(crate) fn message(&self) -> String {
        let Self {
            kind,
            name,
            finalizers,
            since,
            detail,
        } = self;
        let mut text = format!("Waiting for {kind} {name} to be deleted");
        if let Some(since) = since {
            text.extend([" since ", since.as_str()]);
        }
        if !finalizers.is_empty() {
            text.extend(["; finalizers: ", finalizers.join(", ").as_str()]);
        }
        if let Some(detail) = detail {
            text.extend(["; ", detail.as_str()]);
        }
        text
    }

    /// The name for messages.
    pub(crate) fn reason(&self) -> String {
        format!("WaitingFor{}", self.kind)
    }
}

/// The controller that removes its finalizers.
pub(super) async fn holder(
    waiting: &Waiting,
    facts: &Facts,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    match waiting.kind.as_str() {
        "Cluster" | "NodePool" => machines(facts, ctx).await,
        "HostedControlPlane"
            if waiting
                .finalizers
                .iter()
                .any(|it| it == names::KARPENTER_FINALIZER) =>
        {
            deployment(names::KARPENTER_OPERATOR, facts, ctx).await
        }
        "HostedControlPlane"
        | "AWSEndpointService"
        | "AzurePrivateLinkService"
        | "GCPPrivateServiceConnect" => deployment(names::CONTROL_PLANE_OPERATOR, facts, ctx).await,
        "IBMPowerVSImage" | "Image" | "OpenStackServer" => {
            deployment(names::CAPI_PROVIDER, facts, ctx).await
        }
        _ => Ok(None),
    }
}

/// The remaining Machines, and whether the controllers that delete them run.
async fn machines(facts: &Facts, ctx: &Context) -> Result<Option<String>, Error> {
    let machines = list(facts.capi.machine(), &facts.namespace, ctx).await?;
    let mut parts = Vec::new();
    if let Some(first) = machines.first() {
        let name = first.metadata.name.clone().unwrap_or_default();
        let finalizers = first
            .metadata
            .finalizers
            .clone()
            .unwrap_or_default()
            .join(", ");
        parts.push(format!(
            "{} Machines remain; {name} has finalizers {finalizers}",
            machines.len()
        ));
    }
    for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
        parts.extend(deployment(name, facts, ctx).await?);
    }
    Ok((!parts.is_empty()).then(|| parts.join("; ")))
}

/// Why a Deployment that has to clean up does not run.
async fn deployment(name: &str, facts: &Facts, ctx: &Context) -> Result<Option<String>, Error> {
    let found = ctx
        .get::<k8s_openapi::api::apps::v1::Deployment>(&facts.namespace, name)
        .await?;
    let Some(found) = found else {
        return Ok(Some(format!(
            "Deployment {name}, which removes it, does not exist"
        )));
    };
    let status = found.status.unwrap_or_default();
    if status.available_replicas.unwrap_or_default() > 0 {
        return Ok(None);
    }
    Ok(Some(format!(
        "Deployment {name}, which removes it, is not available"
    )))
}

/// The conditions of a namespace that is not deleted.
pub(super) async fn namespace(name: &str, ctx: &Context) -> Result<Option<String>, Error> {
    let api: Api<Namespace> = Api::all(ctx.client.clone());
    let found = api.get_opt(name).await.map_err(|source| Error::Read {
        what: format!("Namespace {name}"),
        source,
    })?;
    let status = found.and_then(|it| it.status);
    let conditions = status.and_then(|it| it.conditions).into_iter().flatten();
    let remaining = conditions
        .filter(|it| it.status == "True")
        .filter_map(|it| it.message);
    let parts: Vec<_> = remaining.collect();
    Ok((!parts.is_empty()).then(|| parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check O05.
    #[test]
    fn deletion_status_names_finalizers_and_their_controllers() {
        let waiting = Waiting {
            kind: "Cluster".to_owned(),
            name: "one-x7k2p".to_owned(),
            finalizers: vec!["example.com/finalizer".to_owned()],
            since: Some("2030-01-31T12:00:00Z".to_owned()),
            detail: Some(
                "the Deployment cluster-api, which would remove it, is not available".to_owned(),
            ),
        };
        assert_eq!(waiting.reason(), "WaitingForCluster");
        assert_eq!(
            waiting.message(),
            "Waiting for Cluster one-x7k2p to be deleted since 2030-01-31T12:00:00Z; finalizers: example.com/finalizer; \
             the Deployment cluster-api, which would remove it, is not available"
        );
    }
}
