//! What is next for a backup, from what was observed. Pure.

use super::credentials::Credentials;
use super::status::{Reason, Report};

/// What was observed of a backup that is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observed {
    /// UID of the HCPEtcdBackup.
    pub(super) uid: String,
    /// Why there is no control plane to back up.
    pub(super) no_control_plane: Option<String>,
    pub(super) etcd: Etcd,
    /// The backup Jobs of the control plane.
    pub(super) jobs: Vec<JobState>,
    /// The credentials, or why there are none.
    pub(super) credentials: Result<Credentials, String>,
}

/// The state of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Etcd {
    /// It does not belong to the control plane.
    Unmanaged,
    /// There is no `StatefulSet` yet.
    Missing,
    Members {
        ready: i32,
        desired: i32,
    },
}

/// A backup Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobState {
    pub(super) name: String,
    pub(super) uid: String,
    /// UID of the HCPEtcdBackup that it was created for.
    pub(super) backup: String,
    pub(super) progress: Progress,
}

/// How far a Job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    Active,
    Complete,
    /// With the message of the Job.
    Failed(String),
}

/// What is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait, with this status.
    Wait(Report),
    /// Create the Job.
    Start(Credentials),
    /// Read the result from the pod of the Job.
    Collect(JobState),
    /// The backup is complete without a snapshot.
    End(Report),
}

/// Decides what is next.
///
/// The own Job comes first: a member of etcd that restarts while the snapshot is uploaded does not hide the result.
pub(super) fn next(observed: &Observed) -> Step {
    if let Some(problem) = &observed.no_control_plane {
        return Step::End(Report::new(Reason::BackupFailed, problem));
    }
    let own = |job: &&JobState| job.backup == observed.uid;
    if let Some(job) = observed.jobs.iter().find(own) {
        return match job.progress {
            Progress::Active => Step::Wait(in_progress()),
            Progress::Complete | Progress::Failed(_) => Step::Collect(job.clone()),
        };
    }
    let active = |job: &&JobState| job.progress == Progress::Active;
    if let Some(other) = observed.jobs.iter().find(active) {
        let message = format!(
            "another backup of the control plane is in progress (Job {}): create an HCPEtcdBackup again when it has ended",
            other.name
        );
        return Step::End(Report::new(Reason::BackupRejected, message));
    }
    match unhealthy(observed.etcd) {
        Some(Problem::Lasting(message)) => {
            return Step::End(Report::new(Reason::BackupFailed, message));
        }
        Some(Problem::Passing(message)) => {
            return Step::Wait(Report::new(Reason::EtcdUnhealthy, message));
        }
        None => {}
    }
    match &observed.credentials {
        Ok(credentials) => Step::Start(credentials.clone()),
        Err(problem) => Step::End(Report::new(Reason::BackupFailed, problem)),
    }
}

/// The status while the Job runs.
pub(super) fn in_progress() -> Report {
    Report::new(
        Reason::BackupInProgress,
        "Backup Job created, waiting for completion",
    )
}

/// What the containers of a Job left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Messages {
    /// The termination message of the upload.
    pub(super) url: Option<String>,
    /// The first container that failed, and its last message.
    pub(super) failure: Option<(String, String)>,
}

/// The URL of the snapshot, or why there is none.
pub(super) fn result(job: &JobState, messages: &Messages) -> Result<String, String> {
    let name = &job.name;
    if let Progress::Failed(reason) = &job.progress {
        let cause = match &messages.failure {
            Some((container, message)) => format!("container {container}: {message}"),
            None => reason.clone(),
        };
        return Err(format!("Job {name} failed: {cause}"));
    }
    let url = messages.url.as_deref().map(str::trim);
    url.filter(|url| is_url(url))
        .map(str::to_owned)
        .ok_or_else(|| {
            format!(
                "Job {name} is complete, and its container upload reported no URL of a snapshot: look into the storage \
                 before you create an HCPEtcdBackup again"
            )
        })
}

