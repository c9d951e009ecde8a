//! IAM: service accounts, and workload identity pools with their providers.
//!
//! New service accounts are not known everywhere at once. Pools and providers that are deleted keep their names for a while,
//! and can be restored.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use support::rest::Request;

use super::policy::Policy;
use super::{line, not_found};
use crate::Answer;

const POOLS: &str = "/locations/global/workloadIdentityPools";
const ACCOUNTS: &str = "/serviceAccounts";
/// Steps until a new service account can be read, bound in the policy of the project, and have a policy of its own.
const READABLE: u32 = 1;
const BINDABLE: u32 = 2;
const COMPLETE: u32 = 4;
/// Steps until an operation is done.
const STEPS: u32 = 2;
/// The most characters of a displayed name.
const LONGEST_NAME: usize = 32;

/// Service accounts and pools.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Service accounts, by their e-mail addresses.
    pub accounts: BTreeMap<String, Account>,
    /// Pools, and providers by `POOL/providers/PROVIDER`.
    pub pools: BTreeMap<String, Value>,
    /// Operations, with the steps that are left and what they work on.
    operations: BTreeMap<String, (u32, String)>,
    next: u32,
    deleted: Option<String>,
}

/// A service account.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The account.
    pub body: Value,
    /// Who may act as it.
    pub policy: Policy,
    age: u32,
}

// === impl Account ===

impl Account {
    /// An account that exists for a long time.
    pub fn old(body: Value) -> Self {
        Self {
            body,
            policy: Policy::default(),
            age: COMPLETE,
        }
    }

    fn answer(&mut self, request: &Request, email: &str, verb: &str, project: &str) -> Answer {
        match COMPLETE.saturating_sub(self.age) {
            0 => {}
            1 => {
                let message = "Permission 'iam.serviceAccounts.getIamPolicy' denied on resource (or it may not exist).";
                return Answer::refused(403, "PERMISSION_DENIED", message);
            }
            _ => return not_found(email),
        }
        if verb == "setIamPolicy" {
            return self.policy.set(&request.body["policy"], project, |_| true);
        }
        let version = request.parameter("options.requestedPolicyVersion");
        self.policy
            .get(version.and_then(|version| version.parse().ok()))
    }
}

// === impl Identity ===

impl Identity {
    /// Whether policies of other resources can name a service account.
    pub(super) fn is_known(&self, email: &str) -> bool {
        self.accounts
            .get(email)
            .is_some_and(|it| it.age >= BINDABLE)
    }

    /// The service account that the last call has deleted.
    pub(super) fn take_deleted(&mut self) -> Option<String> {
        self.deleted.take()
    }

    pub(super) fn pass_time(&mut self) {
        for account in self.accounts.values_mut() {
            account.age += 1;
        }
        for (steps, _) in self.operations.values_mut() {
            *steps = steps.saturating_sub(1);
        }
    }

    pub(super) fn snapshot(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (email, account) in &self.accounts {
            lines.push(format!("account {}", line(&account.body)));
            lines.extend(account.policy.snapshot(email));
        }
        let live = self
            .pools
            .iter()
            .filter(|(_, body)| body["state"] != "DELETED");
        lines.extend(live.map(|(path, body)| format!("pool {path} {}", line(body))));
        lines
    }

    pub(super) fn answer(
        &mut self,
        request: &Request,
        project: &str,
        number: &str,
        rest: &str,
    ) -> Answer {
        if let Some(path) = rest.strip_prefix(ACCOUNTS) {
            return self.of_accounts(request, project, path.trim_start_matches('/'));
        }
        let Some(path) = rest.strip_prefix(POOLS) else {
            return not_found(rest);
        };
        let path = path.trim_start_matches('/');
        if let Some((_, operation)) = path.split_once("/operations/") {
            return self.operation(number, operation);
        }
        match (&request.method, path.split_once(':')) {
            (&Method::POST, Some((path, "undelete"))) => self.undelete(number, path),
            (&Method::POST, None) => self.create(request, number, path),
            (&Method::GET, None) => match self.pools.get(path) {
                Some(body) => Answer::ok(body.clone()),
                None => not_found(path),
            },
            (&Method::PATCH, None) => self.patch(request, number, path),
            (&Method::DELETE, None) => self.delete(number, path),
            _ => not_found(path),
        }
    }

    fn of_accounts(&mut self, request: &Request, project: &str, path: &str) -> Answer {
        if let Some((email, verb)) = path.split_once(':') {
            return match self.accounts.get_mut(email) {
                Some(account) => account.answer(request, email, verb, project),
                None => not_found(email),
            };
        }
        match (&request.method, self.accounts.get(path)) {
            (&Method::POST, _) if path.is_empty() => self.create_account(request, project),
            (&Method::GET, Some(account)) if account.age >= READABLE => {
                Answer::ok(account.body.clone())
            }
            (&Method::DELETE, Some(_)) => {
                self.accounts.remove(path);
                self.deleted = Some(path.to_owned());
                Answer::ok(json!({}))
            }
            _ => not_found(path),
        }
    }

