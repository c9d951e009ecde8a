//! The release history of the control plane. Pure.

use api::hypershift::v1beta1::versions::{
    ControlPlaneUpdateHistory, ControlPlaneUpdateState, ControlPlaneVersionStatus, ReleaseInfo,
};
use control_plane_component::Release;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Maximum length of the history.
const MOST: usize = 100;

/// Returns the history with the current release first; `complete` means that all components run it.
pub(super) fn next(
    before: Option<&ControlPlaneVersionStatus>,
    release: &Release,
    complete: bool,
    generation: Option<i64>,
    now: &Time,
) -> ControlPlaneVersionStatus {
    let mut history = before
        .map(|before| before.history.clone())
        .unwrap_or_default();
    let is_present = |entry: &ControlPlaneUpdateHistory| {
        entry.image == release.pull_spec && entry.version == release.version
    };
    if !history.first().is_some_and(is_present) {
        let present = ControlPlaneUpdateHistory {
            state: ControlPlaneUpdateState::Partial,
            started_time: now.clone(),
            completion_time: None,
            version: release.version.clone(),
            image: release.pull_spec.clone(),
        };
        // A superseded release gets a completion time even if its rollout was not complete.
        if let Some(left) = history.first_mut() {
            left.completion_time.get_or_insert_with(|| now.clone());
        }
        history.insert(0, present);
    }
    if let Some(present) = history.first_mut()
        && complete
        && present.state == ControlPlaneUpdateState::Partial
    {
        present.state = ControlPlaneUpdateState::Completed;
        present.completion_time = Some(now.clone());
    }
    history.truncate(MOST);
    ControlPlaneVersionStatus {
        desired: ReleaseInfo {
            version: release.version.clone(),
            image: release.pull_spec.clone(),
            ..ReleaseInfo::default()
        },
        history,
        observed_generation: generation,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn release(version: &str) -> Release {
        Release {
            pull_spec: format!("registry.example.com/release:{version}"),
            version: version.to_owned(),
            ..Release::default()
        }
    }

    #[test]
    fn release_history_has_one_entry_per_release() {
        let at = |second| Time(Timestamp::from_second(second).unwrap());
        let one = next(None, &release("4.20.0"), false, Some(1), &at(1));
        assert_eq!(one.history.len(), 1);
        assert_eq!(one.history[0].state, ControlPlaneUpdateState::Partial);
        let done = next(Some(&one), &release("4.20.0"), true, Some(1), &at(2));
        assert_eq!(done.history[0].completion_time, Some(at(2)));
        assert_eq!(
            next(Some(&done), &release("4.20.0"), true, Some(1), &at(3)),
            done
        );
        let upgraded = next(Some(&done), &release("4.21.0"), false, Some(2), &at(4));
        let versions: Vec<_> = upgraded
            .history
            .iter()
            .map(|entry| entry.version.as_str())
            .collect();
        assert_eq!(versions, ["4.21.0", "4.20.0"]);
        assert_eq!(upgraded.history[1].completion_time, Some(at(2)));
    }
}