/// Whether the API accepts a URL of a snapshot.
fn is_url(url: &str) -> bool {
    let is_known = ["https://", "s3://"].iter().any(|it| url.starts_with(it));
    is_known && url.len() <= 2048 && !url.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Why no snapshot of etcd can be taken.
enum Problem {
    Passing(String),
    Lasting(String),
}

fn unhealthy(etcd: Etcd) -> Option<Problem> {
    match etcd {
        Etcd::Unmanaged => Some(Problem::Lasting(
            "etcd is unmanaged (spec.etcd.managementType of the HostedCluster): back it up where it runs".to_owned(),
        )),
        Etcd::Missing => Some(Problem::Passing(
            "Waiting for StatefulSet etcd to be created".to_owned(),
        )),
        Etcd::Members { ready, desired } if desired > 0 && ready >= desired => None,
        Etcd::Members { ready, desired } => Some(Problem::Passing(format!(
            "Waiting for StatefulSet etcd to become available ({ready}/{desired})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(backup: &str, progress: Progress) -> JobState {
        JobState {
            name: format!("job-of-{backup}"),
            uid: "j".to_owned(),
            backup: backup.to_owned(),
            progress,
        }
    }

    fn credentials() -> Credentials {
        Credentials::AwsSts {
            role: "arn:aws:iam::123456789012:role/a".to_owned(),
        }
    }

    fn observed() -> Observed {
        Observed {
            uid: "own".to_owned(),
            no_control_plane: None,
            etcd: Etcd::Members {
                ready: 3,
                desired: 3,
            },
            jobs: Vec::new(),
            credentials: Ok(credentials()),
        }
    }

    /// The kind of a step, and the reason and a part of the message of its status.
    fn described(step: &Step) -> (&'static str, &'static str, &str) {
        match step {
            Step::Wait(report) => ("wait", report.reason.as_str(), report.message.as_str()),
            Step::End(report) => ("end", report.reason.as_str(), report.message.as_str()),
            Step::Start(_) => ("start", "", ""),
            Step::Collect(job) => ("collect", "", job.name.as_str()),
        }
    }

    #[test]
    fn each_observation_leads_to_its_step() {
        type Edit = fn(&mut Observed);
        type Row = (
            &'static str,
            Edit,
            (&'static str, &'static str, &'static str),
        );
        let table: [Row; 12] = [
            ("all is well", |_| {}, ("start", "", "")),
            (
                "no HostedControlPlane",
                |it| {
                    it.no_control_plane = Some("no control plane".to_owned());
                    it.jobs = vec![job("own", Progress::Active)];
                },
                ("end", "BackupFailed", "no control plane"),
            ),
            (
                "etcd is not healthy",
                |it| {
                    it.etcd = Etcd::Members {
                        ready: 2,
                        desired: 3,
                    };
                    it.credentials = Err("no Secret".to_owned());
                },
                ("wait", "EtcdUnhealthy", "(2/3)"),
            ),
            (
                "etcd is scaled to zero",
                |it| {
                    it.etcd = Etcd::Members {
                        ready: 0,
                        desired: 0,
                    };
                },
                ("wait", "EtcdUnhealthy", "(0/0)"),
            ),
            (
                "etcd does not exist yet",
                |it| it.etcd = Etcd::Missing,
                ("wait", "EtcdUnhealthy", "to be created"),
            ),
            (
                "unmanaged etcd",
                |it| it.etcd = Etcd::Unmanaged,
                ("end", "BackupFailed", "unmanaged"),
            ),
            (
                "the own Job runs, whatever etcd does",
                |it| {
                    it.etcd = Etcd::Missing;
                    it.jobs = vec![
                        job("another", Progress::Active),
                        job("own", Progress::Active),
                    ];
                },
                ("wait", "BackupInProgress", "waiting for completion"),
            ),
            (
                "the own Job is complete",
                |it| it.jobs = vec![job("own", Progress::Complete)],
                ("collect", "", "job-of-own"),
            ),
            (
                "the own Job failed",
                |it| it.jobs = vec![job("own", Progress::Failed("why".to_owned()))],
                ("collect", "", "job-of-own"),
            ),
            (
                "another Job runs",
                |it| it.jobs = vec![job("another", Progress::Active)],
                ("end", "BackupRejected", "job-of-another"),
            ),
            (
                "other Jobs have ended",
                |it| {
                    it.jobs = vec![
                        job("another", Progress::Complete),
                        job("", Progress::Failed(String::new())),
                    ];
                },
                ("start", "", ""),
            ),
            (
                "no credentials",
                |it| it.credentials = Err("no Secret".to_owned()),
                ("end", "BackupFailed", "no Secret"),
            ),
        ];
        for (name, edit, expected) in table {
            let mut observed = observed();
            edit(&mut observed);
            let step = next(&observed);
            let (kind, reason, message) = described(&step);
            assert_eq!((kind, reason), (expected.0, expected.1), "{name}");
            assert!(message.contains(expected.2), "{name}: {message}");
        }
        assert_eq!(next(&observed()), Step::Start(credentials()));
    }

    #[test]
    fn the_result_of_a_job_is_a_url_or_a_cause() {
        let failed = || Progress::Failed("BackoffLimitExceeded".to_owned());
        let long = format!("s3://{}", "a".repeat(2048));
        let of_snapshot = Some(("snapshot".to_owned(), "no etcd".to_owned()));
        for (progress, url, failure, expected) in [
            (
                Progress::Complete,
                Some("s3://backups/one/1.db\n"),
                None,
                Ok("s3://backups/one/1.db"),
            ),
            (
                Progress::Complete,
                Some("https://a.blob.core.windows.net/b/1.db"),
                None,
                Ok("https://a.blob.core.windows.net/b/1.db"),
            ),
            (Progress::Complete, None, None, Err("reported no URL")),
            (
                Progress::Complete,
                Some("http://a/1.db"),
                None,
                Err("reported no URL"),
            ),
            (
                Progress::Complete,
                Some("s3://a/1.db\ns3://b"),
                None,
                Err("reported no URL"),
            ),
            (
                Progress::Complete,
                Some(long.as_str()),
                None,
                Err("reported no URL"),
            ),
            (
                failed(),
                Some("s3://backups/one/1.db"),
                None,
                Err("Job job-of-own failed: BackoffLimitExceeded"),
            ),
            (
                failed(),
                None,
                of_snapshot,
                Err("Job job-of-own failed: container snapshot: no etcd"),
            ),
        ] {
            let job = job("own", progress);
            let messages = Messages {
                url: url.map(str::to_owned),
                failure,
            };
            match (result(&job, &messages), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
