//! Rights proven minimal: none is refused, none is idle, and none can be taken away.
//!
//! The proof is about what `hypershift install` renders. For each right of a role (a verb on a resource of a group):
//!
//! 1. the audit log has a request that used it, and none that was refused;
//! 2. a role of all other rights refuses such a request, which a SubjectAccessReview asks of the API server. So
//!    whatever made that request breaks without the right, and nothing else grants it.
//!
//! A right that the usual test does not use names the test that does in [`ELSEWHERE`]; that test calls [`judge`] with its
//! own name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::audit::{AuditLog, Event};
use crate::client::{ApiClient, Resource};
use crate::wait;

/// The test that uses all rights that [`ELSEWHERE`] does not name.
pub const USUAL: &str = "ownership_follows_observed_api_groups";

/// Rights that another test uses, with the test's name. All verbs of a resource, or all resources of a group (`*`), go
/// in one row.
pub const ELSEWHERE: &[Elsewhere] = &[
    hosted("hypershift.openshift.io", "hostedcontrolplanes"),
    hosted("hypershift.openshift.io", "nodepools"),
    hosted("hypershift.openshift.io", "nodepools/status"),
    hosted("hypershift.openshift.io", "awsendpointservices"),
    hosted("hypershift.openshift.io", "awsendpointservices/status"),
    hosted("", "namespaces"),
    hosted("", "serviceaccounts"),
    hosted("", "secrets"),
    hosted("", "configmaps"),
    hosted("", "services"),
    hosted("", "endpoints"),
    hosted("apps", "deployments"),
    hosted("networking.k8s.io", "networkpolicies"),
    hosted(RBAC, "roles"),
    hosted(RBAC, "rolebindings"),
    hosted(RBAC, "clusterrolebindings"),
    hosted(RBAC, "clusterroles"),
    hosted(CERTIFICATES, "signers"),
    hosted("apiextensions.k8s.io", "customresourcedefinitions"),
    hosted("route.openshift.io", "routes"),
    hosted("cluster.hypershift.openshift.io", "clusters"),
    hosted("cluster.hypershift.openshift.io", "machinedeployments"),
    hosted("cluster.hypershift.openshift.io", "machinehealthchecks"),
    hosted("cluster.hypershift.openshift.io", "machines"),
    hosted("cluster.hypershift.openshift.io", "machinesets"),
    hosted("cluster.x-k8s.io", "clusters"),
    hosted("cluster.x-k8s.io", "machinedeployments"),
    hosted("cluster.x-k8s.io", "machinehealthchecks"),
    hosted("cluster.x-k8s.io", "machines"),
    hosted("cluster.x-k8s.io", "machinesets"),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "awsclusters",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "awsclusters/status",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "awsmachines",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "awsmachinetemplates",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "azureclusteridentities",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "azureclusters",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "azureclusters/status",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "azuremachinetemplates",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "ibmpowervsclusters",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "ibmpowervsclusters/status",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "ibmpowervsimages",
    ),
    hosted(
        "infrastructure.cluster.hypershift.openshift.io",
        "ibmpowervsmachinetemplates",
    ),
    hosted("infrastructure.cluster.x-k8s.io", "awsclusters"),
    hosted("infrastructure.cluster.x-k8s.io", "awsclusters/status"),
    hosted("infrastructure.cluster.x-k8s.io", "awsmachines"),
    hosted("infrastructure.cluster.x-k8s.io", "awsmachinetemplates"),
    hosted("infrastructure.cluster.x-k8s.io", "azureclusteridentities"),
    hosted("infrastructure.cluster.x-k8s.io", "azureclusters"),
    hosted("infrastructure.cluster.x-k8s.io", "azureclusters/status"),
    hosted("infrastructure.cluster.x-k8s.io", "azuremachinetemplates"),
    hosted("infrastructure.cluster.x-k8s.io", "ibmpowervsclusters"),
    hosted(
        "infrastructure.cluster.x-k8s.io",
        "ibmpowervsclusters/status",
    ),
    hosted("infrastructure.cluster.x-k8s.io", "ibmpowervsimages"),
    hosted(
        "infrastructure.cluster.x-k8s.io",
        "ibmpowervsmachinetemplates",
    ),
    hosted("secrets-store.csi.x-k8s.io", "secretproviderclasses"),
    hosted(AGENT, "agents"),
    hosted("capi-provider.agent-install.openshift.io", "agentclusters"),
    hosted(
        "capi-provider.agent-install.openshift.io",
        "agentmachinetemplates",
    ),
];

