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

mod right;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::audit::{AuditLog, Event};
use crate::client::{ApiClient, Resource};
use crate::wait;

pub use table::{ELSEWHERE, Elsewhere, HOSTED, PREVIEW, UNPROVEN, USUAL, Unproven};

use right::{Request, Right};
use table::RBAC;

const REVIEWS: Resource<'_> = Resource::new("authorization.k8s.io/v1", "subjectaccessreviews");
/// How long the API server may take to heed a role.
const HEEDED_WITHIN: Duration = Duration::from_secs(30);

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

#[cfg(test)]
mod tests;
