//! What the operators may do: one table, each row with what needs it. No row has a wildcard.

mod table;
#[cfg(test)]
mod tests;

use api::group::{self, CapiTypes, GroupTable};
use serde_json::{Value, json};

use super::binding;
use super::kind::Kind;
use super::object::Object;
use super::workload::Operator;
use table::TABLE;

/// Where a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everywhere.
    Cluster,
    /// In the operator's own namespace.
    Own,
}

/// Which operators have a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Both,
    /// The one that is not operator-legacy.
    New,
    Legacy,
    /// The one that migrates: it writes private objects only.
    Migrating,
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    holder: Holder,
    reach: Reach,
    group: &'static str,
    resources: &'static [&'static str],
    /// Empty for any.
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    /// What breaks without it.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "it is for readers, and for the test that asks for it"
        )
    )]
    needed_for: &'static str,
}

/// A rule of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) reach: Reach,
    pub(crate) group: String,
    pub(crate) resources: Vec<String>,
    pub(crate) names: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
}

const CERTIFICATES: &str = "certificates.k8s.io";
/// Role of PKI operators, for every hosted cluster.
const PKI_OPERATOR: &str = "hypershift-control-plane-pki-operator";
/// Verbs by which API groups are observed.
const OBSERVE: &[&str] = &["list", "watch"];
/// Verbs for objects that belong to hosted clusters. The rules for observed groups grant `list` and `watch`.
const WRITE: &[&str] = &["get", "create", "patch", "delete"];
/// Cluster API's own kinds that operators write.
const CORE: [&str; 4] = [
    "clusters",
    "machinedeployments",
    "machinehealthchecks",
    "machinesets",
];
/// Kinds of providers that operators write.
const INFRASTRUCTURE: [&str; 16] = [
    "awsclusters",
    "awsmachinetemplates",
    "azureclusteridentities",
    "azureclusters",
    "azuremachinetemplates",
    "gcpclusters",
    "gcpmachinetemplates",
    "ibmpowervsclusters",
    "ibmpowervsimages",
    "ibmpowervsmachinetemplates",
    "ibmvpcclusters",
    "kubevirtclusters",
    "kubevirtmachinetemplates",
    "openstackclusters",
    "openstackmachinetemplates",
    // Only to delete them.
    "openstackservers",
];
/// Kinds of providers that operators read: their controllers make them.
const MACHINES: [&str; 2] = ["awsmachines", "kubevirtmachines"];
/// Of these also the status, which no other controller writes.
const READY: [&str; 6] = [
    "awsclusters/status",
    "azureclusters/status",
    "gcpclusters/status",
    "ibmpowervsclusters/status",
    "ibmvpcclusters/status",
    "kubevirtclusters/status",
];
/// Kinds of providers whose machines get new tags of their pool, or are given up when the provider cannot delete them.
const PATCHED: [&str; 2] = ["awsmachines", "azuremachines"];

/// The rules of an operator that writes objects of these types.
///
/// Both operators look for objects in the groups of both, since that is how a hosted cluster's owner is found. There they
/// list and watch, and read no more. Kinds are not named: the platform may bring a new one any day, and an operator that may
/// not list its objects could not decide who owns a hosted cluster.
pub(crate) fn rules(operator: Operator, capi_types: &[CapiTypes]) -> Vec<Rule> {
    let fixed = TABLE
        .iter()
        .filter(|row| row.is_for(operator, capi_types))
        .map(Row::rule);
    let table = GroupTable::default();
    let all = table
        .pairs()
        .iter()
        .flat_map(|pair| [CapiTypes::Standard, CapiTypes::Private].map(|types| pair.name(types)));
    let observed = all.map(|group| Rule {
        reach: Reach::Cluster,
        group: group.to_owned(),
        resources: vec!["*".to_owned()],
        names: &[],
        verbs: OBSERVE,
    });
    let written = capi_types.iter().flat_map(|&types| written(types));
    fixed.chain(observed).chain(written).collect()
}

