//! Two HostedClusters that have one control plane namespace: the owner's objects outlive all that is done with the other.
//!
//! `clusters-shared/one` owns the namespace, which is full of objects with the names that `clusters/shared-one` would
//! use. No operator may write there, whatever the second cluster asks for, and the second one can be deleted at once.

use anyhow::{Context, Result, ensure};
use api::annotations::{
    MIGRATION_ACKNOWLEDGED, MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, PRIVATE_CAPI_TYPES,
    ROLLBACK_REQUESTED, SCOPE,
};
use api::group::{Side, core, infrastructure};
use e2e::audit::Mark;
use e2e::client::{ApiClient, Patch};
use e2e::conditions::{find, untrue};
use e2e::operator::SOON;
use e2e::service_account::{ensure_control_plane_namespace, ensure_namespace};
use e2e::testbed::Testbed;
use e2e::{simulation, wait};
use serde_json::{Value, json};

use crate::hosted_clusters_api::cluster::{HOSTED_CLUSTERS, NODE_POOLS};
use crate::hosted_clusters_api::ground::{Ground, NAMESPACE};

/// Where the owners are.
const OWNERS: &str = "clusters-shared";
/// What keeps a HostedCluster and a NodePool until they are cleaned up.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// How long it may take until an operator has looked at a change, and done what it does about it.
const LOOKED: std::time::Duration = std::time::Duration::from_secs(8);

/// All of it: the owner is there first, or comes when the other one waits for its release.
pub(crate) async fn run(testbed: &mut Testbed) -> Result<()> {
    let ground = Ground::prepare(testbed).await?;
    let testbed = &*testbed;
    ensure_namespace(&testbed.admin, OWNERS).await?;
    let cases = [
        ("private", json!({ PRIVATE_CAPI_TYPES: "true" })),
        ("legacy", json!({ SCOPE: "legacy" })),
        ("unmarked", json!({})),
    ];
    for (name, annotations) in cases {
        let collision = Collision::new(testbed, &ground, name).await?;
        let step = testbed
            .progress
            .step(format!("a namespace of another cluster: {name}"));
        collision
            .is_survived(&annotations)
            .await
            .with_context(|| name.to_owned())?;
        step.done_with(&format!("{} objects", collision.before.len()));
    }
    let step = testbed
        .progress
        .step("a namespace that another cluster gets first");
    comes_later(testbed, &ground).await?;
    step.done();
    Ok(())
}

/// A namespace of `clusters-shared/<name>`, which is the one of `clusters/shared-<name>`, too.
struct Collision<'a> {
    testbed: &'a Testbed,
    ground: &'a Ground,
    /// The name of the cluster that does not own it.
    name: String,
    namespace: String,
    before: Vec<(String, Vec<u8>, u64)>,
    mark: Mark,
}

// === impl Collision ===

impl<'a> Collision<'a> {
    async fn new(testbed: &'a Testbed, ground: &'a Ground, name: &str) -> Result<Self> {
        let namespace = populate(&testbed.admin, name).await?;
        let before = stored(testbed, &namespace).await?;
        Ok(Self {
            testbed,
            ground,
            name: format!("shared-{name}"),
            namespace,
            before,
            mark: testbed.control_plane.audit.mark()?,
        })
    }

    /// Everything that a tenant can ask for, and then the end.
    async fn is_survived(&self, annotations: &Value) -> Result<()> {
        self.create(annotations, &[]).await?;
        self.is_refused().await?;
        self.is_untouched().await.context("created")?;
        let lock = json!({ MIGRATION_IN_PROGRESS: "true" });
        self.annotate(&lock).await.context("locked")?;
        let request =
            json!({ MIGRATION_IN_PROGRESS: null, MIGRATION_ROLLBACK: ROLLBACK_REQUESTED });
        self.annotate(&request).await.context("asked back")?;
        self.can_be_deleted_at_once().await?;
        self.is_untouched().await.context("deleted")?;
        // As an older operator has left it.
        self.create(annotations, &[FINALIZER]).await?;
        self.is_refused().await?;
        self.annotate(&lock).await.context("locked and held")?;
        self.is_deleted().await?;
        self.is_untouched().await.context("deleted with finalizers")
    }

    fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, &self.name)
    }

    fn pool(&self) -> String {
        NODE_POOLS.named(NAMESPACE, &format!("{}-workers", self.name))
    }

    async fn create(&self, annotations: &Value, finalizers: &[&str]) -> Result<()> {
        let mut objects = simulation::wish(&self.name, &self.ground.release)?;
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("HostedCluster") => {
                    object["metadata"]["annotations"] = annotations.clone();
                    object["metadata"]["finalizers"] = json!(finalizers);
                }
                Some("NodePool") => object["metadata"]["finalizers"] = json!(finalizers),
                _ => {}
            }
        }
        self.testbed.admin.apply(&objects).await
    }

    /// Both say whose the namespace is.
    async fn is_refused(&self) -> Result<()> {
        let admin = &self.testbed.admin;
        let owner = self.name.replacen("shared-", "clusters-shared/", 1);
        for (path, about) in [(self.path(), "ValidConfiguration"), (self.pool(), "Ready")] {
            wait::until(&format!("{path} to be refused"), SOON, async || {
                let found = admin.get(&path).await?;
                let condition = find(&found, about)
                    .with_context(|| format!("there is none among {}", untrue(&found)))?;
                let message = condition["message"].as_str().unwrap_or_default();
                ensure!(
                    condition["status"] == "False" && message.contains(&owner),
                    "{condition}"
                );
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// An annotation that asks an operator for something in the namespace.
    async fn annotate(&self, annotations: &Value) -> Result<()> {
        let admin = &self.testbed.admin;
        let patch = json!({ "metadata": { "annotations": annotations } });
        admin.patch(&self.path(), Patch::Merge, &patch).await?;
        wait::throughout("nothing to be written there", LOOKED, async || {
            let found = admin.get(&self.path()).await?;
            let acknowledged = &found["metadata"]["annotations"][MIGRATION_ACKNOWLEDGED];
            ensure!(acknowledged.is_null(), "the lock was acknowledged");
            self.is_untouched().await
        })
        .await
    }

    /// Nothing holds them: they are gone with the answer.
    async fn can_be_deleted_at_once(&self) -> Result<()> {
        for path in [self.pool(), self.path()] {
            self.testbed.admin.delete(&path).await?;
            let left = self.testbed.admin.find(&path).await?;
            ensure!(left.is_none(), "{path} is held: {left:?}");
        }
        Ok(())
    }

    async fn is_deleted(&self) -> Result<()> {
        let admin = &self.testbed.admin;
        admin.delete(&self.path()).await?;
        for path in [self.pool(), self.path()] {
            wait::until(&format!("{path} to be gone"), SOON, async || {
                let left = admin.find(&path).await?;
                ensure!(left.is_none(), "{left:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
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
            let operators = &self.ground.operators;
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
async fn comes_later(testbed: &Testbed, ground: &Ground) -> Result<()> {
    let admin = &testbed.admin;
    let name = "shared-late";
    let absent = format!("{}-absent", ground.release);
    admin.apply(&simulation::wish(name, &absent)?).await?;
    let path = HOSTED_CLUSTERS.named(NAMESPACE, name);
    wait::until("the cluster to wait for its release", SOON, async || {
        let found = admin.get(&path).await?;
        let finalizers = found["metadata"]["finalizers"].as_array();
        let is_held = finalizers.is_some_and(|it| it.contains(&json!(FINALIZER)));
        let verdict = find(&found, "ValidReleaseImage");
        let is_told = verdict.is_some_and(|it| it["status"] == "False");
        ensure!(is_held && is_told, "{}", untrue(&found));
        Ok(())
    })
    .await?;
    let collision = Collision::new(testbed, ground, "late").await?;
    collision.is_refused().await?;
    collision.is_deleted().await?;
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

/// Makes a control plane namespace of `clusters-shared/<name>`; gives its name.
async fn populate(admin: &ApiClient, name: &str) -> Result<String> {
    let namespace = ensure_control_plane_namespace(admin, OWNERS, name).await?;
    let other = format!("shared-{name}");
    let mut objects = vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {
                "name": format!("hypershift-cluster-api-{namespace}"),
                "annotations": { "hypershift.openshift.io/cluster": format!("{OWNERS}/{name}") },
            },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        }),
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "AWSEndpointService",
            "metadata": { "name": "private-router", "finalizers": ["example.com/endpoint"] },
            "spec": { "networkLoadBalancerName": "nlb" },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": migration_executor::JOURNAL_NAME },
            "data": { "journal": "{}" },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "pool",
                "labels": { "hypershift.openshift.io/nodePool": format!("{other}-workers") },
            },
        }),
    ];
    let secrets = [
        "pull-secret".to_owned(),
        "admin-kubeconfig".to_owned(),
        format!("token-{other}-workers-12345678"),
        format!("user-data-{other}-workers-12345678"),
    ];
    objects.extend(
        secrets.map(
            |name| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } }),
        ),
    );
    for deployment in ["cluster-api", "capi-provider", "control-plane-operator"] {
        objects.push(stopped(deployment));
    }
    for side in [Side::Private, Side::Standard] {
        objects.extend(machines(side, &other));
    }
    for object in &mut objects {
        if object["kind"] != "ClusterRoleBinding" {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    admin.apply(&objects).await?;
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
fn stopped(name: &str) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "finalizers": ["hypershift.openshift.io/component-finalizer"] },
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

/// A cluster of Cluster API with a pool of machines, all with the names that the other cluster's would have.
fn machines(side: Side, other: &str) -> Vec<Value> {
    let (core, infrastructure) = (core(side), infrastructure(side));
    let (infra, pool) = (format!("{other}-x7k2p"), format!("{other}-workers"));
    let reference =
        |kind: &str, name: &str| json!({ "apiGroup": infrastructure, "kind": kind, "name": name });
    let labels = json!({ "example.com/pool": pool });
    let machine = json!({
        "clusterName": infra,
        "bootstrap": { "dataSecretName": "user-data" },
        "infrastructureRef": reference("AWSMachineTemplate", &pool),
    });
    let set = json!({
        "clusterName": infra,
        "replicas": 1,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": machine },
    });
    let object = |group: &str, kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}/v1beta2"),
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": { "cluster.x-k8s.io/cluster-name": infra },
                "annotations": { "cluster.x-k8s.io/paused": "true" },
                "finalizers": ["example.com/machines"],
            },
            "spec": spec,
        })
    };
    let cluster = json!({ "paused": true, "infrastructureRef": reference("AWSCluster", other) });
    let template = json!({ "template": { "spec": { "instanceType": "m5.large" } } });
    vec![
        object(&core, "Cluster", &infra, cluster),
        object(&core, "MachineDeployment", &pool, set.clone()),
        object(&core, "MachineSet", &pool, set),
        object(&core, "Machine", &format!("{pool}-abcde"), machine),
        object(&infrastructure, "AWSMachineTemplate", &pool, template),
    ]
}
