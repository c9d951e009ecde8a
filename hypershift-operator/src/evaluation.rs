//! Evaluates the owners of all hosted clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use ownership::{Evaluation, Namespace, Namespaces, ObservedGroups, evaluate};
use ownership_reader::list_namespaces;
use tokio::time::Instant;

use crate::cache;
use crate::cluster_ref::{Id, protocol, resource};
use crate::context::Context;
use crate::error::Error;
use crate::owner_condition;
use crate::watches::Lenient;

/// HostedClusters in one page of a list: they are large, and most of each is trimmed.
const PAGE: u32 = 25;

/// A HostedCluster and its evaluation.
#[derive(Debug, Clone)]
pub(crate) struct EvaluatedCluster {
    pub(crate) id: Id,
    pub(crate) metadata: ObjectMeta,
    pub(crate) evaluation: Evaluation,
    /// Its control plane namespace belongs to another HostedCluster, so it is not migrated.
    pub(crate) is_refused: bool,
    /// Its condition does not report this evaluation yet.
    pub(crate) is_condition_due: bool,
}

/// Evaluates every HostedCluster. A failed read is an error: there are no partial results.
pub(crate) async fn from_api(ctx: &Context) -> Result<Vec<EvaluatedCluster>, Error> {
    let begun = Instant::now();
    // HostedClusters are listed first, so that objects that are created after that are observed, too.
    let clusters = list(ctx).await?;
    let observed_groups = ctx.observed_groups.everywhere().await?;
    let namespaces = list_namespaces(&ctx.client).await?;
    let evaluated = clusters.iter().map(|cluster| {
        let id = Id::of(&cluster.metadata);
        let namespace = namespaces.of(&id.namespace, &id.name);
        let found = observed_groups.get(namespace.name());
        evaluate_cluster(
            ctx,
            cluster,
            id,
            &namespace,
            found.copied().unwrap_or_default(),
        )
    });
    let evaluated = evaluated.collect();
    ctx.metrics.scanned(begun.elapsed());
    Ok(evaluated)
}

/// The same from watches, without a request; none while a watch is not in sync. A caller that acts on it has to read the
/// HostedCluster again.
pub(crate) fn from_watches(ctx: &Context) -> Option<Vec<EvaluatedCluster>> {
    let cache = &ctx.cache;
    let all = [cache::HOSTED_CLUSTERS, cache::NAMESPACES];
    if !all.iter().all(|watch| cache.index.is_synced(watch)) {
        return None;
    }
    let clusters = cache.stores.clusters.state();
    let namespaces = cache.stores.namespaces.state();
    let namespaces: Namespaces = namespaces.iter().map(|it| it.metadata.clone()).collect();
    let evaluated = clusters.iter().map(|cluster| {
        let id = Id::of(&cluster.metadata);
        let namespace = namespaces.of(&id.namespace, &id.name);
        let found = cache.observed_groups(namespace.name())?;
        Some(evaluate_cluster(ctx, cluster, id, &namespace, found))
    });
    evaluated.collect()
}

/// Evaluates one HostedCluster.
fn evaluate_cluster(
    ctx: &Context,
    cluster: &DynamicObject,
    id: Id,
    namespace: &Namespace,
    found: ObservedGroups,
) -> EvaluatedCluster {
    let found = if namespace.is_foreign() {
        ObservedGroups::None
    } else {
        found
    };
    let protocol = namespace.protocol(protocol(&cluster.metadata));
    let evaluation = evaluate(&protocol, found);
    EvaluatedCluster {
        is_condition_due: owner_condition::due(ctx.scope, cluster, evaluation).is_some(),
        is_refused: !namespace.is_usable(),
        id,
        metadata: cluster.metadata.clone(),
        evaluation,
    }
}

/// All HostedClusters, trimmed to what the evaluation reads. One that cannot be read whole is evaluated by its metadata.
async fn list(ctx: &Context) -> Result<Vec<DynamicObject>, Error> {
    let api: Api<Lenient<DynamicObject>> = Api::all_with(ctx.client.clone(), &resource());
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let list = api.list(&params).await;
        let list = list.map_err(Error::list("HostedClusters"))?;
        let items = list.items.into_iter();
        found.extend(items.map(|it| owner_condition::trim(it.0)));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}
