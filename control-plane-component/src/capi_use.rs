//! How a component uses Cluster API, and the workload label that declares it.
//!
//! A migration stops every workload that uses Cluster API before it moves objects. hypershift-operator finds them by
//! this label, so it does not depend on the list of components.

use std::collections::BTreeMap;

/// Label on workloads that use Cluster API in the management cluster; the value is the kind of use.
pub const USES_CAPI: &str = "hypershift.openshift.io/uses-capi";

const PROXIED: &str = "proxied";
const DIRECT: &str = "direct";

/// How a component uses Cluster API in the management cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CapiUse {
    /// Not at all.
    #[default]
    None,
    /// Through the standard API groups: with private types, the workload gets the proxy sidecar.
    Proxied,
    /// Through the API groups that the objects are stored in.
    Direct,
}

/// The label has a value that this version does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("label {USES_CAPI} has the unknown value {0:?}")]
pub struct UnknownCapiUse(pub String);

// === impl CapiUse ===

impl CapiUse {
    /// Returns the label value; `None` for a component that does not use Cluster API.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Proxied => Some(PROXIED),
            Self::Direct => Some(DIRECT),
        }
    }

    /// Parses the labels of a workload. `None` if the label is missing, as in control planes that were rendered before
    /// the label was introduced.
    pub fn from_labels(
        labels: Option<&BTreeMap<String, String>>,
    ) -> Result<Option<Self>, UnknownCapiUse> {
        let value = labels.and_then(|labels| labels.get(USES_CAPI));
        match value.map(String::as_str) {
            None => Ok(None),
            Some(PROXIED) => Ok(Some(Self::Proxied)),
            Some(DIRECT) => Ok(Some(Self::Direct)),
            Some(unknown) => Err(UnknownCapiUse(unknown.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip() {
        for capi in [CapiUse::None, CapiUse::Proxied, CapiUse::Direct] {
            let labels: BTreeMap<_, _> = capi
                .label()
                .map(|value| (USES_CAPI.to_owned(), value.to_owned()))
                .into_iter()
                .collect();
            let read = CapiUse::from_labels(Some(&labels)).unwrap();
            assert_eq!(read.unwrap_or_default(), capi);
        }
        assert_eq!(CapiUse::from_labels(None), Ok(None));
        let unknown = BTreeMap::from([(USES_CAPI.to_owned(), "sometimes".to_owned())]);
        assert!(CapiUse::from_labels(Some(&unknown)).is_err());
    }
}
