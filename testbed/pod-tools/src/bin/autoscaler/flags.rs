//! The command line of cluster-autoscaler, as far as components use it. A flag that the real program would not know, or
//! that this one cannot honor, ends it.

use std::path::PathBuf;
use std::time::Duration;

/// Flags that change nothing here: this program has no log levels, elects no leader, and has one order of groups.
const WITHOUT_EFFECT: [&str; 16] = [
    "alsologtostderr",
    "balance-similar-node-groups",
    "balancing-ignore-label",
    "clusterapi-cloud-config-authoritative",
    "expander",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "max-free-difference-ratio",
    "max-graceful-termination-sec",
    "max-node-provision-time",
    "scale-down-delay-after-delete",
    "scale-down-delay-after-failure",
    "scale-down-utilization-threshold",
    "skip-nodes-with-local-storage",
    "v",
];
/// The defaults of the real program.
const TEN_MINUTES: Duration = Duration::from_mins(10);
const CUTOFF: i64 = -10;
/// Where node groups are.
const DISCOVERY: &str = "clusterapi:namespace=";

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flags {
    /// The namespace of Cluster API's objects.
    pub(crate) namespace: String,
    /// The kubeconfig of the hosted cluster.
    pub(crate) kubeconfig: PathBuf,
    /// The kubeconfig for Cluster API; without it, the service account of the pod is used.
    pub(crate) cloud_config: Option<PathBuf>,
    pub(crate) scales_down: bool,
    /// How long a node has to be unneeded.
    pub(crate) unneeded: Duration,
    /// How long no node is removed after one was added.
    pub(crate) after_add: Duration,
    pub(crate) most_nodes: Option<i64>,
    /// Pods of lower priority start no node.
    pub(crate) cutoff: i64,
}

// === impl Flags ===

impl Flags {
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut flags = Self {
            namespace: String::new(),
            kubeconfig: PathBuf::new(),
            cloud_config: None,
            scales_down: true,
            unneeded: TEN_MINUTES,
            after_add: TEN_MINUTES,
            most_nodes: None,
            cutoff: CUTOFF,
        };
        for arg in args {
            let flag = arg.strip_prefix("--").ok_or_else(|| unknown(arg))?;
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            flags.set(name, value).ok_or_else(|| unknown(arg))?;
        }
        if flags.namespace.is_empty() || flags.kubeconfig.as_os_str().is_empty() {
            return Err("set --node-group-auto-discovery and --kubeconfig".to_owned());
        }
        Ok(flags)
    }

    /// Sets a flag, unless it is unknown or its value is invalid.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "cloud-provider" if value == "clusterapi" => {}
            "node-group-auto-discovery" => {
                value
                    .strip_prefix(DISCOVERY)?
                    .clone_into(&mut self.namespace);
            }
            "kubeconfig" => self.kubeconfig = value.into(),
            "cloud-config" => self.cloud_config = Some(value.into()),
            "scale-down-enabled" => self.scales_down = value.parse().ok()?,
            "scale-down-unneeded-time" => self.unneeded = duration(value)?,
            "scale-down-delay-after-add" => self.after_add = duration(value)?,
            "max-nodes-total" => self.most_nodes = Some(value.parse().ok()?),
            "expendable-pods-priority-cutoff" => self.cutoff = value.parse().ok()?,
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ => return None,
        }
        Some(())
    }
}

fn unknown(arg: &str) -> String {
    format!("{arg} is no flag of cluster-autoscaler, or has an invalid value")
}

/// A duration as Go writes it: `90s`, `1m30s`.
fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..end].parse().ok()?;
        let unit = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            _ => return None,
        };
        total += Duration::from_secs(number.checked_mul(unit)?);
        rest = &rest[end + 1..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of the component.
    const COMPONENT: [&str; 9] = [
        "--cloud-provider=clusterapi",
        "--node-group-auto-discovery=clusterapi:namespace=clusters-one",
        "--kubeconfig=/mnt/kubeconfig/target-kubeconfig",
        "--clusterapi-cloud-config-authoritative",
        "--skip-nodes-with-local-storage=false",
        "--alsologtostderr",
        "--leader-elect-lease-duration=137s",
        "--balance-similar-node-groups=true",
        "--v=4",
    ];

    fn parse(more: &[&str]) -> Result<Flags, String> {
        let all = COMPONENT.iter().chain(more);
        Flags::parse(&all.map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_of_the_component_are_known() {
        let flags = parse(&[
            "--cloud-config=/etc/kube-apiserver-proxy/kubeconfig",
            "--scale-down-enabled=true",
            "--scale-down-unneeded-time=60s",
            "--scale-down-delay-after-add=1m30s",
            "--max-nodes-total=6",
            "--expendable-pods-priority-cutoff=-5",
        ]);
        let expected = Flags {
            namespace: "clusters-one".to_owned(),
            kubeconfig: "/mnt/kubeconfig/target-kubeconfig".into(),
            cloud_config: Some("/etc/kube-apiserver-proxy/kubeconfig".into()),
            scales_down: true,
            unneeded: Duration::from_mins(1),
            after_add: Duration::from_secs(90),
            most_nodes: Some(6),
            cutoff: -5,
        };
        assert_eq!(flags, Ok(expected));
        let default = parse(&[]).unwrap();
        assert_eq!(
            (default.unneeded, default.after_add, default.cutoff),
            (TEN_MINUTES, TEN_MINUTES, CUTOFF)
        );
    }

    #[test]
    fn other_flags_and_values_are_refused() {
        for flag in [
            "--cloud-provider=aws",
            "--node-group-auto-discovery=asg:tag=a",
            "--scale-down-unneeded-time=60",
            "--scale-down-unneeded-time=1d",
            "--max-nodes-total=many",
            "--nodes=1:10:group",
            "positional",
        ] {
            assert!(parse(&[flag]).unwrap_err().contains(flag), "{flag}");
        }
        assert!(Flags::parse(&[]).is_err());
    }
}
