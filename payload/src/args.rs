//! Flags of programs that read releases, with the environment variables that set them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::node_pool::Arch;
use clap::builder::ValueParser;
use clap::{Args, FromArgMatches};
use support::args::Time;

use crate::limits::Limits;
use crate::mirrors::{Mirrors, Overrides};
use crate::operator_image::OperatorImages;
use crate::operators::OperatorOverrides;
use crate::releases::Options;

/// How long the image that a tag names is taken from memory.
const TAG_LIFETIME: Duration = Duration::from_mins(10);

/// Images of the control-plane-operator.
#[derive(Debug, Args)]
pub struct OperatorImageArgs {
    /// Image of the control-plane-operator for releases that have none, or with an own one that does not support private Cluster API
    /// types while the cluster is on them.
    #[arg(long, value_name = "IMAGE", env = "CONTROL_PLANE_OPERATOR_IMAGE")]
    pub control_plane_operator_image: Option<String>,
    /// File with images of the control-plane-operator for single versions, for hosted clusters on private types. They
    /// come before the release's own: platforms: {aws: {overrides: [{version: 4.14.9, cpoImage: IMAGE}]}}
    #[arg(long, value_name = "FILE", env = "CONTROL_PLANE_OPERATOR_OVERRIDES")]
    pub control_plane_operator_overrides: Option<PathBuf>,
}

/// Where images come from.
#[derive(Debug, Clone, Args)]
pub struct ReleaseArgs {
    /// Registries or repositories that are replaced by others, in the release and in all that it names.
    #[arg(
        long,
        value_name = "SOURCE=TARGET",
        env = "REGISTRY_OVERRIDES",
        value_delimiter = ',',
        value_parser = pair
    )]
    pub registry_overrides: Vec<(String, String)>,
    /// How registries are reached, and where releases are cached.
    #[command(flatten)]
    pub registries: RegistryArgs,
    /// What registries and tenants may take.
    #[command(flatten)]
    pub limits: ReadLimits,
}

/// How registries are reached, and where releases are cached.
#[derive(Debug, Clone, Args)]
pub struct RegistryArgs {
    /// Registries that are accessed over plain HTTP, by host and port, for testing.
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        env = "INSECURE_REGISTRIES",
        value_delimiter = ','
    )]
    pub insecure_registries: Vec<String>,
    /// File with additional CA certificates for registries, PEM.
    #[arg(long, value_name = "FILE", env = "REGISTRY_CA_BUNDLE")]
    pub registry_ca_bundle: Option<PathBuf>,
    /// Directory to cache releases across restarts. If it is not set, releases are read again after a restart.
    #[arg(long, value_name = "DIRECTORY", env = "RELEASE_CACHE")]
    pub release_cache: Option<PathBuf>,
}

/// Limits of reading images, so that a slow registry of one tenant costs the others nothing.
#[derive(Debug, Clone, Args)]
pub struct ReadLimits {
    /// How long a registry may take to respond to a request and to send a document. Also the window of
    /// --registry-min-rate.
    #[arg(
        long,
        value_name = "TIME",
        env = "REGISTRY_REQUEST_TIMEOUT",
        default_value = "30s"
    )]
    pub registry_request_timeout: Time,
    /// Least rate at which a registry sends a layer, in bytes per second.
    #[arg(
        long,
        value_name = "BYTES",
        env = "REGISTRY_MIN_RATE",
        default_value_t = 16384
    )]
    pub registry_min_rate: u64,
    /// How long reading one image may take in all.
    #[arg(
        long,
        value_name = "TIME",
        env = "RELEASE_READ_TIMEOUT",
        default_value = "10m"
    )]
    pub release_read_timeout: Time,
    /// Images that are read at the same time for the HostedClusters and NodePools of one namespace.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "RELEASE_READS_PER_NAMESPACE",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub release_reads_per_namespace: u16,
    /// How long a reconcile waits for an image that is being read, before it is requeued.
    #[arg(
        long,
        value_name = "TIME",
        env = "RELEASE_READ_WAIT",
        default_value = "1s"
    )]
    pub release_read_wait: Time,
    /// Memory for releases that were read, in MiB.
    #[arg(
        long,
        value_name = "MIB",
        env = "RELEASE_CACHE_MEMORY",
        default_value_t = 128,
        value_parser = clap::value_parser!(u16).range(16..=4096)
    )]
    pub release_cache_memory: u16,
}

/// A flag that names a file which cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{flag} {path}: {why}")]
pub struct InvalidFile {
    flag: &'static str,
    path: String,
    why: String,
}

/// An environment with which the flags cannot be parsed. Values are not repeated: they may be secret.
#[derive(Debug, thiserror::Error)]
#[error("the environment of the operator: {0}")]
pub struct InvalidVariables(clap::error::ErrorKind);

// === impl OperatorImageArgs ===

