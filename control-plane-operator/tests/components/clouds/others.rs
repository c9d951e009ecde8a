//! Power Virtual Server, and the platforms that the API does not offer.

use serde_json::json;

use super::*;

const CONFIG: &str = "ConfigMap/ccm-config";
const FILE: &str = "/data/ccm-config";

#[test]
pub(crate) fn power_vs_config_names_account_network_and_workspace() {
    let of = |path: &'static str, line: &'static str| {
        row(
            POWERVS,
            vec![(path, json!("value-1"))],
            CONFIG,
            FILE,
            Has(line),
        )
    };
    verify(&[
        of("/spec/platform/powervs/accountID", "accountID = value-1"),
        of(
            "/spec/platform/powervs/accountID",
            "g2workerServiceAccountID = value-1",
        ),
        of(
            "/spec/platform/powervs/resourceGroup",
            "g2ResourceGroupName = value-1",
        ),
        of(
            "/spec/platform/powervs/vpc/subnet",
            "g2VpcSubnetNames = value-1",
        ),
        of("/spec/platform/powervs/vpc/name", "g2VpcName = value-1"),
        of("/spec/platform/powervs/vpc/region", "region = value-1"),
        of(
            "/spec/platform/powervs/serviceInstanceID",
            "powerVSCloudInstanceID = value-1",
        ),
        of("/spec/platform/powervs/region", "powerVSRegion = value-1"),
        of("/spec/platform/powervs/zone", "powerVSZone = value-1"),
        of("/metadata/name", "clusterID = value-1"),
        row(POWERVS, vec![], CONFIG, FILE, Has("version = 1.1.0")),
        row(
            POWERVS,
            vec![],
            CONFIG,
            FILE,
            Has("config-file = /etc/kubernetes/kubeconfig"),
        ),
        row(
            POWERVS,
            vec![],
            CONFIG,
            FILE,
            Has("g2Credentials = /etc/vpc/ibmcloud_api_key"),
        ),
    ]);
}

#[test]
pub(crate) fn power_vs_manager_mounts_the_secret_of_the_user() {
    let secret = "/volumes/cloud-creds/secret/secretName";
    let own = json!({ "name": "my-key" });
    let own = vec![("/spec/platform/powervs/kubeCloudControllerCreds", own)];
    let mount = "/containers/cloud-controller-manager/volumeMounts/cloud-creds/mountPath";
    verify(&[
        pod(POWERVS, own, secret, Is(json!("my-key"))),
        pod(POWERVS, vec![], mount, Is(json!("/etc/vpc"))),
    ]);
    let without = [
        on_platform("PowerVS"),
        vec![("/spec/platform/powervs", json!(null))],
    ];
    let error = error(POWERVS, &changed(&without.concat()));
    assert!(error.contains("spec.platform with powervs"), "{error}");
}

/// Their contents are tested with the components, because the API cannot hold the settings.
#[test]
pub(crate) fn unoffered_platforms_are_rendered_with_what_all_clusters_have() {
    let infra_id = || vec![("/spec/infraID", json!("Dev-X7k2p"))];
    let args = "/containers/cloud-controller-manager/args";
    let name = "/containers/cloud-controller-manager/env/OCP_INFRASTRUCTURE_NAME/value";
    let networks = json!([{ "cidr": "10.0.0.0/16" }, { "cidr": "10.1.0.0/16" }]);
    let networks = vec![("/spec/networking/machineNetwork", networks)];
    let gcp = "ConfigMap/gcp-cloud-config";
    let openstack = "ConfigMap/openstack-cloud-config";
    let file = "/data/cloud.conf";
    verify(&[
        row(
            GCP,
            infra_id(),
            gcp,
            file,
            Has("node-tags = dev-x7k2p-worker"),
        ),
        row(GCP, vec![], gcp, file, Has("multizone = true")),
        row(GCP, vec![], gcp, file, Has("token-url = \"nil\"")),
        pod(GCP, vec![], args, Has("--controllers=*,-nodeipam")),
        pod(
            GCP,
            vec![],
            "/volumes/cloud-credentials/secret/secretName",
            Is(json!("cloud-controller-manager-creds")),
        ),
        pod(OPENSTACK, infra_id(), name, Is(json!("Dev-X7k2p"))),
        pod(
            OPENSTACK,
            vec![],
            args,
            Has("--cluster-name=$(OCP_INFRASTRUCTURE_NAME)"),
        ),
        row(
            OPENSTACK,
            networks,
            openstack,
            file,
            Has("address-sort-order = 10.0.0.0/16,10.1.0.0/16"),
        ),
        row(OPENSTACK, vec![], openstack, file, Lacks("ca-file")),
        row(
            OPENSTACK,
            vec![],
            openstack,
            file,
            Lacks("floating-network-id"),
        ),
        row(
            OPENSTACK,
            vec![],
            "ConfigMap/openstack-trusted-ca",
            "/data/ca-bundle.pem",
            Is(json!("")),
        ),
        pod(OPENSTACK, vec![], "/volumes/trusted-ca", Is(json!(null))),
    ]);
}
