//! The platform's own Cluster API: standard CRDs, its own core manager without a proxy, objects with the same names.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes, GroupTable};
use serde_json::json;
use testbed::client::{ApiClient, Resource};
use testbed::cluster::{CLUSTERS, MACHINE_DEPLOYMENTS, MACHINES};
use testbed::etcd::Stored;
use testbed::fixtures;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::cluster_api::stored;

const CRDS: Resource<'_> = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
/// A Secret that the platform's Cluster owns.
const OWNED: &str = "owned-by-the-platform";
const WITHIN: Duration = Duration::from_mins(1);

/// The platform's objects, and what etcd held of them when they had settled.
pub(crate) struct Platform {
    namespace: String,
    stored: Vec<Stored>,
}

impl Platform {
    /// Creates the platform's objects in the standard groups, without any proxy, and waits until they have settled.
    pub(crate) async fn create(testbed: &Testbed, namespace: &str, name: &str) -> Result<Self> {
        let admin = &testbed.admin;
        ensure_namespace(admin, namespace).await?;
        let values = [("NAMESPACE", namespace), ("NAME", name)];
        admin.apply(&fixtures::render("platform", &values)?).await?;
        own_a_secret(admin, namespace, name).await?;
        wait::until("the platform's machines", WITHIN, async || {
            let machines = admin.list(&MACHINES.within(namespace)).await?;
            let pending = machines
                .iter()
                .filter(|machine| machine["status"]["phase"] == "Pending");
            ensure!(
                pending.count() == 2,
                "there are {} machines",
                machines.len()
            );
            let path = MACHINE_DEPLOYMENTS.named(namespace, &format!("{name}-workers"));
            let replicas = &admin.get(&path).await?["status"]["replicas"];
            ensure!(
                replicas == 2,
                "the MachineDeployment has {replicas} replicas"
            );
            Ok(())
        })
        .await?;
        let stored = wait::until("the platform's objects to settle", WITHIN, async || {
            let before = own(testbed, namespace).await?;
            wait::throughout("calm", Duration::from_secs(3), async || {
                ensure!(own(testbed, namespace).await? == before, "still changing");
                Ok(())
            })
            .await?;
            Ok(before)
        })
        .await?;
        Ok(Self {
            namespace: namespace.to_owned(),
            stored,
        })
    }

    /// Checks that every byte in etcd is as it was, and every revision.
    pub(crate) async fn is_unchanged(&self, testbed: &Testbed) -> Result<()> {
        let now = own(testbed, &self.namespace).await?;
        let changed: Vec<_> = self
            .stored
            .iter()
            .filter(|stored| !now.contains(stored))
            .map(|stored| stored.key.as_str())
            .collect();
        ensure!(
            changed.is_empty(),
            "objects of the platform changed: {changed:?}"
        );
        ensure!(
            now.len() == self.stored.len(),
            "objects of the platform appeared"
        );
        let secret = SECRETS.named(&self.namespace, OWNED);
        testbed
            .admin
            .get(&secret)
            .await
            .context("the platform's own Secret")?;
        Ok(())
    }

    /// Checks that neither Cluster API sees or ever requested objects of the other, and that what was created through the
    /// proxy while both kinds of CRDs were there is stored in private groups only (R32).
    pub(crate) async fn keeps_apart(&self, testbed: &mut Testbed, hosted: &str) -> Result<()> {
        let view = testbed.standard_view().await?;
        for (client, own, other) in [
            (&testbed.admin, self.namespace.as_str(), hosted),
            (&view, hosted, self.namespace.as_str()),
        ] {
            let machines = client.list(&MACHINES.all()).await?;
            let within = |namespace: &str| {
                let each = machines.iter();
                each.filter(|machine| machine["metadata"]["namespace"] == namespace)
                    .count()
            };
            ensure!(
                within(own) > 0,
                "{own} has no machines at {}",
                client.server()
            );
            ensure!(within(other) == 0, "{own} sees the machines of {other}");
        }
        for stored in stored::stored(&testbed.control_plane.etcd, CapiTypes::Standard).await? {
            let own = stored.key.contains(&format!("/{}/", self.namespace));
            let crd = stored.key.starts_with(stored::CRDS);
            ensure!(own || crd, "{} is stored in a standard group", stored.key);
        }
        the_other_side_is_not_used(testbed)
    }

