//! Pods of aggregated API servers become unready while the guest's API server does not respond, because they cannot
//! authorize requests without it.

use control_plane_component::Context;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::json;

use super::edit;

/// Adds a container that is ready while the guest's API server is live. It is added after those of the manifest.
pub(super) fn add_check(context: &Context<'_>, pod: &mut PodSpec) {
    pod.containers.push(check(&context.api_service_url()));
}

fn check(server: &str) -> Container {
    let request =
        format!("curl --insecure --fail --silent --max-time 4 --output /dev/null {server}/livez");
    edit::from_json(json!({
        "name": "kas-readiness-check",
        "image": "cli",
        // The first process of a container ends on SIGTERM only if it handles it.
        "command": ["/bin/bash", "-c", "trap exit TERM; sleep infinity & wait"],
        "readinessProbe": {
            "exec": { "command": ["/bin/bash", "-c", request] },
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "resources": { "requests": { "cpu": "10m", "memory": "10Mi" } },
    }))
}
