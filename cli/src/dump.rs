//! `dump`: everything about a hosted cluster as files, for troubleshooting.
//!
//! Values of Secrets are left out: what is dumped is sent around.

mod directory;
mod objects;
mod redact;

use std::path::PathBuf;

use anyhow::Context;
use api::scheduling::v1alpha1::ClusterSizingConfiguration;
use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Client;
use kube::api::{ApiResource, ListParams};

use crate::hosted::{Hosted, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};
use directory::Directory;
use objects::Scope;

/// The Service of a hosted cluster's API server, and the name in its certificate.
const SERVICE: &str = "kube-apiserver";
/// Its port, unless the kubeconfig names another one.
const SERVICE_PORT: u16 = 6443;
/// The Secret in the control plane namespace with the kubeconfig that names it.
const SERVICE_KUBECONFIG: &str = "service-network-admin-kubeconfig";

/// What can be dumped.
#[derive(Debug, Subcommand)]
pub(crate) enum Dump {
    /// Dump a hosted cluster: its objects, those of its control plane in all API groups, logs and events
    #[command(after_help = include_str!("dump/cluster.txt"))]
    Cluster(Cluster),
}

/// Flags of `dump cluster`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Cluster {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the hosted cluster
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Directory to write to; it must be empty, or not exist yet
    #[arg(long, value_name = "DIR")]
    artifact_dir: PathBuf,

    /// Namespace of the operator, which is dumped as far as it may be read
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    operator_namespace: String,

    /// Also dump this namespace of Agents
    #[arg(long, value_name = "NAME")]
    agent_namespace: Option<String>,

    /// Also dump the objects in the hosted cluster
    #[arg(long = "dump-guest-cluster")]
    guest: bool,

    /// Also dump the objects in the hosted cluster, which is reached through the Service of its API server. Works in a
    /// pod of the management cluster only
    #[arg(
        long = "dump-guest-cluster-through-kube-service",
        conflicts_with = "guest"
    )]
    guest_through_service: bool,

    /// Whether to also write all files of the dump to hypershift-dump.tar.gz in the directory
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    archive_dump: bool,

    /// User to impersonate for all requests to the management cluster
    #[arg(long = "as", value_name = "USER")]
    impersonate: Option<String>,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// How the API server of the hosted cluster is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As its users do.
    Published,
    /// By the Service in its control plane namespace.
    Service,
}

/// Runs `dump`.
pub(crate) fn run(dump: &Dump) -> anyhow::Result<()> {
    match dump {
        Dump::Cluster(cluster) => runtime()?.block_on(cluster.dump()),
    }
}

// === impl Cluster ===

impl Cluster {
    async fn dump(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let impersonate = self.impersonate.as_deref();
        let hosted = Hosted::connect_as(&self.target.access(), impersonate).await?;
        let directory = Directory::create(&self.artifact_dir)?;
        self.dump_own(&hosted, &directory).await?;
        self.dump_surroundings(&hosted, &directory, &display)
            .await?;
        let control_plane = api::names::control_plane_namespace(&self.namespace, &self.name);
        let mut namespaces = vec![control_plane];
        namespaces.extend(self.agent_namespace.clone());
        for namespace in &namespaces {
            let mut step = display.step(&format!("namespace {namespace}"));
            let scope = Scope::Namespace(namespace);
            let count = objects::dump(hosted.client(), scope, &directory, &mut step).await?;
            let logs = objects::logs(hosted.client(), namespace, &directory, &mut step).await?;
            step.done(&format!("{count} objects, {logs} logs"));
        }
        self.dump_operator(&hosted, &directory, &display).await?;
        if let Some(way) = self.way() {
            self.dump_guest(way, &hosted, &directory, &display).await?;
        }
        if self.archive_dump {
            let archive = directory.archive()?;
            display.say(&format!("archive: {}", archive.display()));
        }
        display.say(&format!("written to {}", self.artifact_dir.display()));
        Ok(())
    }

