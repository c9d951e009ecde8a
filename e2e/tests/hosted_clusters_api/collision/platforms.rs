//! The same where machines are Agents or virtual machines: the owner has the provider's objects with the names that the other
//! cluster would use, and for Agents a Role outside of its namespace, which is named after it.

use anyhow::{Context, Result};
use api::annotations::PRIVATE_CAPI_TYPES;
use api::group::{CapiTypes, infrastructure};
use api::names::control_plane_namespace;
use serde_json::{Value, json};
use testbed::agents::allow_consumer;
use testbed::agents::kinds::PROVIDER;
use testbed::collision::{Platform, pool};
use testbed::crds;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;

use super::{Collision, OWNERS};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// Where the Agents are.
const AGENTS: &str = "agents";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Kinds of the provider for KubeVirt, which the testbed lacks, and their plurals.
const VIRTUAL: [(&str, &str); 2] = [
    ("KubevirtCluster", "kubevirtclusters"),
    ("KubevirtMachineTemplate", "kubevirtmachinetemplates"),
];
const VIRTUAL_VERSION: &str = "v1alpha1";

/// Installs stand-ins for the provider's kinds, which take any object. Before controllers start: some of them discover new
/// kinds only now and then.
pub(super) async fn install_kinds(testbed: &Testbed) -> Result<()> {
    let group = infrastructure(CapiTypes::Private);
    let definitions = VIRTUAL.map(|(kind, plural)| {
        crds::of_any_object(&group, VIRTUAL_VERSION, kind, plural, "Namespaced")
    });
    crds::install(&testbed.admin, &definitions).await
}

/// A cluster on each platform is refused while another one has its namespace.
pub(super) async fn are_refused(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    ensure_namespace(&testbed.admin, AGENTS).await?;
    allow_consumer(&testbed.admin, AGENTS, NAMESPACE).await?;
    // Side by side: most of their time is the time that operators get to react.
    tokio::try_join!(
        is_refused(testbed, fixture, "agent", agent(), agent_objects("agent")),
        is_refused(
            testbed,
            fixture,
            "kubevirt",
            kubevirt(),
            kubevirt_objects("kubevirt")
        ),
    )?;
    Ok(())
}

async fn is_refused(
    testbed: &Testbed,
    fixture: &Fixture,
    name: &str,
    platform: Platform,
    objects: Vec<Value>,
) -> Result<()> {
    let refused = async {
        let collision = Collision::on(testbed, fixture, name, Some(platform), &objects).await?;
        let annotations = json!({ PRIVATE_CAPI_TYPES: "true" });
        let collider = &collision.collider;
        collider
            .attempt_creation(&annotations, async || collision.is_untouched().await)
            .await
    };
    refused.await.with_context(|| name.to_owned())
}

fn agent() -> Platform {
    Platform {
        cluster: json!({ "type": "Agent", "agent": { "agentNamespace": AGENTS } }),
        pools: json!({ "type": "Agent", "agent": {
            "agentLabelSelector": { "matchLabels": { "size": "large" } },
        } }),
    }
}

fn kubevirt() -> Platform {
    Platform {
        cluster: json!({ "type": "KubeVirt", "kubevirt": {} }),
        pools: json!({ "type": "KubeVirt", "kubevirt": { "rootVolume": {
            "type": "Persistent",
            "persistent": { "size": "32Gi" },
            "diskImage": { "containerDiskImage": "images.example.com/rhcos:v1" },
        } } }),
    }
}

/// Objects of `clusters-shared/<name>` with the names of those of `clusters/shared-<name>`: its cluster and its machines,
/// and the rights of its provider on Agents.
fn agent_objects(name: &str) -> Vec<Value> {
    let namespace = control_plane_namespace(OWNERS, name);
    let version = format!("{PROVIDER}/v1beta1");
    let role = format!("capi-provider-role-{namespace}");
    vec![
        object(&version, "AgentCluster", &namespace, &shared(name)),
        object(
            &version,
            "AgentMachineTemplate",
            &namespace,
            &pool(&shared(name)),
        ),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "Role",
            "metadata": { "namespace": AGENTS, "name": role },
            "rules": [],
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": { "namespace": AGENTS, "name": format!("cluster-api-agent-{namespace}") },
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": role },
        }),
    ]
}

fn kubevirt_objects(name: &str) -> Vec<Value> {
    let namespace = control_plane_namespace(OWNERS, name);
    let version = format!("{}/{VIRTUAL_VERSION}", infrastructure(CapiTypes::Private));
    let [cluster, template] = VIRTUAL.map(|(kind, _)| kind);
    vec![
        object(&version, cluster, &namespace, &shared(name)),
        object(&version, template, &namespace, &pool(&shared(name))),
    ]
}

/// The name of the cluster that does not own the namespace.
fn shared(name: &str) -> String {
    format!("shared-{name}")
}

fn object(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": { "namespace": namespace, "name": name, "finalizers": ["example.com/machines"] },
        "spec": { "template": { "spec": {} } },
    })
}
