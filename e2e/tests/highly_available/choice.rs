//! Which failures are replayed: all, or those that a variable names.

use anyhow::{Result, bail};
use testbed::failures::{Failure, VARIABLE};

/// The parts that are replayed.
#[derive(Debug, Clone)]
pub(crate) struct Choice(Vec<Failure>);

// === impl Choice ===

impl Choice {
    /// As the environment says.
    pub(crate) fn of_environment() -> Result<Self> {
        Self::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(names: &str) -> Result<Self> {
        let names: Vec<_> = names.split(',').filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(Self(Failure::ALL.to_vec()));
        }
        let chosen = names.into_iter().map(by_name);
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let in_order = Failure::ALL
            .into_iter()
            .filter(|part| chosen.contains(part));
        Ok(Self(in_order.collect()))
    }

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.0.len() == Failure::ALL.len()
    }

    /// What is done to a control plane of several replicas.
    pub(crate) fn of_several(&self) -> Vec<Failure> {
        let several = |part: &Failure| *part != Failure::Single;
        self.0.iter().copied().filter(several).collect()
    }

    /// Whether one of a single replica has its turn.
    pub(crate) fn has_single(&self) -> bool {
        self.0.contains(&Failure::Single)
    }
}

fn by_name(name: &str) -> Result<Failure> {
    match Failure::ALL.into_iter().find(|one| one.name() == name) {
        Some(found) => Ok(found),
        None => bail!(
            "{VARIABLE} names {name:?}, and there are {}",
            Failure::ALL.map(Failure::name).join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_selected_by_name_and_keep_their_order() {
        let all = Choice::parse("").unwrap();
        assert!(all.is_all() && all.has_single());
        assert_eq!(all.of_several().len(), Failure::ALL.len() - 1);
        let some = Choice::parse("nodes,members,nodes").unwrap();
        assert_eq!(some.of_several(), [Failure::Members, Failure::Nodes]);
        assert!(!some.is_all() && !some.has_single());
        let single = Choice::parse("single").unwrap();
        assert!(single.of_several().is_empty() && single.has_single());
        let error = Choice::parse("nodes,flood").unwrap_err().to_string();
        assert!(error.contains("\"flood\"") && error.contains("quorum"));
    }
}
