//! What a machine has, as its cloud says: the cluster autoscaler needs it for a NodePool without machines.

use std::time::Duration;

use crate::config::ScaleFromZero;
use crate::platform::aws::capacity::Ec2;
use crate::platform::azure::capacity::VmSizes;

/// How long a description is cached: what a machine has never changes.
const CACHE_DURATION: Duration = Duration::from_hours(1);
/// How long a failure is cached, so that many NodePools do not repeat one request.
const FAILURE_DURATION: Duration = Duration::from_secs(25);
/// The way out of failures that the author of a NodePool cannot correct.
pub(super) const TO_ADMINISTRATORS: &str = "the administrator of the management cluster finds the cause in the log of the operator, and checks \
     --scale-from-zero-creds";

/// What a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) processors: u32,
    /// In MiB.
    pub(crate) memory: u64,
    pub(crate) gpus: u32,
}

/// Why it is unknown, for the author of a NodePool: without what only administrators may see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unknown {
    message: String,
    is_permanent: bool,
}

pub(crate) type Known = Result<Capacity, Unknown>;

/// What a cloud is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question<'a> {
    Aws {
        region: &'a str,
        instance_type: &'a str,
    },
    Azure {
        location: &'a str,
        vm_size: &'a str,
    },
}

/// The cloud that may be asked.
#[derive(Debug)]
pub(crate) enum Provider {
    Aws(Box<Ec2>),
    Azure(VmSizes),
}

// === impl Unknown ===

impl Unknown {
    /// It is asked again soon.
    pub(crate) fn temporary(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            message,
            is_permanent: false,
        }
    }

    /// The answer only changes with the question.
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            message,
            is_permanent: true,
        }
    }

    pub(crate) fn is_permanent(&self) -> bool {
        self.is_permanent
    }
}

// === impl Provider ===

impl Provider {
    pub(crate) fn new(settings: &ScaleFromZero) -> Self {
        match settings {
            ScaleFromZero::Aws { credentials } => {
                Self::Aws(Box::new(Ec2::new(credentials.clone())))
            }
            ScaleFromZero::Azure { credentials, cloud } => {
                Self::Azure(VmSizes::new(credentials.clone(), *cloud))
            }
        }
    }

    /// What the cloud says. `None` if it is another one.
    pub(crate) async fn capacity(&self, question: Question<'_>) -> Option<Known> {
        match (self, question) {
            (
                Self::Aws(ec2),
                Question::Aws {
                    region,
                    instance_type,
                },
            ) => Some(ec2.capacity(region, instance_type).await),
            (Self::Azure(sizes), Question::Azure { location, vm_size }) => {
                Some(sizes.capacity(location, vm_size).await)
            }
            (Self::Aws(_), Question::Azure { .. }) | (Self::Azure(_), Question::Aws { .. }) => None,
        }
    }
}

/// Whether an answer of this age is used again.
pub(super) fn is_fresh<T>(age: Duration, answer: &Result<T, Unknown>) -> bool {
    let duration = match answer {
        Ok(_) => CACHE_DURATION,
        Err(_) => FAILURE_DURATION,
    };
    age < duration
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use support::azure::Cloud;

    use super::*;

    #[test]
    fn failures_are_forgotten_sooner() {
        let (known, unknown) = (Ok(()), Err::<(), _>(Unknown::temporary("none")));
        for (seconds, is_known_fresh, is_unknown_fresh) in
            [(0, true, true), (26, true, false), (3601, false, false)]
        {
            let age = Duration::from_secs(seconds);
            assert_eq!(is_fresh(age, &known), is_known_fresh, "{seconds}");
            assert_eq!(is_fresh(age, &unknown), is_unknown_fresh, "{seconds}");
        }
    }

    #[tokio::test]
    async fn a_cloud_is_not_asked_about_another_one() {
        let credentials = PathBuf::from("/does/not/exist");
        let aws = Provider::new(&ScaleFromZero::Aws {
            credentials: credentials.clone(),
        });
        let azure = Provider::new(&ScaleFromZero::Azure {
            credentials,
            cloud: Cloud::Public,
        });
        let of_aws = Question::Aws {
            region: "us-east-1",
            instance_type: "m5.large",
        };
        let of_azure = Question::Azure {
            location: "eastus",
            vm_size: "Standard_D4s_v5",
        };
        assert_eq!(aws.capacity(of_azure).await, None);
        assert_eq!(azure.capacity(of_aws).await, None);
    }
}
