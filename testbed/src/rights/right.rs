//! Rights one by one, and the requests that use them.

use serde_json::{Value, json};

use super::table::{AGENT, ANY, CERTIFICATES, ELSEWHERE, RBAC, UNPROVEN, USUAL};
use crate::audit::Event;

/// How the groups begin that have no namespaced kind today, and may get one any day.
const AHEAD: &str = "runtime.";
/// Counts an Event that is there already; a repeated Event is not in every run.
const REPEATED: (&str, &str) = ("patch", "events");
/// How the roles begin that let a provider use Agents.
const AGENT_ROLE: &str = "capi-provider-role-";
/// The role of PKI operators: its author does not hold it, so to bind it is a right of its own.
const PKI_OPERATOR: &str = "hypershift-control-plane-pki-operator";

/// A verb on a resource, where it is granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) names: Vec<String>,
    /// Everywhere, if there is none.
    pub(super) namespace: Option<String>,
}

/// What a request requested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

// === impl Right ===

impl Right {
    /// Whether it is this test that uses it.
    pub(super) fn is_for(&self, test: &str) -> bool {
        if UNPROVEN.iter().any(|row| row.is_about(self)) {
            return false;
        }
        let named = ELSEWHERE.iter().find(|row| row.is_about(self));
        named.map_or(USUAL, |row| row.test) == test
    }

    pub(super) fn may_be_idle(&self) -> bool {
        self.group.starts_with(AHEAD) || (self.verb.as_str(), self.resource.as_str()) == REPEATED
    }

    pub(super) fn allows(&self, request: &Request) -> bool {
        let named = self.names.is_empty() || self.names.contains(&request.name);
        let there = self
            .namespace
            .as_ref()
            .is_none_or(|own| *own == request.namespace);
        let what = self.resource == ANY || self.resource == request.qualified();
        self.verb == request.verb && self.group == request.group && what && named && there
    }

    /// Some request that it allows.
    pub(super) fn example(&self) -> Request {
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

    pub(super) fn rule(&self) -> Value {
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
    pub(super) fn all_of(event: &Event) -> Vec<Self> {
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
