//! etcd: where the guest's API server keeps its objects.

mod stateful_set;

use crate::assets;
use crate::component::{Component, Context};

use super::edit;

/// The component's name.
const NAME: &str = "etcd";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!("etcd":
            "defrag-role.yaml",
            "defrag-rolebinding.yaml",
            "discovery-service.yaml",
            "dns-role.yaml",
            "dns-rolebinding.yaml",
            "dns-serviceaccount.yaml",
            "pdb.yaml",
            "service.yaml",
            "servicemonitor.yaml",
            "statefulset.yaml",
        ),
    )
    .zone_spread()
    .management_api()
    .wanted_if(is_managed)
    .manifest_if("defrag-role.yaml", has_several_members)
    .manifest_if("defrag-rolebinding.yaml", has_several_members)
    .manifest("pdb.yaml", edit::disruption_budget)
    .adapt(stateful_set::adapt)
}

/// Whether it is ours.
fn is_managed(context: &Context<'_>) -> bool {
    context.is_etcd_managed()
}

/// Defragmenting stops a member: with only one, that would stop the cluster.
fn has_several_members(context: &Context<'_>) -> bool {
    !context.is_single_replica()
}