/// Rights that nothing on the testbed uses, with the reason.
pub const UNPROVEN: &[Unproven] = &[
    // Asked by the tenant policy, of which the audit log has no request.
    verbs(&["override"], "hostedclusters"),
    verbs(&["override"], "nodepools"),
    // Owner references that have an owner wait are judged by an admission plugin that OpenShift turns on.
    unproven("hypershift.openshift.io", "hostedclusters/finalizers"),
    unproven("hypershift.openshift.io", "nodepools/finalizers"),
    // OpenShift's own networks, which a management cluster of Kubernetes does not serve.
    unproven("config.openshift.io", "networks"),
    unproven("config.openshift.io", "infrastructures"),
    // Platforms whose kinds are not here.
    unproven("", "gcpclusters"),
    unproven("", "gcpclusters/status"),
    unproven("", "gcpmachinetemplates"),
    unproven("", "ibmvpcclusters"),
    unproven("", "ibmvpcclusters/status"),
    unproven("", "kubevirtclusters"),
    unproven("", "kubevirtclusters/status"),
    unproven("", "kubevirtmachines"),
    unproven("", "kubevirtmachinetemplates"),
    unproven("", "openstackclusters"),
    unproven("", "openstackmachinetemplates"),
    unproven("", "openstackservers"),
    unproven("openstack.k-orc.cloud", "images"),
    unproven("cdi.kubevirt.io", "datavolumes"),
    unproven("", "nodes"),
    verbs(&["create", "delete"], "routes"),
    // Pools with other settings: upgrades where nodes are, and health checks of machines that have start.
    verbs(&["create", "patch", "delete"], "machinehealthchecks"),
    verbs(&["create", "patch", "delete"], "machinesets"),
    verbs(&["get", "patch"], "machines"),
    verbs(&["get", "patch"], "awsmachines"),
    verbs(&["patch"], "azuremachines"),
    verbs(&["get"], "azuremachinetemplates"),
    verbs(&["get"], "ibmpowervsmachinetemplates"),
    verbs(&["delete"], "configmaps"),
    // Clusters without machine management, with private links, or with an infrastructure that is elsewhere.
    verbs(&["get", "delete"], "awsendpointservices"),
    verbs(&["delete"], "awsclusters"),
    verbs(&["get", "delete"], "azureclusteridentities"),
    verbs(&["delete"], "azureclusters"),
    verbs(&["delete"], "ibmpowervsclusters"),
    verbs(&["delete"], "deployments"),
    verbs(&["delete"], "networkpolicies"),
    verbs(&["delete"], "rolebindings"),
    verbs(&["delete"], "roles"),
    // Read only while its watch is not in sync.
    verbs(&["get"], "clusters"),
    // Migrations: the role that the operator gives itself for the time of one.
    Unproven {
        name: Some("private-capi-migration"),
        ..verbs(&["bind", "escalate"], "roles")
    },
];

/// The test that uses the rights of hosted clusters and node pools.
pub const HOSTED: &str = "hosted_clusters_are_created_reconciled_and_deleted";

/// How the groups begin that have no namespaced kind today, and may get one any day.
const AHEAD: &str = "runtime.";
/// Counts an Event that is there already; a repeated Event is not in every run.
const REPEATED: (&str, &str) = ("patch", "events");
/// All resources of a group.
const ANY: &str = "*";
const REVIEWS: Resource<'_> = Resource::new("authorization.k8s.io/v1", "subjectaccessreviews");
const RBAC: &str = "rbac.authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
/// The group of Agents, and how the roles begin that let a provider use them.
const AGENT: &str = "agent-install.openshift.io";
const AGENT_ROLE: &str = "capi-provider-role-";
/// The role of PKI operators: its author does not hold it, so to bind it is a right of its own.
const PKI_OPERATOR: &str = "hypershift-control-plane-pki-operator";
/// How long the API server may take to heed a role.
const HEEDED_WITHIN: Duration = Duration::from_secs(30);

