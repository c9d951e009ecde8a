//! One look at all hosted clusters and at the evidence about each.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use ownership::{Evaluation, evaluate};
use ownership_reader::list_namespaces;
use tokio::time::Instant;

use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{self, Id, protocol, resource};

/// HostedClusters in one page of a list: they are large, and little of each is kept.
const PAGE: u32 = 25;

/// A hosted cluster, and what was decided about it.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) id: Id,
    pub(crate) metadata: ObjectMeta,
    pub(crate) verdict: Evaluation,
    /// The namespace of its control plane is not its own: nothing of it is migrated.
    pub(crate) is_refused: bool,
    /// Its condition does not say so yet.
    pub(crate) untold: bool,
}

/// Decides about every hosted cluster. Whatever cannot be read is an error: there are no partial surveys.
pub(crate) async fn classify(ctx: &Context) -> Result<Vec<Judged>, Error> {
    let begun = Instant::now();
    // The clusters first: objects that appear after a cluster was listed are then seen, and never the other way round.
    let clusters = list(ctx).await?;
    let evidence = ctx.evidence.everywhere().await?;
    let namespaces = list_namespaces(&ctx.client).await?;
    let judged = clusters.into_iter().map(|cluster| {
        let id = Id::of(&cluster.metadata);
        let namespace = namespaces.of(&id.namespace, &id.name);
        let found = evidence.get(namespace.name());
        let found = found.filter(|_| !namespace.is_foreign());
        let protocol = namespace.protocol(protocol(&cluster.metadata));
        let verdict = evaluate(&protocol, found.copied().unwrap_or_default());
        Judged {
            untold: hosted_cluster::due(ctx.scope, &cluster, verdict).is_some(),
            is_refused: !namespace.is_usable(),
            id,
            metadata: cluster.metadata,
            verdict,
        }
    });
    let judged = judged.collect();
    ctx.metrics.scanned(begun.elapsed());
    Ok(judged)
}

/// The clusters, less what is not looked at.
async fn list(ctx: &Context) -> Result<Vec<DynamicObject>, Error> {
    let api: Api<DynamicObject> = Api::all_with(ctx.client.clone(), &resource());
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let list = api.list(&params).await;
        let list = list.map_err(Error::list("HostedClusters"))?;
        found.extend(list.items.into_iter().map(hosted_cluster::slim));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}
