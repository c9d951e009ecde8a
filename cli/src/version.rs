//! `hypershift version`: which version this command has, and which the operator.

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use crate::install::cluster::Cluster;
use crate::install::display::print;
use crate::install::kind::text;
use crate::install::{TargetArgs, runtime};

/// Set when a release is built.
const COMMIT: Option<&str> = option_env!("HYPERSHIFT_COMMIT");

/// Flags of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print the commit of this command only
    #[arg(long)]
    commit_only: bool,

    /// Print the version of this command only, without connecting to a cluster
    #[arg(long)]
    client_only: bool,

    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    namespace: String,

    #[command(flatten)]
    target: TargetArgs,
}

/// What a management cluster says of its operator.
#[derive(Debug, Default)]
struct Server {
    /// The Deployment `operator`.
    deployment: Option<Value>,
    /// The ConfigMap `supported-versions`, which other operators write.
    supported: Option<Value>,
}

// === impl Version ===

impl Version {
    /// Prints the versions.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.commit_only {
            return print(&format!("{}\n", commit()));
        }
        let client = format!(
            "Client Version: {} (commit {})\n",
            env!("CARGO_PKG_VERSION"),
            commit()
        );
        if self.client_only {
            return print(&client);
        }
        let server = runtime()?.block_on(self.server())?;
        print(&(client + &server.lines(&self.namespace)))
    }

    async fn server(&self) -> anyhow::Result<Server> {
        let cluster = Cluster::connect(&self.target.access()).await?;
        let namespace = &self.namespace;
        let find = async |path: String| {
            let found = cluster.find(&path).await;
            found.with_context(|| format!("failed to get {path}"))
        };
        let base = format!("namespaces/{namespace}");
        Ok(Server {
            deployment: find(format!("/apis/apps/v1/{base}/deployments/operator")).await?,
            supported: find(format!("/api/v1/{base}/configmaps/supported-versions")).await?,
        })
    }
}

// === impl Server ===

impl Server {
    fn lines(&self, namespace: &str) -> String {
        let image = self.deployment.as_ref().map(|deployment| {
            let pointer = "/spec/template/spec/containers/0/image";
            format!("image {}", text(deployment, pointer))
        });
        let reported = |key: &str| {
            let data = self.supported.as_ref()?["data"][key].as_str()?;
            Some(data.to_owned())
        };
        let version = reported("server-version").or(image).unwrap_or_else(|| {
            format!("none: there is no Deployment {namespace}/operator, run hypershift install")
        });
        let supported = reported("supported-versions")
            .unwrap_or_else(|| "not reported by this operator".to_owned());
        format!("Server Version: {version}\nServer Supports OCP Versions: {supported}\n")
    }
}

fn commit() -> &'static str {
    COMMIT
        .filter(|commit| !commit.is_empty())
        .unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_servers_version_is_what_it_reports_or_its_image() {
        let none = Server::default().lines("hypershift");
        assert!(none.contains("no Deployment hypershift/operator"), "{none}");
        let image = "registry.example.com/hypershift-operator:v1";
        let deployment = Some(
            json!({ "spec": { "template": { "spec": { "containers": [{ "image": image }] } } } }),
        );
        let ours = Server {
            deployment: deployment.clone(),
            supported: None,
        };
        assert_eq!(
            ours.lines("hypershift"),
            format!(
                "Server Version: image {image}\nServer Supports OCP Versions: not reported by this operator\n"
            )
        );
        let data =
            json!({ "server-version": "4f9e", "supported-versions": "{\"versions\":[\"4.20\"]}" });
        let other = Server {
            deployment,
            supported: Some(json!({ "data": data })),
        };
        let lines = other.lines("hypershift");
        assert!(lines.starts_with("Server Version: 4f9e\n"), "{lines}");
        assert!(lines.contains("4.20"), "{lines}");
    }
}
