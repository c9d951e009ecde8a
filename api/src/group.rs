//! The table of API group pairs: a standard Cluster API group and the private group that replaces it.
//!
//! Every lookup is an exact, case-sensitive match of a whole name.
//! Label keys, finalizers and secret types that merely contain a group's name are not this module's business.

use std::fmt;
use std::str::FromStr;

/// Suffix shared by the standard Cluster API groups.
const STANDARD_SUFFIX: &str = "cluster.x-k8s.io";
/// The label by which a CRD says which of its versions fulfils Cluster API's contract v1beta1.
/// It is the same for both types: a key that only looks like a group.
pub const V1BETA1_CONTRACT: &str = "cluster.x-k8s.io/v1beta1";
/// Label, on all objects of a cluster, with the cluster's name. A key, the same for both types.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Annotation on an infrastructure object that its provider does not manage. The key is the same for both types.
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// Label of pods in a hosted cluster; with the value `skip`, a node is drained without them. The same for both types.
pub const DRAIN: &str = "cluster.x-k8s.io/drain";
/// Domain of the keys of Cluster API's labels. The same for both types.
pub const LABEL_DOMAIN: &str = "cluster.x-k8s.io";
/// Finalizer by which the provider for AWS deletes the instance of an `AWSMachine` first. The same for both types.
pub const AWS_MACHINE_FINALIZER: &str = "awsmachine.infrastructure.cluster.x-k8s.io";
/// Finalizer by which the provider for Azure deletes the virtual machine of an `AzureMachine` first. The same for both types.
pub const AZURE_MACHINE_FINALIZER: &str = "azuremachine.infrastructure.cluster.x-k8s.io";
/// Suffix shared by the private groups.
const PRIVATE_SUFFIX: &str = "cluster.hypershift.openshift.io";
/// The served groups of Cluster API, by their prefix before the suffix.
/// `clusterctl.` and `hooks.runtime.` are names of catalogues, not of served groups, and are absent on purpose.
const SERVED_PREFIXES: [&str; 7] = [
    "",
    "infrastructure.",
    "controlplane.",
    "bootstrap.",
    "addons.",
    "ipam.",
    "runtime.",
];

/// Which of its two names an API group of Cluster API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CapiTypes {
    /// The name that stock controllers use, `*.cluster.x-k8s.io`.
    Standard,
    /// The name that this system stores, `*.cluster.hypershift.openshift.io`.
    Private,
}

/// Text that is neither `standard` nor `private`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be \"standard\" or \"private\"")]
pub struct InvalidCapiTypes;

impl CapiTypes {
    /// The other name.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Standard => Self::Private,
            Self::Private => Self::Standard,
        }
    }

    /// The value of flags and environment variables: `standard` or `private`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Private => "private",
        }
    }
}

impl fmt::Display for CapiTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CapiTypes {
    type Err = InvalidCapiTypes;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Standard, Self::Private]
            .into_iter()
            .find(|types| types.as_str() == text)
            .ok_or(InvalidCapiTypes)
    }
}

/// The group of Cluster API's own kinds.
pub fn core(types: CapiTypes) -> String {
    named("", types)
}

/// The group of most providers' kinds.
pub fn infrastructure(types: CapiTypes) -> String {
    named("infrastructure.", types)
}

/// All served groups.
pub fn served(types: CapiTypes) -> Vec<String> {
    SERVED_PREFIXES.map(|prefix| named(prefix, types)).to_vec()
}

fn named(prefix: &str, types: CapiTypes) -> String {
    let suffix = match types {
        CapiTypes::Standard => STANDARD_SUFFIX,
        CapiTypes::Private => PRIVATE_SUFFIX,
    };
    format!("{prefix}{suffix}")
}

/// One group under its two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPair {
    standard: String,
    private: String,
}

impl GroupPair {
    /// Pairs two distinct, valid group names (DNS subdomains with at least one dot).
    pub fn new(standard: &str, private: &str) -> Result<Self, GroupTableError> {
        for name in [standard, private] {
            if !is_group_name(name) {
                return Err(GroupTableError::InvalidName {
                    name: name.to_owned(),
                });
            }
        }
        if standard == private {
            return Err(GroupTableError::SameName {
                name: standard.to_owned(),
            });
        }
        Ok(Self {
            standard: standard.to_owned(),
            private: private.to_owned(),
        })
    }

    /// The group's name in these types.
    pub fn name(&self, types: CapiTypes) -> &str {
        match types {
            CapiTypes::Standard => &self.standard,
            CapiTypes::Private => &self.private,
        }
    }
}

