//! Translates the autoscaling configuration of users to flags.

use api::hypershift::v1beta1::autoscaling::{
    AutoscalingMode, ClusterAutoscaling, Expander, ScaleDownConfig,
};
use api::hypershift::v1beta1::platform::PlatformType;

/// Labels that differ between nodes of similar node groups: clouds and OpenShift set them.
const IGNORED: [&str; 6] = [
    "hypershift.openshift.io/nodePool",
    "topology.ebs.csi.aws.com/zone",
    "topology.disk.csi.azure.com/zone",
    "ibm-cloud.kubernetes.io/worker-id",
    "vpc-block-csi-driver-labels",
    "hypershift.openshift.io/nodepool-globalps-enabled",
];
/// The same, of one cloud.
const IGNORED_ON_AWS: [&str; 3] = [
    "lifecycle",
    "k8s.amazonaws.com/eniConfig",
    "topology.k8s.aws/zone-id",
];
const IGNORED_ON_AZURE: [&str; 2] = ["agentpool", "kubernetes.azure.com/agentpool"];
const EXPANDERS: [Expander; 2] = [Expander::Priority, Expander::LeastWaste];

/// Returns the flags. Unset options keep the autoscaler's defaults.
pub(super) fn flags(requested: Option<&ClusterAutoscaling>, platform: PlatformType) -> Vec<String> {
    let chosen = requested.map_or(&[][..], |requested| &requested.expanders);
    let mut flags = vec![format!("--expander={}", expanders(chosen))];
    let own = requested
        .iter()
        .flat_map(|requested| &requested.balancing_ignored_labels);
    let of_cloud = match platform {
        PlatformType::Aws => &IGNORED_ON_AWS[..],
        PlatformType::Azure => &IGNORED_ON_AZURE,
        PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => &[],
    };
    let ignored = IGNORED.iter().chain(of_cloud).copied();
    let ignored = ignored.chain(own.map(String::as_str));
    flags.extend(ignored.map(|label| format!("--balancing-ignore-label={label}")));
    if let Some(requested) = requested {
        flags.extend(limits(requested));
        flags.extend(removal(requested));
    }
    flags
}

fn limits(requested: &ClusterAutoscaling) -> impl Iterator<Item = String> {
    let number = |flag: &str, value: Option<i32>| value.map(|value| format!("--{flag}={value}"));
    let limits = [
        number("max-nodes-total", requested.max_nodes_total),
        number(
            "max-graceful-termination-sec",
            requested.max_pod_grace_period,
        ),
        number(
            "expendable-pods-priority-cutoff",
            requested.pod_priority_threshold,
        ),
        requested
            .max_node_provision_time
            .as_ref()
            .map(|time| format!("--max-node-provision-time={time}")),
        requested
            .max_free_difference_ratio_percent
            .map(|percent| format!("--max-free-difference-ratio={}", ratio(percent))),
    ];
    limits.into_iter().flatten()
}

fn expanders(requested: &[Expander]) -> String {
    let names = if requested.is_empty() {
        &EXPANDERS
    } else {
        requested
    };
    let names = names.iter().map(|expander| match expander {
        Expander::LeastWaste => "least-waste",
        Expander::Priority => "priority",
        Expander::Random => "random",
    });
    names.collect::<Vec<_>>().join(",")
}

/// Flags for scale-down.
fn removal(requested: &ClusterAutoscaling) -> Vec<String> {
    match (requested.scaling, &requested.scale_down) {
        (AutoscalingMode::ScaleUpOnly, _) => vec!["--scale-down-enabled=false".to_owned()],
        (AutoscalingMode::ScaleUpAndScaleDown, None) => Vec::new(),
        (AutoscalingMode::ScaleUpAndScaleDown, Some(rules)) => delays(rules),
    }
}

fn delays(rules: &ScaleDownConfig) -> Vec<String> {
    let seconds = |flag: &str, value: Option<i32>| value.map(|value| format!("--{flag}={value}s"));
    let share = rules.utilization_threshold_percent;
    let flags = [
        Some("--scale-down-enabled=true".to_owned()),
        seconds("scale-down-delay-after-add", rules.delay_after_add_seconds),
        seconds(
            "scale-down-delay-after-delete",
            rules.delay_after_delete_seconds,
        ),
        seconds(
            "scale-down-delay-after-failure",
            rules.delay_after_failure_seconds,
        ),
        seconds("scale-down-unneeded-time", rules.unneeded_duration_seconds),
        share.map(|percent| format!("--scale-down-utilization-threshold={}", ratio(percent))),
    ];
    flags.into_iter().flatten().collect()
}

/// Converts a percentage to a ratio.
fn ratio(percent: i32) -> String {
    format!("{}.{:02}", percent / 100, percent % 100)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn beyond_the_default(requested: Value) -> Vec<String> {
        let default = flags(None, PlatformType::Aws);
        let mut all = flags(
            Some(&serde_json::from_value(requested).unwrap()),
            PlatformType::Aws,
        );
        all.retain(|flag| !default.contains(flag));
        all
    }

    #[test]
    fn autoscaling_options_become_flags() {
        for (requested, flags) in [
            (json!({}), &[][..]),
            (
                json!({ "expanders": ["Random", "LeastWaste"] }),
                &["--expander=random,least-waste"],
            ),
            (
                json!({ "balancingIgnoredLabels": ["rack"] }),
                &["--balancing-ignore-label=rack"],
            ),
            (json!({ "maxNodesTotal": 7 }), &["--max-nodes-total=7"]),
            (
                json!({ "maxPodGracePeriod": 60 }),
                &["--max-graceful-termination-sec=60"],
            ),
            (
                json!({ "maxNodeProvisionTime": "20m" }),
                &["--max-node-provision-time=20m"],
            ),
            (
                json!({ "podPriorityThreshold": -5 }),
                &["--expendable-pods-priority-cutoff=-5"],
            ),
            (
                json!({ "maxFreeDifferenceRatioPercent": 5 }),
                &["--max-free-difference-ratio=0.05"],
            ),
            (
                json!({ "maxFreeDifferenceRatioPercent": 100 }),
                &["--max-free-difference-ratio=1.00"],
            ),
            (
                json!({ "scaling": "ScaleUpOnly" }),
                &["--scale-down-enabled=false"],
            ),
        ] {
            assert_eq!(beyond_the_default(requested.clone()), flags, "{requested}");
        }
    }

    #[test]
    fn scale_down_options_become_flags() {
        let requested = json!({ "scaleDown": {
            "delayAfterAddSeconds": 1, "delayAfterDeleteSeconds": 2, "delayAfterFailureSeconds": 3,
            "unneededDurationSeconds": 4, "utilizationThresholdPercent": 50,
        } });
        let flags = beyond_the_default(requested);
        assert_eq!(
            flags,
            [
                "--scale-down-enabled=true",
                "--scale-down-delay-after-add=1s",
                "--scale-down-delay-after-delete=2s",
                "--scale-down-delay-after-failure=3s",
                "--scale-down-unneeded-time=4s",
                "--scale-down-utilization-threshold=0.50",
            ]
        );
    }
}
