//! What is wrong with etcd, and whether one member may be repaired. Pure.

use support::etcd::PODS;

/// Health of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Healthy,
    Unhealthy,
}

/// A member that the cluster lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) health: Health,
}

/// The revisions of the `StatefulSet`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rollout {
    pub(super) current: String,
    pub(super) update: String,
}

/// The state of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Healthy,
    /// The cluster does not list this pod's member.
    Missing(&'static str),
    /// This pod's member is listed and unhealthy.
    Failing(&'static str),
    /// It cannot be repaired here, and why.
    Broken(String),
}

/// Evaluates the members.
pub(super) fn evaluate(members: &[Member]) -> State {
    let unhealthy: Vec<_> = members
        .iter()
        .filter(|member| member.health == Health::Unhealthy)
        .map(|member| pod(&member.name))
        .collect();
    if members
        .iter()
        .any(|member| !member.name.is_empty() && pod(&member.name).is_none())
    {
        return State::Broken("it has a member that is not etcd-0, etcd-1 or etcd-2".to_owned());
    }
    let broken = |problem: &str| State::Broken(problem.to_owned());
    let absent = || {
        let mut names = PODS.into_iter();
        names.find(|name| members.iter().all(|member| member.name != *name))
    };
    match (members.len(), unhealthy.as_slice()) {
        (2, []) => absent().map_or_else(|| broken("members have equal names"), State::Missing),
        (2, _) => broken("of two members, not all are healthy: restore a snapshot"),
        (3, []) => State::Healthy,
        (3, [Some(name)]) => State::Failing(name),
        // It was added, and its pod has not started with it.
        (3, [None]) => absent().map_or_else(|| broken("members have equal names"), State::Failing),
        (3, _) => broken("more than one member is unhealthy: restore a snapshot"),
        (count, _) => State::Broken(format!("it has {count} members instead of 3")),
    }
}

/// The pod of a member.
fn pod(member: &str) -> Option<&'static str> {
    PODS.into_iter().find(|name| *name == member)
}

/// Whether this member may be repaired. `failing` are the pods whose container waits after it has failed.
pub(super) fn may_repair(
    rollout: &Rollout,
    failing: &[String],
    members: &[Member],
    member: &str,
) -> Result<(), String> {
    let Rollout { current, update } = rollout;
    if current != update {
        return Err(format!(
            "StatefulSet etcd is being rolled out from {current} to {update}: wait until it is complete"
        ));
    }
    if failing.len() > 1 {
        return Err(format!("more than one pod fails: {}", failing.join(", ")));
    }
    let is_missing = members.iter().all(|it| it.name != member);
    match failing.first() {
        Some(pod) if pod != member => {
            let what = if is_missing { "missing" } else { "unhealthy" };
            Err(format!("pod {pod} fails, but member {member} is {what}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<Member> {
        let members = text.split_whitespace().map(|word| {
            let (name, health) = word.split_once('=').unwrap();
            let health = match health {
                "ok" => Health::Healthy,
                _ => Health::Unhealthy,
            };
            let name = if name == "-" { "" } else { name };
            Member {
                name: name.to_owned(),
                health,
            }
        });
        members.collect()
    }

    #[test]
    fn states_follow_the_members() {
        let broken = |problem: &str| State::Broken(problem.to_owned());
        for (text, expected) in [
            ("etcd-0=ok etcd-1=ok etcd-2=ok", State::Healthy),
            ("etcd-0=ok etcd-1=bad etcd-2=ok", State::Failing("etcd-1")),
            ("etcd-2=ok etcd-0=ok", State::Missing("etcd-1")),
            ("etcd-1=ok etcd-2=ok", State::Missing("etcd-0")),
            ("etcd-0=ok etcd-1=ok -=bad", State::Failing("etcd-2")),
            (
                "etcd-0=ok etcd-1=bad",
                broken("of two members, not all are healthy: restore a snapshot"),
            ),
            (
                "etcd-0=ok etcd-1=bad etcd-2=bad",
                broken("more than one member is unhealthy: restore a snapshot"),
            ),
            ("etcd-0=ok", broken("it has 1 members instead of 3")),
            ("", broken("it has 0 members instead of 3")),
            (
                "etcd-0=ok etcd-1=ok other=ok",
                broken("it has a member that is not etcd-0, etcd-1 or etcd-2"),
            ),
            (
                "etcd-0=ok etcd-1=ok etcd-2=ok etcd-2=ok",
                broken("it has 4 members instead of 3"),
            ),
        ] {
            assert_eq!(evaluate(&members(text)), expected, "{text}");
        }
    }

    #[test]
    fn only_one_failed_member_may_be_repaired() {
        let all = "etcd-0=ok etcd-1=bad etcd-2=ok";
        let two = "etcd-0=ok etcd-2=ok";
        for (text, rollout, failing, expected) in [
            (all, ("a", "a"), vec!["etcd-1"], None),
            // The pod runs, and its member does not answer.
            (all, ("a", "a"), vec![], None),
            (two, ("a", "a"), vec!["etcd-1"], None),
            (
                all,
                ("a", "b"),
                vec!["etcd-1"],
                Some("rolled out from a to b"),
            ),
            (
                all,
                ("a", "a"),
                vec!["etcd-1", "etcd-2"],
                Some("etcd-1, etcd-2"),
            ),
            (
                all,
                ("a", "a"),
                vec!["etcd-2"],
                Some("member etcd-1 is unhealthy"),
            ),
            (
                two,
                ("a", "a"),
                vec!["etcd-2"],
                Some("member etcd-1 is missing"),
            ),
        ] {
            let rollout = Rollout {
                current: rollout.0.to_owned(),
                update: rollout.1.to_owned(),
            };
            let failing: Vec<_> = failing.into_iter().map(str::to_owned).collect();
            let found = may_repair(&rollout, &failing, &members(text), "etcd-1");
            match (found, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(text)) => assert!(error.contains(text), "{error}"),
                (found, expected) => panic!("{text} {failing:?}: {found:?} {expected:?}"),
            }
        }
    }
}
