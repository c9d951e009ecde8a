//! The settings of the operator that decide about releases: as it is installed, changed by flags.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, EnvVar};
use kube::{Api, Client};
use payload::args::{OperatorImageArgs, ReleaseArgs, from_variables};
use payload::{OperatorImages, OperatorOverrides, Releases};

use crate::hosted::refused;
use crate::install::display::Display;
use crate::install::options::{operator_overrides, pairs, trust_bundle};
use crate::install::workload::{
    OVERRIDES, OVERRIDES_KEY, Operator, TRUST_BUNDLE, TRUST_BUNDLE_KEY,
};

/// Flags of `install` that decide which control-plane-operators there are.
#[derive(Debug, Args)]
pub(super) struct GivenArgs {
    /// Namespace of the operator, whose settings apply unless a flag below overrides them
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    operator_namespace: String,

    /// As for install: file with images of the control-plane-operator by platform and version
    #[arg(long, value_name = "FILE")]
    control_plane_operator_overrides: Option<PathBuf>,

    /// As for install: environment variables of the operator
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    additional_operator_env_vars: Vec<String>,

    /// As for install: file with PEM certificates for registries
    #[arg(long, value_name = "FILE")]
    additional_trust_bundle: Option<PathBuf>,
}

/// The settings of the operator that decide about images.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Its environment. Variables that name files of its pod are ignored.
    variables: BTreeMap<String, String>,
    /// The table of `--control-plane-operator-overrides`, in YAML.
    overrides: Option<String>,
    /// Certificates of authorities that registries are trusted by, in PEM.
    ca_bundle: Option<String>,
}

// === impl Given ===

impl Given {
    /// Images of the control-plane-operator. Fails where an operator with these settings would not start.
    pub(super) fn images(&self) -> anyhow::Result<OperatorImages> {
        let args: OperatorImageArgs = from_variables(&self.variables)?;
        let mut images = args.images()?;
        if let Some(table) = &self.overrides {
            let table = OperatorOverrides::parse(table)
                .context("the table of control-plane-operators is invalid")?;
            images.overrides = Arc::new(table);
        }
        Ok(images)
    }

    /// A reader of releases with the same settings.
    pub(super) fn releases(&self) -> anyhow::Result<Releases> {
        let args: ReleaseArgs = from_variables(&self.variables)?;
        let mut options = args.options()?;
        let ca_bundle = self.ca_bundle.as_ref();
        options.ca_bundle = ca_bundle.map(|text| text.as_bytes().to_vec());
        Releases::new(options).context("failed to create a client of registries")
    }
}

// === impl GivenArgs ===

impl GivenArgs {
    /// The settings of the installed operator, changed by flags. If they cannot be read, that is reported, and the flags
    /// apply alone.
    pub(super) async fn resolve(
        &self,
        client: &Client,
        display: &Display,
    ) -> anyhow::Result<Given> {
        let installed = self.installed(client).await;
        let mut given = installed.unwrap_or_else(|error| {
            display.say(&format!("{error:#}: using the flags alone"));
            Given::default()
        });
        if let Some(path) = &self.control_plane_operator_overrides {
            given.overrides = Some(operator_overrides(path)?.text);
        }
        if let Some(path) = &self.additional_trust_bundle {
            given.ca_bundle = Some(trust_bundle(path)?);
        }
        let variables = &self.additional_operator_env_vars;
        given
            .variables
            .extend(pairs(variables, "--additional-operator-env-vars")?);
        Ok(given)
    }

    async fn installed(&self, client: &Client) -> anyhow::Result<Given> {
        let (namespace, name) = (&self.operator_namespace, Operator::New.name());
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let deployment = deployments.get_opt(name).await.map_err(|error| {
            refused(&error).context(format!("failed to get Deployment {namespace}/{name}"))
        })?;
        let Some(deployment) = deployment else {
            return Ok(Given::default());
        };
        let file = async |name, key| file(client, namespace, name, key).await;
        Ok(Given {
            variables: variables(&deployment),
            overrides: file(OVERRIDES, OVERRIDES_KEY).await?,
            ca_bundle: file(TRUST_BUNDLE, TRUST_BUNDLE_KEY).await?,
        })
    }
}

/// The plain variables of the operator's own container.
fn variables(deployment: &Deployment) -> BTreeMap<String, String> {
    let pod = deployment.spec.as_ref();
    let pod = pod.and_then(|spec| spec.template.spec.as_ref());
    let mut containers = pod.into_iter().flat_map(|pod| &pod.containers);
    let own = containers.find(|it| it.name == Operator::New.name());
    let variables = own.and_then(|it| it.env.as_ref()).into_iter().flatten();
    variables
        .filter_map(|EnvVar { name, value, .. }| Some((name.clone(), value.clone()?)))
        .collect()
}

/// A file of its pods.
async fn file(
    client: &Client,
    namespace: &str,
    name: &str,
    key: &str,
) -> anyhow::Result<Option<String>> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = maps.get_opt(name).await;
    let map = map
        .map_err(|error| refused(&error))
        .with_context(|| format!("failed to get ConfigMap {namespace}/{name}"))?;
    Ok(map.and_then(|map| map.data?.remove(key)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_operators_own_plain_variables_count() {
        let deployment = json!({ "spec": { "selector": {}, "template": { "spec": { "containers": [
            { "name": "capi-proxy", "env": [{ "name": "A", "value": "of another" }] },
            { "name": "operator", "env": [
                { "name": "REGISTRY_OVERRIDES", "value": "a=b" },
                { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            ] },
        ] } } } });
        let deployment = serde_json::from_value(deployment).unwrap();
        let expected = [("REGISTRY_OVERRIDES".to_owned(), "a=b".to_owned())];
        assert_eq!(variables(&deployment), expected.into());
    }
}
