//! Classes for Karpenter: an EC2NodeClass for each OpenshiftEC2NodeClass, whose status goes the other way.

use std::collections::BTreeMap;
use std::time::Duration;

use api::annotations::node_pool::NODE_POOL;
use api::hypershift::v1beta1::HostedControlPlane;
use api::karpenter::v1::OpenshiftEc2NodeClass;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};
use support::controller::Action;

use super::classes::{AMIS, CURRENT, MANAGED, MOST, of_pool, pool_name, taken};
use super::context::Context;
use super::control_plane::{instance_profile, is_active, tags as cluster_tags};
use super::ec2_node_class::{self, Inputs};
use super::error::Error;
use super::mirror::{self, Observed, Waits};
use super::tags::merged;
use super::{admission, kinds, subnets};
use crate::names::node_pool as names;

/// The reason while a class has no user data yet.
const WAITING: &str = "WaitingForConfiguration";
/// The key of user data.
const VALUE: &str = "value";
/// When classes are evaluated again while one has no user data: watches report it, too.
const AGAIN: Duration = Duration::from_secs(15);

/// Writes what differs.
pub(super) async fn pass(ctx: &Context) -> Result<Action, Error> {
    let now = Timestamp::now();
    let control_plane = ctx.control_plane().await?;
    let Some(hcp) = control_plane.filter(|it| is_active(it, now)) else {
        return Ok(Action::await_change());
    };
    let namespace = ctx.owned(&hcp).await?;
    // Before there is anything that it protects.
    ctx.there
        .ensure_value(&kinds::admission_policy(), admission::policy())
        .await?;
    ctx.there
        .ensure_value(&kinds::admission_binding(), admission::binding())
        .await?;
    let all = ctx.classes().await?;
    let (label, value) = MANAGED;
    let secrets = ctx.secrets(&format!("{label}={value}")).await?;
    let live = ctx.list_there(&kinds::ec2_node_class()).await?;
    let statuses: BTreeMap<_, _> = live
        .iter()
        .map(|it| (it.name_any(), &it.data["status"]))
        .collect();
    let places: Vec<_> = taken(&all).map(ResourceExt::name_any).collect();
    let (mut failed, mut is_waiting) = (Vec::new(), false);
    for class in all
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
    {
        let name = class.name_any();
        let wanted = wanted(class, &hcp, &secrets, places.contains(&name));
        is_waiting |= matches!(&wanted.object, Err(waits) if waits.reason == WAITING);
        if let Ok(object) = &wanted.object {
            let written = ctx
                .there
                .ensure_value(&kinds::ec2_node_class(), object.clone())
                .await;
            failed.extend(written.err().map(Error::from));
        }
        let observed = Observed {
            status: statuses.get(&name).copied(),
            conflicts: &wanted.conflicts,
            waits: wanted.object.as_ref().err(),
        };
        let status = mirror::status(class, observed, now);
        let status = json!({ "metadata": { "name": name }, "status": status });
        let written = ctx.there.ensure_status(&kinds::node_class(), status).await;
        failed.extend(written.err().map(Error::from));
    }
    let found = subnets::of(statuses.values().copied());
    let written = subnets::write(ctx, &namespace, &hcp.spec.infra_id, &found).await;
    failed.extend(written.err());
    Error::all(failed)?;
    Ok(if is_waiting {
        Action::requeue(AGAIN)
    } else {
        Action::await_change()
    })
}

/// What is written for a class.
struct Wanted {
    /// The EC2NodeClass, or why there is none.
    object: Result<Value, Waits>,
    /// Keys of tags that have other values in the hosted cluster.
    conflicts: Vec<String>,
}

fn wanted(
    class: &OpenshiftEc2NodeClass,
    hcp: &HostedControlPlane,
    secrets: &[Secret],
    has_place: bool,
) -> Wanted {
    let tags = merged(&class.spec.tags, cluster_tags(hcp));
    let conflicts = tags.conflicts;
    let namespace = hcp.metadata.namespace.as_deref().unwrap_or_default();
    let object = user_data(class, secrets, namespace, has_place).map(|secret| {
        let labels = secret.labels();
        let amis = AMIS
            .into_iter()
            .filter_map(|label| labels.get(label).cloned());
        let amis: Vec<_> = amis.collect();
        let inputs = Inputs {
            infra_id: &hcp.spec.infra_id,
            user_data: &text(secret).unwrap_or_default(),
            amis: &amis,
            tags: &tags.all,
            instance_profile: &instance_profile(hcp),
        };
        ec2_node_class::object(class, &inputs)
    });
    Wanted { object, conflicts }
}

/// The Secret with the user data of a class, which is one of its own: users of the hosted cluster may write the annotation
/// that names it.
fn user_data<'a>(
    class: &OpenshiftEc2NodeClass,
    secrets: &'a [Secret],
    namespace: &str,
    has_place: bool,
) -> Result<&'a Secret, Waits> {
    if !has_place {
        return Err(Waits {
            reason: "TooManyClasses",
            message: format!(
                "only the {MOST} oldest classes of a cluster have machines: delete one that is not needed"
            ),
        });
    }
    let waits = || Waits {
        reason: WAITING,
        message: "Waiting for the configuration of nodes".to_owned(),
    };
    let hash = class.annotations().get(CURRENT).ok_or_else(waits)?;
    let class_name = class.name_any();
    let name = names::user_data(&pool_name(&class_name), hash);
    let is_its = |secret: &&Secret| {
        let owner = secret.annotations().get(NODE_POOL.key());
        owner.is_some_and(|it| of_pool(it, namespace) == Some(class_name.as_str()))
    };
    let mut own = secrets.iter().filter(is_its);
    let found = own.find(|it| it.name_any() == name && text(it).is_some());
    found.ok_or_else(waits)
}

fn text(secret: &Secret) -> Option<String> {
    let value = secret.data.as_ref()?.get(VALUE)?;
    String::from_utf8(value.0.clone()).ok()
}

#[cfg(test)]
mod tests;
