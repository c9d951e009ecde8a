//! What prevents an installation is reported, and nothing is changed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use http::request::Parts;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::relay::{Disposition, Moment, Relay};
use testbed::testbed::Testbed;

use crate::install::command::{Hypershift, NAMESPACE};
use crate::install::stored;

const ROLES: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "clusterroles");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const CRDS: Resource<'_> = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
/// A kind of which a field is dropped.
const PRUNED: &str = "ipaddressclaims.ipam.cluster.hypershift.openshift.io";
/// Kinds that an installation writes, with their groups.
const WRITTEN: [(&str, &[&str]); 8] = [
    (
        "",
        &[
            "namespaces",
            "serviceaccounts",
            "secrets",
            "configmaps",
            "services",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "rbac.authorization.k8s.io",
        &[
            "clusterroles",
            "clusterrolebindings",
            "roles",
            "rolebindings",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ],
    ),
    ("networking.k8s.io", &["networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
    ("apps", &["deployments"]),
];

/// Users who lack a right, of their own or to hand out.
pub(crate) async fn without_rights(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let before = stored::revisions(testbed).await?;
    let reader = user(testbed, "reader", &[rule(&["get", "list"], &WRITTEN)]).await?;
    let but_deployments = rule(&["*"], &WRITTEN[..7]);
    let almost = user(
        testbed,
        "almost",
        &[but_deployments, rule(&["get", "list"], &WRITTEN)],
    )
    .await?;
    let no_escalation = rule(&["get", "list", "create", "patch", "delete"], &WRITTEN);
    let hosted_clusters: [(&str, &[&str]); 1] = [("hypershift.openshift.io", &["hostedclusters"])];
    let look = rule(&["list"], &hosted_clusters);
    let writer = user(testbed, "writer", &[no_escalation, look]).await?;
    let with_users = stored::changed(testbed, &before).await?;
    let before = stored::revisions(testbed).await?;

    let table: [(&PathBuf, &[&str]); 3] = [
        (
            &reader,
            &[
                "namespaces: you may not create, patch it",
                "deployments.apps in namespace hypershift: you may not create, patch, delete it",
            ],
        ),
        (
            &almost,
            &["deployments.apps in namespace hypershift: you may not create, patch, delete it"],
        ),
        (
            &writer,
            &[
                "permission of the operators to patch hostedclusters.hypershift.openshift.io: you do not have it yourself",
            ],
        ),
    ];
    for (kubeconfig, words) in table {
        let user = hypershift.as_user(kubeconfig);
        user.install(&[]).await?.refused(words)?;
        stored::unchanged(testbed, &before).await?;
    }
    ensure!(with_users.len() == 6, "users: {with_users:?}");
    Ok(())
}

/// A server without the CEL functions that the CRDs need. The same relay with the real version is accepted.
pub(crate) async fn too_old(
    testbed: &Testbed,
    hypershift: &Hypershift,
    installer: &Path,
) -> Result<()> {
    let before = stored::revisions(testbed).await?;
    let kubeconfig = testbed.path().join("relay.kubeconfig");
    let mut version = testbed.admin.get("/version").await?;
    for (minor, refused) in [("30", true), ("31", false)] {
        version["minor"] = json!(minor);
        version["gitVersion"] = json!(format!("v1.{minor}.9"));
        let said = version.clone();
        let relay = Relay::as_user_of(installer, move |request: &Parts, moment| {
            if request.uri.path() == "/version" && moment == Moment::Arrived {
                return Disposition::Respond(said.clone());
            }
            Disposition::Pass
        });
        let relay = relay.await?;
        write_kubeconfig(&kubeconfig, &relay.server(), None, Credentials::None)?;
        let run = hypershift
            .as_user(&kubeconfig)
            .install(&["--dry-run"])
            .await?;
        if refused {
            run.refused(&["API server 1.30", "older than 1.31"])?;
            let run = hypershift.as_user(&kubeconfig).install(&[]).await?;
            run.refused(&["API server 1.30", "older than 1.31"])?;
        } else {
            run.succeeded()?;
        }
    }
    stored::unchanged(testbed, &before).await
}

/// A field that another client manages, and an object that belongs to another user.
pub(crate) async fn names_of_others(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let admin = &testbed.admin;
    let path = SERVICES.named(NAMESPACE, "operator");
    let theirs = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "operator" },
        "spec": { "selector": { "name": "something-else" } },
    });
    admin.patch(&path, Patch::Apply, &theirs).await?;
    let before = stored::revisions(testbed).await?;
    let words = [
        "Service hypershift/operator",
        ".spec.selector",
        "--take-over",
    ];
    hypershift.install(&[]).await?.refused(&words)?;
    stored::unchanged(testbed, &before).await?;

    hypershift.install(&["--take-over"]).await?.succeeded()?;
    let selector = admin.get(&path).await?["spec"]["selector"].take();
    ensure!(
        selector == json!({ "name": "operator" }),
        "the selector is {selector}"
    );
    hypershift.install(&[]).await?.succeeded()?;

    let helm = json!({ "metadata": { "annotations": { "meta.helm.sh/release-name": "other" } } });
    admin.patch(&path, Patch::Merge, &helm).await?;
    let words = ["it belongs to the Helm release other"];
    hypershift.install(&[]).await?.refused(&words)?;
    let unmanaged = json!({ "metadata": { "annotations": { "meta.helm.sh/release-name": null } } });
    admin.patch(&path, Patch::Merge, &unmanaged).await.map(drop)
}

