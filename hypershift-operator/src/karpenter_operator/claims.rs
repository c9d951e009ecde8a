//! NodeClaims, each of which is a machine of Karpenter. Users of the hosted cluster may write them. Pure.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::DynamicObject;

/// Label of nodes that Karpenter has made: the pool.
pub(super) const POOL: &str = "karpenter.sh/nodepool";
/// Annotation of a NodeClaim: when its machine ends even if pods still run there.
pub(super) const TERMINATION: &str = "karpenter.sh/nodeclaim-termination-timestamp";

/// A NodeClaim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// The instance of EC2.
    pub(super) instance: Option<String>,
    /// The node, once it has joined.
    pub(super) node: Option<String>,
    /// Its processors, as a quantity.
    pub(super) cpu: Option<String>,
    pub(super) is_deleted: bool,
}

// === impl Claim ===

impl Claim {
    pub(super) fn read(object: &DynamicObject) -> Self {
        let status = &object.data["status"];
        let text = |field: &str| {
            let text = status[field].as_str().filter(|it| !it.is_empty());
            text.map(str::to_owned)
        };
        let cpu = &status["capacity"]["cpu"];
        Self {
            instance: text("providerID").and_then(|it| instance(&it)),
            node: text("nodeName"),
            cpu: cpu
                .as_str()
                .map(str::to_owned)
                .or_else(|| cpu.as_u64().map(|it| it.to_string())),
            is_deleted: object.metadata.deletion_timestamp.is_some(),
        }
    }

    pub(super) fn read_all(objects: &[DynamicObject]) -> Vec<Self> {
        objects.iter().map(Self::read).collect()
    }
}

/// Whether Karpenter has made a node.
pub(super) fn is_of_karpenter(node: &Node) -> bool {
    node.labels().contains_key(POOL)
}

/// The instance of a provider ID: `aws:///zone/i-0123`. What is none does not reach EC2.
fn instance(provider_id: &str) -> Option<String> {
    let path = provider_id.strip_prefix("aws:///")?;
    let (_, id) = path.rsplit_once('/')?;
    let digits = id.strip_prefix("i-")?;
    let is_id = (1..=32).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instances_are_read_from_provider_ids() {
        let long = format!("aws:///us-east-1a/i-{}", "0".repeat(33));
        for (provider_id, expected) in [
            ("aws:///us-east-1a/i-0123abcd", Some("i-0123abcd")),
            ("aws:///us-east-1a/i-", None),
            ("aws:///us-east-1a/i-0123&Action=x", None),
            ("aws:///us-east-1a/0123", None),
            ("azure:///us-east-1a/i-0123", None),
            ("i-0123", None),
            ("", None),
            (long.as_str(), None),
        ] {
            assert_eq!(
                instance(provider_id).as_deref(),
                expected,
                "{provider_id:?}"
            );
        }
    }

    #[test]
    fn claims_of_any_form_are_read() {
        let read = |status: serde_json::Value| {
            let object = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": { "name": "a" },
                "status": status,
            });
            Claim::read(&serde_json::from_value(object).unwrap())
        };
        let nothing = json!({ "nodeName": "", "providerID": 1, "capacity": [] });
        for status in [json!(null), json!("x"), nothing] {
            assert_eq!(read(status), Claim::default());
        }
        let whole = json!({
            "nodeName": "n", "providerID": "aws:///us-east-1a/i-01", "capacity": { "cpu": 4 },
        });
        let expected = Claim {
            instance: Some("i-01".to_owned()),
            node: Some("n".to_owned()),
            cpu: Some("4".to_owned()),
            ..Claim::default()
        };
        assert_eq!(read(whole), expected);
    }
}
