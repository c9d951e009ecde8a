//! Which of all faults are tried: a sample by a seed, a part of all of them, or all.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Context, Result, ensure};

/// One in how many is tried: 1 for all.
const FAULTS: &str = "HYPERSHIFT_FAULTS";
/// What the sample is drawn by.
const SEED: &str = "HYPERSHIFT_FAULTS_SEED";
/// Which of the parts that such samples divide all faults into: none, for a sample by itself.
const PART: &str = "HYPERSHIFT_FAULTS_PART";
/// One in so many, in the gate.
const USUAL: u64 = 24;
const USUAL_SEED: u64 = 1;

/// A sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    one_in: u64,
    seed: u64,
    part: Option<u64>,
}

// === impl Choice ===

impl Choice {
    /// None.
    pub(crate) const NONE: Self = Self {
        one_in: 0,
        seed: 0,
        part: None,
    };

    /// As the environment says.
    pub(crate) fn of_environment() -> Result<Self> {
        let number = |name: &str| match std::env::var(name) {
            Ok(text) => text
                .parse()
                .map(Some)
                .with_context(|| format!("{name}={text} is no number")),
            Err(_) => Ok(None),
        };
        let one_in = number(FAULTS)?.unwrap_or(USUAL);
        let part = number(PART)?;
        ensure!(
            part.is_none_or(|part| (1..=one_in).contains(&part)),
            "{PART} is none of 1 to {one_in}"
        );
        Ok(Self {
            one_in,
            seed: number(SEED)?.unwrap_or(USUAL_SEED),
            part,
        })
    }

    /// The testbed to try them on: parts may be tried side by side.
    pub(crate) fn testbed(self) -> String {
        let part = self.part.map(|part| format!("-{part}"));
        format!("hosted-faults{}", part.unwrap_or_default())
    }

    /// More, where there are few: one in `fewer` times less. Parts stay as they are, because together they are all.
    pub(crate) fn thinned(self, fewer: u64) -> Self {
        if self.part.is_some() {
            return self;
        }
        Self {
            one_in: self.one_in.div_ceil(fewer),
            ..self
        }
    }

    /// Whether this one is tried.
    pub(crate) fn takes(self, what: impl std::hash::Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.seed, what).hash(&mut hasher);
        let part = hasher.finish().checked_rem(self.one_in);
        part == Some(self.part.map_or(0, |part| part - 1))
    }
}

#[test]
fn a_sample_is_some_and_parts_are_all() {
    let of = |one_in, seed, part| Choice { one_in, seed, part };
    let taken = |choice: Choice| (0..1000).filter(move |it| choice.takes(it));
    assert_eq!(taken(Choice::NONE).count(), 0);
    assert_eq!(taken(of(1, 7, None)).count(), 1000);
    let some: Vec<_> = taken(of(10, 7, None)).collect();
    assert!((50..200).contains(&some.len()));
    assert_ne!(some, taken(of(10, 8, None)).collect::<Vec<_>>());
    let mut parts: Vec<_> = (1..=3)
        .flat_map(|part| taken(of(3, 7, Some(part)).thinned(3)))
        .collect();
    parts.sort_unstable();
    assert!(parts.into_iter().eq(0..1000));
}
