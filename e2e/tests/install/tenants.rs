//! The tenant policy on a real API server: what authors of HostedClusters may do, and what needs the verb `override`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource, status_code};
use testbed::progress::Progress;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{fixtures, wait};

use super::command::{Hypershift, Run};

mod control_planes;

const HOSTED_CLUSTERS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedclusters");
const NODE_POOLS: Resource<'_> = Resource::new("hypershift.openshift.io/v1beta1", "nodepools");
const POLICIES: Resource<'_> = Resource::new(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies",
);
const BINDINGS: Resource<'_> = Resource::new(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
);
const NAME: &str = "hypershift-tenant-policy";
/// Two tenants who do not trust each other.
const TENANTS: [&str; 2] = ["tenant-a", "tenant-b"];
/// Verbs of an author, by name: `*` would hold `override`, too.
const AUTHOR: [&str; 7] = [
    "get", "list", "watch", "create", "update", "patch", "delete",
];
/// How long the API server may take to heed a policy or a role.
const HEEDED_WITHIN: Duration = Duration::from_mins(1);
/// Annotations of a HostedCluster that need the verb.
const RESERVED: [&str; 8] = [
    "hypershift.openshift.io/control-plane-operator-image",
    "hypershift.openshift.io/image-overrides",
    "hypershift.openshift.io/capi-provider-aws-image",
    "hypershift.openshift.io/pod-security-admission-label-override",
    "hypershift.openshift.io/etcd-priority-class",
    "hypershift.openshift.io/kubevirt-vm-jsonpatch",
    "hypershift.openshift.io/migration-in-progress",
    "hypershift.openshift.io/private-capi-types",
];

/// The clients of all users in the scenario.
struct People {
    /// Author of `tenant-a`.
    author: ApiClient,
    /// Author of `tenant-b`, who holds `override` there.
    trusted: ApiClient,
}

