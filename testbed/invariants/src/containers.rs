//! Containers: how they are pulled, what they request, what they can write, and that they do not restart.

use crate::exceptions::{FORGIVEN, TOLERATED_RESTARTS};
use crate::pod::{Container, Pod};
use crate::{Finding, Invariant, Observed, items, text};

pub(crate) fn pull_policies(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::PullPolicies, |_, container| {
        let policy = &container.value["imagePullPolicy"];
        (policy != "IfNotPresent").then(|| format!("imagePullPolicy is {policy}"))
    })
}

pub(crate) fn termination_messages(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::TerminationMessages, |_, container| {
        let policy = &container.value["terminationMessagePolicy"];
        (policy != "FallbackToLogsOnError").then(|| format!("terminationMessagePolicy is {policy}"))
    })
}

/// Containers that end soon request nothing: the scheduler would reserve it for as long as the pod is there.
pub(crate) fn requests(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::ResourceRequests, |_, container| {
        if !container.stays {
            return None;
        }
        let requests = &container.value["resources"]["requests"];
        let missing = ["cpu", "memory"]
            .into_iter()
            .filter(|resource| text(&requests[resource]).is_empty());
        let missing: Vec<_> = missing.collect();
        (!missing.is_empty()).then(|| format!("no request of {}", missing.join(", ")))
    })
}

pub(crate) fn read_only_root(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::ReadOnlyRoot, |_, container| {
        let found = &container.value["securityContext"]["readOnlyRootFilesystem"];
        (container.is_main && found != true).then(|| format!("readOnlyRootFilesystem is {found}"))
    })
}

pub(crate) fn temporary(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::TemporaryDirectories, |_, container| {
        let mounts = items(&container.value["volumeMounts"]);
        let is_mounted = mounts.iter().any(|mount| mount["mountPath"] == "/tmp");
        (container.is_main && !is_mounted).then(|| "no volume is mounted at /tmp".to_owned())
    })
}

pub(crate) fn restarts(observed: &Observed) -> Vec<Finding> {
    observed.each_container(Invariant::Restarts, |pod, container| {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = lists.iter().flat_map(|list| items(&pod.status[*list]));
        let mut own = statuses.filter(|status| status["name"] == container.name());
        let count = own.next()?["restartCount"].as_u64()?;
        let tolerated = tolerated(pod, container);
        if count <= tolerated || is_forgiven(observed, pod, container) {
            return None;
        }
        Some(format!(
            "restarted {count} times, and {tolerated} are tolerated"
        ))
    })
}

fn tolerated(pod: &Pod<'_>, container: &Container<'_>) -> u64 {
    let names = [pod.component(), container.name()];
    let row = TOLERATED_RESTARTS
        .iter()
        .find(|(_, listed)| names.iter().any(|name| listed.contains(name)));
    row.map_or(0, |(count, _)| *count)
}

/// Whether the end of the log before the last restart says that it was no failure.
fn is_forgiven(observed: &Observed, pod: &Pod<'_>, container: &Container<'_>) -> bool {
    let key = (pod.name.to_owned(), container.name().to_owned());
    let Some(log) = observed.previous_logs.get(&key) else {
        return false;
    };
    FORGIVEN.iter().any(|said| log.contains(said))
}