    fn way(&self) -> Option<Way> {
        match (self.guest, self.guest_through_service) {
            (true, _) => Some(Way::Published),
            (false, true) => Some(Way::Service),
            (false, false) => None,
        }
    }

    /// The objects that users write.
    async fn dump_own(&self, hosted: &Hosted, directory: &Directory) -> anyhow::Result<()> {
        let cluster = hosted.cluster_object(&self.namespace, &self.name).await?;
        directory.object(
            Some(&self.namespace),
            "hostedclusters",
            &serde_json::to_value(cluster)?,
        )?;
        let pools = hosted.pool_objects(&self.namespace, &self.name).await;
        for pool in pools.map_err(|error| refused(&error).context("failed to list NodePools"))? {
            directory.object(
                Some(&self.namespace),
                "nodepools",
                &serde_json::to_value(pool)?,
            )?;
        }
        Ok(())
    }

    /// Nodes and sizes of the management cluster, and events about the HostedCluster and what is beside it.
    async fn dump_surroundings(
        &self,
        hosted: &Hosted,
        directory: &Directory,
        display: &Display,
    ) -> anyhow::Result<()> {
        let mut step = display.step("the management cluster");
        let mut count = 0;
        for (scope, resource) in [
            (Scope::Everything, ApiResource::erase::<Node>(&())),
            (
                Scope::Everything,
                ApiResource::erase::<ClusterSizingConfiguration>(&()),
            ),
            (
                Scope::Namespace(&self.namespace),
                ApiResource::erase::<Event>(&()),
            ),
        ] {
            let client = hosted.client();
            count += objects::dump_kind(client, scope, &resource, directory, &mut step).await?;
        }
        step.done(&format!("{count} objects"));
        Ok(())
    }

    /// The namespace of the operator. Users of hosted clusters may not be allowed to read it.
    async fn dump_operator(
        &self,
        hosted: &Hosted,
        directory: &Directory,
        display: &Display,
    ) -> anyhow::Result<()> {
        let namespace = &self.operator_namespace;
        let mut step = display.step(&format!("namespace {namespace}"));
        let client = hosted.client();
        let scope = Scope::Namespace(namespace);
        let count = objects::dump(client, scope, directory, &mut step).await?;
        match objects::logs(client, namespace, directory, &mut step).await {
            Ok(logs) => step.done(&format!("{count} objects, {logs} logs")),
            Err(error) => step.done(&format!("{count} objects; logs are left out: {error:#}")),
        }
        Ok(())
    }

    async fn dump_guest(
        &self,
        way: Way,
        hosted: &Hosted,
        directory: &Directory,
        display: &Display,
    ) -> anyhow::Result<()> {
        let mut step = display.step("the hosted cluster's own objects");
        let guest = self.connect(way, hosted).await?;
        let inside = directory.below("guest")?;
        let count = objects::dump(&guest, Scope::Everything, &inside, &mut step).await?;
        step.done(&format!("{count} objects"));
        Ok(())
    }

    async fn connect(&self, way: Way, hosted: &Hosted) -> anyhow::Result<Client> {
        let control_plane = api::names::control_plane_namespace(&self.namespace, &self.name);
        let text = match way {
            Way::Published => {
                let cluster = hosted.cluster(&self.namespace, &self.name).await?;
                let reference = cluster.status.and_then(|status| status.kubeconfig);
                let reference = reference.context("the hosted cluster has no kubeconfig yet")?;
                kubeconfig(hosted, &self.namespace, &reference.name).await?
            }
            Way::Service => kubeconfig(hosted, &control_plane, SERVICE_KUBECONFIG).await?,
        };
        let mut config = config(&text).await?;
        if way == Way::Service {
            lead_through_service(&mut config, &control_plane)?;
        }
        let client = support::client::connect(&config)?;
        // Asked first, so that a cluster that cannot be reached is said in one line.
        let nodes: kube::Api<Node> = kube::Api::all(client.clone());
        nodes
            .list_metadata(&ListParams::default().limit(1))
            .await
            .map_err(|error| refused(&error).context(way.unreachable(&control_plane)))?;
        Ok(client)
    }
}