/// Rights that one test uses.
#[derive(Debug)]
pub struct Elsewhere {
    /// The group.
    pub group: &'static str,
    /// The resource with its subresource, or `*`.
    pub resource: &'static str,
    /// The test's name.
    pub test: &'static str,
}

const fn hosted(group: &'static str, resource: &'static str) -> Elsewhere {
    Elsewhere {
        group,
        resource,
        test: HOSTED,
    }
}

/// Rights that no test can use.
#[derive(Debug)]
pub struct Unproven {
    /// The group; empty for any.
    pub group: &'static str,
    /// The resource with its subresource, or `*`.
    pub resource: &'static str,
    /// The verbs; none for all.
    pub verbs: &'static [&'static str],
    /// The only name that the right is for, if it has to have one.
    pub name: Option<&'static str>,
}

const fn unproven(group: &'static str, resource: &'static str) -> Unproven {
    let verbs = &[];
    Unproven {
        group,
        resource,
        verbs,
        name: None,
    }
}

/// Some verbs only.
const fn verbs(verbs: &'static [&'static str], resource: &'static str) -> Unproven {
    Unproven {
        group: "",
        resource,
        verbs,
        name: None,
    }
}

/// Who is judged, and by what.
#[derive(Debug)]
pub struct Account<'a> {
    /// The user name.
    pub username: &'a str,
    /// Its roles and their bindings.
    pub granted: &'a [Value],
    /// What it has done.
    pub audit: &'a AuditLog,
    /// Asks the API server.
    pub admin: &'a ApiClient,
}

/// A verb on a resource, where it is granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    group: String,
    resource: String,
    names: Vec<String>,
    /// Everywhere, if there is none.
    namespace: Option<String>,
}

/// What a request requested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// Judges the rights that `test` is to use, by what the account has done since the API server's start.
pub async fn judge(account: &Account<'_>, test: &str) -> Result<()> {
    let name = account.username;
    let events = account.audit.all()?;
    let own = || events.iter().filter(|event| event.user.username == name);
    let refused: Vec<_> = own()
        .filter(|event| event.response_status.code == 403)
        .map(Event::summary)
        .collect();
    ensure!(refused.is_empty(), "{name} lacks rights: {refused:#?}");
    let all = rights(account.granted)?;
    let due: Vec<_> = all.iter().filter(|right| right.is_for(test)).collect();
    ensure!(!due.is_empty(), "{name} has no right for {test}");
    let requests: BTreeSet<_> = own().flat_map(Request::all_of).collect();
    let (used, idle): (Vec<_>, Vec<_>) = due
        .into_iter()
        .map(|right| (right, requests.iter().find(|request| right.allows(request))))
        .partition(|(_, used)| used.is_some());
    let idle: Vec<_> = idle
        .into_iter()
        .map(|(right, _)| right)
        .filter(|right| !right.may_be_idle())
        .collect();
    ensure!(
        idle.is_empty(),
        "{name} has rights that nothing uses: {idle:#?}"
    );
    let used = used.into_iter().enumerate();
    let spared: Vec<_> = used
        .filter_map(|(number, (right, request))| {
            Some(Spared::new(
                &format!("{test}-{number}"),
                right,
                request?,
                &all,
            ))
        })
        .collect();
    for one in &spared {
        account.admin.apply(&one.roles()).await?;
    }
    for one in &spared {
        one.is_missed(account.admin).await?;
    }
    Ok(())
}

/// A user with all permissions but one.
#[derive(Debug)]
struct Spared<'a> {
    user: String,
    right: &'a Right,
    /// What used it.
    request: &'a Request,
    others: Vec<&'a Right>,
}

// === impl Spared ===

impl<'a> Spared<'a> {
    fn new(name: &str, right: &'a Right, request: &'a Request, all: &'a BTreeSet<Right>) -> Self {
        // The name of a role takes no underscore.
        let user = format!("without-{}-{}", name.replace('_', "-"), right.verb);
        Self {
            user,
            right,
            request,
            others: all.iter().filter(|one| *one != right).collect(),
        }
    }

