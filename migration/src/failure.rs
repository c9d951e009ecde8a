//! Why a migration is rolled back: a closed set, since metrics, annotations and users rely on it.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::phase::Phase;

/// The first wait before a migration is tried again by itself; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_mins(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// How often a migration is tried again by itself before a person is waited for.
const MOST_RETRIES: u32 = 8;
/// What an API server says of the owner of an object, if the owner's kind is new (admission plugin
/// `OwnerReferencesPermissionEnforcement`).
const UNKNOWN_OWNER: &str = "cannot find RESTMapping for APIVersion";
/// The etcd error of a store that is full.
const STORE_FULL: &str = "database space exceeded";

/// Why a migration failed; the value of the annotation `migration-failed` and of the metric label `failure_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The plan found something that forbids the migration.
    PreflightFailed,
    /// A controller's pods did not end in time.
    QuiesceTimeout,
    /// An object has no private form.
    ResourceConversionFailed,
    /// A target is not equal to its original.
    VerificationFailed,
    /// Something else changed an object in the meantime, or holds the lock.
    Conflict,
    /// An admission webhook or policy refuses a write.
    AdmissionDenied,
    /// A right that the plan found is gone.
    PermissionDenied,
    /// A quota, or the store's, is used up.
    QuotaExceeded,
    /// The API server cannot be reached, or is overloaded, for too long.
    ApiUnavailable,
    /// The rewritten deployments did not become available in time.
    DeploymentTimeout,
    /// The cluster did not become as healthy as it was in time.
    HealthCheckTimeout,
}

/// Whether a failure may go away by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It may: the migration is tried again by itself, with growing waits, a limited number of times.
    ByItself,
    /// It does not: the cause has to be fixed and the annotation removed.
    OnRequest,
}

/// A name that is none of the reasons'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is not a failure reason of a migration: the annotation was written by another version, or by hand"
)]
pub struct UnknownReason {
    /// The name as read.
    pub name: String,
}

/// Whether an API server refuses a write because it does not know the kind of the owner yet, as its message says: it reads
/// its own kinds every 30 seconds only.
pub fn is_owner_unknown(message: &str) -> bool {
    message.contains(UNKNOWN_OWNER)
}

/// Whether an API server refuses a write because its store is full, as its message says.
pub fn is_store_full(message: &str) -> bool {
    message.contains(STORE_FULL)
}

// === impl Reason ===

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 11] = [
        Self::PreflightFailed,
        Self::QuiesceTimeout,
        Self::ResourceConversionFailed,
        Self::VerificationFailed,
        Self::Conflict,
        Self::AdmissionDenied,
        Self::PermissionDenied,
        Self::QuotaExceeded,
        Self::ApiUnavailable,
        Self::DeploymentTimeout,
        Self::HealthCheckTimeout,
    ];

    /// The name in annotation and metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreflightFailed => "preflight-failed",
            Self::QuiesceTimeout => "quiesce-timeout",
            Self::ResourceConversionFailed => "resource-conversion-failed",
            Self::VerificationFailed => "verification-failed",
            Self::Conflict => "conflict",
            Self::AdmissionDenied => "admission-denied",
            Self::PermissionDenied => "permission-denied",
            Self::QuotaExceeded => "quota-exceeded",
            Self::ApiUnavailable => "api-unavailable",
            Self::DeploymentTimeout => "deployment-timeout",
            Self::HealthCheckTimeout => "health-check-timeout",
        }
    }

    /// The class of the failure.
    pub fn retry(self) -> Retry {
        match self {
            Self::QuiesceTimeout
            | Self::Conflict
            | Self::QuotaExceeded
            | Self::ApiUnavailable
            | Self::DeploymentTimeout
            | Self::HealthCheckTimeout => Retry::ByItself,
            Self::PreflightFailed
            | Self::ResourceConversionFailed
            | Self::VerificationFailed
            | Self::AdmissionDenied
            | Self::PermissionDenied => Retry::OnRequest,
        }
    }

    /// How long to wait before trying again, after `retries` that failed; none when a person is waited for.
    pub fn retry_after(self, retries: u32) -> Option<Duration> {
        if self.retry() == Retry::OnRequest || retries >= MOST_RETRIES {
            return None;
        }
        Some(FIRST_WAIT.saturating_mul(1 << retries).min(LONGEST_WAIT))
    }

    /// The reason for having exceeded a phase's limit; none for phases without one.
    pub fn of_timeout(phase: Phase) -> Option<Self> {
        match phase {
            Phase::Quiesce => Some(Self::QuiesceTimeout),
            Phase::Deploy => Some(Self::DeploymentTimeout),
            Phase::Health => Some(Self::HealthCheckTimeout),
            Phase::Plan
            | Phase::Lock
            | Phase::Pause
            | Phase::Copy
            | Phase::VerifyCopy
            | Phase::Reparent
            | Phase::Commit
            | Phase::Retire
            | Phase::Finish => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.name() == name)
            .ok_or_else(|| UnknownReason {
                name: name.to_owned(),
            })
    }
}

/// By its name.
impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_names_and_classes() {
        use Retry::*;
        let table = [
            ("preflight-failed", OnRequest),
            ("quiesce-timeout", ByItself),
            ("resource-conversion-failed", OnRequest),
            ("verification-failed", OnRequest),
            ("conflict", ByItself),
            ("admission-denied", OnRequest),
            ("permission-denied", OnRequest),
            ("quota-exceeded", ByItself),
            ("api-unavailable", ByItself),
            ("deployment-timeout", ByItself),
            ("health-check-timeout", ByItself),
        ];
        let found = Reason::ALL.map(|reason| (reason.name(), reason.retry()));
        assert_eq!(found, table);
        for reason in Reason::ALL {
            assert_eq!(reason.name().parse(), Ok(reason));
        }
        assert!("timeout".parse::<Reason>().is_err());
    }

    #[test]
    fn waits_grow_to_an_hour_and_end() {
        let waits: Vec<_> = (0..10)
            .map(|retries| {
                Reason::Conflict
                    .retry_after(retries)
                    .map(|wait| wait.as_secs() / 60)
            })
            .collect();
        let minutes = [1, 2, 4, 8, 16, 32, 60, 60].map(Some);
        assert_eq!(waits[..8], minutes);
        assert_eq!(waits[8..], [None, None]);
        assert_eq!(Reason::PreflightFailed.retry_after(0), None);
        assert_eq!(Reason::Conflict.retry_after(u32::MAX), None);
    }

    #[test]
    fn phases_with_a_limit_have_a_reason_for_exceeding_it() {
        for phase in Phase::ALL {
            assert_eq!(
                phase.limit().is_some(),
                Reason::of_timeout(phase).is_some(),
                "{phase}"
            );
        }
    }
}