/// Reads `STANDARD=PRIVATE`, the form used on command lines.
impl std::str::FromStr for GroupPair {
    type Err = GroupTableError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (standard, private) =
            text.split_once('=')
                .ok_or_else(|| GroupTableError::NotAPair {
                    text: text.to_owned(),
                })?;
        Self::new(standard, private)
    }
}

impl fmt::Display for GroupPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.standard, self.private)
    }
}

/// Why a table of groups was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupTableError {
    /// A name is not a DNS subdomain with at least one dot.
    #[error("{name:?} is not an API group name: use lower-case DNS labels joined by dots")]
    InvalidName {
        /// The name as given.
        name: String,
    },
    /// Both names of a pair are the same.
    #[error("group {name:?} is paired with itself: give two different names")]
    SameName {
        /// The name as given.
        name: String,
    },
    /// A name is already in the table.
    #[error("group {name:?} is already in the table: each name may appear once")]
    Duplicate {
        /// The name that appears twice.
        name: String,
    },
    /// The text is not of the form `STANDARD=PRIVATE`.
    #[error("{text:?} is not a pair of groups: write STANDARD=PRIVATE")]
    NotAPair {
        /// The text as given.
        text: String,
    },
}

/// Exact pairs of group names; a bijection, so swapping twice gives the input back.
///
/// [`GroupTable::default`] holds the seven served groups of Cluster API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupTable {
    pairs: Vec<GroupPair>,
    /// Bit `n` is set when some name is `n` bytes long: this check alone rejects most strings.
    lengths: u128,
}

// === impl GroupTable ===

impl Default for GroupTable {
    fn default() -> Self {
        SERVED_PREFIXES
            .iter()
            .try_fold(Self::empty(), |table, prefix| {
                let [standard, private] =
                    [CapiTypes::Standard, CapiTypes::Private].map(|types| named(prefix, types));
                table.with(GroupPair::new(&standard, &private)?)
            })
            .expect("invariant: the served groups are valid and distinct")
    }
}

impl GroupTable {
    /// A table without pairs: nothing is swapped.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            pairs: Vec::new(),
            lengths: 0,
        }
    }

    /// Adds a pair; each name may appear once in the whole table.
    pub fn with(mut self, pair: GroupPair) -> Result<Self, GroupTableError> {
        for types in [CapiTypes::Standard, CapiTypes::Private] {
            let name = pair.name(types);
            if self.find(name.as_bytes()).is_some() {
                return Err(GroupTableError::Duplicate {
                    name: name.to_owned(),
                });
            }
        }
        for types in [CapiTypes::Standard, CapiTypes::Private] {
            self.lengths |= length_bit(pair.name(types).len());
        }
        self.pairs.push(pair);
        Ok(self)
    }

    /// The pairs, in the order in which they were added.
    pub fn pairs(&self) -> &[GroupPair] {
        &self.pairs
    }

    /// The pair that `group` belongs to, and the types that it is a name of.
    pub fn find(&self, group: &[u8]) -> Option<(&GroupPair, CapiTypes)> {
        if self.lengths & length_bit(group.len()) == 0 {
            return None;
        }
        self.pairs.iter().find_map(|pair| {
            if pair.standard.as_bytes() == group {
                Some((pair, CapiTypes::Standard))
            } else if pair.private.as_bytes() == group {
                Some((pair, CapiTypes::Private))
            } else {
                None
            }
        })
    }

    /// The other name of `group`, when the table has it.
    ///
    /// ```
    /// let table = api::group::GroupTable::default();
    /// let private = table.swap(b"ipam.cluster.x-k8s.io").unwrap();
    /// assert_eq!(table.swap(private.as_bytes()), Some("ipam.cluster.x-k8s.io"));
    /// assert_eq!(table.swap(b"xcluster.x-k8s.io"), None);
    /// ```
    pub fn swap(&self, group: &[u8]) -> Option<&str> {
        self.find(group)
            .map(|(pair, types)| pair.name(types.other()))
    }

    /// Swaps the group of an `apiVersion` (`group/version`): the new group, and the rest from the slash on.
    pub fn swap_api_version<'t, 'i>(
        &'t self,
        api_version: &'i [u8],
    ) -> Option<(&'t str, &'i [u8])> {
        let slash = api_version.iter().position(|&byte| byte == b'/')?;
        let (group, rest) = api_version.split_at(slash);
        if rest.len() < 2 || rest[1..].contains(&b'/') {
            return None;
        }
        Some((self.swap(group)?, rest))
    }

    /// Swaps the group of a name of the form `<label>.<group>`: the text up to and including the first dot, and the new
    /// group. CRD names (`<plural>.<group>`) and APIService names (`<version>.<group>`) have this form.
    pub fn swap_qualified<'t, 'i>(&'t self, name: &'i [u8]) -> Option<(&'i [u8], &'t str)> {
        let dot = name.iter().position(|&byte| byte == b'.')?;
        if dot == 0 {
            return None;
        }
        let (head, group) = name.split_at(dot + 1);
        Some((head, self.swap(group)?))
    }

    /// Eight hexadecimal digits that change whenever the table does (FNV-1a of all pairs).
    ///
    /// ETags and OpenAPI hashes carry it, so that a client's cache never outlives the table that filled it.
    pub fn version(&self) -> String {
        let hash = self
            .pairs
            .iter()
            .flat_map(|pair| {
                [
                    pair.standard.as_bytes(),
                    b"=",
                    pair.private.as_bytes(),
                    b"\n",
                ]
            })
            .flatten()
            .fold(0x811c_9dc5_u32, |hash, &byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
        format!("{hash:08x}")
    }
}

