//! O03 for the components that a public cluster on AWS does not have: the control-plane-operator is killed while it moves a
//! control plane to another platform, and the result is the same as without a death.
//!
//! No real cluster changes its platform. hypershift-operator is stopped meanwhile, because it would take the change back,
//! and the HostedControlPlane is changed in its place, without the rule of its CRD that refuses that.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{is_true, untrue};
use testbed::operator::SOON;
use testbed::wait;

use crate::hosted_clusters_faults::canonical::Snapshot;
use crate::hosted_clusters_faults::choice::Choice;
use crate::hosted_clusters_faults::fault_points::Grain;
use crate::hosted_clusters_faults::fixture::{
    COMPONENTS, CONTROL_PLANE, CONTROL_PLANES, Fixture, NAME,
};
use crate::hosted_clusters_faults::life;
use crate::hosted_clusters_faults::replicas::Replicas;

/// A platform, as a change of `spec.platform`, and the components that only it has.
struct Platform {
    name: &'static str,
    change: fn() -> Value,
    components: &'static [&'static str],
}

const PLATFORMS: [Platform; 6] = [
    Platform {
        name: "private AWS",
        change: private_aws,
        components: &["router"],
    },
    Platform {
        name: "Azure",
        change: azure,
        components: &["azure-cloud-controller-manager"],
    },
    Platform {
        name: "KubeVirt",
        change: kubevirt,
        components: &[
            "kubevirt-cloud-controller-manager",
            "kubevirt-csi-controller",
        ],
    },
    Platform {
        name: "PowerVS",
        change: power_vs,
        components: &["powervs-cloud-controller-manager"],
    },
    Platform {
        name: "GCP",
        change: gcp,
        components: &["gcp-cloud-controller-manager"],
    },
    Platform {
        name: "OpenStack",
        change: openstack,
        components: &["openstack-cloud-controller-manager"],
    },
];

const CRDS: Resource<'_> = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
const CONTROL_PLANE_CRD: &str = "hostedcontrolplanes.hypershift.openshift.io";
const RULES: &str = "x-kubernetes-validations";
/// The message of the rule that a cluster stays on its platform.
const RULE: &str = "the platform is chosen once";

/// The components that this covers.
pub(crate) fn components() -> impl Iterator<Item = &'static str> {
    PLATFORMS
        .iter()
        .flat_map(|platform| platform.components)
        .copied()
}

pub(crate) async fn scenario(fixture: &Fixture<'_>, replicas: &mut Replicas<'_>) -> Result<()> {
    let progress = &fixture.testbed.progress;
    fixture.fault_points.lock().rests();
    life::create(fixture, replicas).await.context("create")?;
    replicas.stop_hypershift();
    allow_moves(&fixture.testbed.admin).await?;
    let path = CONTROL_PLANES.named(CONTROL_PLANE, NAME);
    let control_plane = fixture.testbed.admin.get(&path).await?;
    let original = &control_plane["spec"]["platform"];
    for platform in &PLATFORMS {
        let step = progress.step(format!("{}: the operator is killed", platform.name));
        let figures = survives(fixture, replicas, platform, original).await;
        step.done_with(&figures.context(platform.name)?);
    }
    replicas.start_hypershift().await?;
    life::delete(fixture, replicas).await.context("delete")
}

/// Has the CRD of the technology preview, which has all platforms, without the rule that a control plane stays on its.
async fn allow_moves(admin: &ApiClient) -> Result<()> {
    let path = format!("{}/{CONTROL_PLANE_CRD}", CRDS.all());
    let mut crd = admin.get(&path).await?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/crds-tech-preview");
    let preview = directory.join(format!("{CONTROL_PLANE_CRD}.yaml"));
    let text = std::fs::read_to_string(&preview)
        .with_context(|| format!("cannot read {}", preview.display()))?;
    let preview: Value = serde_saphyr::from_str(&text)?;
    crd["spec"]["versions"] = preview["spec"]["versions"].clone();
    let removed = without_rules(&mut crd["spec"], RULE);
    ensure!(removed > 0, "no rule of the CRD says: {RULE}");
    admin.replace(&path, &crd).await?;
    Ok(())
}

