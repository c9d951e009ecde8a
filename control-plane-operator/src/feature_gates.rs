//! `control-plane-operator sync-fg-configmap`: writes the rendered FeatureGate to a ConfigMap.
//!
//! It is the last container of the Job featuregate-generator: it stores the FeatureGate that the release's program has
//! rendered in the `ConfigMap` that components read.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::apply::Applier;
use support::args::{ApiServerArgs, LoggingArgs};

use crate::components::feature_gate::{CONFIG_MAP, KEY};
use crate::error::Failure;
use crate::tool;

/// Field manager.
const MANAGER: &str = "featuregate-generator";
/// Annotation with the version of the release that has rendered the features.
const PAYLOAD_VERSION: &str = "hypershift.openshift.io/payload-version";

/// The flags of `sync-fg-configmap`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// File with the rendered FeatureGate.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/manifests/99_feature-gate.yaml"
    )]
    pub file: PathBuf,
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "NAMESPACE")]
    pub namespace: String,
    /// Name of the ConfigMap.
    #[arg(long, value_name = "NAME", default_value = CONFIG_MAP)]
    pub name: String,
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

/// The features of the release are not known.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// An I/O error.
    #[error("failed to read {file}")]
    Read {
        file: String,
        source: std::io::Error,
    },
    /// The file is not what the release's program writes.
    #[error("{file} has no FeatureGate: check the log of container render-feature-gates")]
    NotRendered { file: String },
    /// The features are those of other versions.
    #[error(
        "{file} has no features of version {version}: check the log of container render-feature-gates"
    )]
    NoFeatures { file: String, version: String },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::run(&args.logging, sync(args))
}

async fn sync(args: &Args) -> Result<(), Failure> {
    let gate = read(args)?;
    let config = support::client::config(&args.api_server).await?;
    let applier = Applier::new(support::client::connect(&config)?, MANAGER);
    let map = json!({
        "metadata": {
            "name": args.name,
            "namespace": args.namespace,
            "annotations": { PAYLOAD_VERSION: args.payload_version },
        },
        "data": { KEY: crate::components::kubeconfig::yaml(&gate) },
    });
    let resource = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    applier.apply_value(&resource, map).await?;
    Ok(())
}

fn read(args: &Args) -> Result<Value, Error> {
    let file = args.file.display().to_string();
    let text = match fs::read_to_string(&args.file) {
        Ok(text) => text,
        Err(source) => return Err(Error::Read { file, source }),
    };
    let gate: Value = serde_saphyr::from_str(&text).unwrap_or_default();
    if gate["kind"] != "FeatureGate" {
        return Err(Error::NotRendered { file });
    }
    let version = &args.payload_version;
    of_version(gate, version).ok_or_else(|| Error::NoFeatures {
        file,
        version: version.clone(),
    })
}

/// The FeatureGate with the features of one version.
fn of_version(mut gate: Value, version: &str) -> Option<Value> {
    let entries = gate["status"]["featureGates"].as_array()?;
    let own = entries.iter().find(|entry| entry["version"] == version)?;
    gate["status"]["featureGates"] = json!([own]);
    Some(gate)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn error_of(text: Option<&str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gate.yaml");
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let file = file.display().to_string();
        let args = [
            "control-plane-operator",
            "sync-fg-configmap",
            "--file",
            &file,
            "--namespace=ns",
            "--payload-version=4.20.0",
        ];
        let Command::SyncFgConfigmap(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        assert_eq!(args.name, "feature-gate");
        let error = read(&args).unwrap_err();
        error.to_string().replace(&file, "FILE")
    }

    #[test]
    fn features_of_the_release_version_are_selected() {
        let rendered = json!({ "kind": "FeatureGate", "status": { "featureGates": [
            { "version": "4.19.0", "enabled": [] },
            { "version": "4.20.0", "enabled": [{ "name": "A" }] },
        ] } });
        let gate = of_version(rendered, "4.20.0").unwrap();
        assert_eq!(gate["status"]["featureGates"].as_array().unwrap().len(), 1);
        assert_eq!(gate["status"]["featureGates"][0]["enabled"][0]["name"], "A");
    }

    #[test]
    fn files_that_are_not_rendered_are_rejected() {
        assert_eq!(error_of(None), "failed to read FILE");
        for text in ["", "kind: ConfigMap", "a: ["] {
            let error = error_of(Some(text));
            assert!(
                error.starts_with("FILE has no FeatureGate:"),
                "{text}: {error}"
            );
        }
        for text in [
            "{ kind: FeatureGate, status: { featureGates: null } }",
            "{ kind: FeatureGate, status: { featureGates: [{ version: 4.19.0 }] } }",
        ] {
            let error = error_of(Some(text));
            assert!(
                error.starts_with("FILE has no features of version 4.20.0:"),
                "{text}: {error}"
            );
        }
    }
}
