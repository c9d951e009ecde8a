//! Printing a NodePool, or creating it after a look at its hosted cluster.

use anyhow::Context;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use payload::{PullSecret, pull_secret, skew};
use serde_json::Value;

use super::args::CommonArgs;
use super::checks::{self, Architecture};
use super::platform::Machines;
use super::{Pool, node_pool};
use crate::crds::output::{Format, stream};
use crate::create::release;
use crate::hosted::{Hosted, refused};
use crate::install::display::{Display, print};
use crate::install::runtime;

/// Prints or creates it.
pub(super) fn run<P: Machines>(args: &CommonArgs, machines: &P) -> anyhow::Result<()> {
    if let (true, false, Some(release)) =
        (args.render, machines.needs_cluster(), &args.release_image)
    {
        return render(&args.object(machines, release, None)?);
    }
    runtime()?.block_on(Box::pin(create(args, machines)))
}

fn render(object: &Value) -> anyhow::Result<()> {
    print(&stream(std::slice::from_ref(object), Format::Yaml)?)
}

async fn create<P: Machines>(args: &CommonArgs, machines: &P) -> anyhow::Result<()> {
    let display = Display::new(args.quiet);
    let hosted = Hosted::connect(&args.target.access()).await?;
    let cluster = hosted.cluster(&args.namespace, &args.cluster_name).await?;
    let named = format!("HostedCluster {}/{}", args.namespace, args.cluster_name);
    checks::platform::<P>(&cluster, &named)?;
    let release = args.release_image.as_ref();
    let release = release.unwrap_or(&cluster.spec.release.image);
    let object = args.object(machines, release, Some(&cluster))?;
    if args.render {
        return render(&object);
    }
    let arch = P::ARCH.unwrap_or(args.arch);
    if checks::architecture(&cluster, arch, &named)? == Architecture::Unknown {
        display.say(&format!(
            "warning: {named} does not report the architectures of its release yet: --arch is not checked"
        ));
    }
    Box::pin(check_skew(args, &cluster, &hosted, &display)).await?;
    hosted.insert(&object, args.dry_run).await?;
    let done = if args.dry_run {
        "would be created"
    } else {
        "created"
    };
    display.say(&format!(
        "NodePool {}/{}: {done}",
        args.namespace, args.name
    ));
    Ok(())
}

/// Refuses a release that does not go with that of the cluster. One that cannot be read is left to the operator.
async fn check_skew(
    args: &CommonArgs,
    cluster: &HostedCluster,
    hosted: &Hosted,
    display: &Display,
) -> anyhow::Result<()> {
    let image = args.release_image.as_ref();
    let Some(image) = image.filter(|image| **image != cluster.spec.release.image) else {
        return Ok(());
    };
    let Some(control_plane) = checks::rolled_out(cluster) else {
        return Ok(());
    };
    let read = async {
        let pull_secret = pull_secret_of(cluster, hosted).await?;
        release::read(image, &pull_secret).await
    };
    match read.await {
        Ok(release) => skew::skew(&release.version, &control_plane)
            .with_context(|| format!("--release-image {image}: nothing was created")),
        Err(error) => {
            display.say(&format!(
                "warning: the version of --release-image is not checked: {error:#}"
            ));
            Ok(())
        }
    }
}

async fn pull_secret_of(cluster: &HostedCluster, hosted: &Hosted) -> anyhow::Result<PullSecret> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = &cluster.spec.pull_secret.name;
    let secret = hosted.secrets(namespace).get(name).await;
    let secret = secret.map_err(|error| {
        refused(&error).context(format!("failed to get Secret {namespace}/{name}"))
    })?;
    let data = secret.data.unwrap_or_default();
    let json = data.get(pull_secret::KEY);
    let json =
        json.with_context(|| format!("Secret {namespace}/{name} has no key {}", pull_secret::KEY))?;
    PullSecret::parse(&json.0).with_context(|| format!("Secret {namespace}/{name} is invalid"))
}

// === impl CommonArgs ===

impl CommonArgs {
    /// The object.
    pub(super) fn object<P: Machines>(
        &self,
        machines: &P,
        release: &str,
        cluster: Option<&HostedCluster>,
    ) -> anyhow::Result<Value> {
        let arch = P::ARCH.unwrap_or(self.arch);
        let platform = machines.platform(arch, cluster)?;
        Ok(node_pool(&Pool {
            namespace: &self.namespace,
            name: &self.name,
            cluster: &self.cluster_name,
            release,
            replicas: self.replicas,
            upgrade: self.node_upgrade_type.unwrap_or(P::UPGRADE),
            auto_repair: self.auto_repair,
            arch,
            paused_until: None,
            drain: None,
            detach: None,
            platform: &platform,
        }))
    }
}
