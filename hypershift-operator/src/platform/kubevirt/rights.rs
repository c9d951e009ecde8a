//! What the user of a kubeconfig may do in the namespace of virtual machines on another infrastructure cluster.
//!
//! docs/clusters.md has a Role with all of it.

use kube::api::PostParams;
use serde_json::{Value, json};

use super::client::{InfraCluster, LONGEST_BODY, describe, given};
use super::virtualization::Cache;
use crate::facts::{Facts, Virtualization};

/// Where access is reviewed.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// What a Role may allow in one word.
const ANY: &str = "*";
/// All that controllers do with objects.
const ALL: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];
/// All that is done with a part of an object that is written with it.
const WITH: &[&str] = &["create", "update"];

/// Verbs on a resource, or on a subresource `<resource>/<part>`.
#[derive(Debug, Clone, Copy)]
struct Right {
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
}

/// What machines, load balancers and storage need.
const RIGHTS: [Right; 11] = [
    right("kubevirt.io", "virtualmachines", ALL),
    right("kubevirt.io", "virtualmachines/finalizers", WITH),
    right("kubevirt.io", "virtualmachineinstances", ALL),
    right("cdi.kubevirt.io", "datavolumes", ALL),
    right("", "services", ALL),
    right("", "secrets", ALL),
    right("discovery.k8s.io", "endpointslices", ALL),
    right("discovery.k8s.io", "endpointslices/restricted", WITH),
    right("networking.k8s.io", "networkpolicies", ALL),
    right(
        "snapshot.storage.k8s.io",
        "volumesnapshots",
        &["create", "delete", "get"],
    ),
    right("", "persistentvolumeclaims", &["get"]),
];
/// What the Route to the applications of a cluster needs.
const OF_ROUTES: [Right; 2] = [
    right("route.openshift.io", "routes", ALL),
    right("route.openshift.io", "routes/custom-host", WITH),
];

/// The rights that the user of a cluster's kubeconfig does not have; none if they are not known, or if the machines are on
/// the management cluster. Events are not among them, since they are not needed.
pub(crate) async fn missing(facts: &Facts, cache: &Cache) -> Vec<String> {
    let is_found = matches!(facts.virtualization, Some(Virtualization::Found { .. }));
    let Some(user) = given(facts).filter(|_| is_found) else {
        return Vec::new();
    };
    let user = &user;
    let kubevirt = facts.cluster.spec.platform.kubevirt.as_ref();
    let has_route = kubevirt.and_then(|it| it.base_domain_passthrough) == Some(true);
    let place = (
        format!("{}/rights", user.place.0),
        format!("{}/{has_route}", user.place.1),
    );
    let request = |deadline| async move {
        let infra = InfraCluster::of(facts, user, deadline).await?;
        denied(&infra, has_route).await
    };
    let (home, time) = (&facts.id.namespace, &facts.infra_time);
    let found = cache.rights.once(home, Some(place), time, request).await;
    let found = found.unwrap_or_else(|| Err(user.silence()));
    found.unwrap_or_else(|problem| {
        let cluster = facts.id.to_string();
        tracing::debug!(cluster, problem, "Rights are not known");
        Vec::new()
    })
}

/// What is denied, one text for each resource.
async fn denied(infra: &InfraCluster, has_route: bool) -> Result<Vec<String>, String> {
    let routes: &[Right] = if has_route { &OF_ROUTES } else { &[] };
    let mut denied = Vec::new();
    for right in RIGHTS.iter().chain(routes) {
        // Most Roles allow all verbs at once.
        if right.verbs.len() > 1 && is_allowed(infra, *right, ANY).await? {
            continue;
        }
        let mut verbs = Vec::new();
        for verb in right.verbs {
            if !is_allowed(infra, *right, verb).await? {
                verbs.push(*verb);
            }
        }
        if !verbs.is_empty() {
            denied.push(format!("{} {}", verbs.join(", "), right.name()));
        }
    }
    Ok(denied)
}

async fn is_allowed(infra: &InfraCluster, right: Right, verb: &str) -> Result<bool, String> {
    let (resource, subresource) = right
        .resource
        .split_once('/')
        .unwrap_or((right.resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "namespace": infra.namespace(),
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "verb": verb,
        } },
    });
    let request = kube::core::Request::new(REVIEWS)
        .create(&PostParams::default(), review.to_string().into_bytes());
    let reviewed: kube::Result<Value> = infra.send(request, LONGEST_BODY).await;
    let reviewed = reviewed.map_err(|error| describe(&error))?;
    Ok(reviewed["status"]["allowed"] == true)
}

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right {
        group,
        resource,
        verbs,
    }
}

// === impl Right ===

impl Right {
    /// As administrators write it: `virtualmachines.kubevirt.io`.
    fn name(self) -> String {
        let Self {
            group, resource, ..
        } = self;
        if group.is_empty() {
            return resource.to_owned();
        }
        match resource.split_once('/') {
            Some((resource, part)) => format!("{resource}.{group}/{part}"),
            None => format!("{resource}.{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    /// A review of a right, and what is answered.
    fn review(right: Right, verb: &str, is_allowed: bool) -> Expect {
        let (resource, part) = right
            .resource
            .split_once('/')
            .unwrap_or((right.resource, ""));
        let attributes = json!({
            "namespace": "machines", "group": right.group, "resource": resource, "subresource": part, "verb": verb,
        });
        let answer = json!({ "status": { "allowed": is_allowed } });
        Expect::post(REVIEWS)
            .body(json!({ "spec": { "resourceAttributes": attributes } }))
            .answer(Answer::ok(&answer))
    }

    #[tokio::test]
    async fn denied_verbs_are_named() {
        for (has_route, expected) in [
            (
                false,
                vec!["delete, patch secrets", "get persistentvolumeclaims"],
            ),
            (
                true,
                vec![
                    "delete, patch secrets",
                    "get persistentvolumeclaims",
                    "create, update routes.route.openshift.io/custom-host",
                ],
            ),
        ] {
            let routes: &[Right] = if has_route { &OF_ROUTES } else { &[] };
            let mut calls = Vec::new();
            for right in RIGHTS.iter().chain(routes).copied() {
                let denied: &[&str] = match right.resource {
                    "secrets" => &["delete", "patch"],
                    "persistentvolumeclaims" => &["get"],
                    "routes/custom-host" => WITH,
                    _ => &[],
                };
                if right.verbs.len() > 1 {
                    calls.push(review(right, ANY, denied.is_empty()));
                }
                if right.verbs.len() == 1 || !denied.is_empty() {
                    let verbs = right.verbs.iter();
                    calls.extend(verbs.map(|verb| review(right, verb, !denied.contains(verb))));
                }
            }
            let scenario = Scenario::new(calls);
            let infra = InfraCluster::local(scenario.client(), "machines");
            let found = super::denied(&infra, has_route).await;
            assert_eq!(found.unwrap(), expected);
            scenario.finish();
        }
    }

    #[tokio::test]
    async fn rights_that_cannot_be_reviewed_are_not_known() {
        let scenario =
            Scenario::new([Expect::post(REVIEWS).answer(Answer::error(403, "Forbidden"))]);
        let infra = InfraCluster::local(scenario.client(), "machines");
        let found = denied(&infra, false).await;
        assert_eq!(found.unwrap_err(), "it responds with status 403");
        scenario.finish();
    }
}
