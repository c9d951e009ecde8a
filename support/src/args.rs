//! Flags that all programs share, to be flattened into theirs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[cfg(feature = "kube")]
use crate::lease;

/// Connection to the API server.
#[derive(Debug, Clone, Default, Args)]
pub struct ApiServerArgs {
    /// Kubeconfig to use [default: $KUBECONFIG, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// The log, on standard error.
#[derive(Debug, Clone, Args)]
pub struct LoggingArgs {
    /// Log level. Libraries log warnings and errors only.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "HYPERSHIFT_LOG_LEVEL")]
    pub log_level: LogLevel,
    /// Log format.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, env = "HYPERSHIFT_LOG_FORMAT")]
    pub log_format: LogFormat,
}

/// Leader election between replicas.
#[derive(Debug, Clone, Args)]
pub struct LeaderArgs {
    /// Enable leader election. Without it, this process reconciles at once and must be the only one.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub leader_elect: bool,
    /// Name of the Lease [default: depends on the scope]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_lease_name: Option<String>,
    /// Time after which other replicas take over a Lease that is not renewed.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub leader_elect_lease_duration: Time,
    /// Time after which a leader that fails to renew the Lease stops writing. Shorter than the lease duration.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub leader_elect_renew_deadline: Time,
    /// Time between two renewals. Shorter than the renew deadline.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub leader_elect_retry_period: Time,
}

/// Log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// The program cannot continue.
    Error,
    /// Needs attention.
    Warn,
    /// Something changed.
    Info,
    /// Reasons for decisions.
    Debug,
    /// Every step.
    Trace,
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Human-readable text.
    Text,
}

/// A listen address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// One address.
    One(SocketAddr),
    /// All addresses of the machine, written `:PORT`.
    All(u16),
}

/// A duration on a command line: a number with ms, s, m or h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

// === impl LeaderArgs ===

#[cfg(feature = "kube")]
impl LeaderArgs {
    /// The settings of the Lease with this name, unless a flag sets another one. `pod` is part of the identity.
    pub fn settings(&self, namespace: &str, name: &str, pod: &str) -> lease::Settings {
        let given = self.leader_elect_lease_name.as_deref();
        lease::Settings {
            namespace: namespace.to_owned(),
            name: given.unwrap_or(name).to_owned(),
            identity: lease::Settings::identity(pod),
            duration: self.leader_elect_lease_duration.0,
            renew_deadline: self.leader_elect_renew_deadline.0,
            retry: self.leader_elect_retry_period.0,
        }
    }
}

// === impl Address ===

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.strip_prefix(':') {
            Some(port) => port.parse().map(Self::All).ok(),
            None => text.parse().map(Self::One).ok(),
        };
        parsed.ok_or_else(|| "expected :PORT, IP:PORT or [IPv6]:PORT".to_owned())
    }
}

// === impl Time ===

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 3600 * 1000,
            _ => return Err("expected a number with ms, s, m or h (for example 10s)".to_owned()),
        };
        let milliseconds = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        match milliseconds {
            Some(milliseconds @ 1..) => Ok(Self(Duration::from_millis(milliseconds))),
            _ => {
                Err("the duration must be positive and fit into 64 bits of milliseconds".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_out_the_host() {
        assert_eq!(":9000".parse(), Ok(Address::All(9000)));
        let one = "127.0.0.1:0".parse().unwrap();
        assert_eq!("127.0.0.1:0".parse(), Ok(Address::One(one)));
        for text in ["", "9000", "localhost:9000", ":", ":70000"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_numbers_with_a_unit() {
        assert_eq!("150ms".parse(), Ok(Time(Duration::from_millis(150))));
        assert_eq!("2m".parse(), Ok(Time(Duration::from_mins(2))));
        for text in ["", "10", "s", "1.5s", "-1s", "0s", "99999999999999999999h"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
