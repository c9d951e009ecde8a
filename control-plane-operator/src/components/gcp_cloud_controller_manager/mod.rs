//! gcp-cloud-controller-manager: nodes and load balancers on Google Cloud.
//!
//! The platform is part of the API's technology preview.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;

use super::cloud::ini::Ini;
use super::{cloud, edit, flags};

/// The settings `spec.platform.gcp`, as far as this component reads them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Gcp {
    project: String,
    network_config: NetworkConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NetworkConfig {
    network: Network,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Network {
    name: String,
}

pub(super) fn component() -> Component {
    Component::new(
        "gcp-cloud-controller-manager",
        assets!("config.yaml", "deployment.yaml"),
    )
    .zone_spread()
    .enabled_if(|context| context.is_on(PlatformType::Gcp))
    .minter(cloud::minter("cloud-controller-manager", "kubeconfig"))
    .manifest("config.yaml", |context, config: &mut ConfigMap| {
        let gcp = cloud::settings(context, "gcp")?;
        let file = config_file(&gcp, &context.spec().infra_id)?;
        cloud::put(config, "cloud.conf", file);
        Ok(())
    })
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let manager = edit::container(edit::pod(workload), cloud::MANAGER)?;
    edit::args(manager, flags::tls(context));
    Ok(())
}

fn config_file(gcp: &Gcp, infra_id: &str) -> Result<String> {
    let network = &gcp.network_config.network.name;
    // Network tags are in lower case.
    let tag = format!("{infra_id}-worker").to_lowercase();
    let file = Ini::default()
        .section("Global")
        .set("project-id", ("spec.platform.gcp.project", &gcp.project))?
        .set(
            "network-name",
            ("spec.platform.gcp.networkConfig.network.name", network),
        )?
        .set("node-tags", (cloud::INFRA_ID, &tag))?
        .fixed("multizone", "true")
        .fixed("token-url", "\"nil\"");
    Ok(file.text())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn gcp(project: &str, network: &str) -> Gcp {
        let settings: Value = json!({ "project": project, "region": "a", "networkConfig": { "network": { "name": network } } });
        serde_json::from_value(settings).unwrap()
    }

    #[test]
    fn config_names_project_network_and_nodes() {
        let file = config_file(&gcp("my-project", "my-network"), "Dev-X7k2p").unwrap();
        assert_eq!(
            file,
            "[Global]\nproject-id = my-project\nnetwork-name = my-network\nnode-tags = dev-x7k2p-worker\n\
             multizone = true\ntoken-url = \"nil\""
        );
    }

    /// Check T16.
    #[test]
    fn config_rejects_injected_settings() {
        let injected = "a\ntoken-url = https://example.com";
        for (gcp, infra_id, field) in [
            (gcp(injected, "a"), "a", "spec.platform.gcp.project"),
            (gcp("a", injected), "a", "networkConfig.network.name"),
            (gcp("a", "a"), injected, "spec.infraID"),
        ] {
            let error = config_file(&gcp, infra_id).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
