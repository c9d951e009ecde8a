//! Samples of HostedClusters and NodePools as a scrape returns them.

use serde_json::json;

use super::*;
use crate::metrics::exposition;

fn cluster(name: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "clusters", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "api.openshift.com/limited-support": "true" },
        },
        "spec": {
            "clusterID": format!("id-{name}"),
            "platform": { "type": "AWS" },
            "configuration": {
                "proxy": { "httpProxy": "http://proxy.example.com", "trustedCA": { "name": "ca" } },
                "oauth": { "identityProviders": [{ "type": "LDAP" }, { "type": "made up" }] },
            },
        },
        "status": {
            "version": { "history": [
                { "state": "Partial", "version": "4.22.1", "startedTime": "2026-01-02T00:00:00Z" },
                { "state": "Completed", "version": "4.22.0", "startedTime": "2026-01-01T00:00:00Z" },
            ] },
            "conditions": [
                { "type": "Available", "status": "False" },
                { "type": "Degraded", "status": "True" },
                { "type": "ValidReleaseImage", "status": "True" },
                { "type": "EtcdAvailable", "status": "True", "lastTransitionTime": "2026-01-01T00:02:05Z" },
                { "type": "ValidAWSIdentityProvider", "status": "False" },
            ],
        },
    })
}

fn pool() -> Value {
    json!({
        "metadata": { "namespace": "clusters", "name": "workers", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "clusterName": "one", "replicas": 3, "platform": { "type": "AWS" } },
        "status": { "replicas": 2, "conditions": [{ "type": "Ready", "status": "False" }] },
    })
}

/// The scrape of a HostedCluster and its NodePool.
fn scraped() -> String {
    let mut registry = Registry::default();
    let fleet_metrics = FleetMetrics::new(&mut registry);
    let mut clusters = clusters::Clusters::default();
    clusters.add(&cluster("one"));
    clusters.has_pool(&pool());
    let mut pools = pools::Pools::default();
    pools.add(&pool(), clusters.id_of(&pool()));
    let mut samples = clusters.samples();
    samples.extend(pools.samples());
    fleet_metrics.put(samples);
    let (since, until) = ("2026-01-01T00:02:00Z", "2026-01-01T00:02:30Z");
    let within = (since.parse().unwrap(), until.parse().unwrap());
    let done = clusters::Clusters::transitions(&cluster("one"), within.0, within.1);
    fleet_metrics.transitions.observe(&done);
    exposition::of(&registry)
}

#[test]
fn series_have_the_names_and_labels_of_dashboards() {
    let text = scraped();
    let one = "namespace=\"clusters\",name=\"one\",_id=\"id-one\"";
    let pool = "namespace=\"clusters\",name=\"workers\",_id=\"id-one\",cluster_name=\"one\",platform=\"AWS\"";
    for line in [
        "hypershift_hostedclusters{platform=\"AWS\"} 1.0".to_owned(),
        "hypershift_hostedclusters{platform=\"None\"} 0.0".to_owned(),
        "hypershift_hostedclusters_failure_conditions{platform=\"AWS\",condition=\"not_Available\"} 1.0".to_owned(),
        "hypershift_hostedclusters_failure_conditions{platform=\"AWS\",condition=\"Degraded\"} 1.0".to_owned(),
        "hypershift_hostedclusters_failure_conditions{platform=\"AWS\",condition=\"not_ValidReleaseImage\"} 0.0".to_owned(),
        "hypershift_cluster_identity_providers{identity_provider=\"LDAP\"} 1.0".to_owned(),
        "hypershift_cluster_identity_providers{identity_provider=\"Other\"} 1.0".to_owned(),
        format!("hypershift_cluster_limited_support_enabled{{{one}}} 1.0"),
        format!("hypershift_cluster_silence_alerts{{{one}}} 0.0"),
        format!("hypershift_cluster_invalid_aws_creds{{{one}}} 1.0"),
        format!("hypershift_cluster_proxy{{{one},proxy_http=\"1\",proxy_https=\"\",proxy_trusted_ca=\"1\"}} 1.0"),
        format!("hypershift_cluster_proxy_ca_valid{{{one}}} 0.0"),
        format!("hypershift_hostedcluster_nodepools{{{one},platform=\"AWS\"}} 1.0"),
        "hypershift_nodepools{platform=\"AWS\"} 1.0".to_owned(),
        "hypershift_nodepools_failure_conditions{platform=\"AWS\",condition=\"not_Ready\"} 1.0".to_owned(),
        format!("hypershift_nodepools_size{{{pool}}} 3.0"),
        format!("hypershift_nodepools_available_replicas{{{pool}}} 2.0"),
        "hypershift_hosted_cluster_transition_seconds_sum{condition=\"EtcdAvailable\"} 125.0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    for running in [
        format!("hypershift_cluster_waiting_initial_availability_duration_seconds{{{one}}} "),
        format!(
            "hypershift_cluster_upgrading_duration_seconds{{{one},previous_version=\"4.22.0\",new_version=\"4.22.1\"}} "
        ),
        format!("hypershift_nodepools_initial_rolling_out_duration_seconds{{{pool}}} "),
    ] {
        assert!(text.contains(&running), "{running} is not in\n{text}");
    }
    // Its first rollout has completed, and it is not being deleted.
    assert!(
        !text.contains("initial_rolling_out_duration_seconds{namespace=\"clusters\",name=\"one\"")
    );
    assert!(!text.contains("hypershift_cluster_deleting"));
}

#[test]
fn every_fleet_metric_is_documented() {
    let page = include_str!("../../../docs/metrics.md");
    let names = collect::GAUGES.into_iter().chain([collect::SIZE]);
    let names = names.map(|(name, _)| name);
    for name in names.chain([collect::CLUSTER_TRANSITION, collect::POOL_TRANSITION]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/metrics.md"
        );
    }
}

#[test]
fn expected_conditions_exist_in_the_api() {
    use api::conditions::{ClusterCondition, PoolCondition};
    for (about, _) in clusters::EXPECTED {
        assert!(ClusterCondition::from_name(about).is_some(), "{about}");
    }
    for (about, _) in pools::EXPECTED {
        assert!(PoolCondition::from_name(about).is_some(), "{about}");
    }
}

#[test]
fn only_the_leader_reports_fleet_metrics() {
    let mut registry = Registry::default();
    let fleet_metrics = FleetMetrics::new(&mut registry);
    let mut clusters = clusters::Clusters::default();
    clusters.add(&cluster("one"));
    fleet_metrics.put(clusters.samples());
    drop(Forget(&fleet_metrics));
    let text = exposition::of(&registry);
    assert!(!text.contains("hypershift_hostedclusters"), "{text}");
}
