//! Which groups are moved, and which way, from what was said on the command line.

use api::group::{CapiTypes, GroupPair, GroupTable, core};
use migration::groups::Direction;

use crate::Usage;

/// The groups, and the way.
#[derive(Debug, Clone)]
pub(super) struct Pairs {
    table: GroupTable,
    direction: Direction,
}

// === impl Pairs ===

impl Pairs {
    /// One pair for each `--from` and its `--to`. Cluster API's own two groups stand for all its groups.
    pub(super) fn new(from: &[String], to: &[String]) -> anyhow::Result<Self> {
        if from.len() != to.len() {
            let message = format!("{} --from and {} --to do not pair up", from.len(), to.len());
            return Err(Usage::new(&message).into());
        }
        if let Some(direction) = of_cluster_api(from, to) {
            return Ok(Self {
                table: GroupTable::default(),
                direction,
            });
        }
        let mut table = GroupTable::empty();
        for (from, to) in from.iter().zip(to) {
            let pair = GroupPair::new(from, to).map_err(|error| Usage::new(&error))?;
            table = table.with(pair).map_err(|error| Usage::new(&error))?;
        }
        Ok(Self {
            table,
            direction: Direction::Forward,
        })
    }

    pub(super) fn table(&self) -> &GroupTable {
        &self.table
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }
}

/// `a=b,c=d`: what is moved to what.
impl std::fmt::Display for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (source, target) = (self.direction.source(), self.direction.target());
        let pairs = self.table.pairs().iter();
        let pairs: Vec<_> = pairs
            .map(|pair| format!("{}={}", pair.name(source), pair.name(target)))
            .collect();
        f.write_str(&pairs.join(","))
    }
}

fn of_cluster_api(from: &[String], to: &[String]) -> Option<Direction> {
    let ([from], [to]) = (from, to) else {
        return None;
    };
    let (standard, private) = (core(CapiTypes::Standard), core(CapiTypes::Private));
    if (from, to) == (&standard, &private) {
        return Some(Direction::Forward);
    }
    ((from, to) == (&private, &standard)).then_some(Direction::Reverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(from: &[&str], to: &[&str]) -> anyhow::Result<String> {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        Ok(Pairs::new(&owned(from), &owned(to))?.to_string())
    }

    #[test]
    fn groups_pair_up_in_the_direction_that_was_said() {
        let (standard, private) = (core(CapiTypes::Standard), core(CapiTypes::Private));
        let forward = pairs(&[&standard], &[&private]).unwrap();
        assert!(
            forward.starts_with(&format!("{standard}={private},")),
            "{forward}"
        );
        assert_eq!(forward.split(',').count(), 7);
        let back = pairs(&[&private], &[&standard]).unwrap();
        assert!(
            back.starts_with(&format!("{private}={standard},")),
            "{back}"
        );
        let own = pairs(
            &["a.example.com", "b.example.com"],
            &["c.example.com", "d.example.com"],
        );
        assert_eq!(
            own.unwrap(),
            "a.example.com=c.example.com,b.example.com=d.example.com"
        );
    }

    #[test]
    fn what_does_not_pair_up_is_wrong_usage() {
        for (from, to) in [
            (vec!["a.example.com"], vec![]),
            (vec!["a.example.com"], vec!["a.example.com"]),
            (vec!["nodots"], vec!["a.example.com"]),
            (
                vec!["a.example.com", "a.example.com"],
                vec!["b.example.com", "c.example.com"],
            ),
        ] {
            let error = pairs(&from, &to).unwrap_err();
            assert!(error.is::<Usage>(), "{error}");
        }
    }
}
