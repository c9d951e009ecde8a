//! Whether hosted clusters could be on private types with the releases that they have: for those who plan a migration.
//!
//! The operator judges the same when it begins one, by the same rules. What it was given is read by whoever asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::group::Side;
use api::hypershift::v1beta1::HostedCluster;
use clap::{Args as _, FromArgMatches as _};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use payload::{Mirrors, OperatorOverrides, PullSecret, Reason, Release, Releases};
use support::error::chain;

use crate::args::ImageArgs;
use crate::config::{self, Images};
use crate::error::Fatal;
use crate::hosted_cluster::facts::{Labels, operated_image};
use crate::hosted_cluster::operator_image::{Question, Unfit, candidate};
use crate::hosted_cluster::released_labels;

/// Variables of an operator that name files of its pod.
const FILES: [&str; 3] = [
    "CONTROL_PLANE_OPERATOR_OVERRIDES",
    "REGISTRY_CA_BUNDLE",
    "RELEASE_CACHE",
];

/// What an operator is given, as far as it decides about images.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Its environment. Other variables, and those that name files, are passed over.
    pub variables: BTreeMap<String, String>,
    /// The table of `--control-plane-operator-overrides`, in YAML.
    pub overrides: Option<String>,
    /// What registries are trusted by, in PEM.
    pub ca_bundle: Option<String>,
}

/// Reads releases as an operator would.
pub struct Foresight {
    client: kube::Client,
    images: Images,
    releases: Releases,
}

/// What is to be expected of a hosted cluster on private types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// There is an image of the control-plane-operator that runs it.
    Fit,
    /// There is none, and why.
    Unfit(String),
    /// It cannot be told from here, and why.
    Untold(String),
}

// === impl Foresight ===

impl Foresight {
    /// Fails on what an operator would not start with.
    pub fn new(client: kube::Client, given: &Given) -> Result<Self, Fatal> {
        let args = image_args(&given.variables)?;
        let mut images = config::images(&args)?;
        if let Some(table) = &given.overrides {
            let table = OperatorOverrides::parse(table).map_err(|error| Fatal::Usage {
                message: format!("the table of control-plane-operators: {error}"),
            })?;
            images.operator_overrides = Arc::new(table);
        }
        let mut options = config::releases(&args)?;
        options.ca_bundle = given
            .ca_bundle
            .as_ref()
            .map(|text| text.as_bytes().to_vec());
        Ok(Self {
            client,
            images,
            releases: Releases::new(options).map_err(Fatal::Releases)?,
        })
    }

    /// Looks at one cluster.
    pub async fn outlook(&self, cluster: &HostedCluster) -> Outlook {
        let pull_secret = match self.pull_secret(cluster).await {
            Ok(pull_secret) => pull_secret,
            Err(outlook) => return outlook,
        };
        let mirrors = Mirrors::of(&cluster.spec.image_content_sources);
        let releases = self.releases.with_mirrors(&mirrors);
        match releases.get(operated_image(cluster), &pull_secret).await {
            Ok(release) => self.judge(cluster, &release, &releases, &pull_secret).await,
            Err(error) => unreadable(&error),
        }
    }

    async fn judge(
        &self,
        cluster: &HostedCluster,
        release: &Release,
        releases: &Releases,
        pull_secret: &PullSecret,
    ) -> Outlook {
        let question = Question {
            cluster,
            side: Side::Private,
            release: Some(release),
            images: &self.images,
        };
        let labels = match released_labels(&question, releases, pull_secret).await {
            Ok(labels) => labels.unwrap_or_default(),
            Err(error) => return unreadable(&error),
        };
        let image = candidate(&question).and_then(|it| it.settled(&Labels::Read(labels)));
        image.map_or_else(Outlook::from, |_| Outlook::Fit)
    }

    async fn pull_secret(&self, cluster: &HostedCluster) -> Result<PullSecret, Outlook> {
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let name = &cluster.spec.pull_secret.name;
        let what = format!("the pull secret {namespace}/{name} (spec.pullSecret)");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = api.get_opt(name).await.map_err(|error| {
            Outlook::Untold(format!("{what} cannot be read: {}", chain(&error)))
        })?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let json = data.get(payload::pull_secret::KEY).ok_or_else(|| {
            let key = payload::pull_secret::KEY;
            Outlook::Unfit(format!("{what} is not there, or has no {key}: create it"))
        })?;
        PullSecret::parse(&json.0)
            .map_err(|error| Outlook::Unfit(format!("{what} is of no use: {error}")))
    }
}

/// A registry may be away from here and not from the management cluster; all else it says is the same everywhere.
fn unreadable(error: &payload::Error) -> Outlook {
    let why = chain(error);
    if error.kind() == Reason::Unreachable {
        Outlook::Untold(why)
    } else {
        Outlook::Unfit(why)
    }
}

impl fmt::Debug for Foresight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foresight")
            .field("images", &self.images)
            .finish_non_exhaustive()
    }
}

/// The flags that come from variables; this process has an environment of its own, which is none of an operator's.
fn image_args(variables: &BTreeMap<String, String>) -> Result<ImageArgs, Fatal> {
    let command = clap::Command::new("hypershift-operator").no_binary_name(true);
    let command = ImageArgs::augment_args(command);
    let flags: Vec<String> = command
        .get_arguments()
        .filter_map(|flag| {
            let variable = flag.get_env()?.to_str()?;
            let value = variables.get(variable)?;
            let is_set = !FILES.contains(&variable) && !value.is_empty();
            is_set.then(|| format!("--{}={value}", flag.get_long().unwrap_or_default()))
        })
        .collect();
    let deaf = command.mut_args(|flag| flag.env(None::<&'static str>));
    let usage = |error: clap::Error| Fatal::Usage {
        message: format!("the environment of the operator: {}", error.kind()),
    };
    let matches = deaf.try_get_matches_from(flags).map_err(usage)?;
    ImageArgs::from_arg_matches(&matches).map_err(usage)
}

impl From<Unfit> for Outlook {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_given_what_its_variables_say() {
        let variables = [
            ("CONTROL_PLANE_OPERATOR_IMAGE", "images.example.com/own:v1"),
            (
                "REGISTRY_OVERRIDES",
                "a.example=b.example,c.example=d.example",
            ),
            ("REGISTRY_CA_BUNDLE", "/a/file/of/the/pod"),
            ("IMAGE_CAPI_PROXY", ""),
            ("POD_NAME", "operator-1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let args = image_args(&variables.into()).unwrap();
        let own = args.control_plane_operator_image.as_deref();
        assert_eq!(own, Some("images.example.com/own:v1"));
        assert_eq!(args.registry_overrides.len(), 2);
        assert_eq!(args.registry_ca_bundle, None);
        assert_eq!(args.capi_proxy_image, None);
    }

    #[test]
    fn what_an_operator_would_not_start_with_is_refused() {
        let variables = [("REGISTRY_OVERRIDES".to_owned(), "hunter2".to_owned())];
        let refused = image_args(&variables.into()).unwrap_err().to_string();
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
