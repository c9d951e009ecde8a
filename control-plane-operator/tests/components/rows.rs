//! The tables of the component tests, and how many rows they have. A row is one statement about an input: what a component
//! looks like with it.

use std::cell::Cell;

use crate::{
    availability, clouds, cluster_operators, kubernetes, metrics_sets, olm, openshift_apis,
};

thread_local! {
    /// Rows that were verified in this thread. Each test has its own.
    static VERIFIED: Cell<usize> = const { Cell::new(0) };
}

/// Counts rows. Called by what verifies the rows of a table.
pub(crate) fn count(rows: usize) {
    VERIFIED.set(VERIFIED.get() + rows);
}

macro_rules! tables {
    ($($test:path,)*) => { &[$((stringify!($test), $test as fn())),*] };
}

/// Tests that verify a table of rows: names, and the tests.
pub(crate) const TABLES: &[(&str, fn())] = tables![
    availability::replicas_and_anti_affinity_match_the_component,
    clouds::managers_use_the_tls_profile_last,
    clouds::aws::config_has_the_health_probe_of_the_annotations,
    clouds::aws::config_names_the_network_of_the_cluster,
    clouds::aws::credential_operator_gets_version_proxy_and_kubeconfig,
    clouds::aws::manager_finds_its_credentials_twice,
    clouds::aws::manager_uses_the_proxy_of_the_operator,
    clouds::aws::termination_handler_finds_token_and_authority_of_the_guest,
    clouds::aws::termination_handler_gets_queue_region_and_role,
    clouds::azure::config_authenticates_with_the_identity_of_the_cloud_provider,
    clouds::azure::config_has_the_place_of_the_cluster,
    clouds::azure::manager_gets_the_name_of_the_cluster,
    clouds::azure::managed_identities_come_from_the_key_vault,
    clouds::azure::nodes_get_the_identity_for_the_registry,
    clouds::azure::service_account_has_the_workload_identity,
    clouds::kubevirt::config_names_the_cluster_of_the_machines,
    clouds::kubevirt::driver_names_the_cluster_of_the_machines,
    clouds::kubevirt::manager_gets_cluster_name_and_kubeconfig_of_the_machines,
    clouds::others::power_vs_config_names_account_network_and_workspace,
    clouds::others::power_vs_manager_mounts_the_secret_of_the_user,
    clouds::others::unoffered_platforms_are_rendered_with_what_all_clusters_have,
    cluster_operators::dns_operator_depends_on_the_release_and_its_account,
    cluster_operators::image_registry_operator_depends_on_the_cloud,
    cluster_operators::ingress_operator_depends_on_the_cloud_and_the_guest,
    cluster_operators::network_operator_gets_names_and_addresses,
    cluster_operators::network_operator_is_configured_by_settings,
    cluster_operators::node_tuning_operator_serves_metrics_under_its_name,
    cluster_operators::snapshot_operator_depends_on_settings,
    cluster_operators::storage_operator_depends_on_the_platform,
    kubernetes::addresses::api_server_addresses_follow_the_networks,
    kubernetes::addresses::api_server_pods_follow_the_hosted_control_plane,
    kubernetes::addresses::certificates_of_users_are_served_first,
    kubernetes::api_server::annotations_limit_the_api_server,
    kubernetes::api_server::api_server_config_follows_the_hosted_control_plane,
    kubernetes::api_server::authentication_follows_its_type,
    kubernetes::api_server::features_enable_apis_and_levels,
    kubernetes::azure::key_vaults_are_reached_through_the_router,
    kubernetes::azure::routers_are_attached_to_the_network_of_nodes,
    kubernetes::azure::workload_identities_on_azure_have_a_webhook,
    kubernetes::controllers::controller_manager_follows_the_hosted_control_plane,
    kubernetes::controllers::etcd_follows_the_hosted_control_plane,
    kubernetes::controllers::etcd_restores_a_snapshot_once,
    kubernetes::controllers::scheduler_follows_the_hosted_control_plane,
    kubernetes::etcd::members_listen_on_the_family_of_pods,
    kubernetes::machines::config_operator_follows_the_hosted_control_plane,
    kubernetes::machines::featuregate_generator_follows_the_hosted_control_plane,
    kubernetes::machines::ignition_servers_follow_the_hosted_control_plane,
    kubernetes::machines::machine_approver_and_autoscaler_follow_the_hosted_control_plane,
    kubernetes::machines::servers_use_the_proxy_of_the_operator,
    kubernetes::operators::config_operator_follows_the_platform,
    kubernetes::operators::config_operator_waits_for_kinds_of_the_capabilities,
    kubernetes::operators::monitors_are_in_the_group_of_their_prometheus,
    kubernetes::operators::version_operator_reads_metrics_on_request,
    kubernetes::operators::version_operator_runs_releases_by_digest,
    metrics_sets::each_monitor_follows_the_metrics_set,
    olm::forwarding_components_follow_their_input,
    olm::operators_follow_their_input,
    olm::packageserver_follows_its_input,
    openshift_apis::cluster_policy_controller_follows_the_hosted_control_plane,
    openshift_apis::konnectivity_agent_serves_existing_api_servers,
    openshift_apis::metrics_of_openshift_apis_follow_the_metrics_set,
    openshift_apis::openshift_apiserver_config_follows_the_guest_project,
    openshift_apis::openshift_apiserver_config_follows_the_hosted_control_plane,
    openshift_apis::openshift_apiserver_pods_follow_the_hosted_control_plane,
    openshift_apis::openshift_apiserver_proxy_follows_the_hosted_control_plane,
    openshift_apis::openshift_apiserver_shares_settings_of_api_servers,
    openshift_apis::openshift_apiserver_trusts_configured_registries,
    openshift_apis::openshift_controller_manager_follows_the_guest_build,
    openshift_apis::openshift_controller_manager_follows_the_hosted_control_plane,
    openshift_apis::openshift_controller_manager_keeps_observed_controllers,
    openshift_apis::openshift_oauth_apiserver_follows_the_hosted_control_plane,
    openshift_apis::openshift_route_controller_manager_follows_the_hosted_control_plane,
];

/// Check T25: the rows that verify how components follow their input.
#[test]
fn component_tables_have_at_least_300_rows() {
    let mut all = 0;
    for (name, test) in TABLES {
        VERIFIED.set(0);
        test();
        let rows = VERIFIED.get();
        assert!(rows > 0, "{name} verifies no row");
        all += rows;
    }
    println!("{all} rows in {} tables", TABLES.len());
    assert!(all >= 300, "{all} rows");
}
