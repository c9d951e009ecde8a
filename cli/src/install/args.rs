//! `hypershift install ...`: arguments. Those of an installation are valid after `render`, too.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::crds::output::Format;

/// Arguments of `hypershift install`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("examples.txt"), subcommand_negates_reqs = true)]
pub struct Install {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    #[command(flatten)]
    pub(super) options: OptionArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// What is done instead of installing.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Print what would be installed; needs no cluster
    Render(RenderArgs),
    /// Write a Helm chart of what would be installed; needs no cluster
    Helm(HelmArgs),
}

/// What is installed.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct OptionArgs {
    /// Namespace of the operator
    #[arg(long, global = true, value_name = "NAME", default_value = "hypershift")]
    pub(super) namespace: String,

    /// Use private API groups for Cluster API objects, with a proxy sidecar in each controller pod
    #[arg(long, global = true)]
    pub(super) private_capi_types: bool,

    /// Where the private CRDs are derived from: embedded, module[=MODULE[@VERSION]], file=PATH, url=URL or cluster. May
    /// be repeated [default: embedded]
    #[arg(long, global = true, value_name = "SOURCE")]
    pub(super) private_crds_from: Vec<String>,

    /// Image of the operators [default: that of this command's release]
    #[arg(long, global = true, value_name = "IMAGE", env = "HYPERSHIFT_IMAGE")]
    pub(super) hypershift_image: Option<String>,

    /// Image of the proxy, for --private-capi-types [default: that of this command's release]
    #[arg(long, global = true, value_name = "IMAGE", env = "CAPI_PROXY_IMAGE")]
    pub(super) capi_proxy_image: Option<String>,

    /// File with images, in place of --hypershift-image: an ImageStream in YAML or JSON whose tags are hypershift-operator,
    /// capi-proxy, external-dns, cluster-api, cluster-api-provider-aws and so on. Other tags have no effect
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        conflicts_with = "hypershift_image"
    )]
    pub(super) image_refs: Option<PathBuf>,

    /// When the kubelet pulls images
    #[arg(long, global = true, value_enum, default_value_t = PullPolicy::IfNotPresent)]
    pub(super) image_pull_policy: PullPolicy,

    /// Replace the prefix SOURCE of images with MIRROR
    #[arg(
        long,
        global = true,
        value_name = "SOURCE=MIRROR",
        value_delimiter = ','
    )]
    pub(super) registry_overrides: Vec<String>,

    /// Replicas of each operator; one of them is the leader
    #[arg(long, global = true, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(super) replicas: u8,

    /// Install the operators without pods, so that a process on a workstation can act in their place
    #[arg(long, global = true, conflicts_with = "replicas")]
    pub(super) development: bool,

    /// File with the pull secret of the operator's images (.dockerconfigjson)
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) pull_secret: Option<PathBuf>,

    /// File with PEM certificates that the operator trusts in addition to those of the system
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) additional_trust_bundle: Option<PathBuf>,

    /// File with images of the control-plane-operator by platform and version, for hosted clusters on private types whose
    /// release has an older one
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) control_plane_operator_overrides: Option<PathBuf>,

    /// Environment variables of the operator
    #[arg(long, global = true, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub(super) additional_operator_env_vars: Vec<String>,

    /// Install the private CRDs of these platforms only, in addition to those that every platform needs
    #[arg(
        long,
        global = true,
        value_enum,
        value_delimiter = ',',
        default_value = "all"
    )]
    pub(super) limit_crd_install: Vec<Platform>,

    /// What the monitoring of OpenShift collects
    #[arg(long, global = true, value_enum, default_value_t = PlatformMonitoring::None)]
    pub(super) platform_monitoring: PlatformMonitoring,

    /// Metrics of hosted control planes to collect
    #[arg(long, global = true, value_enum, default_value_t = MetricsSet::Telemetry)]
    pub(super) metrics_set: MetricsSet,

    /// Install a dashboard for the console of OpenShift
    #[arg(long, global = true)]
    pub(super) monitoring_dashboards: bool,

    /// What happens when a user without the verb override changes reserved settings of a HostedCluster or NodePool, or when
    /// a control plane grants itself permissions that reach beyond it
    /// (SECURITY.md) [default: the installed mode; on a first installation enforce, or warn if hosted clusters exist;
    /// for render warn]
    #[arg(long, global = true, value_enum, value_name = "MODE")]
    pub(super) tenant_policy: Option<super::tenant_policy::Mode>,

    /// Repositories that release images of these authors must come from [default: any]
    #[arg(long, global = true, value_name = "REPOSITORY", value_delimiter = ',')]
    pub(super) tenant_release_images: Vec<String>,

    /// Install roles for those who manage hosted clusters (service account and group hypershift-client) and for those who
    /// look at them (group hypershift-readers)
    #[arg(long, global = true)]
    pub(super) enable_admin_rbac_generation: bool,

    /// Install the API and the operator with the technology preview: Google Cloud, OpenStack and more. It cannot be upgraded
    #[arg(long, global = true)]
    pub(super) tech_preview_no_upgrade: bool,

    /// Control planes.
    #[command(flatten)]
    pub(super) control_planes: super::control_planes::ControlPlaneArgs,

    /// The managed service.
    #[command(flatten)]
    pub(super) managed_service: super::managed_service::ManagedServiceArgs,

    /// Documents by which AWS validates tokens.
    #[command(flatten)]
    pub(super) oidc_storage: super::oidc::OidcStorageArgs,

    /// Host names of hosted clusters.
    #[command(flatten)]
    pub(super) external_dns: super::external_dns::ExternalDnsArgs,

    /// Roles of AWS.
    #[command(flatten)]
    pub(super) aws_roles: super::aws_role::AwsRoleArgs,

    /// Private links.
    #[command(flatten)]
    pub(super) private_links: super::private_links::PrivateLinkArgs,

    /// Capacity of machines.
    #[command(flatten)]
    pub(super) scale_from_zero: super::scale_from_zero::ScaleFromZeroArgs,

    /// The conversion webhook.
    #[command(flatten)]
    pub(super) conversion: super::conversion::args::ConversionArgs,
}

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// How it is installed.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct RunArgs {
    /// Print what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// What to install
    #[arg(long, value_enum, default_value_t = Outputs::All)]
    pub(super) install_scope: Outputs,

    /// Wait until the Deployments are available
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub(super) wait_until_available: bool,

    /// Wait until the API server serves the CRDs, which is always done
    #[arg(long)]
    pub(super) wait_until_crds_established: bool,

    /// Time limit for CRDs to be served, and again for Deployments to become available
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    pub(super) timeout: Duration,

    /// Take over objects and fields that have another manager
    #[arg(long)]
    pub(super) take_over: bool,

    /// Suppress progress output
    #[arg(long, short)]
    pub(super) quiet: bool,
}

