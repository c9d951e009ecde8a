//! The status of an object on success: pure.

use serde_json::{Value, json};

/// The domain of Routes and balancers.
const DOMAIN: &str = "apps.example.com";

/// The Job that hands on which features a release has.
const FEATURES: &str = "featuregate-generator";

/// What a controller would write to an object, unless it is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) spec: Option<Value>,
    pub(super) status: Option<Value>,
    /// What its pods make.
    pub(super) made: Vec<Value>,
}

/// From an object to what is due.
pub(super) type Outcome = fn(&Value) -> Due;

// === impl Due ===

impl Due {
    fn status(status: Value) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }
}

/// All replicas are there, of the latest template.
pub(super) fn deployment(object: &Value) -> Due {
    if is_observed(object) {
        return Due::default();
    }
    let replicas = replicas(object);
    let condition = |kind: &str, reason: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": "" });
    Due::status(json!({
        "observedGeneration": object["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [
            condition("Available", "MinimumReplicasAvailable"),
            condition("Progressing", "NewReplicaSetAvailable"),
        ],
    }))
}

/// The same; its revisions have no names, for there are none.
pub(super) fn stateful_set(object: &Value) -> Due {
    if is_observed(object) {
        return Due::default();
    }
    let replicas = replicas(object);
    Due::status(json!({
        "observedGeneration": object["metadata"]["generation"],
        "replicas": replicas,
        "updatedReplicas": replicas,
        "currentReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "currentRevision": "1",
        "updateRevision": "1",
    }))
}

/// It is complete, and has made what others read.
pub(super) fn job(object: &Value) -> Due {
    if object["status"]["succeeded"].is_number() {
        return Due::default();
    }
    let time = &object["metadata"]["creationTimestamp"];
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": time });
    let status = json!({
        "succeeded": 1,
        "startTime": time,
        "completionTime": time,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    Due {
        made: if object["metadata"]["name"] == FEATURES {
            vec![features(object)]
        } else {
            Vec::new()
        },
        ..Due::status(status)
    }
}

/// The features of a release that has none of its own.
fn features(job: &Value) -> Value {
    let gate = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": { "name": "cluster" },
        "spec": {},
        "status": { "featureGates": [{ "version": "0.0.0", "enabled": [], "disabled": [] }] },
    });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": job["metadata"]["namespace"], "name": "feature-gate" },
        // JSON is YAML.
        "data": { "feature-gate.yaml": gate.to_string() },
    })
}

/// A balancer has a name.
pub(super) fn service(object: &Value) -> Due {
    let balanced = object["spec"]["type"] == "LoadBalancer";
    if !balanced || !object["status"]["loadBalancer"]["ingress"].is_null() {
        return Due::default();
    }
    let ingress = json!([{ "hostname": host(object, "balancers") }]);
    Due::status(json!({ "loadBalancer": { "ingress": ingress } }))
}

/// A Route has a host and is admitted.
pub(super) fn route(object: &Value) -> Due {
    let given = object["spec"]["host"].as_str().unwrap_or_default();
    let host = match given {
        "" => host(object, DOMAIN),
        _ => given.to_owned(),
    };
    let admitted = &object["status"]["ingress"][0]["host"];
    Due {
        made: Vec::new(),
        spec: given.is_empty().then(|| json!({ "host": host })),
        status: (*admitted != host.as_str()).then(|| {
            json!({ "ingress": [{
                "host": host,
                "routerName": "default",
                "routerCanonicalHostname": format!("router-default.{DOMAIN}"),
                "wildcardPolicy": "None",
                "conditions": [{ "type": "Admitted", "status": "True" }],
            }] })
        }),
    }
}

fn host(object: &Value, domain: &str) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}-{}.{domain}", text("name"), text("namespace"))
}

fn replicas(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

fn is_observed(object: &Value) -> bool {
    let status = &object["status"];
    status["observedGeneration"] == object["metadata"]["generation"]
        && status["replicas"].as_u64().unwrap_or(0) == replicas(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reached_outcomes_are_unchanged() {
        let kinds: [(Outcome, Value); 5] = [
            (deployment, json!({ "spec": { "replicas": 2 } })),
            (stateful_set, json!({ "spec": {} })),
            (job, json!({ "spec": {} })),
            (service, json!({ "spec": { "type": "LoadBalancer" } })),
            (route, json!({ "spec": {} })),
        ];
        for (outcome, mut object) in kinds {
            object["metadata"] = json!({
                "namespace": "a", "name": "b", "generation": 3,
                "creationTimestamp": "2030-01-31T12:00:00Z",
            });
            let due = outcome(&object);
            assert!(due.status.is_some(), "{object}");
            if let Some(spec) = due.spec {
                object["spec"] = spec;
            }
            object["status"] = due.status.unwrap_or_default();
            assert_eq!(outcome(&object), Due::default(), "{object}");
        }
    }

    #[test]
    fn a_service_within_the_cluster_has_no_balancer() {
        let object = json!({ "spec": { "type": "ClusterIP" } });
        assert_eq!(service(&object), Due::default());
    }
}
