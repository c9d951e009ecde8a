//! The policy for control planes on a real API server: what code that runs as a control-plane-operator may grant itself.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{fixtures, wait};

use super::{HEEDED_WITHIN, TENANTS, another, as_user};

const RBAC: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const ROLES: Resource<'_> = Resource::new(API_VERSION, "roles");
const ROLE_BINDINGS: Resource<'_> = Resource::new(API_VERSION, "rolebindings");
const POLICY: &str = "hypershift-control-plane-policy";
const WAY_OUT: &str = "only a management cluster administrator can grant this, see SECURITY.md";
/// The namespace of a control plane, as golden files of components name it, and one that is none.
const CONTROL_PLANE: &str = "hcp-namespace";
const OTHER: &str = "no-control-plane";
/// Role that an administrator has made, with a rule that a control plane may not grant.
const EARLIER: &str = "earlier";

/// Operators of released versions hand out these, as API groups, resources and verbs. Those that the components here have
/// are read from their golden files.
const RELEASED: [[&str; 3]; 18] = [
    // cluster-network-operator with OVNKubernetes
    [
        ",events.k8s.io",
        "events,configmaps,pods,secrets,services",
        "*",
    ],
    ["apps", "statefulsets,deployments", "*"],
    ["policy", "poddisruptionbudgets", "*"],
    ["route.openshift.io", "routes,routes/custom-host", "*"],
    [
        "monitoring.coreos.com,monitoring.rhobs",
        "servicemonitors,prometheusrules",
        "*",
    ],
    [
        "hypershift.openshift.io",
        "hostedcontrolplanes,hostedcontrolplanes/status",
        "*",
    ],
    // cluster-node-tuning-operator
    ["", "configmaps,configmaps/finalizers,events", "*"],
    // cluster-storage-operator
    ["coordination.k8s.io", "leases", "*"],
    [
        "",
        "serviceaccounts,services,configmaps,pods,endpoints,events,secrets",
        "*",
    ],
    [RBAC, "roles,rolebindings", "create,delete,patch,update"],
    // control-plane-pki-operator
    [
        "certificates.hypershift.openshift.io",
        "certificaterevocationrequests/status",
        "patch",
    ],
    // KubeVirt
    [
        "kubevirt.io",
        "virtualmachineinstances",
        "get,list,watch,update",
    ],
    [
        "subresources.kubevirt.io",
        "virtualmachines/addvolume",
        "update",
    ],
    ["cdi.kubevirt.io", "datavolumes", "get,create,delete"],
    [
        "snapshot.storage.k8s.io",
        "volumesnapshots",
        "get,create,delete",
    ],
    ["", "persistentvolumeclaims", "get,patch"],
    // Cluster API, before and after a migration
    [
        "cluster.x-k8s.io,cluster.hypershift.openshift.io",
        "machines,machinesets/scale",
        "*",
    ],
    // Reading reaches no further than the Secrets of the namespace, which are there anyway.
    ["*", "*", "get,list,watch"],
];

/// Grants that reach beyond a control plane, and what the refusal says about them.
const REFUSED: [([&str; 3], &str); 14] = [
    (["", "namespaces", "patch"], "patch on namespaces"),
    (["", "namespaces/finalize", "*"], "namespaces/finalize"),
    (["", "*", "update"], "update on *"),
    (["", "resourcequotas", "delete"], "resourcequotas"),
    (["*", "configmaps", "create"], "API groups \"*\""),
    (["apps,*", "deployments", "*"], "API groups \"apps\", \"*\""),
    (
        ["networking.k8s.io", "networkpolicies", "delete"],
        "networkpolicies",
    ),
    (["networking.k8s.io", "*", "delete"], "networking.k8s.io"),
    (
        ["security.openshift.io", "securitycontextconstraints", "use"],
        "securitycontextconstraints",
    ),
    (
        ["hypershift.openshift.io", "hostedclusters", "create"],
        "hostedclusters",
    ),
    (
        ["hypershift.openshift.io", "nodepools", "override"],
        "override on nodepools",
    ),
    (
        ["hypershift.openshift.io", "*", "patch"],
        "hypershift.openshift.io",
    ),
    (
        ["operators.coreos.com", "clusterserviceversions", "create"],
        "operators.coreos.com",
    ),
    (
        [
            "k8s.cni.cncf.io",
            "network-attachment-definitions",
            "get,create",
        ],
        "k8s.cni.cncf.io",
    ),
];

