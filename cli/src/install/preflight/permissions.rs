//! Which permissions an installation needs, and which it hands out. Pure.

use crate::install::args::Outputs;
use crate::install::cluster::Permission;
use crate::install::kind::{Kind, Scope, Stage};
use crate::install::rbac::{Reach, Rule};

/// Kinds of which nothing is ever removed by an installation.
const NEVER_REMOVED: [Kind; 3] = [Kind::Crd, Kind::Namespace, Kind::PriorityClass];

/// What the user must be allowed. Of optional kinds only where the cluster has them.
pub(crate) fn needed(namespace: &str, outputs: Outputs, monitoring: bool) -> Vec<Permission> {
    let wanted = |kind: Kind| match kind.stage() {
        Stage::Definitions => outputs.crds(),
        Stage::Ground | Stage::Workloads => outputs.resources(),
    };
    let mut permissions: Vec<Permission> = Kind::ALL
        .into_iter()
        .filter(|kind| wanted(*kind) && (monitoring || !kind.is_optional()))
        .flat_map(|kind| of_kind(kind, namespace))
        .collect();
    if outputs.resources() {
        permissions.push(list_hosted_clusters());
    }
    permissions
}

/// They decide whether operator-legacy is needed.
fn list_hosted_clusters() -> Permission {
    Permission {
        verb: "list".to_owned(),
        group: "hypershift.openshift.io".to_owned(),
        resource: "hostedclusters".to_owned(),
        namespace: None,
        name: None,
    }
}

fn of_kind(kind: Kind, namespace: &str) -> Vec<Permission> {
    let mut verbs = vec!["get", "list", "create", "patch"];
    if !NEVER_REMOVED.contains(&kind) {
        verbs.push("delete");
    }
    let resource = kind.resource();
    let namespace = match resource.scope {
        Scope::Cluster => None,
        Scope::Namespace => Some(namespace.to_owned()),
    };
    verbs
        .into_iter()
        .map(|verb| Permission {
            verb: verb.to_owned(),
            group: resource.group.to_owned(),
            resource: resource.plural.to_owned(),
            namespace: namespace.clone(),
            name: None,
        })
        .collect()
}

/// The permissions with which one may hand out what one does not have.
pub(crate) fn handing_out() -> Vec<Permission> {
    let of = |kind: Kind, verb: &str| Permission {
        verb: verb.to_owned(),
        group: kind.resource().group.to_owned(),
        resource: kind.resource().plural.to_owned(),
        namespace: None,
        name: None,
    };
    [Kind::ClusterRole, Kind::Role]
        .into_iter()
        .flat_map(|kind| [of(kind, "escalate"), of(kind, "bind")])
        .collect()
}

/// Every permission in these rules.
pub(crate) fn grants(namespace: &str, rules: &[Rule]) -> Vec<Permission> {
    let mut grants = Vec::new();
    for rule in rules {
        let names: Vec<Option<String>> = match rule.names {
            [] => vec![None],
            names => names.iter().map(|&name| Some(name.to_owned())).collect(),
        };
        for (resource, verb, name) in combinations(rule, &names) {
            grants.push(Permission {
                verb: verb.to_owned(),
                group: rule.group.clone(),
                resource: resource.to_owned(),
                namespace: match rule.reach {
                    Reach::Cluster => None,
                    Reach::Own => Some(namespace.to_owned()),
                },
                name: name.clone(),
            });
        }
    }
    grants.sort();
    grants.dedup();
    grants
}

fn combinations<'a>(
    rule: &'a Rule,
    names: &'a [Option<String>],
) -> impl Iterator<Item = (&'a str, &'a str, &'a Option<String>)> {
    rule.resources.iter().flat_map(move |resource| {
        rule.verbs.iter().flat_map(move |verb| {
            names
                .iter()
                .map(move |name| (resource.as_str(), *verb, name))
        })
    })
}
