//! Selects the members to defragment, and their order. Pure.

/// A member of etcd, with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) url: String,
    /// Size of its database file in bytes.
    pub(super) size: u64,
    /// Bytes in use.
    pub(super) in_use: u64,
    pub(super) is_leader: bool,
    pub(super) is_learner: bool,
    /// Why its status is unknown, or the alarm that it reports.
    pub(super) problem: Option<String>,
}

/// Thresholds for defragmenting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Minimum size of the file in bytes.
    pub(super) size: u64,
    /// Minimum percentage of free space.
    pub(super) percent: u64,
}

/// A member is unhealthy, so no member is defragmented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("member {member} is unhealthy: {problem}")]
pub(super) struct Unhealthy {
    member: String,
    problem: String,
}

/// Returns the members to defragment, the leader last.
pub(super) fn select(members: &[Member], limits: Limits) -> Result<Vec<&Member>, Unhealthy> {
    if let Some((member, problem)) = unhealthy(members) {
        return Err(Unhealthy { member, problem });
    }
    let mut due: Vec<_> = members
        .iter()
        .filter(|member| member.is_fragmented(limits))
        .collect();
    due.sort_by_key(|member| member.is_leader);
    Ok(due)
}

fn unhealthy(members: &[Member]) -> Option<(String, String)> {
    let mut members = members.iter();
    members.find_map(|member| Some((member.name.clone(), member.problem.clone()?)))
}

// === impl Member ===

impl Member {
    fn is_fragmented(&self, limits: Limits) -> bool {
        let free = self.size.saturating_sub(self.in_use);
        let percent = u128::from(free) * 100 / u128::from(self.size.max(1));
        !self.is_learner && self.size >= limits.size && percent >= u128::from(limits.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        size: 100,
        percent: 45,
    };

    fn member(name: &str, size: u64, in_use: u64) -> Member {
        Member {
            name: name.to_owned(),
            url: format!("https://{name}:2379"),
            size,
            in_use,
            is_leader: name == "leader",
            is_learner: name == "learner",
            problem: (name == "ill").then(|| "timed out".to_owned()),
        }
    }

    fn names(members: &[Member]) -> Vec<String> {
        let due = select(members, LIMITS).unwrap();
        due.iter().map(|member| member.name.clone()).collect()
    }

    #[test]
    fn size_and_fragmentation_select_members() {
        for (size, in_use, expected) in [
            (100, 55, true),
            (100, 56, false),
            (99, 1, false),
            (u64::MAX, 1, true),
            (100, 200, false),
            (0, 0, false),
        ] {
            let due = names(&[member("a", size, in_use)]);
            assert_eq!(!due.is_empty(), expected, "{in_use} of {size}");
        }
    }

    #[test]
    fn leader_is_last_and_learners_are_skipped() {
        let members = ["leader", "a", "learner", "b"].map(|name| member(name, 200, 10));
        assert_eq!(names(&members), ["a", "b", "leader"]);
    }

    #[test]
    fn unhealthy_members_prevent_defragmentation() {
        let members = [member("a", 200, 10), member("ill", 0, 0)];
        let error = select(&members, LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "member ill is unhealthy: timed out");
    }
}