/// An earlier installation's CRD knew a field that this one's does not, and an object has it.
pub(crate) async fn pruned_fields(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let admin = &testbed.admin;
    let path = format!("{}/{PRUNED}", CRDS.all());
    let mut crd = admin.get(&path).await?;
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let version = crd["spec"]["versions"][0]["name"]
        .as_str()
        .context("no version")?
        .to_owned();
    let properties = crd.pointer_mut(schema).context("no schema")?;
    properties["extra"] = json!({ "type": "string" });
    apply_as_installer(testbed, &path, &crd).await?;

    let object = json!({
        "apiVersion": format!("ipam.cluster.hypershift.openshift.io/{version}"),
        "kind": "IPAddressClaim",
        "metadata": { "namespace": crate::install::PLATFORM, "name": "precious" },
        "spec": { "poolRef": { "apiGroup": "example.com", "kind": "Pool", "name": "pool" } },
        "extra": "kept",
    });
    testbed::wait::until(
        "the field to be kept",
        std::time::Duration::from_secs(30),
        async || {
            admin.apply(std::slice::from_ref(&object)).await?;
            let stored = admin.get(&admin.path_of(&object).await?).await?;
            ensure!(stored["extra"] == "kept", "it is dropped");
            Ok(())
        },
    )
    .await?;
    let before = stored::revisions(testbed).await?;
    let words = [PRUNED, "does not know extra of platform/precious"];
    hypershift.install(&[]).await?.refused(&words)?;
    stored::unchanged(testbed, &before).await?;

    let without = json!({ "extra": null });
    let path = admin.path_of(&object).await?;
    admin.patch(&path, Patch::Merge, &without).await?;
    hypershift.install(&[]).await?.succeeded().map(drop)
}

/// From private types to standard ones.
pub(crate) async fn the_way_back(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let before = stored::revisions(testbed).await?;
    let standard = [
        "install",
        "--hypershift-image=registry.example.com/hypershift-operator:v1",
        "--wait-until-available=false",
    ];
    let words = [
        "--private-capi-types",
        "hosted clusters are in private groups",
    ];
    hypershift.run(&standard).await?.refused(&words)?;
    stored::unchanged(testbed, &before).await
}

fn rule(verbs: &[&str], kinds: &[(&str, &[&str])]) -> Vec<Value> {
    kinds
        .iter()
        .map(|(group, resources)| {
            json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
        })
        .collect()
}

/// A user with these rules; gives the user's kubeconfig.
async fn user(testbed: &Testbed, name: &str, rules: &[Vec<Value>]) -> Result<PathBuf> {
    let role = json!({
        "apiVersion": ROLES.api_version,
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules.concat(),
    });
    let binding = json!({
        "apiVersion": ROLES.api_version,
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name }],
    });
    testbed.admin.apply(&[role, binding]).await?;
    testbed.kubeconfig_of(name, None)
}

/// As an earlier release would have applied it.
async fn apply_as_installer(testbed: &Testbed, path: &str, crd: &Value) -> Result<()> {
    let mut crd = crd.clone();
    crd["metadata"] = json!({
        "name": crd["metadata"]["name"],
        "labels": crd["metadata"]["labels"],
    });
    if let Value::Object(fields) = &mut crd {
        fields.remove("status");
    }
    let request =
        http::Request::patch(format!("{path}?fieldManager=hypershift-install&force=true"))
            .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
            .body(crd.to_string().into_bytes())
            .context("the path is none")?;
    let _: Value = testbed.admin.kube().request(request).await?;
    Ok(())
}
