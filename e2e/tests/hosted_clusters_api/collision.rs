//! Two HostedClusters that have one control plane namespace: the owner's objects outlive all that is done with the other.
//!
//! `clusters-shared/one` owns the namespace, which is full of objects with the names that `clusters/shared-one` would
//! use. No operator may write there, whatever the second cluster requests, and the second one can be deleted at once.

mod platforms;

use anyhow::{Context, Result, ensure};
use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::audit::Mark;
use testbed::client::ApiClient;
use testbed::collision::{Collider, Platform, objects, pool};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::service_account::{ensure_control_plane_namespace, ensure_namespace};
use testbed::testbed::Testbed;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::cluster::HOSTED_CLUSTERS;
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// Namespace of the HostedClusters that own control plane namespaces.
const OWNERS: &str = "clusters-shared";
/// The finalizer of HostedClusters and NodePools.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";

/// The whole test: the owner exists first, or is created while the other one waits for its release.
pub(crate) async fn run(testbed: &mut Testbed) -> Result<()> {
    platforms::install_kinds(testbed).await?;
    // With migrations, which begin by themselves where they may.
    let fixture = Fixture::with_flags(testbed, &[("migration-concurrency", "1")]).await?;
    let testbed = &*testbed;
    ensure_namespace(&testbed.admin, OWNERS).await?;
    let cases = [
        ("private", json!({ PRIVATE_CAPI_TYPES: "true" })),
        ("legacy", json!({ SCOPE: "legacy" })),
        ("unmarked", json!({})),
    ];
    for (name, annotations) in cases {
        let collision = Collision::new(testbed, &fixture, name).await?;
        let step = testbed
            .progress
            .step(format!("a namespace of another cluster: {name}"));
        collision
            .collider
            .attempt_everything(&annotations, async || collision.is_untouched().await)
            .await
            .with_context(|| name.to_owned())?;
        step.done_with(&format!("{} objects", collision.before.len()));
    }
    let step = testbed
        .progress
        .step("a namespace of another cluster, on Agent and KubeVirt");
    platforms::are_refused(testbed, &fixture).await?;
    step.done();
    let step = testbed
        .progress
        .step("a namespace that another cluster gets first");
    comes_later(testbed, &fixture).await?;
    step.done();
    Ok(())
}

/// A namespace of `clusters-shared/<name>`, which is the one of `clusters/shared-<name>`, too.
struct Collision<'a> {
    testbed: &'a Testbed,
    fixture: &'a Fixture,
    /// The cluster that does not own it.
    collider: Collider<'a>,
    namespace: String,
    before: Vec<(String, Vec<u8>, u64)>,
    mark: Mark,
}

// === impl Collision ===

impl<'a> Collision<'a> {
    async fn new(testbed: &'a Testbed, fixture: &'a Fixture, name: &str) -> Result<Self> {
        Self::on(testbed, fixture, name, None, &[]).await
    }

    /// The same on another platform than AWS, with further objects of the owner's.
    async fn on(
        testbed: &'a Testbed,
        fixture: &'a Fixture,
        name: &str,
        platform: Option<Platform>,
        further: &[Value],
    ) -> Result<Self> {
        let namespace = populate(&testbed.admin, name, further).await?;
        let before = stored(testbed, &namespace).await?;
        Ok(Self {
            testbed,
            fixture,
            collider: Collider {
                admin: &testbed.admin,
                namespace: NAMESPACE,
                name: format!("shared-{name}"),
                pools: vec![pool(&format!("shared-{name}"))],
                owner: format!("{OWNERS}/{name}"),
                release: &fixture.release,
                platform,
            },
            namespace,
            before,
            mark: testbed.control_plane.audit.mark()?,
        })
    }

    /// The owner's objects are what they were, byte for byte, and no operator has even tried to change one.
    async fn is_untouched(&self) -> Result<()> {
        let now = stored(self.testbed, &self.namespace).await?;
        for (key, value, revision) in &self.before {
            let found = now.iter().find(|(found, _, _)| found == key);
            let (_, found, at) = found.with_context(|| format!("{key} is gone"))?;
            ensure!(found == value && at == revision, "{key} was changed");
        }
        for (key, _, _) in &now {
            let is_old = self.before.iter().any(|(old, _, _)| old == key);
            ensure!(is_old, "{key} is new");
        }
        for event in self.testbed.control_plane.audit.since(self.mark)? {
            let operators = &self.fixture.operators;
            let is_operator = operators
                .iter()
                .any(|one| one.identity.username() == event.user.username);
            ensure!(
                !is_operator || !event.is_write() || !event.uri.contains(&self.namespace),
                "{}",
                event.summary()
            );
        }
        Ok(())
    }
}

