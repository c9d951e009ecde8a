//! The API `subresources.kubevirt.io`: which version of KubeVirt there is. It has none of the subresources.

use pod_tools::serve::Response;
use serde_json::json;

/// The version of the API, and that of KubeVirt.
const VERSION: &str = "subresources.kubevirt.io/v1";
const KUBEVIRT: &str = "v1.6.0";

/// Answers a GET, if it is for this API.
pub(crate) fn respond(path: &str) -> Option<Response> {
    let answer = match path.strip_prefix("/apis/")?.strip_prefix(VERSION)? {
        "" => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": VERSION,
            "resources": [],
        }),
        "/version" => json!({ "gitVersion": KUBEVIRT, "gitTreeState": "clean" }),
        _ => return None,
    };
    Some(Response::json(&answer))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_version_is_reported_and_nothing_else() {
        let body = |path: &str| -> Value {
            let response = respond(path).unwrap();
            serde_json::from_str(&response.body).unwrap()
        };
        let list = body("/apis/subresources.kubevirt.io/v1");
        assert_eq!(list["groupVersion"], VERSION);
        let version = body("/apis/subresources.kubevirt.io/v1/version");
        assert_eq!(version["gitVersion"], KUBEVIRT);
        for path in [
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/b/start",
            "/apis/metrics.k8s.io/v1beta1/nodes",
            "/admit",
        ] {
            assert!(respond(path).is_none(), "{path}");
        }
    }
}
