//! Why a deletion waits: which object, since when, which finalizer, and who would remove it.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;

use super::list;
use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::dereference::get;
use crate::hosted_cluster::facts::Facts;
use crate::hosted_cluster::names;

/// What a deletion waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) finalizers: Vec<String>,
    /// Since when it is being deleted.
    pub(crate) since: Option<String>,
    /// Who holds it, and what is wrong with them.
    pub(crate) detail: Option<String>,
}

// === impl Waiting ===

impl Waiting {
    /// What remains of an object that was to be deleted.
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
        let mut text = format!("waiting for {kind} {name} to be deleted");
        if let Some(since) = since {
            text.extend([" since ", since.as_str()]);
        }
        if !finalizers.is_empty() {
            text.extend(["; held by ", finalizers.join(", ").as_str()]);
        }
        if let Some(detail) = detail {
            text.extend(["; ", detail.as_str()]);
        }
        text
    }

    /// One word for it.
    pub(crate) fn reason(&self) -> String {
        format!("WaitingFor{}", self.kind)
    }
}

/// Who is to remove what holds the object.
pub(super) async fn holder(
    waiting: &Waiting,
    facts: &Facts,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    match waiting.kind.as_str() {
        "Cluster" | "NodePool" => machines(facts, ctx).await,
        "HostedControlPlane" | "AWSEndpointService" => {
            deployment(names::CONTROL_PLANE_OPERATOR, facts, ctx).await
        }
        _ => Ok(None),
    }
}

/// The machines that are left, and whether those run who delete them.
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
            "{} machines are left, {name} held by {finalizers}",
            machines.len()
        ));
    }
    for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
        parts.extend(deployment(name, facts, ctx).await?);
    }
    Ok((!parts.is_empty()).then(|| parts.join("; ")))
}

/// What is wrong with a Deployment whose pods would go on.
async fn deployment(name: &str, facts: &Facts, ctx: &Context) -> Result<Option<String>, Error> {
    let found = get::<k8s_openapi::api::apps::v1::Deployment>(ctx, &facts.namespace, name).await?;
    let Some(found) = found else {
        return Ok(Some(format!(
            "the Deployment {name}, which would remove it, is not there"
        )));
    };
    let status = found.status.unwrap_or_default();
    if status.available_replicas.unwrap_or_default() > 0 {
        return Ok(None);
    }
    Ok(Some(format!(
        "the Deployment {name}, which would remove it, is not available"
    )))
}

/// What the API server says about a namespace that does not go.
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

    #[test]
    fn o05_what_is_waited_for_is_told_with_its_finalizers_and_their_holder() {
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
            "waiting for Cluster one-x7k2p to be deleted since 2030-01-31T12:00:00Z; held by example.com/finalizer; \
             the Deployment cluster-api, which would remove it, is not available"
        );
    }
}