    fn roles(&self) -> Vec<Value> {
        roles(&self.user, &self.others)
    }

    /// Checks that the request is refused, once the roles are heeded: those for everywhere and those for a namespace.
    async fn is_missed(&self, admin: &ApiClient) -> Result<()> {
        let mut kept: BTreeMap<_, _> = BTreeMap::new();
        for other in &self.others {
            kept.insert(&other.namespace, *other);
        }
        ensure!(
            kept.contains_key(&self.right.namespace),
            "{:?} is the only one of its role: there is no sign of when that takes effect",
            self.right
        );
        let what = format!("the roles of {} to be heeded", self.user);
        wait::until(&what, HEEDED_WITHIN, async || {
            for right in kept.values() {
                let allowed = asked(admin, &self.user, &right.example()).await?;
                ensure!(allowed, "{right:?} is not granted yet");
            }
            Ok(())
        })
        .await?;
        let allowed = asked(admin, &self.user, self.request).await?;
        ensure!(
            !allowed,
            "{:?} is allowed without {:?}: it is granted twice",
            self.request,
            self.right
        );
        Ok(())
    }
}

/// Whether a user may.
async fn asked(admin: &ApiClient, user: &str, request: &Request) -> Result<bool> {
    let question = json!({
        "apiVersion": REVIEWS.api_version,
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": ["system:authenticated", "system:serviceaccounts"],
            "resourceAttributes": {
                "verb": request.verb,
                "group": request.group,
                "resource": request.resource,
                "subresource": request.subresource,
                "namespace": request.namespace,
                "name": request.name,
            },
        },
    });
    let response = admin.create(&REVIEWS.all(), &question).await?;
    Ok(response["status"]["allowed"] == true)
}

/// Roles with these rights, bound to a user: one for each namespace and one for everywhere.
fn roles(user: &str, rights: &[&Right]) -> Vec<Value> {
    let namespaces: BTreeSet<_> = rights.iter().map(|right| &right.namespace).collect();
    let mut objects = Vec::new();
    for namespace in namespaces {
        let rules: Vec<_> = rights
            .iter()
            .filter(|right| right.namespace == *namespace)
            .map(|right| right.rule())
            .collect();
        let (role, binding) = match namespace {
            Some(_) => ("Role", "RoleBinding"),
            None => ("ClusterRole", "ClusterRoleBinding"),
        };
        let object = |kind: &str| {
            json!({
                "apiVersion": format!("{RBAC}/v1"),
                "kind": kind,
                "metadata": { "name": user, "namespace": namespace },
            })
        };
        let (mut granted, mut bound) = (object(role), object(binding));
        granted["rules"] = Value::from(rules);
        bound["roleRef"] = json!({ "apiGroup": RBAC, "kind": role, "name": user });
        bound["subjects"] = json!([{ "apiGroup": RBAC, "kind": "User", "name": user }]);
        objects.extend([granted, bound]);
    }
    objects
}

