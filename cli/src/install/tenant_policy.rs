//! The admission policies that hold tenants to the tenant model of `SECURITY.md`. Pure.
//!
//! One is for authors of HostedClusters and NodePools, and is here; the other is for what runs in the namespaces of control
//! planes ([`control_planes`]). They have the same mode.
//!
//! What reaches beyond an author's own cluster needs the verb [`OVERRIDE`] on the object, which the API server asks of its
//! authorizer. Only changes are validated: an object that carries such a setting already stays editable by its author,
//! and so does a whole fleet when the policy arrives. The operators hold the verb themselves (`rbac`).

mod control_planes;
mod expressions;
pub(crate) mod reserved;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::kind::Kind;
use super::object::{Id, Object};
use crate::Usage;

/// The verb on `hostedclusters` and `nodepools` with which one may change what is reserved.
pub(crate) const OVERRIDE: &str = "override";
/// The kinds that the verb is for.
pub(crate) const KINDS: [&str; 2] = ["hostedclusters", "nodepools"];
const GROUP: &str = "hypershift.openshift.io";

/// What happens to a request that the policy does not allow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It is refused
    Enforce,
    /// It is allowed, with a warning to the client and an entry in the audit log
    #[default]
    Warn,
    /// There is no policy
    Off,
}

/// The repositories that release images of authors may come from; any if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReleaseImages(Vec<String>);

// === impl Mode ===

impl Mode {
    /// What a live binding does.
    pub(crate) fn of(binding: &Value) -> Self {
        let actions = binding["spec"]["validationActions"].as_array();
        if actions.is_some_and(|actions| actions.iter().any(|action| action == "Deny")) {
            return Self::Enforce;
        }
        Self::Warn
    }

    fn actions(self) -> Option<Value> {
        match self {
            Self::Enforce => Some(json!(["Deny", "Audit"])),
            Self::Warn => Some(json!(["Warn", "Audit"])),
            Self::Off => None,
        }
    }
}

// === impl ReleaseImages ===

impl ReleaseImages {
    /// Checks what stands in the command line, since it becomes a part of an expression.
    pub(crate) fn parse(repositories: &[String]) -> Result<Self, Usage> {
        for repository in repositories {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte);
            if repository.is_empty() || !repository.bytes().all(allowed) {
                let message = format!(
                    "--tenant-release-images {repository:?} is not a repository (for example \
                     registry.example.com/openshift-release)"
                );
                return Err(Usage::new(&message));
            }
        }
        Ok(Self(repositories.to_vec()))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The policies and their bindings; none if they are off.
pub(crate) fn objects(namespace: &str, mode: Mode, releases: &ReleaseImages) -> Vec<Object> {
    let Some(actions) = mode.actions() else {
        return Vec::new();
    };
    let authors = (name(namespace), authors(releases));
    let control_planes = (control_planes::name(namespace), control_planes::spec());
    [authors, control_planes]
        .into_iter()
        .flat_map(|(name, spec)| bound(namespace, &name, &spec, &actions))
        .collect()
}

/// A policy and its binding.
pub(super) fn bound(namespace: &str, name: &str, spec: &Value, actions: &Value) -> [Object; 2] {
    let binding = json!({ "policyName": name, "validationActions": actions });
    [
        (Kind::ValidatingAdmissionPolicy, spec),
        (Kind::ValidatingAdmissionPolicyBinding, &binding),
    ]
    .map(|(kind, spec)| Object::new(kind, namespace, name, json!({ "spec": spec })))
}

fn authors(releases: &ReleaseImages) -> Value {
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [{
            "apiGroups": [GROUP],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": KINDS,
        }] },
        "variables": expressions::variables(),
        "validations": expressions::validations(releases),
    })
}

/// The binding of an installation.
pub(crate) fn binding(namespace: &str) -> Id {
    Id {
        kind: Kind::ValidatingAdmissionPolicyBinding,
        namespace: None,
        name: name(namespace),
    }
}

/// Cluster-scoped names carry the namespace, since a cluster may have several installations.
pub(crate) fn name(namespace: &str) -> String {
    format!("{namespace}-tenant-policy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_binding_keeps_its_mode() {
        for mode in [Mode::Enforce, Mode::Warn] {
            let objects = objects("hypershift", mode, &ReleaseImages::default());
            let binding_of = &objects[1];
            assert_eq!(binding_of.id, binding("hypershift"));
            assert_eq!(Mode::of(&binding_of.body), mode);
        }
        assert!(objects("hypershift", Mode::Off, &ReleaseImages::default()).is_empty());
    }

    #[test]
    fn repositories_cannot_leave_their_expression() {
        let parse = |text: &str| ReleaseImages::parse(&[text.to_owned()]);
        assert!(parse("registry.example.com:5000/releases").is_ok());
        for text in ["", "a'] || true || ['", "a\\", "a b"] {
            let refused = parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains("--tenant-release-images"), "{refused}");
        }
    }
}
