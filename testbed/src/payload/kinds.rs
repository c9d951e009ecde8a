//! Kinds of OpenShift that components of a hosted cluster look for in it: in a form of our own, which takes any object.
//!
//! The release's `render` programs contain the real definitions; their stand-in contains these.

use serde_json::{Value, json};

use crate::crds;
use crate::images::File;

/// Where the stand-in of `render` reads the manifests that it writes.
const DIRECTORY: &str = "/usr/share/render";

/// Group, kind, plural, scope.
type Kind = (&'static str, &'static str, &'static str, Scope);

#[derive(Debug, Clone, Copy)]
enum Scope {
    Cluster,
    Namespaced,
}

const CONFIG: &str = "config.openshift.io";
const OPERATOR: &str = "operator.openshift.io";
const NETWORK: &str = "network.operator.openshift.io";
const REGISTRY: &str = "imageregistry.operator.openshift.io";

const KINDS: [Kind; 27] = [
    (CONFIG, "APIServer", "apiservers", Scope::Cluster),
    (CONFIG, "Authentication", "authentications", Scope::Cluster),
    (CONFIG, "Build", "builds", Scope::Cluster),
    (
        CONFIG,
        "ClusterOperator",
        "clusteroperators",
        Scope::Cluster,
    ),
    (CONFIG, "ClusterVersion", "clusterversions", Scope::Cluster),
    (CONFIG, "DNS", "dnses", Scope::Cluster),
    (CONFIG, "FeatureGate", "featuregates", Scope::Cluster),
    (CONFIG, "Image", "images", Scope::Cluster),
    (
        CONFIG,
        "ImageDigestMirrorSet",
        "imagedigestmirrorsets",
        Scope::Cluster,
    ),
    (CONFIG, "Infrastructure", "infrastructures", Scope::Cluster),
    (CONFIG, "Ingress", "ingresses", Scope::Cluster),
    (CONFIG, "Network", "networks", Scope::Cluster),
    (CONFIG, "OAuth", "oauths", Scope::Cluster),
    (CONFIG, "OperatorHub", "operatorhubs", Scope::Cluster),
    (CONFIG, "Project", "projects", Scope::Cluster),
    (CONFIG, "Proxy", "proxies", Scope::Cluster),
    (CONFIG, "Scheduler", "schedulers", Scope::Cluster),
    (
        OPERATOR,
        "CSISnapshotController",
        "csisnapshotcontrollers",
        Scope::Cluster,
    ),
    (
        OPERATOR,
        "CloudCredential",
        "cloudcredentials",
        Scope::Cluster,
    ),
    (
        OPERATOR,
        "ClusterCSIDriver",
        "clustercsidrivers",
        Scope::Cluster,
    ),
    (
        OPERATOR,
        "IngressController",
        "ingresscontrollers",
        Scope::Namespaced,
    ),
    (OPERATOR, "DNS", "dnses", Scope::Cluster),
    (OPERATOR, "Network", "networks", Scope::Cluster),
    (OPERATOR, "Storage", "storages", Scope::Cluster),
    (NETWORK, "EgressRouter", "egressrouters", Scope::Namespaced),
    (NETWORK, "OperatorPKI", "operatorpkis", Scope::Namespaced),
    (REGISTRY, "Config", "configs", Scope::Cluster),
];

/// A file for each.
pub(super) fn files() -> impl Iterator<Item = File> {
    KINDS.into_iter().map(|kind| {
        let (group, _, plural, _) = kind;
        let name = format!("{DIRECTORY}/0000_10_{group}_{plural}.crd.yaml");
        // JSON is YAML.
        File::text(name, definition(kind).to_string())
    })
}

fn definition((group, kind, plural, scope): Kind) -> Value {
    let scope = match scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut crd = crds::of_any_object(group, "v1", kind, plural, scope);
    crd["metadata"]["annotations"] =
        json!({ "include.release.openshift.io/ibm-cloud-managed": "true" });
    crd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_is_named_after_its_kind() {
        for kind in KINDS {
            let definition = definition(kind);
            let name = definition["metadata"]["name"].as_str().unwrap();
            assert_eq!(name, format!("{}.{}", kind.2, kind.0));
            assert_eq!(definition["spec"]["names"]["plural"], kind.2);
        }
    }
}