/// Check T05.
#[tokio::test]
async fn the_tenant_policy_restricts_authors() -> Result<()> {
    let testbed = Testbed::start("install-tenants", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let installer = testbed.kubeconfig_of("installer", Some("system:masters"))?;
    let hypershift = Hypershift::build(&installer, &testbed.progress).await?;
    let step = testbed.progress.step("installing, with the tenant policy");
    install(&hypershift, &[]).await?.succeeded()?;
    let mode = mode(testbed).await?;
    ensure!(
        mode == json!(["Deny", "Audit"]),
        "a first installation does {mode}"
    );
    step.done();

    let people = People::arrive(testbed).await?;
    let own = hosted(TENANTS[0])?;
    wait::until("the kinds to be served", HEEDED_WITHIN, async || {
        people
            .author
            .create(&path(TENANTS[0]), &own)
            .await
            .map(drop)
    })
    .await?;
    people
        .trusted
        .create(&path(TENANTS[1]), &hosted(TENANTS[1])?)
        .await?;
    let pool = node_pool(TENANTS[0]);
    people
        .author
        .create(&NODE_POOLS.within(TENANTS[0]), &pool)
        .await?;

    let step = testbed
        .progress
        .step("trying what authors may and may not do");
    people.reserved_annotations_are_refused().await?;
    people.tenants_stay_apart().await?;
    people.objects_that_have_them_stay_editable(testbed).await?;
    people.fields_that_reach_beyond_are_refused(testbed).await?;
    impersonation_gains_nothing(testbed).await?;
    step.done();
    keys_stay_during_reencryption(&people, testbed).await?;
    control_planes::scenario(testbed).await?;
    let step = testbed.progress.step("changing the policy");
    release_images_are_limited(&people, &hypershift).await?;
    the_mode_follows_the_flag(&people, testbed, &hypershift).await?;
    step.done();
    Ok(())
}

/// Installs on the standard groups, which is enough here.
async fn install(hypershift: &Hypershift, flags: &[&str]) -> Result<Run> {
    let usual = [
        "install",
        "--hypershift-image=registry.example.com/hypershift-operator:v1",
        "--wait-until-available=false",
    ];
    hypershift.run(&[&usual, flags].concat()).await
}

// === impl People ===

impl People {
    async fn arrive(testbed: &Testbed) -> Result<Self> {
        for tenant in TENANTS {
            ensure_namespace(&testbed.admin, tenant).await?;
        }
        grant(testbed, TENANTS[0], "author", &AUTHOR).await?;
        let trusted = [&AUTHOR[..], &["override"]].concat();
        grant(testbed, TENANTS[1], "trusted", &trusted).await?;
        let client = async |name: &str| {
            let kubeconfig = testbed.kubeconfig_of(name, None)?;
            ApiClient::from_kubeconfig(&kubeconfig).await
        };
        let people = Self {
            author: client("author").await?,
            trusted: client("trusted").await?,
        };
        let heeded = async || {
            for (client, tenant) in [&people.author, &people.trusted].into_iter().zip(TENANTS) {
                client.list(&path(tenant)).await?;
            }
            Ok(())
        };
        wait::until("the tenants' roles to be heeded", HEEDED_WITHIN, heeded).await?;
        Ok(people)
    }

    async fn reserved_annotations_are_refused(&self) -> Result<()> {
        let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
        for key in RESERVED {
            refused(annotate(&self.author, &own, key, json!("x")).await, key)?;
            let mut other = hosted(TENANTS[0])?;
            other["metadata"]["name"] = json!("other");
            other["metadata"]["annotations"] = json!({ key: "x" });
            refused(self.author.create(&path(TENANTS[0]), &other).await, key)?;
        }
        let pool = NODE_POOLS.named(TENANTS[0], "old");
        let key = "hypershift.openshift.io/haproxy-image";
        refused(annotate(&self.author, &pool, key, json!("x")).await, key)?;
        let key = "hypershift.openshift.io/restart-date";
        annotate(&self.author, &own, key, json!("today")).await?;
        Ok(())
    }

    /// The verb is good in its namespace only, and RBAC separates the rest.
    async fn tenants_stay_apart(&self) -> Result<()> {
        let (a, b) = (
            HOSTED_CLUSTERS.named(TENANTS[0], "old"),
            HOSTED_CLUSTERS.named(TENANTS[1], "old"),
        );
        let key = RESERVED[0];
        let strangers = [
            annotate(&self.author, &b, key, json!("x")).await,
            annotate(&self.trusted, &a, key, json!("x")).await,
        ];
        for outcome in strangers {
            let error = outcome.err().context("a tenant wrote to another")?;
            ensure!(status_code(&error) == Some(403), "{error:#}");
        }
        annotate(&self.trusted, &b, key, json!("x")).await.map(drop)
    }

    /// As in a fleet from before the policy: an administrator has set what the author may not.
    async fn objects_that_have_them_stay_editable(&self, testbed: &Testbed) -> Result<()> {
        let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
        let key = RESERVED[1];
        annotate(
            &testbed.admin,
            &own,
            key,
            json!("etcd=registry.example.com/etcd"),
        )
        .await?;
        let other =
            json!({ "metadata": { "labels": { "team": "a" } }, "spec": { "pausedUntil": "true" } });
        self.author.patch(&own, Patch::Merge, &other).await?;
        refused(
            annotate(&self.author, &own, key, json!("etcd=other")).await,
            key,
        )?;
        refused(annotate(&self.author, &own, key, Value::Null).await, key)?;
        // The operator continues writing what it writes.
        let operator = "system:serviceaccount:hypershift:operator";
        let patch = json!({ "metadata": { "annotations": { key: null, RESERVED[7]: "true" } } });
        as_user(testbed, operator, &own, &patch).await?;
        let patch = json!({ "metadata": { "annotations": { RESERVED[7]: null } } });
        as_user(testbed, operator, &own, &patch).await.map(drop)
    }

    async fn fields_that_reach_beyond_are_refused(&self, testbed: &Testbed) -> Result<()> {
        let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
        let label = "hypershift.openshift.io/need-management-kas-access";
        let labels = json!({ "spec": { "labels": { label: "true" } } });
        refused(self.author.patch(&own, Patch::Merge, &labels).await, label)?;
        let labels = json!({ "spec": { "labels": { "team": "a" } } });
        self.author.patch(&own, Patch::Merge, &labels).await?;

        let mut agents = hosted(TENANTS[0])?;
        agents["metadata"]["name"] = json!("agents");
        agents["spec"]["platform"] =
            json!({ "type": "Agent", "agent": { "agentNamespace": TENANTS[1] } });
        let words = "patch on agents.agent-install.openshift.io";
        refused(self.author.create(&path(TENANTS[0]), &agents).await, words)?;
        let rule = json!({
            "apiGroups": ["agent-install.openshift.io"], "resources": ["agents"], "verbs": ["patch"],
        });
        bind(testbed, TENANTS[1], "agents-of-b", "author", &rule).await?;
        wait::until("consent to be heeded", HEEDED_WITHIN, async || {
            self.author
                .create(&path(TENANTS[0]), &agents)
                .await
                .map(drop)
        })
        .await?;
        self.networks_of_others_are_refused().await
    }

    async fn networks_of_others_are_refused(&self) -> Result<()> {
        let pool = |name: &str, network: &str| {
            let mut pool = node_pool(TENANTS[0]);
            pool["metadata"]["name"] = json!(name);
            pool["spec"]["platform"] = json!({
                "type": "KubeVirt",
                "kubevirt": {
                    "rootVolume": {
                        "type": "Persistent", "persistent": { "size": "32Gi" },
                    },
                    "additionalNetworks": [{ "name": network }],
                },
            });
            pool
        };
        let pools = NODE_POOLS.within(TENANTS[0]);
        let other = pool("foreign", "tenant-b/net");
        let words = "get on network-attachment-definitions.k8s.cni.cncf.io";
        refused(self.author.create(&pools, &other).await, words)?;
        let own = pool("own", "tenant-a/net");
        self.author.create(&pools, &own).await.map(drop)
    }
}

/// Who may act for an author may do what the author may, and who impersonates a user needs no permissions of their own.
async fn impersonation_gains_nothing(testbed: &Testbed) -> Result<()> {
    let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
    let patch = json!({ "metadata": { "annotations": { RESERVED[0]: "x" } } });
    refused(as_user(testbed, "author", &own, &patch).await, RESERVED[0])?;
    let plain = json!({ "metadata": { "labels": { "team": "b" } } });
    as_user(testbed, "author", &own, &plain).await.map(drop)
}

/// A second change of the encryption key waits for the end of the first; everything else can be changed meanwhile.
async fn keys_stay_during_reencryption(people: &People, testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("changing encryption keys");
    let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
    let key = |name: &str| {
        json!({ "spec": { "secretEncryption": {
            "type": "aescbc", "aescbc": { "activeKey": { "name": name } },
        } } })
    };
    let report = async |status: &str| {
        let condition = json!({
            "type": "EtcdDataEncryptionUpToDate", "status": status, "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({ "status": { "conditions": [condition] } });
        let path = format!("{own}/status");
        testbed.admin.patch(&path, Patch::Merge, &status).await
    };
    let author = &people.author;
    author.patch(&own, Patch::Merge, &key("first")).await?;
    report("False").await?;
    wait::until("a second change to be refused", HEEDED_WITHIN, async || {
        let outcome = author.patch(&own, Patch::Merge, &key("second")).await;
        let error = outcome.err().context("the key was changed")?;
        let said = format!("{error:#}");
        ensure!(said.contains("EtcdDataEncryptionUpToDate"), "{said}");
        Ok(())
    })
    .await?;
    let other =
        json!({ "metadata": { "labels": { "team": "c" } }, "spec": { "pausedUntil": "true" } });
    author.patch(&own, Patch::Merge, &other).await?;
    report("True").await?;
    author.patch(&own, Patch::Merge, &key("second")).await?;
    step.done();
    Ok(())
}

async fn release_images_are_limited(people: &People, hypershift: &Hypershift) -> Result<()> {
    let flag = "--tenant-release-images=registry.example.com/release";
    install(hypershift, &[flag]).await?.succeeded()?;
    let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
    let image = |image: &str| json!({ "spec": { "release": { "image": image } } });
    let words = "release images come from registry.example.com/release only";
    // Another repository that begins the same is another one.
    for wrong in [
        "registry.example.com/release-of-mine",
        "evil.example.com/release",
    ] {
        wait::until("the repositories to be heeded", HEEDED_WITHIN, async || {
            let outcome = people
                .author
                .patch(&own, Patch::Merge, &image(&another(wrong)))
                .await;
            refused(outcome, words)
        })
        .await?;
    }
    let right = image("registry.example.com/release:4.20.3");
    people.author.patch(&own, Patch::Merge, &right).await?;
    let mirrors = json!({ "spec": { "imageContentSources": [
        { "source": "registry.example.com/release", "mirrors": ["evil.example.com/release"] },
    ] } });
    let outcome = people.author.patch(&own, Patch::Merge, &mirrors).await;
    refused(outcome, "spec.imageContentSources")?;
    install(hypershift, &[]).await?.succeeded().map(drop)
}

async fn the_mode_follows_the_flag(
    people: &People,
    testbed: &Testbed,
    hypershift: &Hypershift,
) -> Result<()> {
    let own = HOSTED_CLUSTERS.named(TENANTS[0], "old");
    install(hypershift, &["--tenant-policy=warn"])
        .await?
        .succeeded()?;
    ensure!(
        mode(testbed).await? == json!(["Warn", "Audit"]),
        "it does not warn"
    );
    wait::until("the policy to warn only", HEEDED_WITHIN, async || {
        annotate(&people.author, &own, RESERVED[0], json!("y"))
            .await
            .map(drop)
    })
    .await?;
    // What is there is kept without the flag.
    install(hypershift, &[]).await?.succeeded()?;
    ensure!(
        mode(testbed).await? == json!(["Warn", "Audit"]),
        "it was not kept"
    );
    install(hypershift, &["--tenant-policy=off"])
        .await?
        .succeeded()?;
    for kind in [BINDINGS, POLICIES] {
        let path = format!("{}/{NAME}", kind.all());
        ensure!(testbed.admin.find(&path).await?.is_none(), "{path} is left");
    }
    // A fleet that is from before the policy is not broken by an upgrade.
    let remarks = install(hypershift, &[]).await?.remarks()?;
    ensure!(remarks.contains("--tenant-policy=enforce"), "{remarks}");
    ensure!(
        mode(testbed).await? == json!(["Warn", "Audit"]),
        "a fleet is refused"
    );
    install(hypershift, &["--tenant-policy=enforce"])
        .await?
        .succeeded()?;
    wait::until("the policy to enforce", HEEDED_WITHIN, async || {
        let outcome = annotate(&people.author, &own, RESERVED[0], json!(another("z"))).await;
        refused(outcome, RESERVED[0])
    })
    .await
}

async fn mode(testbed: &Testbed) -> Result<Value> {
    let path = format!("{}/{NAME}", BINDINGS.all());
    let mut binding = testbed.admin.get(&path).await?;
    Ok(binding["spec"]["validationActions"].take())
}

fn path(tenant: &str) -> String {
    HOSTED_CLUSTERS.within(tenant)
}

fn hosted(tenant: &str) -> Result<Value> {
    let mut objects = fixtures::render("install/hosted-cluster", &[("NAME", "old")])?;
    let mut hosted = objects.pop().context("the fixture is empty")?;
    hosted["metadata"]["namespace"] = json!(tenant);
    Ok(hosted)
}

fn node_pool(tenant: &str) -> Value {
    json!({
        "apiVersion": NODE_POOLS.api_version,
        "kind": "NodePool",
        "metadata": { "namespace": tenant, "name": "old" },
        "spec": {
            "clusterName": "old",
            "release": { "image": "registry.example.com/release:4.20.1" },
            "replicas": 0,
            "management": { "upgradeType": "Replace" },
            "platform": { "type": "None" },
        },
    })
}

async fn annotate(client: &ApiClient, path: &str, key: &str, value: Value) -> Result<Value> {
    let change = json!({ "metadata": { "annotations": { key: value } } });
    client.patch(path, Patch::Merge, &change).await
}

/// Fails unless the policy has refused with a message that has these texts.
fn refused(outcome: Result<Value>, words: &str) -> Result<()> {
    let Err(error) = outcome else {
        anyhow::bail!("accepted instead of refused with {words:?}");
    };
    let said = format!("{error:#}");
    ensure!(
        said.contains(NAME) && said.contains(words) && said.contains("override"),
        "not refused with {words:?}: {said}"
    );
    Ok(())
}

/// An image that was not there before: what does not change is not refused, so each attempt needs its own.
fn another(repository: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{repository}:{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The administrator acts for a user.
async fn as_user(testbed: &Testbed, user: &str, path: &str, change: &Value) -> Result<Value> {
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .header("Impersonate-User", user)
        .body(change.to_string().into_bytes())
        .context("the path is none")?;
    Ok(testbed.admin.kube().request(request).await?)
}

async fn grant(testbed: &Testbed, namespace: &str, user: &str, verbs: &[&str]) -> Result<()> {
    let rule = json!({
        "apiGroups": ["hypershift.openshift.io"],
        "resources": ["hostedclusters", "nodepools"],
        "verbs": verbs,
    });
    bind(testbed, namespace, user, user, &rule).await
}

async fn bind(
    testbed: &Testbed,
    namespace: &str,
    role: &str,
    user: &str,
    allowed: &Value,
) -> Result<()> {
    let (api_version, group) = ("rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
    let metadata = json!({ "namespace": namespace, "name": role });
    let objects = [
        json!({
            "apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": [allowed],
        }),
        json!({
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "Role", "name": role },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
        }),
    ];
    testbed.admin.apply(&objects).await
}
