//! The pod security standard `restricted`, as the API server enforces it.

use serde_json::Value;

/// Volumes that `restricted` allows.
const VOLUMES: [&str; 8] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "name",
    "persistentVolumeClaim",
    "projected",
];

/// Why the standard `restricted` rejects a pod; empty if it admits it. `pod` is the spec of a pod.
///
/// <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>
pub fn restricted_violations(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod[field] == true {
            found.push(field.to_owned());
        }
    }
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        for kind in volume.as_object().into_iter().flatten() {
            if !VOLUMES.contains(&kind.0.as_str()) && kind.0 != "secret" {
                found.push(format!("volume {}: {}", volume["name"], kind.0));
            }
        }
    }
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.iter().filter_map(|list| pod[*list].as_array());
    for container in containers.flatten() {
        let name = container["name"].as_str().unwrap_or_default();
        let problems = of_container(container, &pod["securityContext"]);
        found.extend(problems.into_iter().map(|it| format!("{name}: {it}")));
    }
    found
}

fn of_container(container: &Value, pod: &Value) -> Vec<&'static str> {
    let own = &container["securityContext"];
    // What a container sets takes precedence over its pod.
    let either = |field: &str| {
        if own[field].is_null() {
            &pod[field]
        } else {
            &own[field]
        }
    };
    let profile = &either("seccompProfile")["type"];
    let words = |field: &str| {
        let words = own["capabilities"][field].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let has_host_port = container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|port| port["hostPort"].as_u64().is_some_and(|port| port != 0));
    [
        (either("runAsNonRoot") == true, "runAsNonRoot is not true"),
        (either("runAsUser") != 0, "runAsUser is 0"),
        (
            profile == "RuntimeDefault" || profile == "Localhost",
            "seccompProfile is not set",
        ),
        (
            own["allowPrivilegeEscalation"] == false,
            "allowPrivilegeEscalation is not false",
        ),
        (own["privileged"] != true, "privileged"),
        (
            words("drop").contains(&"ALL"),
            "capabilities are not dropped",
        ),
        (
            words("add").iter().all(|it| *it == "NET_BIND_SERVICE"),
            "capabilities are added",
        ),
        (!has_host_port, "hostPort"),
    ]
    .into_iter()
    .filter_map(|(holds, problem)| (!holds).then_some(problem))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "main",
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] },
                },
            }],
            "volumes": [{ "name": "a", "secret": { "secretName": "a" } }, { "name": "b", "emptyDir": {} }],
        })
    }

    #[test]
    fn each_rule_of_the_standard_is_checked() {
        assert_eq!(restricted_violations(&pod()), Vec::<String>::new());
        for (pointer, value) in [
            ("/hostNetwork", json!(true)),
            ("/securityContext", json!({})),
            ("/securityContext/runAsUser", json!(0)),
            ("/securityContext/seccompProfile/type", json!("Unconfined")),
            (
                "/volumes/1",
                json!({ "name": "b", "hostPath": { "path": "/" } }),
            ),
            ("/containers/0/securityContext/runAsNonRoot", json!(false)),
            ("/containers/0/securityContext/privileged", json!(true)),
            (
                "/containers/0/securityContext/allowPrivilegeEscalation",
                json!(null),
            ),
            ("/containers/0/securityContext/capabilities/drop", json!([])),
            (
                "/containers/0/securityContext/capabilities/add",
                json!(["SYS_ADMIN"]),
            ),
            (
                "/containers/0/ports",
                json!([{ "containerPort": 1, "hostPort": 1 }]),
            ),
        ] {
            let mut pod = pod();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = pod.pointer_mut(parent).unwrap();
            match field.parse::<usize>() {
                Ok(index) => parent[index] = value,
                Err(_) => parent[field] = value,
            }
            assert!(!restricted_violations(&pod).is_empty(), "{pointer}");
        }
    }
}
