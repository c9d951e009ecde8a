//! Flags with settings of all control planes.

use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use ipnet::IpNet;

/// Settings of all control planes.
#[derive(Debug, Args)]
pub struct ControlPlaneArgs {
    /// Network that pods of control planes on AWS must not reach, in place of the addresses of the management cluster's API
    /// server, unless they need them. May be repeated.
    #[arg(long, value_name = "CIDR", value_parser = network)]
    pub hcp_egress_block_cidrs: Vec<IpNet>,
    /// Have OpenShift's own monitoring watch the namespaces of control planes.
    #[arg(long)]
    pub enable_ocp_cluster_monitoring: bool,
    /// What counts as a day in the lifetimes of break-glass certificates, from 1m to 24h. For tests.
    #[arg(long, value_name = "TIME", env = "CERT_ROTATION_SCALE", value_parser = scale)]
    pub cert_rotation_scale: Option<String>,
    /// Let the cluster-version-operators of hosted clusters read metrics of the management cluster, by which they evaluate
    /// the risks of updates.
    #[arg(
        long,
        env = "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
        value_parser = FalseyValueParser::new()
    )]
    pub enable_cvo_management_cluster_metrics_access: bool,
    /// URL of the Prometheus that cluster-version-operators read. Default: that of OpenShift's monitoring.
    #[arg(long, value_name = "URL", env = "CVO_PROMETHEUS_URL")]
    pub cvo_prometheus_url: Option<String>,
}

/// A network that is a part of all addresses: a policy cannot except more.
fn network(text: &str) -> Result<IpNet, String> {
    match text.parse::<IpNet>() {
        Ok(network) if network.prefix_len() > 0 => Ok(network.trunc()),
        _ => Err("expected a CIDR (for example 10.0.0.0/16)".to_owned()),
    }
}

/// The text of a duration, which control planes parse again.
fn scale(text: &str) -> Result<String, String> {
    const LIMITS: std::ops::RangeInclusive<Duration> =
        Duration::from_mins(1)..=Duration::from_hours(24);
    let duration = api::hypershift::v1beta1::common::Duration(text.to_owned());
    match duration.length() {
        Ok(length) if length.is_zero() || LIMITS.contains(&length) => Ok(text.to_owned()),
        _ => Err("expected a duration from 1m to 24h, or 0s for 24h (for example 30m)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_normal_and_not_everything() {
        for (text, expected) in [
            ("10.1.2.3/16", Some("10.1.0.0/16")),
            ("fd00::/8", Some("fd00::/8")),
            ("0.0.0.0/0", None),
            ("10.0.0.1", None),
        ] {
            let found = network(text).ok().map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn scales_are_durations_of_at_most_a_day() {
        for (text, expected) in [
            ("24h0m0s", true),
            ("30m", true),
            ("0s", true),
            ("25h", false),
            ("1s", false),
            ("soon", false),
        ] {
            assert_eq!(scale(text).is_ok(), expected, "{text}");
        }
    }
}
