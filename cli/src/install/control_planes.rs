//! Settings of all control planes, which the operators pass on.

use std::net::IpAddr;
use std::time::Duration;

use api::hypershift::v1beta1::common::Duration as Text;
use clap::Args;
use http::Uri;
use http::uri::Scheme;

use crate::Usage;

const SCALE: &str = "--cert-rotation-scale";
const METRICS: &str = "--enable-cvo-management-cluster-metrics-access";
const URL: &str = "--cvo-prometheus-url";

/// The flags.
#[derive(Debug, Clone, Args)]
pub(super) struct ControlPlaneArgs {
    /// Network that pods of control planes on AWS must not reach, in place of the addresses of this cluster's API server,
    /// unless they need them. May be repeated
    #[arg(long, global = true, value_name = "CIDR")]
    hcp_egress_block_cidrs: Vec<String>,

    /// What counts as a day in the lifetimes of break-glass certificates, from 1m to 24h. For tests [default: 24h]
    #[arg(long, global = true, value_name = "TIME")]
    cert_rotation_scale: Option<String>,

    /// Let the cluster-version-operators of hosted clusters read metrics of this cluster, by which they evaluate the risks of
    /// updates
    #[arg(long, global = true)]
    enable_cvo_management_cluster_metrics_access: bool,

    /// URL of the Prometheus that cluster-version-operators read [default: that of OpenShift's monitoring]
    #[arg(long, global = true, value_name = "URL")]
    cvo_prometheus_url: Option<String>,
}

/// Settings of all control planes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ControlPlanes {
    /// Arguments of an operator.
    pub(super) arguments: Vec<String>,
    /// Variables of an operator.
    pub(super) environment: Vec<(&'static str, String)>,
}

// === impl ControlPlaneArgs ===

impl ControlPlaneArgs {
    /// Checks the flags.
    pub(super) fn resolve(&self) -> Result<ControlPlanes, Usage> {
        let Self {
            hcp_egress_block_cidrs: networks,
            cert_rotation_scale: scale,
            enable_cvo_management_cluster_metrics_access: metrics,
            cvo_prometheus_url: url,
        } = self;
        let mut settings = ControlPlanes::default();
        for network in networks {
            if !is_network(network) {
                return Err(Usage::new(&format!(
                    "--hcp-egress-block-cidrs {network:?} is not a network (for example 10.0.0.0/16)"
                )));
            }
            let argument = format!("--hcp-egress-block-cidrs={network}");
            settings.arguments.push(argument);
        }
        if let Some(scale) = scale {
            check_scale(scale)?;
            let variable = ("CERT_ROTATION_SCALE", scale.clone());
            settings.environment.push(variable);
        }
        if *metrics {
            let variable = (
                "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
                "true".to_owned(),
            );
            settings.environment.push(variable);
        }
        if let Some(url) = url {
            if !*metrics {
                return Err(Usage::new(&format!("{URL} needs {METRICS}")));
            }
            if !is_url(url) {
                return Err(Usage::new(&format!(
                    "{URL} {url:?} is not a URL (for example https://prometheus.example.com:9091)"
                )));
            }
            let variable = ("CVO_PROMETHEUS_URL", url.clone());
            settings.environment.push(variable);
        }
        Ok(settings)
    }
}

/// Whether a text is a CIDR that is a part of all addresses: a policy cannot except more.
fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length
        .parse::<u8>()
        .is_ok_and(|length| (1..=longest).contains(&length))
}

fn check_scale(text: &str) -> Result<(), Usage> {
    let limits = Duration::from_mins(1)..=Duration::from_hours(24);
    let length = Text(text.to_owned()).length();
    if length.is_ok_and(|length| limits.contains(&length)) {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "{SCALE} {text:?} is not a time between 1m and 24h (for example 30m)"
    )))
}

fn is_url(text: &str) -> bool {
    let url: Option<Uri> = text.parse().ok();
    url.is_some_and(|url| {
        let scheme = url.scheme();
        let is_web = scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS);
        is_web && url.host().is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> ControlPlaneArgs {
        ControlPlaneArgs {
            hcp_egress_block_cidrs: Vec::new(),
            cert_rotation_scale: None,
            enable_cvo_management_cluster_metrics_access: false,
            cvo_prometheus_url: None,
        }
    }

    #[test]
    fn flags_become_settings_of_the_operators() {
        assert_eq!(args().resolve().unwrap(), ControlPlanes::default());
        let all = ControlPlaneArgs {
            hcp_egress_block_cidrs: vec!["10.0.0.0/16".to_owned(), "fd00::/8".to_owned()],
            cert_rotation_scale: Some("1h".to_owned()),
            enable_cvo_management_cluster_metrics_access: true,
            cvo_prometheus_url: Some("https://prometheus.example.com:9091/a?b=c".to_owned()),
        };
        let found = all.resolve().unwrap();
        let arguments = [
            "--hcp-egress-block-cidrs=10.0.0.0/16",
            "--hcp-egress-block-cidrs=fd00::/8",
        ];
        assert_eq!(found.arguments, arguments);
        let names: Vec<_> = found.environment.iter().map(|(name, _)| *name).collect();
        let expected = [
            "CERT_ROTATION_SCALE",
            "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
            "CVO_PROMETHEUS_URL",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn bad_values_are_refused() {
        let blocked = |network: &str| ControlPlaneArgs {
            hcp_egress_block_cidrs: vec![network.to_owned()],
            ..args()
        };
        let scaled = |scale: &str| ControlPlaneArgs {
            cert_rotation_scale: Some(scale.to_owned()),
            ..args()
        };
        let read = |metrics, url: &str| ControlPlaneArgs {
            enable_cvo_management_cluster_metrics_access: metrics,
            cvo_prometheus_url: Some(url.to_owned()),
            ..args()
        };
        for (args, expected) in [
            (blocked("10.0.0.0"), "is not a network"),
            (blocked("0.0.0.0/0"), "is not a network"),
            (blocked("10.0.0.0/33"), "is not a network"),
            (blocked("example.com/8"), "is not a network"),
            (scaled("25h"), "is not a time between"),
            (scaled("soon"), "is not a time between"),
            (read(false, "https://a.example.com"), "needs --enable-cvo"),
            (read(true, "a.example.com"), "is not a URL"),
            (read(true, "ftp://a.example.com"), "is not a URL"),
        ] {
            let message = args.resolve().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
