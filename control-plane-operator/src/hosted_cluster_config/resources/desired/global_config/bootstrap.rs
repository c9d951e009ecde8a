//! The same configuration as documents: machines are configured with it before there is a hosted cluster to read it from.

use control_plane_component::workload::without_nulls;
use serde_json::json;

use super::super::error::Error;
use super::super::input::Input;
use super::super::object::Object;
use super::{copied, dns, infrastructure, install_config_text, network, proxy};
use crate::components::kubeconfig::yaml;

/// The documents, by the names of files that the programs of the machine config operator are started with.
pub(crate) fn documents(input: &Input<'_>) -> Result<[(&'static str, String); 7], Error> {
    let (network, errors) = network::object(input);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let none = json!({});
    let image = copied(input, "Image", "image", &none);
    let api_server = copied(input, "APIServer", "apiServer", &none);
    Ok([
        ("cluster-dns-02-config.yaml", text(dns(input))),
        (
            "cluster-infrastructure-02-config.yaml",
            text(infrastructure::build(input)),
        ),
        ("cluster-network-02-config.yaml", text(network)),
        (
            "cluster-proxy-01-config.yaml",
            text(proxy::with_status(input)),
        ),
        ("image-config.yaml", text(image)),
        ("cluster-apiserver-config.yaml", text(api_server)),
        ("install-config.yaml", install_config_text(input)?),
    ])
}

fn text(object: Object) -> String {
    yaml(&without_nulls(object.value))
}
