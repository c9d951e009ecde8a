//! Which failures are replayed: all, or those that a variable names.

use anyhow::{Result, bail};

/// Names of failures with commas in between. Without it, all are replayed.
const FAILURES: &str = "HYPERSHIFT_FAILURES";

/// A part of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Each member of etcd crashes.
    Members,
    /// Each kube-apiserver crashes.
    Servers,
    /// A pod of every other component is deleted.
    Others,
    /// A member of etcd loses its data.
    Data,
    /// Two of three members of etcd are lost.
    Quorum,
    /// The management cluster's control plane stops.
    Management,
    /// Each node is lost.
    Nodes,
    /// Nothing has a second replica.
    Single,
}

/// The parts that are replayed.
#[derive(Debug, Clone)]
pub(crate) struct Choice(Vec<Part>);

// === impl Part ===

impl Part {
    /// In the order in which they are replayed.
    const ALL: [Self; 8] = [
        Self::Members,
        Self::Servers,
        Self::Others,
        Self::Data,
        Self::Quorum,
        Self::Management,
        Self::Nodes,
        Self::Single,
    ];

    /// By which it is chosen.
    fn name(self) -> &'static str {
        match self {
            Self::Members => "members",
            Self::Servers => "servers",
            Self::Others => "others",
            Self::Data => "data",
            Self::Quorum => "quorum",
            Self::Management => "management",
            Self::Nodes => "nodes",
            Self::Single => "single",
        }
    }

    fn by_name(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|part| part.name() == name) {
            Some(part) => Ok(part),
            None => bail!(
                "{FAILURES} names {name:?}, and there are {}",
                Self::ALL.map(Self::name).join(", ")
            ),
        }
    }
}

// === impl Choice ===

impl Choice {
    /// As the environment says.
    pub(crate) fn of_environment() -> Result<Self> {
        Self::parse(&std::env::var(FAILURES).unwrap_or_default())
    }

    fn parse(names: &str) -> Result<Self> {
        let names: Vec<_> = names.split(',').filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(Self(Part::ALL.to_vec()));
        }
        let chosen = names.into_iter().map(Part::by_name);
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let in_order = Part::ALL.into_iter().filter(|part| chosen.contains(part));
        Ok(Self(in_order.collect()))
    }

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.0.len() == Part::ALL.len()
    }

    /// What is done to a control plane of several replicas.
    pub(crate) fn of_several(&self) -> Vec<Part> {
        let several = |part: &Part| *part != Part::Single;
        self.0.iter().copied().filter(several).collect()
    }

    /// Whether one of a single replica has its turn.
    pub(crate) fn has_single(&self) -> bool {
        self.0.contains(&Part::Single)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_by_name_and_come_in_their_order() {
        let all = Choice::parse("").unwrap();
        assert!(all.is_all() && all.has_single());
        assert_eq!(all.of_several().len(), Part::ALL.len() - 1);
        let some = Choice::parse("nodes,members,nodes").unwrap();
        assert_eq!(some.of_several(), [Part::Members, Part::Nodes]);
        assert!(!some.is_all() && !some.has_single());
        let single = Choice::parse("single").unwrap();
        assert!(single.of_several().is_empty() && single.has_single());
        let error = Choice::parse("nodes,flood").unwrap_err().to_string();
        assert!(error.contains("\"flood\"") && error.contains("quorum"));
    }
}
