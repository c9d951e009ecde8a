//! What must hold before anything is changed: a chain of pure checks, each with a reason and a way out.

mod facts;
mod permissions;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

pub(crate) use facts::{Facts, Installed, Loss, Observed, Refusal, Version};
pub(crate) use permissions::{grants, handing_out, needed};

use super::kind::{Kind, text};
use super::object::{INSTALLATION, MANAGED_BY, OURS, label_of};

/// The oldest API server that takes our CRDs: their rules use `cidr()` and `ip()`, which servers know since 1.31. What
/// else is needed is older: native sidecars (1.29), and rules that spare what is stored already (1.30).
const MINIMUM: Version = Version {
    major: 1,
    minor: 31,
};

/// Why nothing is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) subject: String,
    pub(crate) reason: String,
    pub(crate) way_out: String,
}

/// The checks, in the order in which their findings are reported.
const CHECKS: [fn(&Facts) -> Vec<Finding>; 8] = [
    server_is_new_enough,
    permissions_are_held,
    permissions_may_be_granted,
    types_do_not_go_back,
    conversion_has_a_webhook,
    names_are_free,
    stored_objects_survive,
    server_takes_everything,
];

/// What prevents an installation.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}

fn server_is_new_enough(facts: &Facts) -> Vec<Finding> {
    match &facts.version {
        Some(version) if *version < MINIMUM => vec![Finding {
            subject: format!("API server {version}"),
            reason: format!(
                "it is older than {MINIMUM}, which our CRDs need for their validation rules"
            ),
            way_out: format!("upgrade the cluster to {MINIMUM} or newer"),
        }],
        Some(_) | None => Vec::new(),
    }
}

fn permissions_are_held(facts: &Facts) -> Vec<Finding> {
    let mut verbs = BTreeMap::<String, Vec<&str>>::new();
    for denied in &facts.denied {
        let mut what = denied.clone();
        what.verb = String::new();
        verbs
            .entry(what.to_string().trim().to_owned())
            .or_default()
            .push(&denied.verb);
    }
    verbs
        .into_iter()
        .map(|(resource, verbs)| Finding {
            reason: format!("you may not {} it", verbs.join(", ")),
            subject: resource,
            way_out: "install as a user who may, for example one with the role cluster-admin"
                .to_owned(),
        })
        .collect()
}

fn permissions_may_be_granted(facts: &Facts) -> Vec<Finding> {
    facts
        .not_held
        .iter()
        .map(|permission| Finding {
            subject: format!("permission of the operators to {permission}"),
            reason: "you do not have it yourself, so the API server would not let you hand it out"
                .to_owned(),
            way_out: "install as a user who has it, or who may escalate and bind roles".to_owned(),
        })
        .collect()
}

/// An operator on the standard groups would find none of its objects.
fn types_do_not_go_back(facts: &Facts) -> Vec<Finding> {
    match (facts.installed, facts.wanted) {
        (Some(Installed::Private), Installed::Standard) => vec![Finding {
            subject: "operator".to_owned(),
            reason: "it is installed with private types, and its hosted clusters are in private groups".to_owned(),
            way_out: "set --private-capi-types: an installation never migrates hosted clusters back (hypershift migrate rollback does)"
                .to_owned(),
        }],
        (Some(Installed::Private), Installed::Private)
        | (Some(Installed::Standard) | None, Installed::Private | Installed::Standard) => Vec::new(),
    }
}

/// A CRD that names no webhook, or one that the API server would not trust, makes objects unreadable.
fn conversion_has_a_webhook(facts: &Facts) -> Vec<Finding> {
    let flaws = facts.conversion.iter();
    flaws
        .map(|flaw| Finding {
            subject: flaw.subject.clone(),
            reason: flaw.reason.clone(),
            way_out: "remove the webhook's Secret if its certificate is damaged, or leave out --enable-conversion-webhook"
                .to_owned(),
        })
        .collect()
}

fn names_are_free(facts: &Facts) -> Vec<Finding> {
    if facts.take_over {
        return Vec::new();
    }
    facts
        .observed
        .iter()
        .filter_map(|observed| {
            let live = observed.live.as_ref()?;
            let owner = foreign_owner(live, &facts.installation)?;
            Some(Finding {
                subject: observed.id.to_string(),
                reason: format!("it belongs to {owner}"),
                way_out:
                    "remove it with the tool that owns it, or set --take-over if it is no longer managed"
                        .to_owned(),
            })
        })
        .collect()
}

/// Who else claims a live object.
fn foreign_owner(live: &Value, installation: &str) -> Option<String> {
    let metadata = &live["metadata"];
    if let Some(owner) = metadata["ownerReferences"].get(0) {
        return Some(format!("{} {}", text(owner, "/kind"), text(owner, "/name")));
    }
    if let Some(release) = metadata["annotations"]["meta.helm.sh/release-name"].as_str() {
        return Some(format!("the Helm release {release}"));
    }
    if label_of(live, "olm.managed") == Some("true") {
        return Some("the Operator Lifecycle Manager".to_owned());
    }
    if let Some(manager) = label_of(live, MANAGED_BY).filter(|&name| name != OURS) {
        return Some(manager.to_owned());
    }
    // CRDs and priority classes are everybody's: who installs last keeps them.
    let kind = text(live, "/kind");
    if kind == Kind::Crd.name() || kind == Kind::PriorityClass.name() {
        return None;
    }
    label_of(live, INSTALLATION)
        .filter(|&name| name != installation)
        .map(|name| format!("the installation in namespace {name}"))
}

fn stored_objects_survive(facts: &Facts) -> Vec<Finding> {
    facts.losses.iter().map(Loss::finding).collect()
}

fn server_takes_everything(facts: &Facts) -> Vec<Finding> {
    facts.refusals.iter().map(Refusal::finding).collect()
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            reason,
            way_out,
        } = self;
        write!(f, "{subject}: {reason}: {way_out}")
    }
}

#[cfg(test)]
mod tests;
