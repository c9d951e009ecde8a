//! Whether all API servers have read a configuration, by their Deployment.
//!
//! Its status does not count terminating pods, which still serve: they are looked for in addition.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};

use super::{HASH, SERVER};

/// What a Deployment lacks until all its pods have read the configuration with this hash.
pub(crate) fn unfinished(deployment: Option<&Deployment>, hash: &str) -> Option<String> {
    let Some(deployment) = deployment else {
        return Some(format!("Deployment {SERVER} does not exist"));
    };
    if annotated(deployment) != Some(hash) {
        let problem = "its pods do not have the current encryption configuration";
        return Some(format!("Deployment {SERVER}: {problem}"));
    }
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation != deployment.metadata.generation {
        return Some(format!(
            "Deployment {SERVER}: the latest change is not observed"
        ));
    }
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    incomplete(&status, replicas.unwrap_or(1)).map(|counts| {
        format!("Deployment {SERVER}: not all replicas are updated and available ({counts})")
    })
}

fn annotated(deployment: &Deployment) -> Option<&str> {
    let template = &deployment.spec.as_ref()?.template;
    let annotations = template.metadata.as_ref()?.annotations.as_ref()?;
    annotations.get(HASH).map(String::as_str)
}

fn incomplete(status: &DeploymentStatus, replicas: i32) -> Option<String> {
    let counts = [
        ("replicas", status.replicas),
        ("updated", status.updated_replicas),
        ("ready", status.ready_replicas),
        ("available", status.available_replicas),
    ];
    let counts = counts.map(|(name, count)| (name, count.unwrap_or_default()));
    let is_complete = counts.iter().all(|(_, count)| *count == replicas)
        && status.unavailable_replicas.unwrap_or_default() == 0;
    if is_complete {
        return None;
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}/{replicas}"))
        .collect();
    Some(counts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
    fn deployment(status: Value) -> Deployment {
        let mut all = json!({
            "observedGeneration": 7, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        });
        for (field, value) in status.as_object().unwrap() {
            all[field] = value.clone();
        }
        serde_json::from_value(json!({
            "metadata": { "name": SERVER, "generation": 7 },
            "spec": {
                "replicas": 3, "selector": {},
                "template": { "metadata": { "annotations": { HASH: "sha256:a" } } },
            },
            "status": all,
        }))
        .unwrap()
    }

    #[test]
    fn a_rollout_is_finished_when_all_replicas_are_current() {
        for (status, hash, expected) in [
            (json!({}), "sha256:a", None),
            (
                json!({}),
                "sha256:b",
                Some("do not have the current encryption configuration"),
            ),
            (
                json!({ "observedGeneration": 6 }),
                "sha256:a",
                Some("not observed"),
            ),
            (json!({ "replicas": 4 }), "sha256:a", Some("replicas 4/3")),
            (
                json!({ "updatedReplicas": 2 }),
                "sha256:a",
                Some("updated 2/3"),
            ),
            (json!({ "readyReplicas": 2 }), "sha256:a", Some("ready 2/3")),
            (
                json!({ "availableReplicas": null }),
                "sha256:a",
                Some("available 0/3"),
            ),
            (
                json!({ "unavailableReplicas": 1 }),
                "sha256:a",
                Some("not all replicas"),
            ),
        ] {
            let found = unfinished(Some(&deployment(status.clone())), hash);
            match expected {
                None => assert_eq!(found, None, "{status}"),
                Some(part) => assert!(found.clone().unwrap().contains(part), "{found:?}"),
            }
        }
        assert!(
            unfinished(None, "sha256:a")
                .unwrap()
                .contains("does not exist")
        );
    }
}
