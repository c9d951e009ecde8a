//! `hypershift version`: which version this command has, and which the operator.

use anyhow::Context;
use clap::Args;
use payload::Minor;
use serde_json::Value;

use crate::crds::source::cluster::Access;
use crate::install::OPERATOR;
use crate::install::cluster::Cluster;
use crate::install::display::print;
use crate::install::kind::text;
use crate::install::{TargetArgs, runtime};

/// Set when a release is built.
const COMMIT: Option<&str> = option_env!("HYPERSHIFT_COMMIT");
/// What operators of other builds report as their commit.
const UNKNOWN: &str = "<unknown>";

/// Flags of `version`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("version.txt"))]
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

/// What this command knows of its own version.
#[derive(Debug, Clone, Copy)]
struct Client {
    commit: Option<&'static str>,
    /// The operator's image of the same release.
    image: Option<&'static str>,
}

/// What a management cluster says of its operator.
#[derive(Debug, Default)]
struct Server {
    /// The Deployment `operator`.
    deployment: Option<Value>,
    /// The ConfigMap `supported-versions`, which the operator writes.
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
        Server::read(&self.target.access(), &self.namespace).await
    }
}

/// Fails unless this command and the operator are of the same version.
pub(crate) async fn check(access: &Access, namespace: &str) -> anyhow::Result<()> {
    let server = Server::read(access, namespace).await?;
    let client = Client {
        commit: COMMIT.filter(|commit| !commit.is_empty()),
        image: OPERATOR.released(),
    };
    server.check(namespace, client).map_err(anyhow::Error::msg)
}

/// The newest minor version that the operator supports: what it reports, else what this command supports.
pub(crate) async fn newest_supported(access: &Access, namespace: &str) -> anyhow::Result<Minor> {
    let cluster = Cluster::connect(access).await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/supported-versions");
    // Users of hosted clusters may not be allowed to read it.
    let found = cluster.find(&path).await.unwrap_or_default();
    Ok(found.as_ref().and_then(newest).unwrap_or(Minor::NEWEST))
}

/// The newest of the versions that a ConfigMap `supported-versions` lists.
fn newest(config_map: &Value) -> Option<Minor> {
    let text = config_map["data"]["supported-versions"].as_str()?;
    let listed: Value = serde_json::from_str(text).ok()?;
    let versions = listed["versions"].as_array()?.iter();
    let minors = versions.filter_map(|version| {
        let version: payload::Version = format!("{}.0", version.as_str()?).parse().ok()?;
        Some(version.minor())
    });
    minors.max()
}

// === impl Server ===

impl Server {
    async fn read(access: &Access, namespace: &str) -> anyhow::Result<Self> {
        let cluster = Cluster::connect(access).await?;
        let find = async |path: String| {
            let found = cluster.find(&path).await;
            found.with_context(|| format!("failed to get {path}"))
        };
        let base = format!("namespaces/{namespace}");
        Ok(Self {
            deployment: find(format!("/apis/apps/v1/{base}/deployments/operator")).await?,
            supported: find(format!("/api/v1/{base}/configmaps/supported-versions")).await?,
        })
    }

    /// Operators are compared by the commit that they report. One that reports none is compared by its image, which a
    /// released command knows.
    fn check(&self, namespace: &str, client: Client) -> Result<(), String> {
        let Client { commit, image } = client;
        let image_of_server = self.image();
        if let Some(version) = self.reported("server-version") {
            return match commit {
                Some(commit) if commit == version => Ok(()),
                commit => Err(format!(
                    "the operator is of commit {version} and this command of commit {}: use the command of the \
                     operator's release, or leave out --version-check",
                    commit.unwrap_or("unknown")
                )),
            };
        }
        match (image, image_of_server) {
            (_, None) => Err(format!(
                "failed to get Deployment {namespace}/operator: not found. Run hypershift install, or name the \
                 namespace of the operator by --operator-namespace"
            )),
            (Some(image), Some(server)) if image == server => Ok(()),
            (Some(image), Some(server)) => Err(format!(
                "the operator runs {server} and this command belongs to {image}: use the command of the operator's \
                 release, or leave out --version-check"
            )),
            (None, Some(server)) => Err(format!(
                "failed to compare versions: the operator runs {server}, and this build of the command belongs to no \
                 release. Use a released command, or leave out --version-check"
            )),
        }
    }

    fn image(&self) -> Option<String> {
        let pointer = "/spec/template/spec/containers/0/image";
        Some(text(self.deployment.as_ref()?, pointer).to_owned())
    }

    fn reported(&self, key: &str) -> Option<String> {
        let data = self.supported.as_ref()?["data"][key].as_str()?;
        (data != UNKNOWN).then(|| data.to_owned())
    }

    fn lines(&self, namespace: &str) -> String {
        let image = self.image().map(|image| format!("image {image}"));
        let version = self
            .reported("server-version")
            .or(image)
            .unwrap_or_else(|| {
                format!("none: there is no Deployment {namespace}/operator, run hypershift install")
            });
        let supported = self
            .reported("supported-versions")
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
        let unknown = Server {
            supported: Some(json!({ "data": { "server-version": "<unknown>" } })),
            deployment: other.deployment.clone(),
        };
        let unknown = unknown.lines("hypershift");
        assert!(unknown.contains(image), "{unknown}");
        assert!(lines.contains("4.20"), "{lines}");
    }

    #[test]
    fn the_newest_supported_version_is_the_highest_one() {
        for (text, expected) in [
            (r#"{"versions":["4.9","4.20","4.19"]}"#, Some("4.20")),
            (r#"{"versions":["4.23","5.0"]}"#, Some("5.0")),
            (r#"{"versions":[]}"#, None),
            ("4.20", None),
        ] {
            let found = newest(&json!({ "data": { "supported-versions": text } }));
            let found = found.map(|minor| minor.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert_eq!(newest(&json!({})), None);
    }

    #[test]
    fn versions_are_compared_by_commit_or_by_image() {
        let deployment = |image: &str| {
            Some(
                json!({ "spec": { "template": { "spec": { "containers": [{ "image": image }] } } } }),
            )
        };
        let data = json!({ "data": { "server-version": "4f9e" } });
        let reports = || Server {
            deployment: deployment("other"),
            supported: Some(data.clone()),
        };
        let runs = |image: &str| Server {
            deployment: deployment(image),
            supported: None,
        };
        let of = |commit, image| Client { commit, image };
        let (commit, image) = (Some("4f9e"), Some("registry/operator:v1"));
        for (server, client, expected) in [
            (reports(), of(commit, None), None),
            (
                reports(),
                of(Some("a0"), None),
                Some("4f9e and this command of commit a0"),
            ),
            (reports(), of(None, image), Some("commit unknown")),
            (runs("registry/operator:v1"), of(None, image), None),
            (
                runs("registry/operator:v2"),
                of(commit, image),
                Some("v2 and this command belongs to"),
            ),
            (
                runs("registry/operator:v1"),
                of(commit, None),
                Some("belongs to no release"),
            ),
            (
                Server::default(),
                of(commit, image),
                Some("Run hypershift install"),
            ),
        ] {
            let found = server.check("hypershift", client).err();
            match (found, expected) {
                (None, None) => {}
                (Some(message), Some(part)) => assert!(message.contains(part), "{message}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
