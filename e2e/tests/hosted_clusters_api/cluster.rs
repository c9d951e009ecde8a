//! A hosted cluster: how it is made, and what the operator makes of it.

use anyhow::{Context, Result, ensure};
use api::annotations::SCOPE;
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::expect::fields;
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
pub(crate) const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
pub(crate) const CONTROL_PLANES: Resource<'_> = Resource::new(HYPERSHIFT, "hostedcontrolplanes");
pub(crate) const NODE_POOLS: Resource<'_> = Resource::new(HYPERSHIFT, "nodepools");
pub(crate) const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
pub(crate) const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
pub(crate) const ACCOUNTS: Resource<'_> = Resource::new("v1", "serviceaccounts");
pub(crate) const ROLES: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "roles");
pub(crate) const POLICIES: Resource<'_> = Resource::new("networking.k8s.io/v1", "networkpolicies");

/// A cluster, on AWS unless it is created on another platform, with a pool of nodes.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    pub(crate) capi_types: CapiTypes,
}

// === impl Cluster ===

impl Cluster {
    /// One on each side.
    pub(crate) const ALL: [Self; 2] = [
        Self {
            name: "new",
            capi_types: CapiTypes::Private,
        },
        Self {
            name: "old",
            capi_types: CapiTypes::Standard,
        },
    ];

    /// One on private types.
    pub(crate) fn private(name: &'static str) -> Self {
        Self {
            name,
            capi_types: CapiTypes::Private,
        }
    }

