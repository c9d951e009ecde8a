//! Kubeconfigs of private clusters for `kubectl port-forward`.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::{Value, json};

use crate::hosted::{Hosted, refused};

/// The Service of a hosted cluster's API server.
const SERVICE: &str = "kube-apiserver";
/// Its port, unless it has another one.
const PORT: i32 = 6443;

/// Whether the API server can be reached from its own network only.
pub(super) fn is_private(cluster: &HostedCluster) -> anyhow::Result<bool> {
    let platform = serde_json::to_value(&cluster.spec.platform)?;
    let fields = [
        "/aws/endpointAccess",
        "/azure/topology",
        "/gcp/endpointAccess",
    ];
    let mut values = fields.iter().filter_map(|field| platform.pointer(field));
    Ok(values.any(|value| value == "Private"))
}

/// The port of the Service.
pub(super) async fn port(hosted: &Hosted, control_plane: &str) -> anyhow::Result<i32> {
    let services = Api::<Service>::namespaced(hosted.client().clone(), control_plane);
    let service = services.get_opt(SERVICE).await.map_err(|error| {
        refused(&error).context(format!("failed to get Service {control_plane}/{SERVICE}"))
    })?;
    let ports = service.and_then(|service| service.spec?.ports);
    let port = ports.iter().flatten().next().map(|port| port.port);
    Ok(port.unwrap_or(PORT))
}

/// What the user has to run.
pub(super) fn hint(named: &str, control_plane: &str, port: i32) -> String {
    format!(
        "{named} is private; reach it with: kubectl port-forward --namespace {control_plane} service/{SERVICE} {port}:{port}"
    )
}

/// The kubeconfig with this machine as the server.
pub(super) fn forwarded(mut kubeconfig: Value, port: i32) -> Value {
    let clusters = kubeconfig["clusters"].as_array_mut();
    for entry in clusters.into_iter().flatten() {
        entry["cluster"]["server"] = json!(format!("https://localhost:{port}"));
    }
    kubeconfig
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::hosted::bare_cluster;

    fn cluster(platform: &Value) -> HostedCluster {
        let mut cluster = bare_cluster("a");
        cluster["spec"]["platform"] = platform.clone();
        serde_json::from_value(cluster).unwrap()
    }

    #[test]
    fn only_private_clusters_are_forwarded() {
        let roles = json!({
            "ingressARN": "", "imageRegistryARN": "", "storageARN": "", "networkARN": "",
            "kubeCloudControllerARN": "", "nodePoolManagementARN": "", "controlPlaneOperatorARN": "",
        });
        let aws = |access: &str| {
            json!({
                "type": "AWS",
                "aws": { "region": "us-east-1", "rolesRef": roles, "endpointAccess": access },
            })
        };
        let gcp = |access: &str| {
            let email = "a@b.iam.gserviceaccount.com";
            json!({
                "type": "GCP",
                "gcp": {
                    "project": "my-project",
                    "region": "us-central1",
                    "endpointAccess": access,
                    "networkConfig": {
                        "network": { "name": "n" },
                        "privateServiceConnectSubnet": { "name": "s" },
                    },
                    "workloadIdentity": {
                        "projectNumber": "123456789012", "poolID": "my-pool", "providerID": "my-provider",
                        "serviceAccountsEmails": {
                            "nodePool": email, "controlPlane": email, "cloudController": email,
                            "storage": email, "imageRegistry": email, "network": email,
                        },
                    },
                },
            })
        };
        for (platform, expected) in [
            (gcp("Private"), true),
            (gcp("PublicAndPrivate"), false),
            (aws("Private"), true),
            (aws("PublicAndPrivate"), false),
            (json!({ "type": "None" }), false),
        ] {
            let found = is_private(&cluster(&platform)).unwrap();
            assert_eq!(found, expected, "{platform}");
        }
    }

    #[test]
    fn the_server_is_this_machine() {
        let kubeconfig = json!({
            "clusters": [{ "name": "c", "cluster": { "server": "https://a:443", "certificate-authority-data": "x" } }],
        });
        let expected = json!({
            "clusters": [{
                "name": "c",
                "cluster": { "server": "https://localhost:6443", "certificate-authority-data": "x" },
            }],
        });
        assert_eq!(forwarded(kubeconfig, 6443), expected);
        let hint = hint("HostedCluster clusters/a", "clusters-a", 6443);
        assert!(hint.contains("service/kube-apiserver 6443:6443"), "{hint}");
    }

    #[tokio::test]
    async fn the_port_is_that_of_the_service() {
        let service = json!({ "spec": { "ports": [{ "port": 7443 }] } });
        let path = "/api/v1/namespaces/clusters-a/services/kube-apiserver";
        for (answer, expected) in [
            (Answer::ok(&service), 7443),
            (Answer::error(404, "NotFound"), 6443),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(answer)]);
            let hosted = Hosted::new(scenario.client());
            assert_eq!(port(&hosted, "clusters-a").await.unwrap(), expected);
            scenario.finish();
        }
    }
}