    fn create_account(&mut self, request: &Request, project: &str) -> Answer {
        let id = request.body["accountId"].as_str().unwrap_or_default();
        if !(6..=30).contains(&id.len()) {
            let message = "An account ID has 6 to 30 characters.";
            return Answer::refused(400, "INVALID_ARGUMENT", message);
        }
        let email = format!("{id}@{project}.iam.gserviceaccount.com");
        if self.accounts.contains_key(&email) {
            let message = format!("Service account {id} already exists within project {project}.");
            return Answer::refused(409, "ALREADY_EXISTS", &message);
        }
        let mut body = request.body["serviceAccount"].clone();
        body["email"] = json!(email);
        body["name"] = json!(format!("projects/{project}/serviceAccounts/{email}"));
        let account = Account {
            body: body.clone(),
            ..Account::default()
        };
        self.accounts.insert(email, account);
        Answer::ok(body)
    }

    fn create(&mut self, request: &Request, number: &str, collection: &str) -> Answer {
        let parameter = match collection {
            "" => "workloadIdentityPoolId",
            _ => "workloadIdentityPoolProviderId",
        };
        let id = request.parameter(parameter).unwrap_or_default();
        let name = request.body["displayName"].as_str().unwrap_or_default();
        if !(4..=32).contains(&id.len()) || id.starts_with("gcp-") || name.len() > LONGEST_NAME {
            return Answer::refused(400, "INVALID_ARGUMENT", "The name or ID is invalid.");
        }
        if let Some(pool) = collection.strip_suffix("/providers")
            && let Some(refusal) = self.unusable(pool)
        {
            return refusal;
        }
        let path = format!("{collection}/{id}")
            .trim_start_matches('/')
            .to_owned();
        if self.pools.contains_key(&path) {
            return Answer::refused(409, "ALREADY_EXISTS", "Requested entity already exists");
        }
        let mut body = request.body.clone();
        body["name"] = json!(format!("projects/{number}{POOLS}/{path}"));
        body["state"] = json!("ACTIVE");
        self.pools.insert(path.clone(), body);
        self.begin(number, path)
    }

    /// The refusal of a pool that is not complete.
    fn unusable(&self, pool: &str) -> Option<Answer> {
        let is_active = self
            .pools
            .get(pool)
            .is_some_and(|body| body["state"] == "ACTIVE");
        let mut operations = self.operations.values();
        let is_pending = operations.any(|(steps, target)| *steps > 0 && target == pool);
        (!is_active || is_pending).then(|| not_found(pool))
    }

    fn undelete(&mut self, number: &str, path: &str) -> Answer {
        let parent = path.split_once("/providers/").map(|(pool, _)| pool);
        if let Some(refusal) = parent.and_then(|pool| self.unusable(pool)) {
            return refusal;
        }
        let deleted = self
            .pools
            .get_mut(path)
            .filter(|body| body["state"] == "DELETED");
        let Some(body) = deleted else {
            return Answer::refused(400, "FAILED_PRECONDITION", "It is not deleted.");
        };
        body["state"] = json!("ACTIVE");
        self.begin(number, path.to_owned())
    }

    fn patch(&mut self, request: &Request, number: &str, path: &str) -> Answer {
        let live = self
            .pools
            .get_mut(path)
            .filter(|body| body["state"] != "DELETED");
        let Some(body) = live else {
            return not_found(path);
        };
        for field in request
            .parameter("updateMask")
            .unwrap_or_default()
            .split(',')
        {
            let pointer = format!("/{}", camel_case(field).replace('.', "/"));
            let value = request.body.pointer(&pointer).cloned().unwrap_or_default();
            match pointer.trim_start_matches('/').split_once('/') {
                Some((outer, inner)) => body[outer][inner] = value,
                None => body[pointer.trim_start_matches('/')] = value,
            }
        }
        self.begin(number, path.to_owned())
    }

    fn delete(&mut self, number: &str, path: &str) -> Answer {
        let live = self
            .pools
            .get_mut(path)
            .filter(|body| body["state"] != "DELETED");
        let Some(body) = live else {
            return not_found(path);
        };
        body["state"] = json!("DELETED");
        self.begin(number, path.to_owned())
    }

    fn begin(&mut self, number: &str, path: String) -> Answer {
        self.next += 1;
        let name = self.next.to_string();
        let operation = format!("projects/{number}{POOLS}/{path}/operations/{name}");
        self.operations.insert(name, (STEPS, path));
        Answer::ok(json!({ "name": operation }))
    }

    fn operation(&self, number: &str, name: &str) -> Answer {
        let Some((steps, path)) = self.operations.get(name) else {
            return not_found(name);
        };
        let name = format!("projects/{number}{POOLS}/{path}/operations/{name}");
        if *steps > 0 {
            return Answer::ok(json!({ "name": name }));
        }
        Answer::ok(json!({ "name": name, "done": true, "response": {} }))
    }
}

/// `jwks_json` as `jwksJson`.
fn camel_case(field: &str) -> String {
    let mut parts = field.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (head, tail) = part.split_at(part.len().min(1));
        format!("{name}{}{tail}", head.to_uppercase())
    })
}