fn length_bit(length: usize) -> u128 {
    // Names past 127 bytes share the last bit.
    1 << length.min(127)
}

fn is_group_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.contains('.') && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_table_holds_the_served_groups_and_no_other() {
        let table = GroupTable::default();
        let standard: Vec<_> = table
            .pairs()
            .iter()
            .map(|pair| pair.name(CapiTypes::Standard))
            .collect();
        assert_eq!(
            standard,
            [
                "cluster.x-k8s.io",
                "infrastructure.cluster.x-k8s.io",
                "controlplane.cluster.x-k8s.io",
                "bootstrap.cluster.x-k8s.io",
                "addons.cluster.x-k8s.io",
                "ipam.cluster.x-k8s.io",
                "runtime.cluster.x-k8s.io",
            ]
        );
        for pair in table.pairs() {
            assert_eq!(
                table.swap(pair.name(CapiTypes::Standard).as_bytes()),
                Some(pair.name(CapiTypes::Private))
            );
            assert_eq!(
                table.swap(pair.name(CapiTypes::Private).as_bytes()),
                Some(pair.name(CapiTypes::Standard))
            );
        }
    }

    #[test]
    fn similar_and_unlisted_groups_are_not_swapped() {
        let table = GroupTable::default();
        for name in [
            "xcluster.x-k8s.io",
            "clusters.x-k8s.io",
            "CLUSTER.x-k8s.io",
            "cluster.x-k8s.io.evil.com",
            "clusterctl.cluster.x-k8s.io",
            "hooks.runtime.cluster.x-k8s.io",
            "gateway.networking.x-k8s.io",
            "cluster.x-k8s.io.",
            "",
        ] {
            assert_eq!(table.swap(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn api_versions_have_exactly_one_slash() {
        let table = GroupTable::default();
        assert_eq!(
            table.swap_api_version(b"cluster.x-k8s.io/v1beta2"),
            Some(("cluster.hypershift.openshift.io", b"/v1beta2".as_slice()))
        );
        for text in [
            "v1",
            "cluster.x-k8s.io",
            "cluster.x-k8s.io/",
            "cluster.x-k8s.io/a/b",
            "/v1",
        ] {
            assert_eq!(table.swap_api_version(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn qualified_names_split_at_the_first_dot() {
        let table = GroupTable::default();
        assert_eq!(
            table.swap_qualified(b"machines.cluster.x-k8s.io"),
            Some((b"machines.".as_slice(), "cluster.hypershift.openshift.io"))
        );
        for text in [".cluster.x-k8s.io", "machines", "a.b.cluster.x-k8s.io"] {
            assert_eq!(table.swap_qualified(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn refuses_pairs_that_would_break_the_bijection() {
        let table = GroupTable::default();
        let again: GroupPair = "cluster.x-k8s.io=other.example.com".parse().unwrap();
        assert!(matches!(
            table.clone().with(again),
            Err(GroupTableError::Duplicate { .. })
        ));
        let crossed: GroupPair = "a.example.com=cluster.x-k8s.io".parse().unwrap();
        assert!(matches!(
            table.with(crossed),
            Err(GroupTableError::Duplicate { .. })
        ));
        for text in ["a.b", "a.b=a.b", "A.b=c.d", "a=b.c", "a..b=c.d", "-a.b=c.d"] {
            assert!(text.parse::<GroupPair>().is_err(), "{text}");
        }
    }

    #[test]
    fn version_follows_the_table() {
        let table = GroupTable::default();
        assert_eq!(table.version().len(), 8);
        let more = table
            .clone()
            .with("a.example.com=b.example.com".parse().unwrap())
            .unwrap();
        assert_ne!(table.version(), more.version());
    }
}
