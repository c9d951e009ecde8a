//! Permissions of people and programs that manage hosted clusters, and of those that look at them.

use api::group::{self, CapiTypes};
use serde_json::{Value, json};

use super::binding;
use super::kind::Kind;
use super::object::Object;
use super::options::Types;

/// Who may manage hosted clusters: a service account, and a group of users of the same name.
const CLIENT: &str = "hypershift-client";
/// The group of users that may look at everything of hosted clusters except Secrets.
const READERS: &str = "hypershift-readers";
const HYPERSHIFT: &str = "hypershift.openshift.io";
const READ: &[&str] = &["get", "list", "watch"];
/// Not the verb `override`: what is reserved stays reserved.
const MANAGE: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
/// Groups of which readers see some kinds, without Secrets and tokens.
const READABLE: [(&str, &[&str]); 6] = [
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("networking.k8s.io", &["networkpolicies"]),
    ("security.openshift.io", &["securitycontextconstraints"]),
    (
        "",
        &[
            "events",
            "configmaps",
            "pods",
            "pods/log",
            "nodes",
            "namespaces",
            "serviceaccounts",
            "services",
        ],
    ),
    ("apps", &["deployments"]),
    ("monitoring.coreos.com", &["podmonitors"]),
];
/// Groups of which readers see all kinds.
const WHOLLY_READABLE: [&str; 7] = [
    HYPERSHIFT,
    "config.openshift.io",
    "operator.openshift.io",
    "route.openshift.io",
    "rbac.authorization.k8s.io",
    "machine.openshift.io",
    "capi-provider.agent-install.openshift.io",
];

/// Roles of clients and readers, and who has them.
pub(super) fn objects(namespace: &str, types: &Types) -> Vec<Object> {
    // Cluster-wide names carry the namespace, so that two installations do not share a role.
    let (client, readers) = (
        format!("{namespace}-client"),
        format!("{namespace}-readers"),
    );
    let account = binding::service_account(namespace, CLIENT);
    let manage = [rule(HYPERSHIFT, &["hostedclusters", "nodepools"], MANAGE)];
    let role = |name: &str, rules: &[Value]| {
        Object::new(
            Kind::ClusterRole,
            namespace,
            name,
            json!({ "rules": rules }),
        )
    };
    let binding = |name: &str, subjects: &[Value]| {
        let fields = binding::fields(Kind::ClusterRole, name, subjects);
        Object::new(Kind::ClusterRoleBinding, namespace, name, fields)
    };
    vec![
        Object::new(Kind::ServiceAccount, namespace, CLIENT, json!({})),
        role(&client, &manage),
        binding(&client, &[account, users(CLIENT)]),
        role(&readers, &readable(types)),
        binding(&readers, &[users(READERS)]),
    ]
}

/// What readers see. Cluster API's objects of all types that hosted clusters may have.
fn readable(types: &Types) -> Vec<Value> {
    let capi_types: &[CapiTypes] = match types {
        Types::Standard => &[CapiTypes::Standard],
        // Some are not migrated yet.
        Types::Private(_) => &[CapiTypes::Standard, CapiTypes::Private],
    };
    let capi = capi_types.iter().flat_map(|&types| group::served(types));
    let whole = WHOLLY_READABLE.map(str::to_owned).into_iter().chain(capi);
    let whole = whole.map(|group| rule(&group, &["*"], READ));
    let parts = READABLE.iter();
    let parts = parts.map(|(group, resources)| rule(group, resources, READ));
    whole.chain(parts).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

/// The identity provider of the cluster says who is in a group.
fn users(group: &str) -> Value {
    json!({
        "apiGroup": Kind::ClusterRole.resource().group,
        "kind": "Group",
        "name": group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules<'o>(objects: &'o [Object], name: &str) -> &'o [Value] {
        let role = objects
            .iter()
            .find(|one| one.id.kind == Kind::ClusterRole && one.id.name == name);
        let rules = role.expect("it is there").body["rules"].as_array();
        rules.expect("it has rules")
    }

    fn has(rule: &Value, field: &str, value: &str) -> bool {
        let values = rule[field].as_array().expect("a list");
        values.iter().any(|one| one == value)
    }

    #[test]
    fn clients_manage_hosted_clusters_and_cannot_override_what_is_reserved() {
        let objects = objects("hypershift", &Types::Standard);
        let [rule] = rules(&objects, "hypershift-client") else {
            panic!("more than one rule");
        };
        assert!(has(rule, "resources", "hostedclusters") && has(rule, "verbs", "create"));
        for verb in ["*", "override", "escalate", "bind", "impersonate"] {
            assert!(!has(rule, "verbs", verb), "{verb}");
        }
    }

    #[test]
    fn readers_read_and_see_no_secrets() {
        let objects = objects("hypershift", &Types::Standard);
        let rules = rules(&objects, "hypershift-readers");
        for rule in rules {
            assert_eq!(rule["verbs"], json!(READ), "{rule}");
            assert!(!has(rule, "resources", "secrets"), "{rule}");
            let is_whole = has(rule, "resources", "*");
            let has_secrets = has(rule, "apiGroups", "") || has(rule, "apiGroups", "*");
            assert!(!is_whole || !has_secrets, "{rule}");
        }
        let standard = group::core(CapiTypes::Standard);
        assert!(rules.iter().any(|rule| has(rule, "apiGroups", &standard)));
    }
}
