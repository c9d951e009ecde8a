//! Kubernetes' order of API versions: `v2` over `v1` over `v1beta2` over `v1beta1` over `v1alpha1`.

/// How finished a version is; later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

/// A version of the form `v1`, `v1beta2` or `v1alpha3`; the greater one is the newer one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KubeVersion {
    stage: Stage,
    major: u32,
    minor: u32,
}

impl KubeVersion {
    /// Parses a version; other names (which Kubernetes allows, too) have no place in the order.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('v')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (major, rest) = rest.split_at(digits);
        let (stage, minor) = if rest.is_empty() {
            (Stage::Stable, "0")
        } else if let Some(minor) = rest.strip_prefix("beta") {
            (Stage::Beta, minor)
        } else {
            (Stage::Alpha, rest.strip_prefix("alpha")?)
        };
        Some(Self {
            stage,
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

fn number(text: &str) -> Option<u32> {
    // `parse` alone would take a sign.
    text.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_stage_then_numbers() {
        let ascending = [
            "v1alpha1", "v1alpha3", "v1beta1", "v1beta2", "v2beta1", "v1", "v2", "v10",
        ];
        for pair in ascending.windows(2) {
            assert!(
                KubeVersion::parse(pair[0]).unwrap() < KubeVersion::parse(pair[1]).unwrap(),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn other_names_are_no_versions() {
        for text in [
            "", "v", "1", "v1beta", "v1gamma1", "vbeta1", "v+1", "v1beta+1", "provider", "v1beta1x",
        ] {
            assert_eq!(KubeVersion::parse(text), None, "{text}");
        }
    }
}
