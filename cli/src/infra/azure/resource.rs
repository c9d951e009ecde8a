//! IDs of resources, and the versions of their APIs. Pure.

use uuid::Uuid;

use crate::Usage;

/// Versions of APIs.
pub(super) const AUTHORIZATION: &str = "2022-04-01";
pub(super) const DNS: &str = "2018-05-01";
pub(super) const IDENTITIES: &str = "2023-01-31";
pub(super) const NETWORK: &str = "2023-11-01";
pub(super) const PRIVATE_DNS: &str = "2020-06-01";
pub(super) const RESOURCES: &str = "2021-04-01";
const COMPUTE: &str = "2024-03-01";
const DISKS: &str = "2023-10-02";
const STORAGE: &str = "2023-01-01";

/// The segments of the ID of a resource group.
const GROUP: usize = 5;
/// The segments before the types and names in the ID of a resource.
const BEFORE_TYPES: usize = 7;

/// The ID of a resource in a resource group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceId {
    pub(crate) text: String,
    /// The ID of its resource group.
    pub(crate) group: String,
    /// Its type in lower case, for example `microsoft.network/virtualnetworks`.
    pub(super) kind: String,
}

// === impl ResourceId ===

impl ResourceId {
    /// `None` if the text is none, or cannot be part of a URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let segments: Vec<&str> = text.split('/').collect();
        let fixed = |at: usize, word: &str| {
            let segment = segments.get(at);
            segment.is_some_and(|it| it.eq_ignore_ascii_case(word))
        };
        let types = segments.get(BEFORE_TYPES..)?;
        let is_id = fixed(0, "")
            && fixed(1, "subscriptions")
            && fixed(3, "resourceGroups")
            && fixed(5, "providers")
            && !types.is_empty()
            && types.len().is_multiple_of(2)
            && segments[1..].iter().all(|it| is_segment(it));
        if !is_id {
            return None;
        }
        let kinds: Vec<&str> = types.iter().step_by(2).copied().collect();
        let kind = format!("{}/{}", segments[BEFORE_TYPES - 1], kinds.join("/"));
        Some(Self {
            text: text.to_owned(),
            group: segments[..GROUP].join("/"),
            kind: kind.to_ascii_lowercase(),
        })
    }

    /// The resource of a flag, which must have a type.
    pub(super) fn of_flag(flag: &str, text: &str, kind: &str) -> Result<Self, Usage> {
        let parsed = Self::parse(text);
        let parsed = parsed.filter(|it| it.kind.eq_ignore_ascii_case(kind));
        parsed.ok_or_else(|| {
            let (provider, names) = kind.split_once('/').unwrap_or_default();
            let names: Vec<_> = names.split('/').map(|it| format!("{it}/NAME")).collect();
            Usage::new(&format!(
                "{flag} {text:?}: write the resource ID, /subscriptions/ID/resourceGroups/NAME/providers/{provider}/{}",
                names.join("/")
            ))
        })
    }

    /// The name of its resource group.
    pub(crate) fn group_name(&self) -> &str {
        self.group.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is another spelling of an ID.
    pub(super) fn is(&self, id: &str) -> bool {
        self.text.eq_ignore_ascii_case(id)
    }
}

/// A resource ID of a subnet.
pub(crate) fn check_subnet(flag: &str, id: &str) -> Result<ResourceId, Usage> {
    let parsed = ResourceId::parse(id);
    let is_subnet = |it: &ResourceId| it.kind.ends_with("/virtualnetworks/subnets");
    parsed.filter(is_subnet).ok_or_else(|| {
        Usage::new(&format!(
            "{flag} {id:?}: write the resource ID of a subnet, \
             /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME"
        ))
    })
}

/// Whether a text can be a segment of a URL as it is.
pub(super) fn is_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.()".contains(&byte);
    !["", ".", ".."].contains(&text) && text.bytes().all(is_plain)
}

/// Whether a text is a UUID in its usual form.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == uuid::fmt::Hyphenated::LENGTH && Uuid::try_parse(text).is_ok()
}

/// The version of the API of a type, which is in lower case.
pub(super) fn version(kind: &str) -> &'static str {
    let (provider, name) = kind.split_once('/').unwrap_or_default();
    match provider {
        "microsoft.network" if name.starts_with("privatednszones") => PRIVATE_DNS,
        "microsoft.network" if name.starts_with("dnszones") => DNS,
        "microsoft.network" => NETWORK,
        "microsoft.compute" if name == "disks" => DISKS,
        "microsoft.compute" => COMPUTE,
        "microsoft.storage" => STORAGE,
        "microsoft.managedidentity" => IDENTITIES,
        _ => RESOURCES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ids() {
        let text = "/subscriptions/s/resourcegroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/d";
        let id = ResourceId::parse(text).unwrap();
        assert_eq!(id.group, "/subscriptions/s/resourcegroups/g");
        assert_eq!(id.group_name(), "g");
        assert_eq!(id.kind, "microsoft.network/virtualnetworks/subnets");
        assert!(id.is(&text.to_uppercase()));
        assert_eq!(check_subnet("--subnet-id", text).unwrap(), id);
        for other in [
            "",
            "n",
            "/subscriptions/s/resourceGroups/g",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks",
            "/subscriptions/s/resourceGroups/../providers/Microsoft.Network/virtualNetworks/n",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n?a",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/",
        ] {
            assert_eq!(ResourceId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn types_of_flags_are_checked() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n";
        let kind = "Microsoft.Network/virtualNetworks";
        assert!(ResourceId::of_flag("--vnet-id", id, kind).is_ok());
        let kind = "Microsoft.Network/networkSecurityGroups";
        let error = ResourceId::of_flag("--network-security-group-id", id, kind);
        let error = error.unwrap_err().to_string();
        let expected = "providers/Microsoft.Network/networkSecurityGroups/NAME";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn uuids_have_one_form() {
        for (text, expected) in [
            ("00000000-0000-0000-0000-000000000001", true),
            ("ABCDEF00-0000-0000-0000-000000000001", true),
            ("00000000000000000000000000000001", false),
            ("{00000000-0000-0000-0000-000000000001}", false),
            ("x0000000-0000-0000-0000-000000000001", false),
            ("", false),
        ] {
            assert_eq!(is_uuid(text), expected, "{text}");
        }
    }

    #[test]
    fn each_type_has_the_version_of_its_api() {
        for (kind, expected) in [
            ("microsoft.network/loadbalancers", NETWORK),
            (
                "microsoft.network/privatednszones/virtualnetworklinks",
                PRIVATE_DNS,
            ),
            ("microsoft.compute/virtualmachines", COMPUTE),
            ("microsoft.compute/disks", DISKS),
            ("microsoft.storage/storageaccounts", STORAGE),
            (
                "microsoft.managedidentity/userassignedidentities",
                IDENTITIES,
            ),
            ("microsoft.example/others", RESOURCES),
        ] {
            assert_eq!(version(kind), expected, "{kind}");
        }
    }
}