/// The other order: the cluster is there, held by its finalizer, when another one gets the namespace.
async fn comes_later(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    let admin = &testbed.admin;
    let name = "shared-late";
    let absent = format!("{}-absent", fixture.release);
    admin.apply(&simulation::desired(name, &absent)?).await?;
    let path = HOSTED_CLUSTERS.named(NAMESPACE, name);
    wait::until("the cluster to wait for its release", SOON, async || {
        let found = admin.get(&path).await?;
        let finalizers = found["metadata"]["finalizers"].as_array();
        let is_held = finalizers.is_some_and(|it| it.contains(&json!(FINALIZER)));
        let verdict = find(&found, "ValidReleaseImage");
        let is_reported = verdict.is_some_and(|it| it["status"] == "False");
        ensure!(is_held && is_reported, "{}", untrue(&found));
        Ok(())
    })
    .await?;
    let collision = Collision::new(testbed, fixture, "late").await?;
    collision.collider.is_refused().await?;
    collision.collider.is_deleted().await?;
    collision.is_untouched().await
}

/// What is stored of a namespace and of what is named by it: key, bytes and revision. Events come and go.
async fn stored(testbed: &Testbed, namespace: &str) -> Result<Vec<(String, Vec<u8>, u64)>> {
    let all = testbed.control_plane.etcd.stored("/registry/").await?;
    let ours = all
        .into_iter()
        .filter(|it| it.key.contains(namespace) && !it.key.contains("/events/"));
    Ok(ours.map(|it| (it.key, it.value, it.revision)).collect())
}

/// Makes a control plane namespace of `clusters-shared/<name>` with further objects; gives its name.
async fn populate(admin: &ApiClient, name: &str, further: &[Value]) -> Result<String> {
    let namespace = ensure_control_plane_namespace(admin, OWNERS, name).await?;
    let mut all = objects(
        &namespace,
        &format!("shared-{name}"),
        &[CapiTypes::Private, CapiTypes::Standard],
    );
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": format!("hypershift-cluster-api-{namespace}"),
            "annotations": { "hypershift.openshift.io/cluster": format!("{OWNERS}/{name}") },
        },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
    }));
    all.extend(["pull-secret", "admin-kubeconfig"].map(|secret| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": namespace, "name": secret },
        })
    }));
    let deployments = ["cluster-api", "capi-provider", "control-plane-operator"];
    all.extend(deployments.map(|deployment| stopped(&namespace, deployment)));
    all.extend_from_slice(further);
    admin.apply(&all).await?;
    at_rest(admin, &namespace).await?;
    Ok(namespace)
}

/// Controllers of Kubernetes have done what they do for each namespace and Deployment.
async fn at_rest(admin: &ApiClient, namespace: &str) -> Result<()> {
    let core = format!("/api/v1/namespaces/{namespace}");
    let apps = format!("/apis/apps/v1/namespaces/{namespace}");
    wait::until("the namespace to be at rest", SOON, async || {
        admin
            .get(&format!("{core}/serviceaccounts/default"))
            .await?;
        admin
            .get(&format!("{core}/configmaps/kube-root-ca.crt"))
            .await?;
        for kind in ["deployments", "replicasets"] {
            let found = admin.list(&format!("{apps}/{kind}")).await?;
            ensure!(found.len() == 3, "{} {kind}", found.len());
            for one in found {
                ensure!(
                    one["status"]["observedGeneration"] == one["metadata"]["generation"],
                    "{kind} are not observed"
                );
                let conditions = &one["status"]["conditions"];
                ensure!(
                    kind != "deployments" || conditions.as_array().is_some_and(|it| it.len() == 2),
                    "{conditions}"
                );
            }
        }
        Ok(())
    })
    .await
}

/// A Deployment of a control plane, without pods.
fn stopped(namespace: &str, name: &str) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "finalizers": ["hypershift.openshift.io/component-finalizer"],
        },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "manager", "image": "images.example.com/manager" }] },
            },
        },
    })
}
