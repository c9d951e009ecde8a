//! A testbed of level node, for a person.

use anyhow::Result;
use testbed::embedded;
use testbed::images::Image;
use testbed::node::NodeTestbed;
use testbed::progress::Progress;

use super::{Offer, State};

/// Starts it with some of our images, and writes down how to use it.
pub(crate) async fn bring_up(
    name: &str,
    nodes: u8,
    images: &[Image],
    progress: &Progress,
) -> Result<(NodeTestbed, State)> {
    // One of the images may be of the command line.
    embedded::fill().await?;
    let testbed = NodeTestbed::builder(name)
        .nodes(nodes)
        .images(images)
        .progress(progress)
        .start()
        .await?;
    let references = images
        .iter()
        .map(|&image| testbed.image(image).map(str::to_owned));
    let state = State {
        name: name.to_owned(),
        pid: std::process::id(),
        directory: testbed.path().to_owned(),
        kubectl: testbed.kubectl().to_owned(),
        offer: Offer::Node {
            kubeconfig: testbed.kubeconfig().to_owned(),
            registry: testbed.registry.address(),
            images: references.collect::<Result<_>>()?,
        },
    };
    state.write()?;
    Ok((testbed, state))
}