// === impl Way ===

impl Way {
    fn unreachable(self, control_plane: &str) -> String {
        match self {
            Self::Published => "the hosted cluster cannot be reached".to_owned(),
            Self::Service => format!(
                "failed to reach Service {control_plane}/{SERVICE}: run this command in a pod of the management \
                 cluster, in that namespace, or use --dump-guest-cluster"
            ),
        }
    }
}

/// The kubeconfig in a Secret.
async fn kubeconfig(hosted: &Hosted, namespace: &str, name: &str) -> anyhow::Result<String> {
    let secret = hosted.secrets(namespace).get(name).await;
    let secret = secret.map_err(|error| {
        refused(&error).context(format!(
            "failed to read the kubeconfig in Secret {namespace}/{name}"
        ))
    })?;
    let text = secret.data.unwrap_or_default().remove("kubeconfig");
    let text = text.context("the Secret with the kubeconfig has no kubeconfig")?;
    String::from_utf8(text.0).context("the kubeconfig is not text")
}

async fn config(kubeconfig: &str) -> anyhow::Result<kube::Config> {
    // Authors of hosted clusters can write it.
    let config = support::kubeconfig::untrusted(kubeconfig.as_bytes()).await;
    config.map_err(|problem| anyhow::anyhow!("the kubeconfig of the hosted cluster {problem}"))
}

/// The kubeconfig names the Service as pods of its own namespace do; this leads to it from any namespace. The name in
/// the certificate stays.
fn lead_through_service(config: &mut kube::Config, control_plane: &str) -> anyhow::Result<()> {
    let port = config.cluster_url.port_u16().unwrap_or(SERVICE_PORT);
    let url = format!("https://{SERVICE}.{control_plane}.svc:{port}");
    config.cluster_url = url
        .parse()
        .with_context(|| format!("failed to parse URL {url}"))?;
    config.tls_server_name = Some(SERVICE.to_owned());
    // This process is in the same cluster.
    config.proxy_url = None;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        cluster: Cluster,
    }

    fn parsed(flags: &[&str]) -> Result<Cluster, clap::Error> {
        let known = ["dump", "--name=a", "--artifact-dir=d"];
        Command::try_parse_from(known.iter().chain(flags)).map(|command| command.cluster)
    }

    #[test]
    fn an_archive_is_written_unless_it_is_not_wanted() {
        for (flags, expected) in [
            (&[][..], true),
            (&["--archive-dump"][..], true),
            (&["--archive-dump=false"][..], false),
        ] {
            assert_eq!(parsed(flags).unwrap().archive_dump, expected, "{flags:?}");
        }
    }

    #[test]
    fn the_hosted_cluster_is_reached_in_one_way_or_not_at_all() {
        let published = "--dump-guest-cluster";
        let service = "--dump-guest-cluster-through-kube-service";
        for (flags, expected) in [
            (&[][..], None),
            (&[published][..], Some(Way::Published)),
            (&[service][..], Some(Way::Service)),
        ] {
            assert_eq!(parsed(flags).unwrap().way(), expected, "{flags:?}");
        }
        let error = parsed(&[published, service]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict);
    }

    #[tokio::test]
    async fn the_service_is_reached_from_any_namespace() {
        let kubeconfig = "
apiVersion: v1
kind: Config
clusters: [{ name: cluster, cluster: { server: 'https://kube-apiserver:6443' } }]
contexts: [{ name: admin, context: { cluster: cluster, user: admin } }]
current-context: admin
users: [{ name: admin, user: { token: t } }]
";
        let mut config = config(kubeconfig).await.unwrap();
        lead_through_service(&mut config, "clusters-a").unwrap();
        assert_eq!(
            config.cluster_url.to_string(),
            "https://kube-apiserver.clusters-a.svc:6443/"
        );
        assert_eq!(config.tls_server_name.as_deref(), Some("kube-apiserver"));
        let message = Way::Service.unreachable("clusters-a");
        assert!(message.contains("--dump-guest-cluster"), "{message}");
    }
}
