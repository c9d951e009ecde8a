//! Names of objects of a pool, and the hash in them: pure and stable, because a new name replaces nodes.

use api::hypershift::v1beta1::node_pool::NodePool;

use super::LONGEST_LABEL;

pub(crate) use control_plane_component::hash::{bytes_hash, data_hash, hash};

/// The longest name of an object.
const LONGEST: usize = 253;
/// The longest value of the label that selects the machines of a pool.
const LONGEST_GENERATION: usize = 43;
/// A dash before and after eight digits.
const HASH: usize = 10;

/// The pool's own name.
pub(crate) fn of(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}

/// `<namespace>/<name>`, as annotations have it.
pub(crate) fn reference(pool: &NodePool) -> String {
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", of(pool))
}

/// The Secret that holds the token of a configuration.
pub(crate) fn token(pool: &str, hash: &str) -> String {
    joined(&format!("token-{pool}"), hash, LONGEST)
}

/// The Secret with the user data of new machines.
pub(crate) fn user_data(pool: &str, hash: &str) -> String {
    joined(&format!("user-data-{pool}"), hash, LONGEST)
}

/// The platform's template with this content.
pub(crate) fn template(pool: &str, hash: &str) -> String {
    joined(pool, hash, LONGEST)
}

/// The ConfigMap with the `Tuned` manifests of a pool.
pub(crate) fn tuned(pool: &str) -> String {
    joined("tuned", pool, LONGEST)
}

/// The ConfigMap with the performance profile of a pool, which is in this ConfigMap of the user.
pub(crate) fn performance_profile(source: &str, pool: &str) -> String {
    joined(source, pool, LONGEST_LABEL)
}

/// The label, key and value at once, by which the pool's machines are selected.
pub(crate) fn generation(infra_id: &str, cluster: &str, pool: &str) -> String {
    joined(&format!("{infra_id}-{cluster}"), pool, LONGEST_GENERATION)
}

/// `<base>-<suffix>`, truncated if it is too long: the suffix is kept, and a hash replaces the rest.
pub(crate) fn joined(base: &str, suffix: &str, longest: usize) -> String {
    let whole = format!("{base}-{suffix}");
    if whole.len() <= longest {
        return whole;
    }
    match longest.checked_sub(HASH + suffix.len()) {
        Some(room) => format!("{}-{}-{suffix}", cut(base, room), hash(base.as_bytes())),
        None => format!(
            "{}-{}",
            cut(base, longest - HASH + 1),
            hash(whole.as_bytes())
        ),
    }
}

/// A prefix of at most `length` bytes, cut at a character boundary.
fn cut(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev();
    let end = end.into_iter().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_joined_by_a_dash() {
        assert_eq!(token("pool", "0a1b2c3d"), "token-pool-0a1b2c3d");
        assert_eq!(user_data("pool", "0a1b2c3d"), "user-data-pool-0a1b2c3d");
        assert_eq!(template("pool", "0a1b2c3d"), "pool-0a1b2c3d");
        assert_eq!(generation("dev-x1", "dev", "a"), "dev-x1-dev-a");
        assert_eq!(tuned("pool"), "tuned-pool");
        assert_eq!(performance_profile("latency", "pool"), "latency-pool");
    }

    #[test]
    fn truncated_names_keep_their_suffix() {
        let name = generation("a-rather-long-infrastructure-id", "of-a-cluster", "workers");
        assert_eq!(name.len(), 43);
        assert!(name.ends_with("-workers"), "{name}");
        let name = performance_profile(&"p".repeat(80), "workers");
        assert_eq!(name.len(), 63);
        assert!(name.ends_with("-workers"), "{name}");
        let name = generation("dev", "dev", &"w".repeat(50));
        assert_eq!(name.len(), "dev-dev-".len() + 8);
    }

    proptest! {
        #[test]
        fn names_fit_and_stay_unique(a in "[a-z]{1,60}", b in "[a-z]{1,60}", x in "[a-z]{1,60}", y in "[a-z]{1,60}") {
            let (one, two) = (joined(&a, &b, 43), joined(&x, &y, 43));
            prop_assert!(one.len() <= 43);
            prop_assert!((a, b) == (x, y) || one != two);
        }
    }
}
