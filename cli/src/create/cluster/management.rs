//! What a new cluster is asked of the management cluster's nodes: an address for node ports, and the architecture.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use payload::{PullSecret, skew};

use super::args::name_of;
use super::options::Options;
use super::release_stream::is_multi;
use crate::crds::source::cluster::Access;
use crate::create::release;
use crate::hosted::{Hosted, refused};
use crate::install::display::Display;

/// The label of a node with its architecture.
const ARCH: &str = "kubernetes.io/arch";
/// Addresses of a node, the best one first.
const ADDRESSES: [&str; 3] = ["ExternalDNS", "ExternalIP", "InternalIP"];

/// The address of a node of the management cluster. `flag` names the way out.
pub(super) async fn address(access: &Access, flag: &str) -> anyhow::Result<String> {
    let hosted = Hosted::connect(access).await?;
    let nodes = Api::<Node>::all(hosted.client().clone());
    let page = nodes.list(&ListParams::default().limit(1)).await;
    let page = page.map_err(|error| {
        refused(&error).context(format!(
            "failed to list the nodes of the management cluster for the address of the API server: pass {flag}"
        ))
    })?;
    page.items.first().and_then(best).with_context(|| {
        format!("no node of the management cluster has an address that the API server can have: pass {flag}")
    })
}

fn best(node: &Node) -> Option<String> {
    let addresses = node.status.as_ref()?.addresses.as_deref()?;
    ADDRESSES.iter().find_map(|kind| {
        let found = addresses.iter().find(|it| it.type_ == *kind);
        Some(found?.address.clone())
    })
}

/// Refuses a release whose control plane cannot run on the nodes of the management cluster. What cannot be looked up is
/// said, and left to the operator.
pub(super) async fn check_arch(
    hosted: &Hosted,
    options: &Options,
    display: &Display,
) -> anyhow::Result<()> {
    if options.release_stream.as_deref().is_some_and(is_multi) {
        return Ok(());
    }
    let nodes = Api::<Node>::all(hosted.client().clone());
    let nodes = match nodes.list_metadata(&ListParams::default()).await {
        Ok(nodes) => nodes.items,
        Err(error) => {
            let why = refused(&error);
            display.say(&format!(
                "warning: the architecture of the management cluster is not checked: {why}"
            ));
            return Ok(());
        }
    };
    let labels = nodes
        .iter()
        .filter_map(|node| node.metadata.labels.as_ref());
    let there: BTreeSet<_> = labels.filter_map(|labels| labels.get(ARCH)).collect();
    let arch = name_of(options.args.arch);
    if there.is_empty() || there.contains(&arch) {
        return Ok(());
    }
    let pull_secret = PullSecret::parse(options.pull_secret.as_bytes()).context("--pull-secret")?;
    let release = match release::read(&options.release_image, &pull_secret).await {
        Ok(release) => release,
        Err(error) => {
            display.say(&format!(
                "warning: the architecture of the release is not checked: {error:#}"
            ));
            return Ok(());
        }
    };
    let image = &options.release_image;
    let runs = there.iter().any(|there| {
        known(there).is_some_and(|there| skew::architecture(release.architectures, there).is_ok())
    });
    if !runs {
        bail!(
            "release image {image} is for {:?} only, and the nodes of the management cluster are {}: choose a \
             multi-architecture release. Nothing was created",
            release.architectures,
            there.into_iter().cloned().collect::<Vec<_>>().join(", ")
        );
    }
    skew::architecture(release.architectures, options.args.arch.into())
        .with_context(|| format!("--arch {arch} and release image {image}"))
}

fn known(arch: &str) -> Option<api::hypershift::v1beta1::node_pool::Arch> {
    serde_json::from_value(arch.into()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_address_is_the_most_public_one() {
        let (dns, external, internal) = (
            json!({ "type": "ExternalDNS", "address": "n.example.com" }),
            json!({ "type": "ExternalIP", "address": "192.0.2.1" }),
            json!({ "type": "InternalIP", "address": "10.0.0.1" }),
        );
        let name = json!({ "type": "Hostname", "address": "n" });
        for (addresses, expected) in [
            (
                vec![&name, &internal, &external, &dns],
                Some("n.example.com"),
            ),
            (vec![&internal, &external], Some("192.0.2.1")),
            (vec![&name, &internal], Some("10.0.0.1")),
            (vec![&name], None),
            (vec![], None),
        ] {
            let node: Node =
                serde_json::from_value(json!({ "status": { "addresses": addresses } })).unwrap();
            assert_eq!(best(&node).as_deref(), expected, "{addresses:?}");
        }
        assert_eq!(best(&Node::default()), None);
    }

    #[test]
    fn labels_of_nodes_name_architectures() {
        assert!(known("amd64").is_some());
        assert!(known("s390x").is_some());
        assert!(known("riscv64").is_none());
    }
}
