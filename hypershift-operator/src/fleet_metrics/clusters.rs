//! Samples of HostedClusters: pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::collect::{CLUSTER_TRANSITION, Labels, Measure, Sample, Transition};
use super::{PLATFORMS, became_true, condition, failing, failure, platform, text, time};
use crate::names::HAS_BEEN_AVAILABLE;

/// Conditions, and whether each is true of a healthy HostedCluster.
pub(super) const EXPECTED: [(&str, bool); 20] = [
    ("Available", true),
    ("ClusterVersionAvailable", true),
    ("ClusterVersionProgressing", false),
    ("ClusterVersionReleaseAccepted", true),
    ("ClusterVersionSucceeding", true),
    ("Degraded", false),
    ("EtcdAvailable", true),
    ("ExternalDNSReachable", true),
    ("IgnitionEndpointAvailable", true),
    ("InfrastructureReady", true),
    ("KubeAPIServerAvailable", true),
    ("PlatformCredentialsFound", true),
    ("Progressing", false),
    ("ReconciliationActive", true),
    ("ReconciliationSucceeded", true),
    ("SupportedHostedCluster", true),
    ("ValidConfiguration", true),
    ("ValidHostedControlPlaneConfiguration", true),
    ("ValidReleaseImage", true),
    ("ValidReleaseInfo", true),
];
/// Conditions whose transition to true is measured.
const TIMED: [&str; 7] = [
    "EtcdAvailable",
    "InfrastructureReady",
    "ExternalDNSReachable",
    "AWSEndpointServiceAvailable",
    "AWSEndpointAvailable",
    "GCPEndpointAvailable",
    "GCPServiceAttachmentAvailable",
];
/// Kinds of identity providers.
const PROVIDERS: [&str; 9] = [
    "BasicAuth",
    "GitHub",
    "GitLab",
    "Google",
    "HTPasswd",
    "Keystone",
    "LDAP",
    "OpenID",
    "RequestHeader",
];
const LIMITED_SUPPORT: &str = "api.openshift.com/limited-support";
const SILENCE_ALERTS: &str = "hypershift.openshift.io/silence-cluster-alerts";
const SIZE_OVERRIDE: &str = "hypershift.openshift.io/cluster-size-override";

