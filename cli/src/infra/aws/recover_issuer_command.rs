//! `fix dr-oidc-iam`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::annotations::cluster::RESTART_DATE;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::names::control_plane_namespace;
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;

use super::call::{Calls, Tags};
use super::credentials::CredentialArgs;
use super::executor::Executor;
use super::issuer_recovery::{Documents, Place, Recreate, crashes};
use super::recover_issuer::{Recovery, RecoveryRequest};
use super::scope::{Scope, place};
use crate::Usage;
use crate::create::text;
use crate::hosted::{Hosted, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime, time};
use crate::listed;

/// The Secret of a control plane with the key that signs tokens, and the key of its public part.
const SIGNING_KEY: &str = "sa-signing-key";
const PUBLIC_KEY: &str = "service-account.pub";

/// Flags of `fix dr-oidc-iam`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("fix_dr_oidc_iam.txt"))]
pub(crate) struct RecoverIssuerArgs {
    /// Name of the hosted cluster; needs --hc-namespace
    #[arg(
        long,
        value_name = "NAME",
        requires = "hc_namespace",
        required_unless_present = "infra_id",
        conflicts_with_all = ["infra_id", "region"]
    )]
    hc_name: Option<String>,

    /// Namespace of the hosted cluster
    #[arg(long, value_name = "NAME", requires = "hc_name")]
    hc_namespace: Option<String>,

    /// Name of the infrastructure, if only the identity provider is lost; needs --region
    #[arg(long, value_name = "ID", requires = "region")]
    infra_id: Option<String>,

    /// Region of the infrastructure [default: that of the hosted cluster]
    #[arg(long, value_name = "NAME", requires = "infra_id")]
    region: Option<String>,

    /// Bucket with the documents [default: that of the issuer's URL, or without an issuer one that has the name of the
    /// infrastructure]
    #[arg(long, value_name = "NAME")]
    oidc_bucket: Option<String>,

    /// URL of the issuer [default: that of the hosted cluster, or the one that create iam aws makes]
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,

    /// Time limit for all of it
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    timeout: Duration,

    /// Report what is lost and what would be created, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Write documents and create the identity provider also if they exist
    #[arg(long)]
    force_recreate: bool,

    /// When the control plane is restarted, if a pod of it ends again and again
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = text::time_or_zero)]
    restart_delay: Duration,

    #[command(flatten)]
    credentials: CredentialArgs,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// Whose issuer it is.
struct Owner {
    infra_id: String,
    /// Name of the cluster, if it is known.
    name: String,
    region: String,
    cluster: Option<Cluster>,
}

/// A hosted cluster on the management cluster.
struct Cluster {
    hosted: Hosted,
    namespace: String,
    name: String,
    issuer: String,
}

// === impl RecoverIssuerArgs ===

impl RecoverIssuerArgs {
    /// Creates what is lost, or reports it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(async {
            let recovered = Box::pin(self.recover());
            match tokio::time::timeout(self.timeout, recovered).await {
                Ok(result) => result,
                Err(_) => bail!(
                    "the recovery was not completed within {} s: run the command again, or with a longer --timeout",
                    self.timeout.as_secs()
                ),
            }
        })
    }

    async fn recover(&self) -> anyhow::Result<()> {
        let owner = self.owner().await?;
        let request = self.request(&owner).await?;
        let region = &request.place.region;
        let scope = Scope::new(&owner.infra_id, &owner.name, region, Tags::new())?;
        let aws = self.credentials.connect(region, "cli-fix-dr-oidc-iam")?;
        let display = Display::new(self.quiet);
        let executor = Executor {
            calls: &aws,
            scope: &scope,
            display: &display,
        };
        if self.dry_run {
            return Box::pin(executor.report_recovery(&request)).await;
        }
        Box::pin(self.execute(&executor, &request, owner.cluster.as_ref())).await
    }

    async fn execute<C: Calls>(
        &self,
        executor: &Executor<'_, C>,
        request: &RecoveryRequest,
        cluster: Option<&Cluster>,
    ) -> anyhow::Result<()> {
        if executor.recover_issuer(request).await? == Recovery::NothingMissing {
            executor.say("nothing is lost: --force-recreate creates it again");
            return Ok(());
        }
        match cluster {
            Some(cluster) => self.restart(cluster, executor.display).await,
            None => Ok(()),
        }
    }

    async fn owner(&self) -> anyhow::Result<Owner> {
        let (Some(name), Some(namespace)) = (&self.hc_name, &self.hc_namespace) else {
            let both = self.infra_id.clone().zip(self.region.clone());
            let (infra_id, region) = both.ok_or_else(|| {
                Usage::new(&"give --hc-name with --hc-namespace, or --infra-id with --region")
            })?;
            return Ok(Owner {
                name: infra_id.clone(),
                infra_id,
                region,
                cluster: None,
            });
        };
        let hosted = Hosted::connect(&self.target.access()).await?;
        of_cluster(hosted, namespace, name).await
    }

    async fn request(&self, owner: &Owner) -> anyhow::Result<RecoveryRequest> {
        let cluster = owner.cluster.as_ref();
        let of_cluster = cluster.map(|cluster| cluster.issuer.as_str());
        let url = self.issuer.as_deref().or(of_cluster);
        let bucket = self.oidc_bucket.as_deref();
        let place = Place::new(&owner.infra_id, &owner.region, url, bucket)?;
        let documents = match cluster {
            Some(cluster) => Some(cluster.documents(&place.issuer.url).await?),
            None => None,
        };
        Ok(RecoveryRequest {
            place,
            documents,
            recreate: if self.force_recreate {
                Recreate::All
            } else {
                Recreate::Missing
            },
        })
    }

    /// Restarts a control plane that does not come up by itself.
    async fn restart(&self, cluster: &Cluster, display: &Display) -> anyhow::Result<()> {
        let Cluster {
            hosted,
            namespace,
            name,
            issuer: _,
        } = cluster;
        let within = control_plane_namespace(namespace, name);
        let pods: Api<Pod> = Api::namespaced(hosted.client().clone(), &within);
        let listed = pods.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| {
            refused(&error).context(format!("failed to list the pods of namespace {within}"))
        })?;
        if !listed.items.iter().any(crashes) {
            return Ok(());
        }
        let date = in_time(Timestamp::now(), self.restart_delay)?.to_string();
        let patch = json!({ "metadata": { "annotations": { (RESTART_DATE.key()): date } } });
        let patched = hosted.patch_cluster(namespace, name, &patch).await;
        patched.map_err(|error| {
            refused(&error).context(format!(
                "failed to set annotation {} of HostedCluster {namespace}/{name}",
                RESTART_DATE.key()
            ))
        })?;
        display.say(&format!(
            "HostedCluster {namespace}/{name}: pods in namespace {within} end again and again, so it is restarted at {date}"
        ));
        Ok(())
    }
}