impl OperatorImageArgs {
    /// The images, with the table that the flag names.
    pub fn images(&self) -> Result<OperatorImages, InvalidFile> {
        let overrides = self.control_plane_operator_overrides.as_deref();
        let overrides = overrides.map(table).transpose()?.unwrap_or_default();
        let fallback = self.control_plane_operator_image.clone();
        Ok(OperatorImages {
            fallback: fallback.filter(|image| !image.is_empty()),
            overrides: Arc::new(overrides),
        })
    }
}

/// An invalid table is an error at the start, and not when a cluster needs it.
fn table(path: &Path) -> Result<OperatorOverrides, InvalidFile> {
    let invalid = |why| InvalidFile::new("--control-plane-operator-overrides", path, why);
    let text = fs::read_to_string(path).map_err(|error| invalid(error.to_string()))?;
    OperatorOverrides::parse(&text).map_err(|error| invalid(error.to_string()))
}

// === impl InvalidFile ===

impl InvalidFile {
    fn new(flag: &'static str, path: &Path, why: String) -> Self {
        Self {
            flag,
            path: path.display().to_string(),
            why,
        }
    }
}

// === impl ReleaseArgs ===

impl ReleaseArgs {
    /// The options that the flags set.
    pub fn options(&self) -> Result<Options, InvalidFile> {
        Ok(Options {
            believed: TAG_LIFETIME,
            mirrors: Mirrors::default(),
            overrides: Overrides::new(self.registry_overrides.clone()),
            arch: Arch::Amd64,
            limits: self.limits.limits(),
            ..self.registries.options()?
        })
    }
}

// === impl RegistryArgs ===

impl RegistryArgs {
    /// The options that the flags set, with defaults for all others.
    pub fn options(&self) -> Result<Options, InvalidFile> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|error| {
                let why = format!("cannot be read: {error}");
                InvalidFile::new("--registry-ca-bundle", path, why)
            })
        };
        Ok(Options {
            plain_http: self.insecure_registries.iter().cloned().collect(),
            ca_bundle: self.registry_ca_bundle.as_ref().map(read).transpose()?,
            directory: self.release_cache.clone(),
            ..Options::default()
        })
    }
}

// === impl ReadLimits ===

impl ReadLimits {
    /// The limits that the flags set.
    fn limits(&self) -> Limits {
        Limits {
            request: self.registry_request_timeout.0,
            read: self.release_read_timeout.0,
            rate: self.registry_min_rate,
            reads_per_tenant: self.release_reads_per_namespace.into(),
            wait: self.release_read_wait.0,
            memory: usize::from(self.release_cache_memory) << 20,
        }
    }
}

/// Parses flags from the environment variables of another process. Variables that name files of its pod are ignored.
pub fn from_variables<A: Args + FromArgMatches>(
    variables: &BTreeMap<String, String>,
) -> Result<A, InvalidVariables> {
    let command = A::augment_args(clap::Command::new("operator").no_binary_name(true));
    let file = ValueParser::path_buf().type_id();
    let flags: Vec<String> = command
        .get_arguments()
        .filter(|flag| flag.get_value_parser().type_id() != file)
        .filter_map(|flag| {
            let value = variables.get(flag.get_env()?.to_str()?)?;
            let name = flag.get_long()?;
            (!value.is_empty()).then(|| format!("--{name}={value}"))
        })
        .collect();
    let invalid = |error: clap::Error| InvalidVariables(error.kind());
    // The environment of this process is not that of the operator.
    let command = command.mut_args(|flag| flag.env(None::<&'static str>));
    let matches = command.try_get_matches_from(flags).map_err(invalid)?;
    A::from_arg_matches(&matches).map_err(invalid)
}

/// Parses `SOURCE=TARGET`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((source, target)) if !source.is_empty() && !target.is_empty() => {
            Ok((source.to_owned(), target.to_owned()))
        }
        Some(_) | None => Err("write SOURCE=TARGET".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn flags_are_parsed_from_variables_of_another_process() {
        let variables = variables(&[
            ("CONTROL_PLANE_OPERATOR_IMAGE", "images.example.com/own:v1"),
            (
                "REGISTRY_OVERRIDES",
                "a.example=b.example,c.example=d.example",
            ),
            ("REGISTRY_CA_BUNDLE", "/a/file/of/the/pod"),
            ("CONTROL_PLANE_OPERATOR_OVERRIDES", "/another/file"),
            ("INSECURE_REGISTRIES", ""),
            ("POD_NAME", "operator-1"),
        ]);
        let args: OperatorImageArgs = from_variables(&variables).unwrap();
        let fallback = args.images().unwrap().fallback;
        assert_eq!(fallback.as_deref(), Some("images.example.com/own:v1"));
        let args: ReleaseArgs = from_variables(&variables).unwrap();
        assert_eq!(args.registry_overrides.len(), 2);
        assert_eq!(args.registries.registry_ca_bundle, None);
        assert_eq!(args.registries.insecure_registries, [""; 0]);
    }

    #[test]
    fn invalid_variables_are_rejected_without_their_values() {
        let variables = variables(&[("REGISTRY_OVERRIDES", "hunter2")]);
        let rejected = from_variables::<ReleaseArgs>(&variables).unwrap_err();
        assert!(!rejected.to_string().contains("hunter2"), "{rejected}");
    }
}