pub(super) async fn scenario(testbed: &Testbed) -> Result<()> {
    let step = testbed
        .progress
        .step("trying what control planes may and may not grant");
    set_up(testbed).await?;
    // Until it is refused, the policy is not in force yet.
    let (first, words) = &REFUSED[0];
    wait::until("the policy for control planes", HEEDED_WITHIN, async || {
        // It may have been created by an earlier attempt.
        let role = role(&another("first"), first);
        refused(grant(testbed, CONTROL_PLANE, &role).await, words)
    })
    .await?;
    for (rule, words) in &REFUSED {
        refused(
            grant(testbed, CONTROL_PLANE, &role("refused", rule)).await,
            words,
        )?;
    }
    named_constraints_only(testbed).await?;
    what_operators_hand_out_is_accepted(testbed).await?;
    rights_stay_in_the_namespace(testbed).await?;
    what_exists_stays_editable(testbed).await?;
    // Service accounts of other namespaces are none of its business.
    grant(
        testbed,
        OTHER,
        &role_in(OTHER, "other", &[rule_of(&REFUSED[0].0)]),
    )
    .await?;
    step.done();
    Ok(())
}

/// The service account has what the hypershift-operator gives it: any right in its namespace that RBAC knows of.
async fn set_up(testbed: &Testbed) -> Result<()> {
    for namespace in [CONTROL_PLANE, OTHER] {
        ensure_namespace(&testbed.admin, namespace).await?;
        let rule = json!({
            "apiGroups": [RBAC],
            "resources": ["roles", "rolebindings"],
            "verbs": ["*"],
        });
        // An administrator may bind ClusterRoles, too, so that only the policy is in the way.
        let clusters =
            json!({ "apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"] });
        let metadata = json!({ "namespace": namespace, "name": "control-plane-operator" });
        let subject = json!({
            "kind": "ServiceAccount", "namespace": namespace, "name": "control-plane-operator",
        });
        let objects = [
            json!({ "apiVersion": API_VERSION, "kind": "Role", "metadata": metadata, "rules": [rule, clusters] }),
            binding(
                namespace,
                "control-plane-operator",
                "Role",
                "control-plane-operator",
                &subject,
            ),
            role_in(namespace, EARLIER, &[rule_of(&REFUSED[6].0)]),
        ];
        testbed.admin.apply(&objects).await?;
    }
    let label = json!({ "metadata": { "labels": { "hypershift.openshift.io/hosted-control-plane": "true" } } });
    let path = format!("/api/v1/namespaces/{CONTROL_PLANE}");
    testbed
        .admin
        .patch(&path, Patch::Merge, &label)
        .await
        .map(drop)
}

async fn named_constraints_only(testbed: &Testbed) -> Result<()> {
    let constraints = |name: &str, of: &str| {
        let mut rule = rule_of(&REFUSED[8].0);
        rule["resourceNames"] = json!([of]);
        role_in(CONTROL_PLANE, name, &[rule])
    };
    let outcome = grant(testbed, CONTROL_PLANE, &constraints("scc", "privileged")).await;
    refused(outcome, "securitycontextconstraints")?;
    grant(testbed, CONTROL_PLANE, &constraints("scc", "restricted-v2")).await
}

async fn what_operators_hand_out_is_accepted(testbed: &Testbed) -> Result<()> {
    for (index, rule) in RELEASED.iter().enumerate() {
        let name = format!("released-{index}");
        let outcome = grant(testbed, CONTROL_PLANE, &role(&name, rule)).await;
        outcome.with_context(|| format!("{rule:?}"))?;
    }
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane-operator/tests/golden");
    let mut seen = 0;
    for component in std::fs::read_dir(&golden)? {
        for file in std::fs::read_dir(component?.path())? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with("role") {
                continue;
            }
            for mut object in fixtures::load(&path)? {
                // The owner is not there.
                object["metadata"]["ownerReferences"].take();
                let outcome = grant(testbed, CONTROL_PLANE, &object).await;
                outcome.with_context(|| path.display().to_string())?;
                seen += 1;
            }
        }
    }
    ensure!(
        seen >= 12,
        "{seen} Roles and RoleBindings in {}",
        golden.display()
    );
    let metrics = json!({
        "kind": "ServiceAccount", "namespace": "openshift-monitoring", "name": "prometheus-k8s",
    });
    let binding = binding(CONTROL_PLANE, "metrics", "Role", "released-0", &metrics);
    grant(testbed, CONTROL_PLANE, &binding).await
}