/// A time after another, in seconds.
fn in_time(from: Timestamp, delay: Duration) -> anyhow::Result<Timestamp> {
    let delay = i64::try_from(delay.as_secs())?;
    let seconds = from.as_second().saturating_add(delay);
    Ok(Timestamp::from_second(seconds)?)
}

/// Namespace and name of another HostedCluster with the same infrastructure or issuer: authors of HostedClusters choose them.
fn other_owner(all: &[DynamicObject], own: &HostedCluster, infra_id: &str) -> Option<String> {
    let is_other = |it: &&DynamicObject| {
        let (one, other) = (&it.metadata, &own.metadata);
        (&one.namespace, &one.name) != (&other.namespace, &other.name)
    };
    let other = all.iter().filter(is_other).find(|it| {
        let spec = &it.data["spec"];
        let issuer = own.spec.issuer_url.as_str();
        spec["infraID"] == infra_id || (!issuer.is_empty() && spec["issuerURL"] == issuer)
    })?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let metadata = &other.metadata;
    Some(format!(
        "{}/{}",
        text(&metadata.namespace),
        text(&metadata.name)
    ))
}

async fn of_cluster(hosted: Hosted, namespace: &str, name: &str) -> anyhow::Result<Owner> {
    let found = hosted.find(namespace, name).await?;
    let found: HostedCluster = found.with_context(|| {
        format!(
            "HostedCluster {namespace}/{name} does not exist: restore it first, or check --hc-namespace and --hc-name"
        )
    })?;
    let (region, infra_id) = place(&found)?;
    let issuer = found.spec.issuer_url.as_str();
    let all = listed::objects::<HostedCluster>(hosted.client().clone(), None).await;
    let all = all.map_err(|error| {
        refused(&error)
            .context("failed to list HostedClusters, to see whether another one has the issuer")
    })?;
    if let Some(other) = other_owner(&all, &found, infra_id) {
        bail!(
            "HostedCluster {other} has the same spec.infraID or spec.issuerURL as {namespace}/{name}: find out whose they are, \
             since tokens of one would be valid for roles of the other"
        );
    }
    Ok(Owner {
        infra_id: infra_id.to_owned(),
        name: name.to_owned(),
        region: region.to_owned(),
        cluster: Some(Cluster {
            hosted,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            issuer: issuer.to_owned(),
        }),
    })
}

// === impl Cluster ===

impl Cluster {
    /// The documents of the key with which the control plane signs tokens.
    async fn documents(&self, issuer: &str) -> anyhow::Result<Documents> {
        let namespace = control_plane_namespace(&self.namespace, &self.name);
        let what = format!("Secret {namespace}/{SIGNING_KEY}");
        let secret = self.hosted.secrets(&namespace).get_opt(SIGNING_KEY).await;
        let secret =
            secret.map_err(|error| refused(&error).context(format!("failed to get {what}")))?;
        let secret = secret.with_context(|| {
            format!("there is no {what}: restore the control plane first, since no other key is valid for its tokens")
        })?;
        let key = secret.data.unwrap_or_default().remove(PUBLIC_KEY);
        let key = key.with_context(|| format!("{what} has no key {PUBLIC_KEY}"))?;
        let pem = String::from_utf8_lossy(&key.0);
        Documents::new(issuer, &pem)
            .with_context(|| format!("{what} is invalid under {PUBLIC_KEY}"))
    }
}

#[cfg(test)]
mod tests;