    pub(crate) fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, self.name)
    }

    /// The namespace of its control plane.
    pub(crate) fn namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    pub(crate) fn infra(&self) -> String {
        format!("{}-x7k2p", self.name)
    }

    pub(crate) fn pool(&self) -> String {
        format!("{}-workers", self.name)
    }

    /// An API version of Cluster API on the cluster's side, of core or of the infrastructure.
    pub(crate) fn version(&self, infrastructure: bool) -> &'static str {
        match (self.capi_types, infrastructure) {
            (CapiTypes::Private, false) => "cluster.hypershift.openshift.io/v1beta2",
            (CapiTypes::Private, true) => "infrastructure.cluster.hypershift.openshift.io/v1beta2",
            (CapiTypes::Standard, false) => "cluster.x-k8s.io/v1beta2",
            (CapiTypes::Standard, true) => "infrastructure.cluster.x-k8s.io/v1beta2",
        }
    }

    /// Creates it with its pool, whose nodes have the older release.
    pub(crate) async fn create(&self, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
        let mut objects = simulation::desired(self.name, &fixture.release)?;
        for object in &mut objects {
            if object["kind"] == "HostedCluster" && self.capi_types == CapiTypes::Standard {
                object["metadata"]["annotations"] = json!({ SCOPE: "legacy" });
            }
            if object["kind"] == "NodePool" {
                object["spec"]["release"]["image"] = json!(fixture.older);
            }
        }
        admin.apply(&objects).await
    }

    /// The objects of a user who creates it with its pool on another platform: with these settings of the cluster, and these
    /// of the pool.
    pub(crate) fn desired_on(
        &self,
        release: &str,
        platform: &Value,
        machines: &Value,
    ) -> Result<Vec<Value>> {
        let mut objects = simulation::desired(self.name, release)?;
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("HostedCluster") => object["spec"]["platform"] = platform.clone(),
                Some("NodePool") => object["spec"]["platform"] = machines.clone(),
                _ => {}
            }
        }
        Ok(objects)
    }

    /// The objects in its control plane's namespace by which it works, one path each.
    pub(crate) fn objects(&self) -> Vec<String> {
        let namespace = self.namespace();
        let own = |of: &Resource<'_>, names: &[&str]| {
            let named = names.iter().map(|name| of.named(&namespace, name));
            named.collect::<Vec<_>>()
        };
        let operators = ["control-plane-operator", "cluster-api", "capi-provider"];
        let infra = self.infra();
        [
            vec![format!("/api/v1/namespaces/{namespace}")],
            own(&CONTROL_PLANES, &[self.name]),
            own(
                &SECRETS,
                &["pull-secret", "node-management-creds", "capi-webhooks-tls"],
            ),
            own(&ACCOUNTS, &operators),
            own(&ROLES, &operators),
            own(&DEPLOYMENTS, &operators),
            own(&Resource::new(self.version(false), "clusters"), &[&infra]),
            own(
                &Resource::new(self.version(true), "awsclusters"),
                &[self.name],
            ),
        ]
        .concat()
    }

    /// Waits until all of them are there, and checks that there is nothing in the other types.
    pub(crate) async fn is_made(&self, admin: &ApiClient) -> Result<()> {
        for path in self.objects() {
            wait::until(&format!("{path} to be made"), SOON, async || {
                let found = admin.find(&path).await?;
                if found.is_none() {
                    let cluster = admin.get(&self.path()).await?;
                    anyhow::bail!("it is not there; the cluster says {}", untrue(&cluster));
                }
                Ok(())
            })
            .await?;
        }
        let policies = POLICIES.within(&self.namespace());
        wait::until("NetworkPolicies to be made", SOON, async || {
            ensure!(!admin.list(&policies).await?.is_empty(), "there are none");
            Ok(())
        })
        .await?;
        let other = Self {
            capi_types: match self.capi_types {
                CapiTypes::Private => CapiTypes::Standard,
                CapiTypes::Standard => CapiTypes::Private,
            },
            ..self.clone()
        };
        let other = Resource::new(other.version(false), "clusters").within(&self.namespace());
        ensure!(
            admin.list(&other).await?.is_empty(),
            "{} has objects on the other side",
            self.name
        );
        Ok(())
    }

    /// Checks that the control plane has the platform as the user has it.
    pub(crate) async fn has_platform(&self, admin: &ApiClient) -> Result<()> {
        let path = CONTROL_PLANES.named(&self.namespace(), self.name);
        let (found, expected) = (admin.get(&path).await?, admin.get(&self.path()).await?);
        let platform = |object: &Value| object["spec"]["platform"].clone();
        fields("spec.platform", &platform(&found), &platform(&expected))
    }

    /// Waits for a condition that refuses it, and checks that its control plane is not begun.
    pub(crate) async fn is_refused(
        &self,
        admin: &ApiClient,
        kind: &str,
        about: &str,
    ) -> Result<()> {
        self.reports(admin, kind, "False", about).await?;
        let namespace = format!("/api/v1/namespaces/{}", self.namespace());
        let begun = admin.find(&namespace).await?;
        ensure!(begun.is_none(), "its control plane is begun");
        Ok(())
    }

    /// Has the operator look at it at once: it does not watch Secrets of users.
    pub(crate) async fn is_looked_at(&self, admin: &ApiClient, why: &str) -> Result<()> {
        let looked = json!({ "metadata": { "annotations": { "example.com/looked": why } } });
        admin
            .patch(&self.path(), Patch::Merge, &looked)
            .await
            .map(drop)
    }

    /// Changes the specification.
    pub(crate) async fn change(&self, admin: &ApiClient, spec: Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        admin.patch(&self.path(), Patch::Merge, &patch).await?;
        Ok(())
    }

    /// Waits for a condition, and gives its message.
    pub(crate) async fn reports(
        &self,
        admin: &ApiClient,
        kind: &str,
        status: &str,
        about: &str,
    ) -> Result<()> {
        let what = format!("{} of {} to be {status}", kind, self.name);
        wait::until(&what, SOON, async || {
            let cluster = admin.get(&self.path()).await?;
            let found = find(&cluster, kind)
                .with_context(|| format!("there is none among {}", untrue(&cluster)))?;
            let message = found["message"].as_str().unwrap_or_default();
            ensure!(
                found["status"] == status && message.contains(about),
                "{found}; others: {}",
                untrue(&cluster)
            );
            Ok(())
        })
        .await
    }
}

/// Waits until objects are gone; while one is there, its conditions say why.
pub(crate) async fn gone<const N: usize>(admin: &ApiClient, paths: [String; N]) -> Result<()> {
    for path in paths {
        wait::until(&format!("{path} to be gone"), SOON, async || {
            let left = admin.find(&path).await?;
            let reported = left.map(|left| left["status"]["conditions"].clone());
            ensure!(reported.is_none(), "it is there: {reported:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Checks that no role and no binding of a control plane is left outside of its namespace.
pub(crate) async fn nothing_outside(admin: &ApiClient, namespace: &str) -> Result<()> {
    let own = format!("-{namespace}");
    for plural in ["clusterroles", "clusterrolebindings"] {
        let kind = Resource::new("rbac.authorization.k8s.io/v1", plural);
        for object in admin.list(&kind.all()).await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            ensure!(!name.ends_with(&own), "{plural} {name} is left");
        }
    }
    Ok(())
}