/// The counts.
#[derive(Debug)]
pub(super) struct Clusters {
    samples: BTreeMap<&'static str, Vec<Sample>>,
    platforms: BTreeMap<&'static str, i64>,
    failures: BTreeMap<(&'static str, String), i64>,
    providers: BTreeMap<&'static str, i64>,
    /// Platform, cluster ID and number of NodePools, by namespace and name.
    known: BTreeMap<(String, String), (&'static str, String, i64)>,
}

// === impl Clusters ===

impl Default for Clusters {
    fn default() -> Self {
        // Series start at 0, so that alerts see an increase from the first object on.
        let none = |(about, good): (&str, bool)| failure(about, good);
        let failures = PLATFORMS
            .into_iter()
            .flat_map(|platform| EXPECTED.map(|it| ((platform, none(it)), 0)));
        Self {
            samples: BTreeMap::new(),
            platforms: PLATFORMS.map(|name| (name, 0)).into(),
            failures: failures.collect(),
            providers: PROVIDERS.map(|name| (name, 0)).into(),
            known: BTreeMap::new(),
        }
    }
}

impl Clusters {
    /// Counts a NodePool for its HostedCluster.
    pub(super) fn has_pool(&mut self, pool: &Value) {
        if let Some((_, _, pools)) = self.known.get_mut(&cluster_of(pool)) {
            *pools += 1;
        }
    }

    /// The cluster ID of a NodePool's HostedCluster.
    pub(super) fn id_of(&self, pool: &Value) -> &str {
        let known = self.known.get(&cluster_of(pool));
        known.map_or("", |(_, id, _)| id)
    }

    fn put(&mut self, name: &'static str, labels: Labels, value: Measure) {
        let series = self.samples.entry(name).or_default();
        series.push(Sample { labels, value });
    }

    /// Durations of phases that a HostedCluster is in.
    fn phases(&mut self, cluster: &Value, labels: &Labels) {
        let made = time(cluster, "/metadata/creationTimestamp");
        let annotations = &cluster["metadata"]["annotations"];
        let mut since = |name, then: Option<Timestamp>| {
            if let Some(then) = then {
                self.put(name, labels.clone(), Measure::Since(then));
            }
        };
        if annotations[HAS_BEEN_AVAILABLE].is_null() {
            let name = "hypershift_cluster_waiting_initial_availability_duration_seconds";
            since(name, made);
        }
        if !is_rolled_out(cluster) {
            let name = "hypershift_cluster_initial_rolling_out_duration_seconds";
            since(name, made);
        }
        let deleted = time(cluster, "/metadata/deletionTimestamp");
        since("hypershift_cluster_deleting_duration_seconds", deleted);
        let destroyed = condition(cluster, "CloudResourcesDestroyed");
        if destroyed.is_none_or(|it| it["status"] != "True") {
            let name = "hypershift_cluster_guest_cloud_resources_deleting_duration_seconds";
            since(name, deleted);
        }
        if let Some((then, versions)) = upgrade(cluster) {
            let name = "hypershift_cluster_upgrading_duration_seconds";
            let labels = labels.iter().cloned().chain(versions).collect();
            self.put(name, labels, Measure::Since(then));
        }
    }

    /// Labels, annotations and configuration of a HostedCluster.
    fn traits(&mut self, cluster: &Value, labels: &Labels) {
        let metadata = &cluster["metadata"];
        let is = |yes: bool| Measure::Number(i64::from(yes));
        for (name, label) in [
            (
                "hypershift_cluster_limited_support_enabled",
                LIMITED_SUPPORT,
            ),
            ("hypershift_cluster_silence_alerts", SILENCE_ALERTS),
        ] {
            let is_there = !metadata["labels"][label].is_null();
            self.put(name, labels.clone(), is(is_there));
        }
        let credentials = match condition(cluster, "ValidAWSIdentityProvider") {
            Some(found) if found["status"] == "True" => 0,
            Some(found) if found["status"] == "False" => 1,
            // Other platforms have no such credentials to be wrong.
            _ if platform(cluster) != "AWS" => 0,
            _ => 2,
        };
        let name = "hypershift_cluster_invalid_aws_creds";
        self.put(name, labels.clone(), Measure::Number(credentials));
        if let Some(size) = metadata["annotations"][SIZE_OVERRIDE].as_str() {
            let mut labels = labels.clone();
            labels.push(("size", size.to_owned()));
            self.put(
                "hypershift_cluster_size_override_instances",
                labels,
                is(true),
            );
        }
        self.proxy(cluster, labels);
    }

    fn proxy(&mut self, cluster: &Value, labels: &Labels) {
        let proxy = &cluster["spec"]["configuration"]["proxy"];
        let given = |pointer: &str| !text(proxy, pointer).is_empty();
        let one = |yes: bool| if yes { "1" } else { "" }.to_owned();
        let ca = given("/trustedCA/name");
        let mut all = labels.clone();
        all.push(("proxy_http", one(given("/httpProxy"))));
        all.push(("proxy_https", one(given("/httpsProxy"))));
        all.push(("proxy_trusted_ca", one(ca)));
        let has_proxy = Measure::Number(i64::from(proxy.is_object()));
        self.put("hypershift_cluster_proxy", all, has_proxy);
        if ca {
            let valid = condition(cluster, "ValidProxyConfiguration");
            let valid = valid.is_some_and(|it| it["status"] == "True");
            let value = Measure::Number(i64::from(valid));
            self.put("hypershift_cluster_proxy_ca_valid", labels.clone(), value);
        }
    }

    /// Counts a HostedCluster.
    pub(super) fn add(&mut self, cluster: &Value) {
        let platform = platform(cluster);
        *self.platforms.entry(platform).or_default() += 1;
        for failure in failing(cluster, &EXPECTED) {
            *self.failures.entry((platform, failure)).or_default() += 1;
        }
        let providers = cluster.pointer("/spec/configuration/oauth/identityProviders");
        for provider in providers.and_then(Value::as_array).into_iter().flatten() {
            let kind = PROVIDERS.into_iter().find(|it| provider["type"] == **it);
            *self.providers.entry(kind.unwrap_or("Other")).or_default() += 1;
        }
        let labels = labels(cluster);
        self.phases(cluster, &labels);
        self.traits(cluster, &labels);
        let id = text(cluster, "/spec/clusterID").to_owned();
        self.known.insert(
            (
                text(cluster, "/metadata/namespace").to_owned(),
                text(cluster, "/metadata/name").to_owned(),
            ),
            (platform, id, 0),
        );
    }

    /// The samples, by metric.
    pub(super) fn samples(mut self) -> BTreeMap<&'static str, Vec<Sample>> {
        for (platform, count) in std::mem::take(&mut self.platforms) {
            let labels = vec![("platform", platform.to_owned())];
            self.put("hypershift_hostedclusters", labels, Measure::Number(count));
        }
        for ((platform, failure), count) in std::mem::take(&mut self.failures) {
            let labels = vec![("platform", platform.to_owned()), ("condition", failure)];
            let name = "hypershift_hostedclusters_failure_conditions";
            self.put(name, labels, Measure::Number(count));
        }
        for (kind, count) in std::mem::take(&mut self.providers) {
            let labels = vec![("identity_provider", kind.to_owned())];
            let name = "hypershift_cluster_identity_providers";
            self.put(name, labels, Measure::Number(count));
        }
        for ((namespace, name), (platform, id, pools)) in std::mem::take(&mut self.known) {
            let labels = vec![
                ("namespace", namespace),
                ("name", name),
                ("_id", id),
                ("platform", platform.to_owned()),
            ];
            let name = "hypershift_hostedcluster_nodepools";
            self.put(name, labels, Measure::Number(pools));
        }
        self.samples
    }

    /// Which conditions became true in an interval.
    pub(super) fn transitions(
        cluster: &Value,
        since: Timestamp,
        until: Timestamp,
    ) -> Vec<Transition> {
        became_true(cluster, CLUSTER_TRANSITION, &TIMED, (since, until))
    }
}

/// The labels that identify a HostedCluster.
fn labels(cluster: &Value) -> Labels {
    vec![
        ("namespace", text(cluster, "/metadata/namespace").to_owned()),
        ("name", text(cluster, "/metadata/name").to_owned()),
        ("_id", text(cluster, "/spec/clusterID").to_owned()),
    ]
}

/// Namespace and name of a NodePool's HostedCluster.
fn cluster_of(pool: &Value) -> (String, String) {
    (
        text(pool, "/metadata/namespace").to_owned(),
        text(pool, "/spec/clusterName").to_owned(),
    )
}

/// Whether the rollout of any release has completed.
fn is_rolled_out(cluster: &Value) -> bool {
    let history = cluster.pointer("/status/version/history");
    let mut history = history.and_then(Value::as_array).into_iter().flatten();
    history.any(|entry| entry["state"] == "Completed")
}

/// Start and versions of the upgrade in progress.
fn upgrade(cluster: &Value) -> Option<(Timestamp, [(&'static str, String); 2])> {
    let history = cluster.pointer("/status/version/history")?.as_array()?;
    // The newest comes first.
    let [new, old, ..] = history.as_slice() else {
        return None;
    };
    if new["state"] == "Completed" {
        return None;
    }
    let versions = [
        ("previous_version", text(old, "/version").to_owned()),
        ("new_version", text(new, "/version").to_owned()),
    ];
    Some((time(new, "/startedTime")?, versions))
}