    /// Removes the platform's Cluster API: its objects with its own manager, then the manager and the CRDs.
    pub(crate) async fn ends(self, testbed: &mut Testbed) -> Result<()> {
        let admin = testbed.admin.clone();
        admin
            .delete(&CLUSTERS.named(&self.namespace, "one"))
            .await?;
        wait::until("the platform's cluster to be gone", WITHIN, async || {
            let left = admin.list(&CLUSTERS.within(&self.namespace)).await?;
            ensure!(left.is_empty(), "it is {}", left[0]["status"]["phase"]);
            Ok(())
        })
        .await?;
        testbed.end(CapiTypes::Standard);
        for crd in stored_crds(&admin).await? {
            admin.delete(&format!("{}/{crd}", CRDS.all())).await?;
        }
        wait::until("the standard CRDs to be gone", WITHIN, async || {
            let left = stored_crds(&admin).await?;
            ensure!(left.is_empty(), "{left:?} are left");
            Ok(())
        })
        .await
    }
}

/// Checks by the audit log that no manager ever requested a group of the other types.
fn the_other_side_is_not_used(testbed: &mut Testbed) -> Result<()> {
    let platform = testbed.cluster_api(CapiTypes::Standard)?.usernames();
    let ours = testbed.cluster_api(CapiTypes::Private)?.usernames();
    let table = GroupTable::default();
    let mut requested = [0, 0];
    for event in testbed.control_plane.audit.all()? {
        let Some((_, capi_types)) = table.find(event.object_ref.api_group.as_bytes()) else {
            continue;
        };
        let user = &event.user.username;
        if platform.contains(user) {
            ensure!(
                capi_types == CapiTypes::Standard,
                "the platform's: {}",
                event.summary()
            );
            requested[0] += 1;
        } else if ours.contains(user) {
            ensure!(
                capi_types == CapiTypes::Private,
                "a hosted one: {}",
                event.summary()
            );
            requested[1] += 1;
        }
    }
    ensure!(
        requested.iter().all(|&count| count > 0),
        "not all of them sent requests: {requested:?}"
    );
    Ok(())
}

/// The names of the standard CRDs.
async fn stored_crds(admin: &ApiClient) -> Result<Vec<String>> {
    let table = GroupTable::default();
    let crds = admin.list(&CRDS.all()).await?;
    let names = crds.iter().filter_map(|crd| {
        let group = crd["spec"]["group"].as_str()?;
        let (_, capi_types) = table.find(group.as_bytes())?;
        (capi_types == CapiTypes::Standard)
            .then(|| crd["metadata"]["name"].as_str().unwrap_or("").to_owned())
    });
    Ok(names.collect())
}

/// What etcd holds of the standard types in the platform's namespace.
async fn own(testbed: &Testbed, namespace: &str) -> Result<Vec<Stored>> {
    let mut all = stored::stored(&testbed.control_plane.etcd, CapiTypes::Standard).await?;
    all.retain(|stored| stored.key.contains(&format!("/{namespace}/")));
    Ok(all)
}

/// A Secret that belongs to the platform's Cluster: what the garbage collector would take if it were misled.
async fn own_a_secret(admin: &ApiClient, namespace: &str, cluster: &str) -> Result<()> {
    let owner = admin.get(&CLUSTERS.named(namespace, cluster)).await?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": namespace,
            "name": OWNED,
            "ownerReferences": [{
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": cluster,
                "uid": owner["metadata"]["uid"],
            }],
        },
    });
    admin.create(&SECRETS.within(namespace), &secret).await?;
    Ok(())
}
