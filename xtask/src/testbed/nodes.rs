//! A testbed of level node, for a person.

use anyhow::Result;
use e2e::embedded;
use e2e::images::Image;
use e2e::node::NodeTestbed;
use e2e::progress::Progress;

use super::{Offer, State};

/// Starts it, and writes down how to use it.
pub(super) async fn bring_up(
    name: &str,
    nodes: u8,
    progress: &Progress,
) -> Result<(NodeTestbed, State)> {
    // One of the images is of the command line.
    embedded::fill().await?;
    let testbed = NodeTestbed::builder(name)
        .nodes(nodes)
        .images(&Image::ALL)
        .progress(progress)
        .start()
        .await?;
    let images = Image::ALL.map(|image| testbed.image(image).map(str::to_owned));
    let state = State {
        name: name.to_owned(),
        pid: std::process::id(),
        directory: testbed.path().to_owned(),
        kubectl: testbed.kubectl().to_owned(),
        offer: Offer::Node {
            kubeconfig: testbed.kubeconfig().to_owned(),
            registry: testbed.registry.address(),
            images: images.into_iter().collect::<Result<_>>()?,
        },
    };
    state.write()?;
    Ok((testbed, state))
}