/// Every right that the roles grant, one by one.
fn rights(granted: &[Value]) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for role in granted {
        let namespace = match role["kind"].as_str() {
            Some("ClusterRole") => None,
            Some("Role") => role["metadata"]["namespace"].as_str().map(str::to_owned),
            _ => continue,
        };
        let rules = role["rules"].as_array().context("a role without rules")?;
        for rule in rules {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    rights.extend(texts(&rule["verbs"]).map(|verb| Right {
                        verb: verb.to_owned(),
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        names: texts(&rule["resourceNames"]).map(str::to_owned).collect(),
                        namespace: namespace.clone(),
                    }));
                }
            }
        }
    }
    ensure!(!rights.is_empty(), "the roles grant nothing");
    Ok(rights)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> + Clone {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

// === impl Elsewhere ===

impl Elsewhere {
    fn is_about(&self, right: &Right) -> bool {
        self.group == right.group && [ANY, right.resource.as_str()].contains(&self.resource)
    }
}

// === impl Unproven ===

impl Unproven {
    fn is_about(&self, right: &Right) -> bool {
        let group = self.group.is_empty() || self.group == right.group;
        let verb = self.verbs.is_empty() || self.verbs.contains(&right.verb.as_str());
        let name = self.name.is_none_or(|name| right.names == [name]);
        group && verb && name && [ANY, right.resource.as_str()].contains(&self.resource)
    }
}

// === impl Right ===

impl Right {
    /// Whether it is this test that uses it.
    fn is_for(&self, test: &str) -> bool {
        if UNPROVEN.iter().any(|row| row.is_about(self)) {
            return false;
        }
        let named = ELSEWHERE.iter().find(|row| row.is_about(self));
        named.map_or(USUAL, |row| row.test) == test
    }

    fn may_be_idle(&self) -> bool {
        self.group.starts_with(AHEAD) || (self.verb.as_str(), self.resource.as_str()) == REPEATED
    }

    fn allows(&self, request: &Request) -> bool {
        let named = self.names.is_empty() || self.names.contains(&request.name);
        let there = self
            .namespace
            .as_ref()
            .is_none_or(|own| *own == request.namespace);
        let what = self.resource == ANY || self.resource == request.qualified();
        self.verb == request.verb && self.group == request.group && what && named && there
    }

    /// Some request that it allows.
    fn example(&self) -> Request {
        let resource = if self.resource == ANY {
            "anything"
        } else {
            &self.resource
        };
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Request {
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: self.namespace.clone().unwrap_or_default(),
            name: self.names.first().cloned().unwrap_or_default(),
        }
    }

    fn rule(&self) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": [self.verb],
        });
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

// === impl Request ===

impl Request {
    /// The request, and what the API server checks in addition: a patch that makes an object needs the right to create
    /// it, a role the right to give more than one has, and a binding the right to bind its role.
    fn all_of(event: &Event) -> Vec<Self> {
        let Some(request) = Self::of(event) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        let with = |verb: &str, resource: &str| Self {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            ..request.clone()
        };
        if request.verb == "patch" && event.response_status.code == 201 {
            all.push(with("create", &request.resource));
        }
        if request.verb == "patch" && request.group == RBAC {
            match request.resource.as_str() {
                // Escalation is refused: its author needs what it grants.
                "roles" if request.name.starts_with(AGENT_ROLE) => {
                    let verbs = ["get", "list", "watch", "update", "patch"];
                    all.extend(verbs.map(|verb| Self {
                        group: AGENT.to_owned(),
                        name: String::new(),
                        ..with(verb, "agents")
                    }));
                }
                "roles" => all.push(with("escalate", "roles")),
                "rolebindings" => all.push(with("bind", "roles")),
                "clusterrolebindings" if request.name.starts_with(PKI_OPERATOR) => all.push(Self {
                    name: PKI_OPERATOR.to_owned(),
                    ..with("bind", "clusterroles")
                }),
                // Their author may approve and sign for these signers, and grants it.
                "clusterroles" if request.name.starts_with("hypershift-csr-approver-") => {
                    all.push(request.on_signers("approve"));
                }
                "clusterroles" if request.name.starts_with("hypershift-csr-signer-") => {
                    all.push(request.on_signers("sign"));
                }
                // It lets managers read CRDs, so its author has to be allowed to.
                "clusterroles" => all.extend(["get", "list", "watch"].map(|verb| Self {
                    group: "apiextensions.k8s.io".to_owned(),
                    name: String::new(),
                    ..with(verb, "customresourcedefinitions")
                })),
                _ => {}
            }
        }
        all.push(request);
        all
    }

    fn on_signers(&self, verb: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            group: CERTIFICATES.to_owned(),
            resource: "signers".to_owned(),
            name: String::new(),
            ..self.clone()
        }
    }

    /// Nothing for what all users may read, such as discovery.
    fn of(event: &Event) -> Option<Self> {
        let object = &event.object_ref;
        (!object.resource.is_empty()).then(|| Self {
            verb: event.verb.clone(),
            group: object.api_group.clone(),
            resource: object.resource.clone(),
            subresource: object.subresource.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        })
    }

    fn qualified(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

#[cfg(test)]
mod tests;
