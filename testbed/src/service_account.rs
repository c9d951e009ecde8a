//! Service accounts with short-lived tokens in files, as the kubelet would mount them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::certs::write;
use crate::client::{ApiClient, Patch, Resource};
use crate::work_dir::WorkDir;

/// The lifetime of a token: the shortest that the API server grants.
const LIFETIME: Duration = Duration::from_mins(10);
/// How often it is replaced.
const REFRESH: Duration = Duration::from_mins(4);

const NAMESPACES: Resource<'_> = Resource::new("v1", "namespaces");
const SERVICE_ACCOUNTS: Resource<'_> = Resource::new("v1", "serviceaccounts");

/// A service account whose token file is renewed until this is dropped.
#[derive(Debug)]
pub struct ServiceAccount {
    namespace: String,
    name: String,
    token: PathBuf,
    refresh: tokio::task::JoinHandle<()>,
}

/// Where roles are granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// In one namespace: namespaced roles are bound there.
    Namespace(String),
    /// Everywhere.
    Cluster,
}

// === impl ServiceAccount ===

impl ServiceAccount {
    /// Creates the account and writes its first token.
    pub async fn create(
        admin: &ApiClient,
        work_dir: &WorkDir,
        namespace: &str,
        name: &str,
    ) -> Result<Self> {
        ensure_namespace(admin, namespace).await?;
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "namespace": namespace, "name": name },
        });
        let path = SERVICE_ACCOUNTS.named(namespace, name);
        admin.patch(&path, Patch::Apply, &account).await?;
        let token = work_dir.join(format!("{namespace}-{name}.token"));
        renew(admin, &path, &token).await?;
        let refresh = tokio::spawn(keep_fresh(admin.clone(), path, token.clone()));
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            token,
            refresh,
        })
    }

    /// The file with the current token.
    pub fn token_file(&self) -> &Path {
        &self.token
    }

    /// The user name that the API server knows it by.
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Creates `roles` (`ClusterRole`s) and binds them: those called `*-cluster` everywhere, the others as far as
    /// `reach` says.
    pub async fn grant(&self, admin: &ApiClient, roles: &[Value], reach: &Reach) -> Result<()> {
        admin.apply(roles).await?;
        for role in roles {
            let name = role["metadata"]["name"]
                .as_str()
                .context("a role has no name")?;
            let binding = match reach {
                Reach::Namespace(namespace) if !name.ends_with("-cluster") => {
                    self.role_binding(name, namespace)
                }
                Reach::Namespace(_) | Reach::Cluster => self.cluster_role_binding(name),
            };
            admin.apply(&[binding]).await?;
        }
        Ok(())
    }

    fn role_binding(&self, role: &str, namespace: &str) -> Value {
        let mut binding = self.cluster_role_binding(role);
        binding["kind"] = json!("RoleBinding");
        binding["metadata"]["namespace"] = json!(namespace);
        binding
    }

    fn cluster_role_binding(&self, role: &str) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{}-{}-{role}", self.namespace, self.name) },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{
                "kind": "ServiceAccount",
                "namespace": self.namespace,
                "name": self.name,
            }],
        })
    }
}

impl Drop for ServiceAccount {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

/// Creates a namespace unless it is there.
pub async fn ensure_namespace(admin: &ApiClient, name: &str) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
    });
    let path = format!("{}/{name}", NAMESPACES.all());
    admin.patch(&path, Patch::Apply, &namespace).await?;
    Ok(())
}

/// Creates the namespace of a hosted cluster's control plane with its owner, as the operator does, unless it is there.
pub async fn ensure_control_plane_namespace(
    admin: &ApiClient,
    namespace: &str,
    cluster: &str,
) -> Result<String> {
    let name = api::names::control_plane_namespace(namespace, cluster);
    let owner = format!("{namespace}/{cluster}");
    let desired = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "annotations": { "hypershift.openshift.io/cluster": owner } },
    });
    let path = format!("{}/{name}", NAMESPACES.all());
    admin.patch(&path, Patch::Apply, &desired).await?;
    Ok(name)
}

async fn keep_fresh(admin: ApiClient, account: String, token: PathBuf) {
    loop {
        tokio::time::sleep(REFRESH).await;
        // The old token is valid for some more minutes, and the next round retries.
        drop(renew(&admin, &account, &token).await);
    }
}

/// Requests a new token and replaces the old one atomically.
async fn renew(admin: &ApiClient, account: &str, file: &Path) -> Result<()> {
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": { "expirationSeconds": LIFETIME.as_secs() },
    });
    let response = admin.create(&format!("{account}/token"), &question).await?;
    let token = response["status"]["token"]
        .as_str()
        .with_context(|| format!("the API server gave {account} no token"))?;
    let unfinished = file.with_extension("new");
    write(&unfinished, token)?;
    std::fs::rename(&unfinished, file)
        .with_context(|| format!("cannot put the token {} in place", file.display()))
}
