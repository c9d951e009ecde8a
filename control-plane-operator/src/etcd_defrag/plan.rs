//! Which members are defragmented, and in which order. Pure.

/// A member of etcd as it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) url: String,
    /// Bytes of its database's file.
    pub(super) size: u64,
    /// Those of them that hold data.
    pub(super) in_use: u64,
    pub(super) is_leader: bool,
    pub(super) is_learner: bool,
    /// Why it cannot be asked, or what it complains about.
    pub(super) problem: Option<String>,
}

/// From where on it is worth it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes of the file.
    pub(super) size: u64,
    /// Percent of it that are free.
    pub(super) percent: u64,
}

/// Nothing is done to a cluster that is not well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("member {member} is not well: {problem}")]
pub(super) struct Unwell {
    member: String,
    problem: String,
}

/// The members to defragment, the leader last.
pub(super) fn due(members: &[Member], limits: Limits) -> Result<Vec<&Member>, Unwell> {
    if let Some((member, problem)) = unwell(members) {
        return Err(Unwell { member, problem });
    }
    let mut due: Vec<_> = members
        .iter()
        .filter(|member| member.is_fragmented(limits))
        .collect();
    due.sort_by_key(|member| member.is_leader);
    Ok(due)
}

fn unwell(members: &[Member]) -> Option<(String, String)> {
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
            problem: (name == "ill").then(|| "it does not answer".to_owned()),
        }
    }

    fn names(members: &[Member]) -> Vec<String> {
        let due = due(members, LIMITS).unwrap();
        due.iter().map(|member| member.name.clone()).collect()
    }

    #[test]
    fn size_and_share_decide() {
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
    fn the_leader_is_last_and_a_learner_left_alone() {
        let members = ["leader", "a", "learner", "b"].map(|name| member(name, 200, 10));
        assert_eq!(names(&members), ["a", "b", "leader"]);
    }

    #[test]
    fn nothing_is_done_while_a_member_is_ill() {
        let members = [member("a", 200, 10), member("ill", 0, 0)];
        let error = due(&members, LIMITS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "member ill is not well: it does not answer"
        );
    }
}
