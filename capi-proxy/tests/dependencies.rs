//! The dependencies of the sidecar.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::process::Command;

/// Finding Q05: what the sidecar shares with the operators brings no client into its image.
#[test]
fn the_proxy_has_no_kubernetes_client() {
    // With its own features, as for its image, and not with those of the whole workspace.
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges=normal,build"])
        .args(["--prefix=none", "--package=capi-proxy"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let graph = String::from_utf8(output.stdout).unwrap();
    assert!(graph.contains("\nsupport "), "{graph}");
    for client in ["k8s-openapi", "kube", "kube-client", "kube-core", "tower"] {
        let dependency = format!("\n{client} ");
        assert!(!graph.contains(&dependency), "{client} in {graph}");
    }
}