/// Removes the rules whose message has this text, and returns how many there were.
fn without_rules(value: &mut Value, text: &str) -> usize {
    let mut removed = 0;
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if let (RULES, Value::Array(rules)) = (field.as_str(), &mut *value) {
                    let before = rules.len();
                    let has =
                        |rule: &Value| rule["message"].as_str().is_some_and(|it| it.contains(text));
                    rules.retain(|rule| !has(rule));
                    removed += before - rules.len();
                } else {
                    removed += without_rules(value, text);
                }
            }
        }
        Value::Array(items) => {
            removed += items
                .iter_mut()
                .map(|item| without_rules(item, text))
                .sum::<usize>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    removed
}

/// Moves there and back without a death, and with deaths. Returns how many there were.
async fn survives(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    platform: &Platform,
    original: &Value,
) -> Result<String> {
    let begun = Instant::now();
    let back = replaced(original, &json!({}));
    let there = replaced(original, &(platform.change)());
    let expected = moved(fixture, replicas, &there, platform, true)
        .await
        .context("without a death")?;
    moved(fixture, replicas, &back, platform, false)
        .await
        .context("back")?;
    let choice = Choice::of_environment()?;
    fixture
        .fault_points
        .lock()
        .set(choice, Grain::Object, BTreeSet::new());
    fixture.fault_points.lock().enters(platform.name);
    let found = moved(fixture, replicas, &there, platform, true).await;
    let found = found.with_context(|| format!("{:#?}", fixture.fault_points.lock().died()))?;
    found.is(&expected)?;
    let figures = {
        let mut fault_points = fixture.fault_points.lock();
        for name in platform.components {
            let mut possible = fault_points.possible().iter();
            let is_covered = possible.any(|death| death.is_workload_of(name));
            ensure!(is_covered, "no operator could be killed at {name}");
        }
        let figures = format!(
            "{} deaths of {} writes, in {}",
            fault_points.died().len(),
            fault_points.possible().len() / 2,
            wait::seconds(begun.elapsed())
        );
        fault_points.rests();
        figures
    };
    moved(fixture, replicas, &back, platform, false)
        .await
        .context("back again")?;
    Ok(figures)
}

/// Changes the platform, and waits until all its components, and no others, are rolled out.
async fn moved(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    platform: &Value,
    expected: &Platform,
    is_there: bool,
) -> Result<Snapshot> {
    let admin = &fixture.testbed.admin;
    let path = CONTROL_PLANES.named(CONTROL_PLANE, NAME);
    let change = json!({ "spec": { "platform": platform } });
    // The API server takes a moment until it follows a changed CRD.
    wait::until("the platform to change", SOON, async || {
        admin.patch(&path, Patch::Merge, &change).await.map(drop)
    })
    .await?;
    life::until(fixture, replicas, async || {
        let control_plane = admin.get(&path).await?;
        ensure!(
            is_true(&control_plane, "Available"),
            "the control plane: {}",
            untrue(&control_plane)
        );
        let components = admin.list(&COMPONENTS.within(CONTROL_PLANE)).await?;
        let mut names = BTreeSet::new();
        for component in &components {
            let name = component["metadata"]["name"].as_str().unwrap_or_default();
            names.insert(name);
            let done = is_true(component, "RolloutComplete");
            ensure!(done, "{name}: {}", untrue(component));
        }
        for name in expected.components {
            let found = names.contains(name);
            ensure!(found == is_there, "{name} in {names:?}");
        }
        Ok(())
    })
    .await?;
    life::snapshot(fixture).await
}

/// A merge patch that leaves nothing of another platform.
fn replaced(original: &Value, change: &Value) -> Value {
    let mut platform = original.clone();
    let fields = PLATFORM_FIELDS.iter();
    for field in fields {
        if platform.get(field).is_none() {
            platform[field] = Value::Null;
        }
    }
    let is_other = change["type"].is_string() && change["type"] != original["type"];
    if is_other {
        platform["aws"] = Value::Null;
    }
    merge(&mut platform, change);
    platform
}

const PLATFORM_FIELDS: [&str; 6] = ["aws", "azure", "gcp", "kubevirt", "openstack", "powervs"];

fn merge(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (field, change) in change {
                merge(target.entry(field.clone()).or_insert(Value::Null), change);
            }
        }
        (target, change) => target.clone_from(change),
    }
}

