//! etcd: stores the objects of the guest's API server.

mod certificates;
mod stateful_set;

use control_plane_component::{Component, Context, Metrics, assets};

use super::edit;

/// The component's name.
pub(super) const NAME: &str = "etcd";
const METRICS: Metrics = Metrics {
    telemetry: Some((
        "keep",
        "(etcd_disk_wal_fsync_duration_seconds_bucket|etcd_mvcc_db_total_size_in_bytes\
         |etcd_network_peer_round_trip_time_seconds_bucket|etcd_mvcc_db_total_size_in_use_in_bytes\
         |etcd_disk_backend_commit_duration_seconds_bucket|etcd_server_leader_changes_seen_total)",
    )),
    sre: Some("etcd"),
};

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
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
    .quorum()
    .independent()
    .with_authorities(certificates::authorities)
    .with_certificates(certificates::all)
    .metrics(METRICS)
    .zone_spread()
    .management_api()
    .enabled_if(is_managed)
    .manifest_if("defrag-role.yaml", has_several_members)
    .manifest_if("defrag-rolebinding.yaml", has_several_members)
    .manifest("pdb.yaml", edit::disruption_budget)
    .adapt(stateful_set::adapt)
}

/// Whether etcd is managed.
fn is_managed(context: &Context<'_>) -> bool {
    context.is_etcd_managed()
}

/// Defragmenting blocks a member: with a single member, it would block the cluster.
fn has_several_members(context: &Context<'_>) -> bool {
    !context.is_single_replica()
}
