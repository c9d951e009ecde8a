//! What keeps a cluster from migrating until it is fixed.

use anyhow::{Result, ensure};
use api::group::{self, CapiTypes};
use migration::failure::Reason;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::operator::SOON;
use testbed::wait;

use crate::migration_fleet::member::Member;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const BINDINGS: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "rolebindings");
const QUOTAS: Resource<'_> = Resource::new("v1", "resourcequotas");
/// The name of whatever is made here.
pub(crate) const NAME: &str = "poison";
/// The binding by which the operator takes its rights.
const RIGHTS: &str = "private-capi-migration";
const FINALIZER: &str = "test.example.com/held";

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Poison {
    /// The operator cannot give itself the rights.
    MissingRight,
    /// A machine is being deleted, and does not go.
    Deletion,
    /// A policy rejects a kind of the private types.
    Refused,
    /// There is no room for another object of a kind.
    Quota,
}

// === impl Poison ===

impl Poison {
    pub(crate) const ALL: [Self; 4] = [
        Self::MissingRight,
        Self::Deletion,
        Self::Refused,
        Self::Quota,
    ];

    /// The reported reason, and a part of the message.
    pub(crate) fn reason(self) -> (Reason, &'static str) {
        match self {
            Self::MissingRight => (Reason::PermissionDenied, RIGHTS),
            Self::Deletion => (Reason::PreflightFailed, "is being deleted"),
            Self::Refused => (Reason::AdmissionDenied, NAME),
            Self::Quota => (Reason::PreflightFailed, NAME),
        }
    }

    pub(crate) async fn give(self, admin: &ApiClient, member: &Member) -> Result<()> {
        match self {
            Self::MissingRight => admin.apply(&[binding(member)]).await,
            Self::Deletion => {
                admin.apply(&[machine(member)]).await?;
                admin.delete(&machine_path(member)).await
            }
            Self::Refused => admin.apply(&policy(member)).await,
            Self::Quota => {
                admin.apply(&[quota(member)]).await?;
                let path = QUOTAS.named(&member.namespace(), NAME);
                wait::until("the quota to hold", SOON, async || {
                    let hard = admin.get(&path).await?["status"]["hard"].take();
                    ensure!(hard.is_object(), "it has not been seen yet");
                    Ok(())
                })
                .await
            }
        }
    }

    pub(crate) async fn fix(self, admin: &ApiClient, member: &Member) -> Result<()> {
        match self {
            Self::MissingRight => {
                let path = BINDINGS.named(&member.namespace(), RIGHTS);
                admin.delete(&path).await
            }
            Self::Deletion => {
                let free = json!({ "metadata": { "finalizers": null } });
                let path = machine_path(member);
                admin.patch(&path, Patch::Merge, &free).await.map(drop)
            }
            Self::Refused => {
                let policies = Resource::new(ADMISSION, "validatingadmissionpolicybindings");
                let path = format!("{}/{}", policies.all(), policy_name(member));
                admin.delete(&path).await
            }
            Self::Quota => admin.delete(&QUOTAS.named(&member.namespace(), NAME)).await,
        }
    }
}

/// A binding with the operator's name for it, to another role: a role reference is immutable.
fn binding(member: &Member) -> Value {
    json!({
        "apiVersion": BINDINGS.api_version,
        "kind": "RoleBinding",
        "metadata": { "namespace": member.namespace(), "name": RIGHTS },
        "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": "another" },
    })
}

fn machine(member: &Member) -> Value {
    json!({
        "apiVersion": format!("{}/v1beta2", group::core(CapiTypes::Standard)),
        "kind": "Machine",
        "metadata": {
            "namespace": member.namespace(), "name": NAME, "finalizers": [FINALIZER],
        },
        "spec": {
            "clusterName": member.infra(),
            "bootstrap": { "dataSecretName": NAME },
            "infrastructureRef": {
                "apiGroup": format!("infrastructure.{}", group::core(CapiTypes::Standard)),
                "kind": "AWSMachine",
                "name": NAME,
            },
        },
    })
}

fn machine_path(member: &Member) -> String {
    let version = format!("{}/v1beta2", group::core(CapiTypes::Standard));
    Resource::new(&version, "machines").named(&member.namespace(), NAME)
}

fn policy_name(member: &Member) -> String {
    format!("{NAME}-{}", member.name)
}

/// No private MachineDeployments can be created in its namespace.
fn policy(member: &Member) -> [Value; 2] {
    let name = policy_name(member);
    let label = "kubernetes.io/metadata.name";
    [
        json!({
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": name },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [group::core(CapiTypes::Private)],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["machinedeployments"],
                }]},
                "validations": [{ "expression": "false", "message": "not here" }],
            },
        }),
        json!({
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": name },
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": { "namespaceSelector": { "matchLabels": {
                    label: member.namespace(),
                }}},
            },
        }),
    ]
}

fn quota(member: &Member) -> Value {
    let counted = format!(
        "count/machinedeployments.{}",
        group::core(CapiTypes::Private)
    );
    json!({
        "apiVersion": QUOTAS.api_version,
        "kind": "ResourceQuota",
        "metadata": { "namespace": member.namespace(), "name": NAME },
        "spec": { "hard": { counted: "0" } },
    })
}
