//! Rules of roles, as the API server's authorizer matches them.

use serde_json::Value;

const GROUP: &str = "hypershift.openshift.io";
/// Kinds that operators act on with their own permissions.
const AUTHORED: [&str; 2] = ["hostedclusters", "nodepools"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// Whether a rule of a role grants more than reading HostedClusters or NodePools, or one of their subresources. The verb
/// `override`, by which one bypasses the tenant policy, is more.
pub fn writes_hosted_clusters(rule: &Value) -> bool {
    let is_authored = |resource: &str| {
        let kind = resource.split('/').next();
        kind.is_some_and(|it| it == "*" || AUTHORED.contains(&it))
    };
    texts(rule, "apiGroups").any(|it| it == "*" || it == GROUP)
        && texts(rule, "resources").any(is_authored)
        && texts(rule, "verbs").any(|it| !READ.contains(&it))
}

fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let list = rule[field].as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wildcards_match_like_in_the_authorizer() {
        for (group, resource, verb, expected) in [
            (GROUP, "hostedclusters", "override", true),
            (GROUP, "nodepools", "create", true),
            (GROUP, "nodepools/scale", "update", true),
            (GROUP, "hostedclusters", "*", true),
            (GROUP, "*", "patch", true),
            (GROUP, "*/scale", "patch", true),
            ("*", "hostedclusters", "delete", true),
            (GROUP, "*", "list", false),
            (GROUP, "hostedcontrolplanes", "*", false),
            ("apps", "*", "*", false),
        ] {
            let rule = json!({ "apiGroups": ["", group], "resources": [resource], "verbs": ["get", verb] });
            assert_eq!(writes_hosted_clusters(&rule), expected, "{rule}");
        }
    }
}
