//! How a component uses Cluster API, and the label on its workload that says so.
//!
//! A migration stops every workload that uses Cluster API before it moves objects. hypershift-operator finds them by this
//! label, so it does not have to know which components a control plane has.

use std::collections::BTreeMap;

/// Label of a workload that uses Cluster API in the management cluster: how it does.
pub const USES_CAPI: &str = "hypershift.openshift.io/uses-capi";

const PROXIED: &str = "proxied";
const DIRECT: &str = "direct";

/// How a component uses Cluster API in the management cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CapiUse {
    /// Not at all.
    #[default]
    None,
    /// By the standard groups: with private types it gets the proxy.
    Proxied,
    /// By the groups that objects are stored in.
    Direct,
}

/// A value of the label that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("label {USES_CAPI} has the unknown value {0:?}")]
pub struct UnknownCapiUse(pub String);

// === impl CapiUse ===

impl CapiUse {
    /// The value of the label; a component that does not use Cluster API has none.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Proxied => Some(PROXIED),
            Self::Direct => Some(DIRECT),
        }
    }

    /// What the labels of a workload say; `None` if they say nothing, as in control planes that were rendered before
    /// there was the label.
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
    fn labels_read_back_as_they_were_written() {
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
