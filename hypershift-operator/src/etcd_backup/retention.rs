//! Which backups of a control plane are deleted, and whether what lets Jobs in is still needed. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::plan::{JobState, Progress};
use super::status::State;

/// A backup of a control plane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sibling {
    pub(super) metadata: ObjectMeta,
    pub(super) state: State,
}

/// The oldest of the backups that succeeded, above the number to keep.
pub(super) fn expired(backups: &[Sibling], keep: Option<usize>) -> Vec<&ObjectMeta> {
    let Some(keep) = keep else {
        return Vec::new();
    };
    let mut succeeded: Vec<_> = backups
        .iter()
        .filter(|it| it.state == State::Succeeded && it.metadata.deletion_timestamp.is_none())
        .map(|it| &it.metadata)
        .collect();
    // Of the same second, the name decides: each pass has to decide the same.
    let age = |it: &ObjectMeta| {
        let created = it.creation_timestamp.as_ref().map(|created| created.0);
        (created, it.name.clone())
    };
    succeeded.sort_by_key(|it| std::cmp::Reverse(age(it)));
    succeeded.into_iter().skip(keep).collect()
}

/// Whether a backup that is not `name` is not complete, or a Job runs: then it needs access to etcd.
pub(super) fn is_access_needed(backups: &[Sibling], name: &str, jobs: &[JobState]) -> bool {
    let is_other = |it: &Sibling| it.metadata.name.as_deref() != Some(name);
    let is_unfinished =
        |it: &Sibling| it.state == State::Unfinished && it.metadata.deletion_timestamp.is_none();
    let runs = |it: &JobState| it.progress == Progress::Active;
    backups.iter().any(|it| is_other(it) && is_unfinished(it)) || jobs.iter().any(runs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn backup(name: &str, second: u8, state: State) -> Sibling {
        let metadata = json!({
            "name": name, "creationTimestamp": format!("2030-01-01T00:00:{second:02}Z"),
        });
        Sibling {
            metadata: serde_json::from_value(metadata).unwrap(),
            state,
        }
    }

    fn job(progress: Progress) -> JobState {
        JobState {
            name: "job".to_owned(),
            uid: "j".to_owned(),
            backup: "b".to_owned(),
            progress,
        }
    }

    #[test]
    fn the_oldest_backups_that_succeeded_are_deleted() {
        let mut deleted = backup("deleted", 0, State::Succeeded);
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp.clone();
        let all = [
            backup("c", 3, State::Succeeded),
            backup("failed", 1, State::Failed),
            backup("a", 1, State::Succeeded),
            backup("running", 0, State::Unfinished),
            backup("b2", 2, State::Succeeded),
            backup("b1", 2, State::Succeeded),
            deleted,
        ];
        for (keep, expected) in [
            (None, &[][..]),
            (Some(5), &[]),
            (Some(4), &[]),
            (Some(3), &["a"]),
            (Some(2), &["b1", "a"]),
            (Some(1), &["b2", "b1", "a"]),
        ] {
            let expired = expired(&all, keep);
            let names: Vec<_> = expired.iter().filter_map(|it| it.name.as_deref()).collect();
            assert_eq!(names, expected, "{keep:?}");
        }
    }

    #[test]
    fn access_stays_while_another_backup_needs_it() {
        let own = backup("own", 1, State::Unfinished);
        let mut deleted = backup("deleted", 0, State::Unfinished);
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp.clone();
        for (name, others, jobs, expected) in [
            ("alone", vec![], vec![], false),
            (
                "others are complete",
                vec![
                    backup("a", 0, State::Succeeded),
                    backup("b", 0, State::Failed),
                ],
                vec![
                    job(Progress::Complete),
                    job(Progress::Failed(String::new())),
                ],
                false,
            ),
            (
                "another one waits",
                vec![backup("a", 0, State::Unfinished)],
                vec![],
                true,
            ),
            ("another one is deleted", vec![deleted], vec![], false),
            (
                "a Job runs whose backup is gone",
                vec![],
                vec![job(Progress::Active)],
                true,
            ),
        ] {
            let all: Vec<_> = others.into_iter().chain([own.clone()]).collect();
            assert_eq!(is_access_needed(&all, "own", &jobs), expected, "{name}");
        }
    }
}