/// What is rendered, and how.
#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Yaml)]
    pub(super) format: Format,

    /// What to render
    #[arg(long, value_enum, default_value_t = Outputs::All)]
    pub(super) outputs: Outputs,

    /// Render a Template of OpenShift, with parameters for images, namespace, replicas and more; it includes Secrets
    #[arg(long, requires = "render_sensitive", conflicts_with = "outputs")]
    pub(super) template: bool,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(super) output_file: Option<PathBuf>,

    /// Include Secrets
    #[arg(long)]
    pub(super) render_sensitive: bool,

    /// Optional APIs that the cluster is assumed to have
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) assume: Vec<Assumption>,
}

/// Which chart is written, and where.
#[derive(Debug, Args)]
pub(super) struct HelmArgs {
    /// Directory to write the chart to. Secrets are written to files that only you can read
    #[arg(long, value_name = "DIRECTORY", default_value = "./chart")]
    pub(super) output_dir: PathBuf,

    /// Optional APIs that the cluster is assumed to have
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) assume: Vec<Assumption>,
}

/// Which of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Outputs {
    /// Everything
    All,
    /// CRDs
    Crds,
    /// Everything but CRDs
    Resources,
}

/// What objects may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Assumption {
    /// The Prometheus operator's kinds
    Monitoring,
    /// OpenShift's console
    Console,
    /// HostedClusters whose Cluster API objects are in the standard groups
    Legacy,
    /// OpenShift's Routes, whose host names ExternalDNS publishes
    Routes,
    /// DNSEndpoints of ExternalDNS, which delegate zones on Google Cloud
    DnsEndpoints,
}

/// When the kubelet pulls images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum PullPolicy {
    /// At every start of a container
    Always,
    /// If the node does not have it
    IfNotPresent,
    /// Never
    Never,
}

/// What OpenShift's own monitoring watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum PlatformMonitoring {
    /// Nothing
    None,
    /// The operator
    OperatorOnly,
    /// The operator and the control planes of hosted clusters
    All,
}

/// Metrics of hosted control planes to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsSet {
    /// Metrics for telemetry
    #[value(name = "Telemetry")]
    Telemetry,
    /// Metrics for site reliability engineers
    #[value(name = "SRE")]
    Sre,
    /// All
    #[value(name = "All")]
    All,
}

/// Platforms with CRDs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Platform {
    /// Every platform
    All,
    /// Amazon Web Services
    Aws,
    /// Google Cloud
    Gcp,
    /// Microsoft Azure
    Azure,
    /// KubeVirt
    Kubevirt,
    /// Bare machines by agents
    Agent,
    /// Clouds of that name
    #[value(help = "OpenStack")]
    Openstack,
    /// IBM Cloud and Power VS
    Ibmcloud,
    /// Cluster API's development provider
    Dev,
}

// === impl PullPolicy ===

impl PullPolicy {
    /// As it stands in a pod.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

// === impl MetricsSet ===

impl MetricsSet {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Telemetry => "Telemetry",
            Self::Sre => "SRE",
            Self::All => "All",
        }
    }
}

// === impl Outputs ===

impl Outputs {
    pub(crate) fn crds(self) -> bool {
        matches!(self, Self::All | Self::Crds)
    }

    pub(crate) fn resources(self) -> bool {
        matches!(self, Self::All | Self::Resources)
    }
}

/// A duration as in Kubernetes, such as `90s` or `1h30m`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = api::hypershift::v1beta1::common::Duration(text.to_owned()).length();
    match time {
        Ok(time) if (Duration::from_secs(1)..=Duration::from_hours(24)).contains(&time) => Ok(time),
        Ok(_) => Err("write a time between 1s and 24h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
