//! The CRDs of Karpenter, which the binary carries: hosted clusters with AutoNode serve them.
//!
//! They are fetched before the build (`cargo xtask embed`); a binary that was built without them says so when a cluster
//! needs them.

use api::karpenter::definitions;
use serde_json::Value;

#[cfg(embedded_karpenter)]
const PACKED: Option<&str> = Some(include_str!("../embedded/karpenter.json"));
#[cfg(not(embedded_karpenter))]
const PACKED: Option<&str> = None;

/// Why the binary's CRDs cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The build had none.
    #[error(
        "this binary was built without the CRDs of Karpenter: build it again after cargo xtask embed"
    )]
    Missing,
    #[error(transparent)]
    Unusable(#[from] definitions::Error),
}

/// The CRDs that this binary carries.
pub(crate) fn read() -> Result<Vec<Value>, Error> {
    Ok(definitions::unpack(PACKED.ok_or(Error::Missing)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `cargo xtask embed`, the binary has them.
    #[test]
    fn the_binarys_own_crds_are_those_of_the_pinned_version() {
        match read() {
            Err(Error::Missing) => assert!(PACKED.is_none()),
            read => assert_eq!(read.unwrap().len(), definitions::FILES.len()),
        }
    }
}