async fn rights_stay_in_the_namespace(testbed: &Testbed) -> Result<()> {
    let strangers = [
        json!({ "kind": "ServiceAccount", "namespace": TENANTS[1], "name": "control-plane-operator" }),
        json!({ "kind": "ServiceAccount", "namespace": "openshift-monitoring", "name": "default" }),
        json!({ "apiGroup": RBAC, "kind": "User", "name": "author" }),
        json!({ "apiGroup": RBAC, "kind": "Group", "name": "system:authenticated" }),
    ];
    for stranger in &strangers {
        let foreign = binding(CONTROL_PLANE, "foreign", "Role", "released-0", stranger);
        refused(
            grant(testbed, CONTROL_PLANE, &foreign).await,
            "is outside of namespace",
        )?;
    }
    let own = json!({ "kind": "ServiceAccount", "namespace": CONTROL_PLANE, "name": "default" });
    let cluster = binding(
        CONTROL_PLANE,
        "cluster",
        "ClusterRole",
        "cluster-admin",
        &own,
    );
    refused(
        grant(testbed, CONTROL_PLANE, &cluster).await,
        "ClusterRole cluster-admin",
    )?;
    // A subject can also be added later.
    let role = binding(CONTROL_PLANE, "later", "Role", "released-0", &own);
    grant(testbed, CONTROL_PLANE, &role).await?;
    let more = json!({ "subjects": [own, strangers[2]] });
    let path = ROLE_BINDINGS.named(CONTROL_PLANE, "later");
    let outcome = as_user(testbed, &operator(CONTROL_PLANE), &path, &more).await;
    refused(outcome.map(drop), "User  author is outside")
}

/// As after the upgrade of a fleet: what an earlier version has granted does not block writes of the object.
async fn what_exists_stays_editable(testbed: &Testbed) -> Result<()> {
    let path = ROLES.named(CONTROL_PLANE, EARLIER);
    let user = operator(CONTROL_PLANE);
    let label = json!({ "metadata": { "labels": { "team": "a" } } });
    as_user(testbed, &user, &path, &label).await?;
    let kept = rule_of(&REFUSED[6].0);
    let more = json!({ "rules": [kept, rule_of(&RELEASED[0])] });
    as_user(testbed, &user, &path, &more).await?;
    let wider = json!({ "rules": [rule_of(&["networking.k8s.io", "networkpolicies", "*"])] });
    refused(
        as_user(testbed, &user, &path, &wider).await.map(drop),
        "networkpolicies",
    )?;
    // Who is not of the control plane may.
    let operator = "system:serviceaccount:hypershift:operator";
    let outcome = as_user(testbed, operator, &path, &wider).await;
    let error = outcome
        .err()
        .context("the operator may escalate its own Roles only")?;
    ensure!(!format!("{error:#}").contains(POLICY), "{error:#}");
    testbed
        .admin
        .patch(&path, Patch::Merge, &wider)
        .await
        .map(drop)
}

fn operator(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:control-plane-operator")
}

/// The control-plane-operator creates the object.
async fn grant(testbed: &Testbed, namespace: &str, object: &Value) -> Result<()> {
    let kind = if object["kind"] == "Role" {
        ROLES
    } else {
        ROLE_BINDINGS
    };
    let request = http::Request::post(kind.within(namespace))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header("Impersonate-User", operator(namespace))
        .body(object.to_string().into_bytes())
        .context("the path is none")?;
    let created: Value = testbed.admin.kube().request(request).await?;
    ensure!(
        created["metadata"]["uid"].is_string(),
        "not created: {created}"
    );
    Ok(())
}

fn role(name: &str, rule: &[&str; 3]) -> Value {
    role_in(CONTROL_PLANE, name, &[rule_of(rule)])
}

fn role_in(namespace: &str, name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Role",
        "metadata": { "namespace": namespace, "name": name },
        "rules": rules,
    })
}

fn rule_of([groups, resources, verbs]: &[&str; 3]) -> Value {
    let [groups, resources, verbs] =
        [groups, resources, verbs].map(|list| list.split(',').collect::<Vec<_>>());
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn binding(namespace: &str, name: &str, kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "RoleBinding",
        "metadata": { "namespace": namespace, "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": kind, "name": role },
        "subjects": [subject],
    })
}

/// Fails unless the policy has refused with a message that has these words.
fn refused(outcome: Result<()>, words: &str) -> Result<()> {
    let Err(error) = outcome else {
        anyhow::bail!("accepted instead of refused with {words:?}");
    };
    let said = format!("{error:#}");
    ensure!(
        said.contains(POLICY) && said.contains(words) && said.contains(WAY_OUT),
        "not refused with {words:?}: {said}"
    );
    Ok(())
}
