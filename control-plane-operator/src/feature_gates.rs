//! `control-plane-operator sync-fg-configmap`: writes the rendered FeatureGate to a ConfigMap.
//!
//! It is the last container of the Job featuregate-generator: it stores the FeatureGate that the release's program has
//! rendered in the `ConfigMap` that components read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::apply::Applier;
use support::args::{ApiServerArgs, LoggingArgs};

use crate::components::feature_gate::{CONFIG_MAP, KEY};
use crate::error::{Failure, Usage};
use crate::tool;

/// Field manager.
const MANAGER: &str = "featuregate-generator";

/// The flags of `sync-fg-configmap`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Directory with rendered manifests, read recursively.
    #[arg(long, value_name = "DIR", default_value = "/manifests")]
    pub manifests_dir: PathBuf,
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "NAMESPACE")]
    pub namespace: String,
    /// Version of the release: selects the features of this version.
    #[arg(long, value_name = "VERSION", env = "PAYLOAD_VERSION")]
    pub payload_version: String,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// No FeatureGate was rendered.
#[derive(Debug, thiserror::Error)]
#[error("no FeatureGate found below {0}: check the log of container render-feature-gates")]
struct NotRendered(String);

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::run(&args.logging, sync(args))
}

async fn sync(args: &Args) -> Result<(), Failure> {
    let mut gates = Vec::new();
    read(&args.manifests_dir, &mut gates)?;
    let gate = chosen(gates, &args.payload_version)
        .ok_or_else(|| NotRendered(args.manifests_dir.display().to_string()))?;
    let config = support::client::config(&args.api_server).await?;
    let applier = Applier::new(support::client::connect(config)?, MANAGER);
    let map = json!({
        "metadata": { "name": CONFIG_MAP, "namespace": args.namespace },
        "data": { KEY: crate::components::kubeconfig::yaml(&gate) },
    });
    let resource = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    applier.apply_value(&resource, map).await?;
    Ok(())
}

/// Reads all `FeatureGates` below a directory.
fn read(directory: &Path, gates: &mut Vec<Value>) -> Result<(), Usage> {
    let usage = |error: std::io::Error| Usage {
        message: format!("failed to read {}: {error}", directory.display()),
    };
    for entry in fs::read_dir(directory).map_err(usage)? {
        let path = entry.map_err(usage)?.path();
        if path.is_dir() {
            read(&path, gates)?;
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Other manifests are ignored.
        let value: Value = serde_saphyr::from_str(&text).unwrap_or_default();
        if value["kind"] == "FeatureGate" {
            gates.push(value);
        }
    }
    Ok(())
}

/// Selects the FeatureGate with features of the release; otherwise one without features.
fn chosen(gates: Vec<Value>, version: &str) -> Option<Value> {
    let mut fallback = None;
    for mut gate in gates {
        let entries = gate["status"]["featureGates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if let Some(own) = entries
            .iter()
            .find(|entry| entry["version"] == version)
            .or(entries.first())
        {
            gate["status"]["featureGates"] = json!([own]);
            return Some(gate);
        }
        fallback.get_or_insert(gate);
    }
    fallback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_the_release_version_are_selected() {
        let requested = json!({ "kind": "FeatureGate", "status": { "featureGates": null } });
        let rendered = json!({ "kind": "FeatureGate", "status": { "featureGates": [
            { "version": "4.19.0", "enabled": [] },
            { "version": "4.20.0", "enabled": [{ "name": "A" }] },
        ] } });
        let gate = chosen(vec![requested.clone(), rendered], "4.20.0").unwrap();
        assert_eq!(gate["status"]["featureGates"].as_array().unwrap().len(), 1);
        assert_eq!(gate["status"]["featureGates"][0]["enabled"][0]["name"], "A");
        assert_eq!(chosen(vec![requested.clone()], "4.20.0"), Some(requested));
        assert_eq!(chosen(Vec::new(), "4.20.0"), None);
    }
}
