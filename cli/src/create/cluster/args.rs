//! Flags that clusters of all platforms share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::Usage;
use crate::create::text::time_or_zero;
use crate::install::TargetArgs;

// Platforms take them from here.
use super::given::Given;
pub(in crate::create) use super::values::{Arch, UpgradeType, name_of};
use super::values::{Availability, Capability, CatalogPlacement, FeatureSet, NetworkType};

/// What the cluster is to be.
#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    /// Name of the cluster: of its HostedCluster, and the first part of its API's host name
    #[arg(long, value_name = "NAME")]
    pub(super) name: String,

    /// Namespace of the HostedCluster on the management cluster
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    pub(super) namespace: String,

    /// Release image that the control plane and the nodes run; it is used instead of --release-stream
    #[arg(long, value_name = "IMAGE")]
    pub(super) release_image: Option<String>,

    /// Release stream whose newest release is used without --release-image, for example 4-stable-multi; looked up at
    /// ocp.releases.ci.openshift.org [default: 4-stable-multi for hcp on aws and azure]
    #[arg(long, value_name = "NAME")]
    pub(super) release_stream: Option<String>,

    /// File with the credentials of the release's registry (.dockerconfigjson)
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) pull_secret: Option<PathBuf>,

    /// Base domain of the cluster [default: example.com on platforms agent and none]
    #[arg(long, value_name = "DOMAIN")]
    pub(super) base_domain: Option<String>,

    /// First part of the cluster's domain, if it is not the cluster's name; "none" for no such part
    #[arg(long, value_name = "NAME")]
    pub(super) base_domain_prefix: Option<String>,

    /// Domain that external-dns manages: services get host names in it
    #[arg(long, value_name = "DOMAIN")]
    pub(super) external_dns_domain: Option<String>,

    /// Name of the cluster in the infrastructure [default: the cluster's name and a random suffix]
    #[arg(long, value_name = "NAME")]
    pub(super) infra_id: Option<String>,

    /// Nodes of each node pool; with a negative number no node pool is created
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub(super) node_pool_replicas: i32,

    /// How nodes are upgraded [default: replaced; in place on platforms agent and none]
    #[arg(long, value_enum)]
    pub(super) node_upgrade_type: Option<UpgradeType>,

    /// Time limit for draining a node, for example 30m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = time_or_zero)]
    pub(super) node_drain_timeout: Option<Duration>,

    /// Time limit for detaching the volumes of a node, for example 5m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = time_or_zero)]
    pub(super) node_volume_detach_timeout: Option<Duration>,

    /// Replace machines whose nodes stay unhealthy
    #[arg(long)]
    pub(super) auto_repair: bool,

    /// Processor architecture of the nodes
    #[arg(long, value_enum, default_value_t = Arch::Amd64)]
    pub(super) arch: Arch,

    /// Number of replicas of the control plane. It cannot be changed later [default: one; several for hcp]
    #[arg(long, value_enum)]
    pub(super) control_plane_availability_policy: Option<Availability>,

    /// Number of replicas of components that run on the nodes
    #[arg(long, value_enum, default_value_t = Availability::SingleReplica)]
    pub(super) infra_availability_policy: Availability,

    /// File with the public SSH key for logging in to nodes
    #[arg(long, value_name = "FILE")]
    pub(super) ssh_key: Option<PathBuf>,

    /// Generate an SSH key for logging in to nodes; its private key is in the Secret of the key, in the namespace of the HostedCluster
    #[arg(long, conflicts_with = "ssh_key")]
    pub(super) generate_ssh: bool,

    /// File with PEM certificates that the cluster trusts beside the system's
    #[arg(long, value_name = "FILE")]
    pub(super) additional_trust_bundle: Option<PathBuf>,

    /// YAML file with a list of image mirrors: items of `source` and `mirrors`
    #[arg(long, value_name = "FILE")]
    pub(super) image_content_sources: Option<PathBuf>,

    /// Enable FIPS mode. It cannot be changed later
    #[arg(long)]
    pub(super) fips: bool,

    /// Feature set of the cluster
    #[arg(long, value_enum, default_value_t = FeatureSet::Default)]
    pub(super) feature_set: FeatureSet,

    /// Annotation of the HostedCluster. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) annotations: Vec<String>,

    /// Label of the HostedCluster. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) labels: Vec<String>,

    /// Image of the control plane operator in place of the release's (for developers)
    #[arg(long, value_name = "IMAGE")]
    pub(super) control_plane_operator_image: Option<String>,

    /// Pause reconciliation until this time, for example 2030-01-31T12:00:00Z, or "true" for no limit
    #[arg(long = "pausedUntil", alias = "paused-until", value_name = "TIME")]
    pub(super) paused_until: Option<String>,

    #[command(flatten, next_help_heading = "Network")]
    pub(super) network: NetworkArgs,

    #[command(flatten, next_help_heading = "Control plane")]
    pub(super) control_plane: ControlPlaneArgs,

    /// What there is in place of flags.
    #[arg(skip)]
    pub(super) given: Given,
}

