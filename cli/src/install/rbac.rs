//! What the operators may do: one table, each row with what needs it. No row has a wildcard.

use api::group::{self, CapiTypes, GroupTable};
use serde_json::{Value, json};

use super::kind::Kind;
use super::object::Object;
use super::tenant_policy;
use super::workload::Operator;

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

const HYPERSHIFT: &str = "hypershift.openshift.io";
const RBAC: &str = "rbac.authorization.k8s.io";
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

const TABLE: &[Row] = &[
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters"],
        names: &[],
        verbs: &["get", "list", "watch", "patch"],
        needed_for: "the scan at the start, every reconcile after it, ownership annotations, finalizers and defaults",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &tenant_policy::KINDS,
        names: &[],
        verbs: &[tenant_policy::OVERRIDE],
        needed_for: "annotations that the tenant policy keeps from authors",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters/status", "nodepools/status"],
        names: &[],
        verbs: &["patch"],
        needed_for: "conditions, versions and addresses, as users read them",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters/finalizers", "nodepools/finalizers"],
        names: &[],
        verbs: &["update"],
        needed_for: "owner references that have an owner wait for what it owns",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedcontrolplanes"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "what a hosted cluster means for its control plane",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["nodepools"],
        names: &[],
        verbs: &["get", "list", "watch", "patch", "delete"],
        needed_for: "node pools, which go before their hosted cluster",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["awsendpointservices"],
        names: &[],
        verbs: &["get", "list", "watch", "patch", "delete"],
        needed_for: "private links: their subnets, and that they go before the control plane",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["awsendpointservices/status"],
        names: &[],
        verbs: &["patch"],
        needed_for: "the VPC endpoint service of a private link, as the control plane connects to it",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "",
        resources: &["namespaces"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "the namespace of a control plane",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "",
        resources: &["serviceaccounts"],
        names: &[],
        // They go with their namespace.
        verbs: &["get", "list", "watch", "create", "patch"],
        needed_for: "who the operators of a control plane are",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "",
        resources: &["secrets", "configmaps"],
        names: &[],
        // HostedClusters may be in any namespace, and what they refer to is beside them.
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "copies of what a hosted cluster refers to, and of its kubeconfig",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "",
        resources: &["services", "endpoints"],
        names: &[],
        verbs: &["get", "list", "watch"],
        needed_for: "where nodes find their configuration, and where the API server is",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "apps",
        resources: &["deployments"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "the operators of a control plane",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "networking.k8s.io",
        resources: &["networkpolicies"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "who may reach the pods of a control plane",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "networking.k8s.io",
        resources: &["servicecidrs"],
        names: &[],
        verbs: &["list"],
        needed_for: "networks of the management cluster, which virtual machines may not reach",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "",
        resources: &["nodes"],
        names: &[],
        verbs: &["list"],
        needed_for: "networks of pods, which virtual machines may not reach either",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "cdi.kubevirt.io",
        resources: &["datavolumes"],
        names: &[],
        verbs: &["list", "create", "delete"],
        needed_for: "copies of boot images, of which the disks of virtual machines are clones",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "config.openshift.io",
        resources: &["networks"],
        names: &[],
        verbs: &["list"],
        needed_for: "the same on OpenShift",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "config.openshift.io",
        resources: &["infrastructures"],
        names: &["cluster"],
        verbs: &["get"],
        needed_for: "the name of the management cluster's infrastructure, with which VPC endpoint services are tagged",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: RBAC,
        resources: &["roles", "rolebindings", "clusterrolebindings"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "what the operators of a control plane may do",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: RBAC,
        resources: &["roles"],
        names: &["control-plane-operator", "cluster-api", "capi-provider"],
        // By these names only: to hold each of their permissions in every namespace would be far more.
        verbs: &["escalate", "bind"],
        needed_for: "roles with permissions in a control plane's namespace that this operator does not have itself",
    },
    Row {
        holder: Holder::Migrating,
        reach: Reach::Cluster,
        group: RBAC,
        resources: &["roles"],
        names: &["private-capi-migration"],
        verbs: &["escalate", "bind"],
        needed_for: "the role that it gives itself in the namespace that it migrates, for that time",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: RBAC,
        resources: &["clusterroles"],
        // Those for signers have the name of the control plane's namespace, and rules cannot have a part of a name.
        names: &[],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
        needed_for: "the role by which managers read CRDs, and which signers a PKI operator approves and signs for",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: RBAC,
        resources: &["clusterroles"],
        names: &[PKI_OPERATOR],
        verbs: &["bind"],
        needed_for: "access of PKI operators to certificate signing requests, which this operator does not have itself",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: CERTIFICATES,
        // To act on a request, access to the request is needed as well. The API server compares the names of a granted rule
        // with these literally, so that a pattern would not include the signers of a hosted cluster (SECURITY.md).
        resources: &["signers"],
        names: &[],
        verbs: &["approve", "sign"],
        needed_for: "roles that grant a PKI operator the two signers of its own hosted cluster",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        names: &[],
        verbs: &["get", "list", "watch"],
        needed_for: "to distinguish kinds that are not installed from kinds that are not served, and to let managers read them",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "secrets-store.csi.x-k8s.io",
        resources: &["secretproviderclasses"],
        names: &[],
        verbs: &["get", "create", "patch"],
        needed_for: "certificates of managed identities on Azure",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "route.openshift.io",
        resources: &["routes"],
        names: &[],
        verbs: &["get", "list", "watch"],
        needed_for: "the route by which nodes find their configuration",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "route.openshift.io",
        resources: &["routes"],
        names: &[],
        verbs: &["create", "delete"],
        needed_for: "the domain of routes, which hosted clusters on virtual machines may have",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "agent-install.openshift.io",
        resources: &["agents"],
        names: &[],
        verbs: &["get", "list", "watch", "update", "patch"],
        needed_for: "permissions of the provider for Agent in the namespace of agents",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "capi-provider.agent-install.openshift.io",
        resources: &["agentclusters"],
        names: &[],
        // It goes with its Cluster.
        verbs: &["get", "create", "patch"],
        needed_for: "where the machines of an Agent service find their configuration",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "capi-provider.agent-install.openshift.io",
        resources: &["agentmachinetemplates"],
        names: &[],
        verbs: &["get", "list", "create", "patch", "delete"],
        needed_for: "which machines of an Agent service a pool takes",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "openstack.k-orc.cloud",
        resources: &["images"],
        names: &[],
        verbs: &["get", "list", "create", "patch", "delete"],
        needed_for: "the boot images of releases on OpenStack",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "events.k8s.io",
        resources: &["events"],
        names: &[],
        // A repetition is counted in the Event that is there.
        verbs: &["create", "patch"],
        needed_for: "Events on a hosted cluster whose annotations contradict each other",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[],
        // A name cannot be given for what does not exist yet.
        verbs: &["create"],
        needed_for: "leader election, when it is held for the first time",
    },
    Row {
        holder: Holder::New,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &["hypershift-operator-leader-elect"],
        verbs: &["update"],
        needed_for: "leader election",
    },
    Row {
        holder: Holder::New,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[
            "hypershift-operator-leader-elect",
            "hypershift-operator-legacy-leader-elect",
        ],
        verbs: &["get"],
        needed_for: "leader election, and migrations, which look whether operator-legacy leads",
    },
    Row {
        holder: Holder::Legacy,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &["hypershift-operator-legacy-leader-elect"],
        verbs: &["get", "update"],
        needed_for: "leader election of operator-legacy",
    },
];

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
    let fields = json!({
        "roleRef": {
            "apiGroup": role_kind.resource().group,
            "kind": role_kind.name(),
            "name": role,
        },
        "subjects": [{
            "kind": Kind::ServiceAccount.name(),
            "namespace": namespace,
            "name": operator.name(),
        }],
    });
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

#[cfg(test)]
mod tests;