fn private_aws() -> Value {
    json!({ "aws": { "endpointAccess": "PublicAndPrivate" } })
}

fn azure() -> Value {
    let group = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/group";
    let identity = json!({ "clientID": "11111111-2222-3333-4444-555555555555" });
    json!({
        "type": "Azure",
        "azure": {
            "location": "eastus",
            "resourceGroup": "group",
            "vnetID": format!("{group}/providers/Microsoft.Network/virtualNetworks/network"),
            "subnetID": format!("{group}/providers/Microsoft.Network/virtualNetworks/network/subnets/nodes"),
            "securityGroupID": format!("{group}/providers/Microsoft.Network/networkSecurityGroups/nodes"),
            "subscriptionID": "11111111-2222-3333-4444-555555555555",
            "tenantID": "11111111-2222-3333-4444-555555555556",
            "azureAuthenticationConfig": {
                "azureAuthenticationConfigType": "WorkloadIdentities",
                "workloadIdentities": {
                    "cloudProvider": identity,
                    "nodePoolManagement": identity,
                    "controlPlaneOperator": identity,
                    "imageRegistry": identity,
                    "ingress": identity,
                    "network": identity,
                    "disk": identity,
                    "file": identity,
                },
            },
        },
    })
}

fn kubevirt() -> Value {
    json!({ "type": "KubeVirt", "kubevirt": { "generateID": "x7k2p", "baseDomainPassthrough": false } })
}

fn power_vs() -> Value {
    let credentials = json!({ "name": "pull-secret" });
    json!({
        "type": "PowerVS",
        "powervs": {
            "accountID": "account",
            "cisInstanceCRN": "crn:v1:bluemix:public:internet-svcs:global:a/1:2::",
            "resourceGroup": "group",
            "region": "osa",
            "zone": "osa21",
            "serviceInstanceID": "11111111-2222-3333-4444-555555555555",
            "subnet": { "name": "nodes" },
            "vpc": { "name": "network", "region": "jp-osa", "subnet": "nodes" },
            "kubeCloudControllerCreds": credentials,
            "nodePoolManagementCreds": credentials,
            "ingressOperatorCloudCreds": credentials,
            "storageOperatorCloudCreds": credentials,
            "imageRegistryOperatorCloudCreds": credentials,
        },
    })
}

fn gcp() -> Value {
    let email = |account: &str| format!("{account}@my-project.iam.gserviceaccount.com");
    json!({
        "type": "GCP",
        "gcp": {
            "project": "my-project",
            "region": "us-central1",
            "networkConfig": {
                "network": { "name": "my-network" },
                "privateServiceConnectSubnet": { "name": "psc" },
            },
            "workloadIdentity": {
                "projectNumber": "123456789012",
                "poolID": "my-pool",
                "providerID": "my-provider",
                "serviceAccountsEmails": {
                    "nodePool": email("node-pool"),
                    "controlPlane": email("control-plane"),
                    "cloudController": email("cloud-controller"),
                    "storage": email("storage"),
                    "imageRegistry": email("image-registry"),
                    "network": email("network"),
                },
            },
        },
    })
}

fn openstack() -> Value {
    json!({
        "type": "OpenStack",
        "openstack": { "identityRef": { "name": "pull-secret", "cloudName": "openstack" } },
    })
}

#[test]
fn nothing_of_another_platform_is_left() {
    let original = json!({ "type": "AWS", "aws": { "region": "us-east-1" } });
    let there = replaced(&original, &kubevirt());
    assert_eq!(there["type"], "KubeVirt");
    assert_eq!(there["aws"], Value::Null);
    assert_eq!(there["kubevirt"]["generateID"], "x7k2p");
    let back = replaced(&original, &json!({}));
    assert_eq!(back["aws"], original["aws"]);
    for field in ["azure", "gcp", "kubevirt", "openstack", "powervs"] {
        assert_eq!(back.get(field), Some(&Value::Null), "{field}");
    }
    let private = replaced(&original, &private_aws());
    assert_eq!(private["type"], "AWS");
    let expected = json!({ "region": "us-east-1", "endpointAccess": "PublicAndPrivate" });
    assert_eq!(private["aws"], expected);
}