/// Addresses and names.
#[derive(Debug, Clone, Args)]
pub(super) struct NetworkArgs {
    /// Network provider
    #[arg(long, value_enum, default_value_t = NetworkType::OvnKubernetes)]
    pub(super) network_type: NetworkType,

    /// Address range of Services; a second one makes it dual-stack [default: 172.31.0.0/16]
    #[arg(long, value_name = "CIDR")]
    pub(super) service_cidr: Vec<String>,

    /// Address range of pods; a second one makes it dual-stack [default: 10.132.0.0/14]
    #[arg(long, value_name = "CIDR")]
    pub(super) cluster_cidr: Vec<String>,

    /// Address range of machines. May be repeated
    #[arg(long, value_name = "CIDR")]
    pub(super) machine_cidr: Vec<String>,

    /// Use the default ranges of IPv4 and IPv6 (dual-stack); the nodes must have addresses of both
    #[arg(long, conflicts_with_all = ["service_cidr", "cluster_cidr"])]
    pub(super) default_dual: bool,

    /// Have kube-controller-manager allocate the CIDRs of nodes; needs --network-type=Other
    #[arg(long)]
    pub(super) allocate_node_cidrs: bool,

    /// Disable additional pod networks (Multus); needs --network-type=Other
    #[arg(long)]
    pub(super) disable_multi_network: bool,

    /// MTU of OVN-Kubernetes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=9216))]
    pub(super) ovn_kubernetes_mtu: Option<u16>,

    /// Additional host name of the API server, with its own kubeconfig
    #[arg(long, value_name = "HOST")]
    pub(super) kas_dns_name: Option<String>,
}

/// How the control plane runs on the management cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct ControlPlaneArgs {
    /// Storage class of the etcd volumes [default: the default storage class]
    #[arg(long, value_name = "NAME")]
    pub(super) etcd_storage_class: Option<String>,

    /// Size of each etcd volume
    #[arg(long, value_name = "SIZE", default_value = "8Gi")]
    pub(super) etcd_storage_size: String,

    /// Node selector of the control plane. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(super) node_selector: Vec<String>,

    /// Label of the control plane's pods. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(super) pods_labels: Vec<String>,

    /// Toleration of the control plane's pods, such as key=a,operator=Exists,effect=NoSchedule. May be repeated
    #[arg(long, value_name = "FIELDS")]
    pub(super) toleration: Vec<String>,

    /// Where the catalogs of operators run
    #[arg(long, value_enum, default_value_t = CatalogPlacement::Management)]
    pub(super) olm_catalog_placement: CatalogPlacement,

    /// Disable the default catalog sources of OLM
    #[arg(long)]
    pub(super) olm_disable_default_sources: bool,

    /// Cluster capabilities to disable, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) disable_cluster_capabilities: Vec<Capability>,

    /// Cluster capabilities to enable, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) enable_cluster_capabilities: Vec<Capability>,
}

/// What this command does.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// Print the objects instead of creating them; needs no cluster if the address of the API server is given where services
    /// are published on node ports
    #[arg(long)]
    pub(super) render: bool,

    /// Write the objects to this file instead of creating them
    #[arg(long, value_name = "FILE")]
    pub(super) render_into: Option<PathBuf>,

    /// Include Secrets when rendering
    #[arg(long)]
    pub(super) render_sensitive: bool,

    /// Validate the objects with a server-side dry run, and create nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Fail unless this command and the operator are of the same version
    #[arg(long)]
    pub(super) version_check: bool,

    /// Namespace of the operator, for --version-check
    #[arg(long, value_name = "NAME", default_value = "hypershift")]
    pub(super) operator_namespace: String,

    /// Wait until the cluster is available, and show what it waits for
    #[arg(long)]
    pub(super) wait: bool,

    /// Time limit for --wait; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = time_or_zero)]
    pub(super) timeout: Duration,

    /// Suppress progress output
    #[arg(long, short)]
    pub(super) quiet: bool,
}

// === impl CommonArgs ===

impl CommonArgs {
    /// The same with what a Secret has in place of flags.
    pub(super) fn with(mut self, given: Given) -> Self {
        self.base_domain = self.base_domain.or_else(|| given.base_domain.clone());
        self.given = given;
        self
    }

    /// Refuses a domain for host names where services are on node ports; `instead` is the way out.
    pub(super) fn refuse_domain(&self, instead: &str) -> Result<(), Usage> {
        if self.external_dns_domain.is_none() {
            return Ok(());
        }
        Err(Usage::new(&format!(
            "--external-dns-domain is for services with host names, and these are on node ports: leave it out, or {instead}"
        )))
    }
}

// === impl RunArgs ===

impl RunArgs {
    /// Whether objects are printed or written to a file, and not created.
    pub(super) fn renders(&self) -> bool {
        self.render || self.render_into.is_some()
    }
}
