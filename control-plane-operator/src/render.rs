//! `control-plane-operator render`: all objects of a hosted control plane as files, without a cluster.

use std::path::PathBuf;

use crate::error::Failure;
use crate::settings::SettingsArgs;

/// The flags of `render`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The HostedControlPlane, as YAML.
    #[arg(long, value_name = "FILE")]
    pub hosted_control_plane: PathBuf,
    /// The release's images: an ImageStream as releases have in /release-manifests/image-references.
    #[arg(long, value_name = "FILE")]
    pub release_images: PathBuf,
    /// Objects that exist already, as YAML files.
    #[arg(long, value_name = "DIR")]
    pub objects: Option<PathBuf>,
    /// Where to write DIR/<component>/<kind>-<name>.yaml.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write components of all platforms, whether the hosted control plane wants them or not.
    #[arg(long)]
    pub all_platforms: bool,
    /// What is rendered.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Renders.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let _ = args;
    Err("render is not wired up in this build".into())
}
