//! Flags that all programs share, to be flattened into theirs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::lease;

/// How the API server is reached.
#[derive(Debug, Clone, Default, Args)]
pub struct ApiServerArgs {
    /// Kubeconfig to use [default: $KUBECONFIG, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context to use in place of the kubeconfig's current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// What is logged, to standard error.
#[derive(Debug, Clone, Args)]
pub struct LoggingArgs {
    /// Least severity that is logged. Libraries never log more than warnings.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "HYPERSHIFT_LOG_LEVEL")]
    pub log_level: LogLevel,
    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, env = "HYPERSHIFT_LOG_FORMAT")]
    pub log_format: LogFormat,
}

/// Which of several replicas acts.
#[derive(Debug, Clone, Args)]
pub struct LeaderArgs {
    /// Take turns with other replicas by a Lease. Without it, this process acts at once and alone.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub leader_elect: bool,
    /// Name of the Lease [default: by scope]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_lease_name: Option<String>,
    /// How long others wait after the leader was last heard of.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub leader_elect_lease_duration: Time,
    /// How long a leader that cannot renew the Lease goes on writing. Shorter than the Lease's duration.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub leader_elect_renew_deadline: Time,
    /// Between two renewals. Shorter than the deadline.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub leader_elect_retry_period: Time,
}

/// Least severity that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What the program cannot go on with.
    Error,
    /// What somebody should look at.
    Warn,
    /// What has changed in the world.
    Info,
    /// Why.
    Debug,
    /// Every step.
    Trace,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// On one address.
    One(SocketAddr),
    /// On all addresses of the machine, written `:PORT`.
    All(u16),
}

/// A length of time, as written on a command line: a number with ms, s, m or h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

// === impl LeaderArgs ===

impl LeaderArgs {
    /// The Lease that replicas of a program take turns by: of this name, unless a flag gives another one. `pod` is the
    /// replica, and part of its identity.
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
        parsed.ok_or_else(|| "write :PORT, IP:PORT or [IPv6]:PORT".to_owned())
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
            _ => return Err("write a number with ms, s, m or h, for instance 10s".to_owned()),
        };
        let milliseconds = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        match milliseconds {
            Some(milliseconds @ 1..) => Ok(Self(Duration::from_millis(milliseconds))),
            _ => Err("the time is zero, or too long".to_owned()),
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
