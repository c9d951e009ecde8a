//! Printing the objects, or creating them and waiting. Only here is anything written.

use std::fs;

use anyhow::{Context, bail};
use serde_json::Value;

use super::args::{CommonArgs, RunArgs};
use super::management::check_arch;
use super::objects::objects;
use super::options::Options;
use super::platform::Parts;
use crate::crds::output::{Format, stream};
use crate::hosted::{Hosted, named};
use crate::install::display::{Display, print};
use crate::version;
use crate::waiting;

/// Prints or creates.
pub(super) async fn run(options: &Options, parts: &Parts, args: &RunArgs) -> anyhow::Result<()> {
    let mut objects = objects(options, parts);
    if args.renders() {
        if !args.render_sensitive {
            objects.retain(|object| object["kind"] != "Secret");
        }
        return render(&objects, args);
    }
    Box::pin(create(&objects, options, args)).await
}

fn render(objects: &[Value], args: &RunArgs) -> anyhow::Result<()> {
    let text = stream(objects, Format::Yaml)?;
    match &args.render_into {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => print(&text),
    }
}

async fn create(objects: &[Value], options: &Options, args: &RunArgs) -> anyhow::Result<()> {
    let display = Display::new(args.quiet);
    let hosted = Hosted::connect(&args.target.access()).await?;
    let (namespace, name) = (&options.args.namespace, &options.args.name);
    refuse_existing(&hosted, &options.args).await?;
    if args.version_check {
        version::check(&args.target.access(), &args.operator_namespace).await?;
    }
    Box::pin(check_arch(&hosted, options, &display)).await?;
    // Either all objects are acceptable, or none is created.
    for object in objects {
        check(&hosted, object).await?;
    }
    if args.dry_run {
        for object in objects {
            display.say(&format!("{}: would be created", named(object)));
        }
        return Ok(());
    }
    for object in objects {
        if is_new(object) {
            hosted.insert(object, false).await?;
        } else {
            hosted.create(object, false).await?;
        }
        display.say(&format!("{}: created", named(object)));
    }
    if args.wait {
        return waiting::until_available(&hosted, namespace, name, args.timeout, &display).await;
    }
    display.say(&format!(
        "see how it goes with: kubectl get hostedclusters.hypershift.openshift.io -n {namespace} {name}"
    ));
    Ok(())
}

/// Refuses to create a cluster a second time.
pub(super) async fn refuse_existing(hosted: &Hosted, args: &CommonArgs) -> anyhow::Result<()> {
    let (namespace, name) = (&args.namespace, &args.name);
    if hosted.find(namespace, name).await?.is_some() {
        bail!(
            "HostedCluster {namespace}/{name} exists already: nothing was changed. Choose another --name, or \
             destroy it first"
        );
    }
    Ok(())
}

/// Says how a creation of infrastructure is continued, before it begins.
pub(super) fn say_how_to_continue(display: &Display, infra_id: &str) {
    display.say(&format!(
        "infrastructure {infra_id}: to continue after an interruption, run the command again with --infra-id {infra_id}"
    ));
}

/// Asks the API server whether it would take an object. A namespace that does not exist yet cannot hold one.
async fn check(hosted: &Hosted, object: &Value) -> anyhow::Result<()> {
    let namespace = object["metadata"]["namespace"].as_str();
    if let Some(namespace) = namespace
        && !hosted.has_namespace(namespace).await?
    {
        return Ok(());
    }
    if is_new(object) {
        return hosted.insert(object, true).await;
    }
    hosted.create(object, true).await
}

/// Whether an object must not exist yet. The others may be left of a try that failed.
fn is_new(object: &Value) -> bool {
    object["kind"] == "HostedCluster" || object["kind"] == "NodePool"
}
