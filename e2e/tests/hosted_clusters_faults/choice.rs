//! Which of all faults are tried: a sample by a seed, or all.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Context, Result};

/// One in how many is tried: 1 for all.
const FAULTS: &str = "HYPERSHIFT_FAULTS";
/// What the sample is drawn by.
const SEED: &str = "HYPERSHIFT_FAULTS_SEED";
/// One in so many, in the gate.
const USUAL: u64 = 24;
const USUAL_SEED: u64 = 1;

/// A sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    one_in: u64,
    seed: u64,
}

// === impl Choice ===

impl Choice {
    /// None.
    pub(crate) const NONE: Self = Self { one_in: 0, seed: 0 };

    /// As the environment says.
    pub(crate) fn of_environment() -> Result<Self> {
        let number = |name: &str, usual: u64| match std::env::var(name) {
            Ok(text) => text
                .parse()
                .with_context(|| format!("{name}={text} is no number")),
            Err(_) => Ok(usual),
        };
        Ok(Self {
            one_in: number(FAULTS, USUAL)?,
            seed: number(SEED, USUAL_SEED)?,
        })
    }

    /// As many, but one in `fewer` of what it would take.
    pub(crate) fn thinned(self, fewer: u64) -> Self {
        match self.one_in {
            1 => self,
            one_in => Self {
                one_in: one_in.div_ceil(fewer),
                ..self
            },
        }
    }

    /// Whether this one is tried.
    pub(crate) fn takes(self, what: impl std::hash::Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.seed, what).hash(&mut hasher);
        hasher.finish().checked_rem(self.one_in) == Some(0)
    }

    /// Whether all are tried.
    pub(crate) fn is_all(self) -> bool {
        self.one_in == 1
    }
}

#[test]
fn a_sample_is_some_and_all_is_all() {
    let taken = |choice: Choice| (0..1000).filter(|it| choice.takes(it)).count();
    assert_eq!(taken(Choice::NONE), 0);
    assert_eq!(taken(Choice { one_in: 1, seed: 7 }), 1000);
    let some = Choice {
        one_in: 10,
        seed: 7,
    };
    assert!((50..200).contains(&taken(some)));
    assert_ne!(taken(some), taken(Choice { seed: 8, ..some }));
}
