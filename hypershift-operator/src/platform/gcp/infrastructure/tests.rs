//! What a cluster on Google Cloud has, field by field.

use std::collections::BTreeMap;

use api::features::FeatureSet;
use api::group::{self, CapiTypes};
use api::hypershift::v1beta1::HostedControlPlane;
use serde_json::json;
use support::google_resources::Region;

use super::*;
use crate::facts::fixture;
use crate::platform::tests::built;

/// Secrets of components, and their service accounts.
const SECRETS: [(&str, &str); 6] = [
    ("node-management-creds", "node-pool"),
    ("control-plane-operator-creds", "control-plane"),
    ("cloud-controller-manager-creds", "cloud-controller"),
    ("gcp-pd-cloud-credentials", "storage"),
    ("image-registry-creds", "image-registry"),
    ("cloud-network-config-controller-creds", "network"),
];

fn facts(types: CapiTypes) -> Facts {
    let mut facts = fixture::facts(fixture::hosted_cluster("gcp"), types);
    facts.cloud.features = FeatureSet::TechPreviewNoUpgrade;
    facts
}

#[test]
fn the_cluster_object_names_project_and_network() {
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        let facts = facts(types);
        let cluster = &built(&facts, "GCPCluster")["one"];
        assert_eq!(cluster.resource.group, group::infrastructure(types));
        assert_eq!(cluster.resource.version, "v1beta1");
        assert_eq!(
            cluster.body["spec"],
            json!({
                "additionalLabels": {
                    "hypershift-openshift-io-cluster": "one",
                    "hypershift-openshift-io-infra-id": "one-x7k2p",
                    "team": "red",
                },
                "network": {
                    "name": "my-network",
                    "subnets": [{ "name": "psc", "region": "us-central1" }],
                },
                "project": "my-project",
                "region": "us-central1",
            })
        );
        let annotations = &cluster.body["metadata"]["annotations"];
        assert_eq!(annotations[group::MANAGED_BY], "external");
        assert_eq!(cluster.status, Some(json!({ "ready": true })));
    }
}

#[test]
fn every_component_has_credentials_of_its_account() {
    let facts = facts(CapiTypes::Private);
    let secrets = Gcp.secrets(&facts);
    assert_eq!(secrets.len(), SECRETS.len());
    for (secret, (name, account)) in secrets.iter().zip(SECRETS) {
        assert_eq!(secret.name(), name);
        let data: BTreeMap<String, k8s_openapi::ByteString> =
            serde_json::from_value(secret.body["data"].clone()).unwrap();
        let file: Value = serde_json::from_slice(&data[FILE].0).unwrap();
        let email = format!("{account}@my-project.iam.gserviceaccount.com");
        let url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts";
        assert_eq!(
            file,
            json!({
                "type": "external_account",
                "audience": "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/my-pool/providers/my-provider",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": "https://sts.googleapis.com/v1/token",
                "service_account_impersonation_url": format!("{url}/{email}:generateAccessToken"),
                "credential_source": {
                    "file": "/var/run/secrets/openshift/serviceaccount/token",
                    "format": { "type": "text" },
                },
            })
        );
    }
}

/// Accounts may be shared: each component has its own Secret.
#[test]
fn shared_accounts_leave_out_no_secret() {
    let mut facts = facts(CapiTypes::Private);
    let gcp = facts.cluster.spec.platform.gcp.as_mut().unwrap();
    let emails = &mut gcp.workload_identity.service_accounts_emails;
    emails.storage.clone_from(&emails.node_pool);
    assert_eq!(Gcp.secrets(&facts).len(), SECRETS.len());
}

#[test]
fn incomplete_identities_are_reported() {
    let mut facts = facts(CapiTypes::Private);
    assert_eq!(Gcp.credentials(&facts), Some(Vec::new()));
    let gcp = facts.cluster.spec.platform.gcp.as_mut().unwrap();
    gcp.workload_identity.pool_id.clear();
    let problems = Gcp.credentials(&facts).unwrap();
    let field = "spec.platform.gcp.workloadIdentity.poolID";
    assert_eq!(problems, [format!("{field} is empty: set it")]);
    assert!(Gcp.secrets(&facts).is_empty());
}

#[test]
fn the_provider_is_that_of_the_release_and_has_credentials() {
    let facts = facts(CapiTypes::Private);
    let deployment = &built(&facts, "Deployment")["capi-provider"];
    let pod = &deployment.body["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().unwrap();
    let manager = containers
        .iter()
        .find(|it| it["name"] == "manager")
        .unwrap();
    let image = manager["image"].as_str().unwrap();
    assert!(image.contains("gcp-cluster-api-controllers"), "{image}");
    let variables = manager["env"].as_array().unwrap();
    for (name, expected) in [
        ("GOOGLE_CLOUD_PROJECT", "my-project"),
        (
            "GOOGLE_APPLICATION_CREDENTIALS",
            "/home/.gcp/application_default_credentials.json",
        ),
    ] {
        let found = variables.iter().find(|it| it["name"] == name);
        assert_eq!(found.unwrap()["value"], expected, "{name}");
    }
    let started_before = pod["initContainers"].as_array().unwrap();
    let minter = started_before
        .iter()
        .find(|it| it["name"] == "cloud-token-minter");
    assert!(minter.is_some(), "{started_before:?}");
}

/// Nodes of a new cluster need a service attachment in its region; an existing cluster is still reconciled.
#[test]
fn clusters_need_service_attachments_in_their_region() {
    let none = "this operator manages no service attachments";
    let elsewhere = "this operator manages service attachments in europe-west1 only";
    for access in ["Private", "PublicAndPrivate"] {
        let mut facts = facts(CapiTypes::Private);
        let gcp = facts.cluster.spec.platform.gcp.as_mut().unwrap();
        gcp.endpoint_access = serde_json::from_value(json!(access)).unwrap();
        let own = gcp.region.clone();
        for (region, expected) in [
            (None, Some(none)),
            (Some(own.as_str()), None),
            (Some("europe-west1"), Some(elsewhere)),
        ] {
            facts.cloud.gcp_private_service_connect = region.map(|name| Region {
                project: "management-1".to_owned(),
                name: name.to_owned(),
            });
            let problem = unsupported(&facts);
            assert_eq!(problem.is_some(), expected.is_some(), "{problem:?}");
            if let Some((problem, expected)) = problem.zip(expected) {
                assert!(problem.contains(expected), "{problem}");
                let access = format!("endpointAccess is {access}, and");
                assert!(problem.contains(&access), "{problem}");
            }
        }
        let spec = crate::hosted_cluster::build::control_plane_spec(&facts);
        facts.control_plane = Some(HostedControlPlane::new("one", spec));
        assert_eq!(unsupported(&facts), None);
    }
}
