//! `hypershift uninstall`: takes away what `install` made, and nothing else.
//!
//! `removal` decides, on what is there; what is done is done here, in the reverse order of installing. What still holds
//! objects is kept, and reported with the reason and the way to remove it.

mod removal;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use crate::crds::source::cluster::Access;
use crate::install::cluster::Cluster;
use crate::install::display::{Display, print};
use crate::install::kind::{Kind, text};
use crate::install::object::{Object, selector};
use crate::install::{TargetArgs, observe, runtime, time};
use removal::{Action, Decision, Found};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `hypershift uninstall`.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    namespace: String,

    #[command(flatten)]
    target: TargetArgs,

    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Time limit for the operators to terminate
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    timeout: Duration,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Removes what an installation made.
pub fn run(uninstall: &Uninstall) -> anyhow::Result<()> {
    let access = uninstall.target.access();
    runtime()?.block_on(uninstall.run(&access))
}

// === impl Uninstall ===

impl Uninstall {
    async fn run(&self, access: &Access) -> anyhow::Result<()> {
        let cluster = Cluster::connect(access).await?;
        let display = Display::new(self.quiet);
        let step = display.step("looking at what is installed");
        let decisions = removal::decide(&look(&cluster, &self.namespace).await?);
        step.done(&format!("{} objects", decisions.len()));
        if self.dry_run {
            let lines: Vec<String> = decisions.iter().map(Decision::to_string).collect();
            return print(
                &(lines.join(
                    "
",
                ) + "
"),
            );
        }
        let mut removed = Vec::new();
        for decision in &decisions {
            if self.carry_out(&cluster, decision, &display).await? {
                removed.push(&decision.object);
            }
        }
        self.until_gone(&cluster, &removed, &display).await?;
        report(&decisions, &display);
        Ok(())
    }

    /// Whether it was removed.
    async fn carry_out(
        &self,
        cluster: &Cluster,
        decision: &Decision,
        display: &Display,
    ) -> anyhow::Result<bool> {
        let Decision { object, action } = decision;
        match action {
            Action::Keep { .. } => return Ok(false),
            Action::Remove => {}
        }
        // An object may have been created since the check, and deleting a CRD deletes its objects.
        if object.id.kind == Kind::Crd && holds_objects(cluster, &object.body).await? {
            display.say(&format!("kept: {}: it has objects now", object.id));
            return Ok(false);
        }
        cluster
            .delete(&object.id, &object.body)
            .await
            .with_context(|| {
                format!(
                    "cannot remove {}: what was done stays, run the command again",
                    object.id
                )
            })?;
        // RBAC is removed only when no pod uses it any more.
        if object.id.kind == Kind::Deployment {
            self.until_gone(cluster, &[object], display).await?;
        }
        display.say(&format!("removed: {}", object.id));
        Ok(true)
    }

    /// Until nothing of these is left, pods and finalizers included.
    async fn until_gone(
        &self,
        cluster: &Cluster,
        objects: &[&Object],
        display: &Display,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + self.timeout;
        let mut step = display.step("waiting until they are gone");
        let mut rest = objects.to_vec();
        loop {
            let paths = rest.iter().map(|object| object.id.path()).collect();
            let found = cluster.find_all(paths).await;
            let found = found.context("cannot read what is being removed")?;
            let left = rest.iter().zip(&found).filter_map(|(object, live)| {
                // Another one of that name is not ours to wait for.
                let uid = &live.as_ref()?["metadata"]["uid"];
                (*uid == object.body["metadata"]["uid"]).then_some((*object, live.as_ref()?))
            });
            let left: Vec<(&Object, &Value)> = left.collect();
            let Some((first, live)) = left.first() else {
                step.done("gone");
                return Ok(());
            };
            if Instant::now() >= deadline {
                bail!(
                    "{} is still there after {} s, held by {}: see to what holds it, then run the command again",
                    first.id,
                    self.timeout.as_secs(),
                    removal::holders(live)
                );
            }
            step.update(&format!("{} to go", left.len()));
            rest = left.into_iter().map(|(object, _)| object).collect();
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// Says what was kept.
fn report(decisions: &[Decision], display: &Display) {
    let mut kept = 0;
    for decision in decisions {
        match decision.action {
            Action::Remove => {}
            Action::Keep { .. } => {
                kept += 1;
                display.say(&decision.to_string());
            }
        }
    }
    display.say(&format!("uninstalled; {kept} objects kept"));
}

/// Everything that the decision depends on.
async fn look(cluster: &Cluster, installation: &str) -> anyhow::Result<Found> {
    let mut found = Found {
        hosted_clusters: observe::hosted_clusters(cluster)
            .await
            .context("cannot list hosted clusters")?,
        ..Found::default()
    };
    for kind in Kind::ALL {
        let resource = kind.resource();
        let objects = cluster
            .list(&resource.path(None), &selector(installation))
            .await
            .with_context(|| format!("cannot list {}", resource.qualified()))?;
        for mut object in objects {
            // Items of a list carry neither.
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = kind.name().into();
            let object = Object::live(kind, object);
            if kind == Kind::Crd && holds_objects(cluster, &object.body).await? {
                found.in_use.insert(object.id.name.clone());
            }
            found.objects.push(object);
        }
    }
    found.others = others(cluster, installation).await?;
    Ok(found)
}

/// Whether there are objects of a CRD.
async fn holds_objects(cluster: &Cluster, crd: &Value) -> anyhow::Result<bool> {
    let versions = crd["spec"]["versions"].as_array();
    let served = versions
        .into_iter()
        .flatten()
        .find(|version| version["served"] == true);
    let Some(version) = served else {
        return Ok(false);
    };
    let path = format!(
        "/apis/{}/{}/{}",
        text(crd, "/spec/group"),
        text(version, "/name"),
        text(crd, "/spec/names/plural")
    );
    cluster
        .holds_any(&path)
        .await
        .with_context(|| format!("cannot list {path}"))
}

/// Objects of others in the operator's namespace, which would be deleted with it.
async fn others(cluster: &Cluster, namespace: &str) -> anyhow::Result<Vec<String>> {
    let mut others = Vec::new();
    for kind in [
        Kind::Deployment,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::Service,
    ] {
        let path = kind.resource().path(Some(namespace));
        let objects = cluster
            .list(&path, "")
            .await
            .with_context(|| format!("cannot list {path}"))?;
        others.extend(
            objects
                .into_iter()
                .filter(removal::is_somebodys)
                .map(|object| Object::live(kind, object).id.to_string()),
        );
    }
    Ok(others)
}