/// Objects of Cluster API that belong to hosted clusters and node pools.
fn written(types: CapiTypes) -> [Rule; 6] {
    let rule = |group: String, resources: &[&str], verbs| Rule {
        reach: Reach::Cluster,
        group,
        resources: resources.iter().map(|&one| one.to_owned()).collect(),
        names: &[],
        verbs,
    };
    [
        rule(group::core(types), &CORE, WRITE),
        // Their labels and taints follow the pool's.
        rule(group::core(types), &["machines"], &["get", "patch"]),
        rule(group::infrastructure(types), &INFRASTRUCTURE, WRITE),
        rule(group::infrastructure(types), &MACHINES, &["get"]),
        rule(group::infrastructure(types), &PATCHED, &["patch"]),
        rule(group::infrastructure(types), &READY, &["patch"]),
    ]
}

/// Roles and bindings of an operator.
pub(crate) fn objects(
    namespace: &str,
    operator: Operator,
    capi_types: &[CapiTypes],
) -> Vec<Object> {
    let rules = rules(operator, capi_types);
    let of = |reach: Reach| -> Vec<Value> {
        rules
            .iter()
            .filter(|rule| rule.reach == reach)
            .map(Rule::render)
            .collect()
    };
    // Cluster-wide names carry the namespace, so that two installations do not share a role.
    let cluster_name = format!("{namespace}-{}", operator.name());
    let own_name = operator.name();
    vec![
        Object::new(
            Kind::ClusterRole,
            namespace,
            &cluster_name,
            json!({ "rules": of(Reach::Cluster) }),
        ),
        binding(Kind::ClusterRoleBinding, namespace, &cluster_name, operator),
        Object::new(
            Kind::Role,
            namespace,
            own_name,
            json!({ "rules": of(Reach::Own) }),
        ),
        binding(Kind::RoleBinding, namespace, own_name, operator),
    ]
}

/// The role of the PKI operators of hosted clusters. The operator binds it, and does not hold its permissions.
///
/// Requests belong to all tenants, so they can be read by name only. The API server lets a client change a request only
/// if it has the signer, too.
pub(crate) fn pki_operator(namespace: &str) -> Object {
    let rule = |resource: &str, verb: &str| json!({ "apiGroups": [CERTIFICATES], "resources": [resource], "verbs": [verb] });
    let rules = [
        rule("certificatesigningrequests", "get"),
        rule("certificatesigningrequests/approval", "update"),
        rule("certificatesigningrequests/status", "patch"),
    ];
    Object::new(
        Kind::ClusterRole,
        namespace,
        PKI_OPERATOR,
        json!({ "rules": rules }),
    )
}

fn binding(kind: Kind, namespace: &str, role: &str, operator: Operator) -> Object {
    let role_kind = if kind == Kind::ClusterRoleBinding {
        Kind::ClusterRole
    } else {
        Kind::Role
    };
    let account = binding::service_account(namespace, operator.name());
    let fields = binding::fields(role_kind, role, &[account]);
    Object::new(kind, namespace, role, fields)
}

// === impl Row ===

impl Row {
    fn is_for(&self, operator: Operator, capi_types: &[CapiTypes]) -> bool {
        match self.holder {
            Holder::Both => true,
            Holder::New => operator == Operator::New,
            Holder::Legacy => operator == Operator::Legacy,
            Holder::Migrating => operator == Operator::New && capi_types == [CapiTypes::Private],
        }
    }

    fn rule(&self) -> Rule {
        Rule {
            reach: self.reach,
            group: self.group.to_owned(),
            resources: self.resources.iter().map(|&one| one.to_owned()).collect(),
            names: self.names,
            verbs: self.verbs,
        }
    }
}

// === impl Rule ===

impl Rule {
    fn render(&self) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group],
            "resources": self.resources,
            "verbs": self.verbs,
        });
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}
