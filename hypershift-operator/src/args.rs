//! The command line. Its help is the reference; `docs/operator.md` explains it.

mod control_planes;

use std::path::PathBuf;
use std::time::Duration;

use api::features::{FEATURE_SET_ENV, FeatureSet};
use api::group::{CapiTypes, GroupPair};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use control_plane_component::settings::{CollectedMetrics, Pairs};
use ownership::Scope;
use payload::args::{OperatorImageArgs, ReleaseArgs};
use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs, Time};

pub use control_planes::ControlPlaneArgs;

/// Runs hosted clusters on a management cluster.
#[derive(Debug, Parser)]
#[command(name = "hypershift-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, for hosted clusters on private Cluster API types:
    hypershift-operator run --scope private

  In a second pod, for hosted clusters that are not migrated yet:
    hypershift-operator run --scope legacy

  On a workstation, as the only instance, with the current context of a kubeconfig:
    hypershift-operator run --scope private --namespace hypershift --pod-name me \\
      --leader-elect=false --kubeconfig ~/.kube/config --log-format text";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconcile hosted clusters, until SIGTERM or SIGINT.
    Run(Box<RunArgs>),
    /// Have Karpenter make nodes of one hosted cluster with AutoNode, until SIGTERM or SIGINT.
    KarpenterOperator(Box<KarpenterArgs>),
    /// Repair a failed member of a hosted cluster's etcd.
    RecoverEtcd(Box<RecoverEtcdArgs>),
    /// Write the configuration of the ingress that hosted clusters share (ARO), until SIGTERM or SIGINT.
    SharedingressConfigGenerator(Box<SharedIngressArgs>),
}

/// The flags of `karpenter-operator`.
#[derive(Debug, Clone, Args)]
#[command(after_help = KARPENTER)]
pub struct KarpenterArgs {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of the HostedControlPlane.
    #[arg(long, value_name = "NAME")]
    pub hosted_control_plane: String,
    /// Name of this pod, for leader election.
    #[arg(
        long,
        value_name = "NAME",
        env = "POD_NAME",
        default_value = "karpenter-operator"
    )]
    pub pod_name: String,
    /// Kubeconfig of the hosted cluster.
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: PathBuf,
    /// Image of the control-plane-operator, which mints the tokens of Karpenter.
    #[arg(long, value_name = "IMAGE")]
    pub control_plane_operator_image: String,
    /// Where new nodes get their configuration: a host, and a port unless it is 443.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub ignition_endpoint: String,
    /// API groups of Cluster API objects: private or standard.
    #[arg(
        long,
        env = "CAPI_TYPES",
        default_value_t = CapiTypes::Standard,
        value_parser = capi_types()
    )]
    pub capi_types: CapiTypes,
    /// Images of the release that are replaced by others, by name. Comma-separated.
    #[arg(
        long,
        value_name = "NAME=IMAGE,...",
        env = "IMAGE_OVERRIDES",
        default_value = ""
    )]
    pub image_overrides: Pairs,
    /// Image mirrors of the management cluster. Comma-separated.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "OPENSHIFT_IMG_OVERRIDES",
        default_value = ""
    )]
    pub openshift_img_overrides: Pairs,
    /// User ID of pods, if the management cluster does not assign one.
    #[arg(long, value_name = "UID", env = "DEFAULT_SECURITY_CONTEXT_UID")]
    pub default_security_context_uid: Option<i64>,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Registries.
    #[command(flatten, next_help_heading = "Images")]
    pub releases: ReleaseArgs,
    /// How the API server of the management cluster is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Which of several replicas acts.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const KARPENTER: &str = "\
It runs in the control plane of a hosted cluster on AWS with spec.autoNode. It takes the credentials for EC2 from the
environment: AWS_SHARED_CREDENTIALS_FILE names a profile with the role of Karpenter.";

/// Parses `--capi-types`, and lists both values in `--help`.
fn capi_types() -> impl TypedValueParser<Value = CapiTypes> {
    PossibleValuesParser::new([CapiTypes::Private, CapiTypes::Standard].map(CapiTypes::as_str))
        .try_map(|text| text.parse::<CapiTypes>())
}

/// The arguments of `recover-etcd`.
#[derive(Debug, Args)]
#[command(after_help = RECOVER_ETCD)]
pub struct RecoverEtcdArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RecoverEtcdCommand,
}

/// What `recover-etcd` does.
#[derive(Debug, Subcommand)]
pub enum RecoverEtcdCommand {
    /// Print `healthy`, `missing member: NAME`, `failing pod: NAME` or `broken: NOT RECOVERABLE`.
    Status(RecoverEtcdFlags),
    /// Repair the member that is missing or failing, and wait up to 5 minutes until it is healthy.
    Run(RecoverEtcdFlags),
}

/// The flags of the commands of `recover-etcd`.
#[derive(Debug, Args)]
pub struct RecoverEtcdFlags {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME")]
    pub namespace: String,
    /// File with the client certificate for etcd, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.crt"
    )]
    pub etcd_client_cert: PathBuf,
    /// File with the key of the client certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.key"
    )]
    pub etcd_client_key: PathBuf,
    /// File with the certificate authority of etcd, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/etcd-ca/ca.crt"
    )]
    pub etcd_ca_cert: PathBuf,
    /// URL of etcd, outside of the management cluster [default: that of Service etcd-client]
    #[arg(long, value_name = "URL", hide = true)]
    pub endpoint: Option<http::Uri>,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const RECOVER_ETCD: &str = "\
A member is repaired by deleting its volume and its pod; its data come from the other members. This requires that the
other two members are healthy, that the StatefulSet is not being rolled out, and that no other pod of it fails. A
cluster with fewer healthy members needs a snapshot.

Example:
  hypershift-operator recover-etcd status --namespace clusters-dev";

/// The flags of `sharedingress-config-generator`.
#[derive(Debug, Args)]
#[command(after_help = SHARED_INGRESS)]
pub struct SharedIngressArgs {
    /// File to write; in a directory, it is haproxy.cfg.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/usr/local/etc/haproxy/haproxy.cfg"
    )]
    pub config_path: PathBuf,
    /// Socket of haproxy's master process, which reloads the file.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/var/run/haproxy/admin.sock"
    )]
    pub haproxy_socket_path: PathBuf,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const SHARED_INGRESS: &str = "\
It runs in the pod of haproxy 2.9 or newer, which is started with -f DIRECTORY -db -W -S SOCKET:
  port 6443  API servers for nodes, selected by the cluster ID in the PROXY protocol
  port 8443  what clients reach, selected by the host name of Routes and by kubeAPIServerDNSName
  port 9444  probes: /haproxy_ready
A host belongs to the oldest Route that has it, and to no name of spec.kubeAPIServerDNSName as long as there is one; a
cluster ID belongs to the oldest HostedCluster that has it.";

/// The flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which hosted clusters this operator acts on.
    #[arg(long, value_enum, env = "HYPERSHIFT_SCOPE")]
    pub scope: Scope,
    /// Feature set of the API: `Default` or `TechPreviewNoUpgrade`, which also has Google Cloud and OpenStack.
    #[arg(long, value_name = "NAME", env = FEATURE_SET_ENV, default_value_t = FeatureSet::Default)]
    pub feature_set: FeatureSet,
    /// Namespace that the operator runs in, which has its Lease.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of the pod that the operator runs in: part of its identity.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod_name: String,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(
        long,
        value_name = "[IP]:PORT",
        env = "HYPERSHIFT_METRICS_ADDR",
        default_value = ":9000"
    )]
    pub metrics_addr: Address,
    /// Deployment that the private operator deletes from its namespace once no hosted cluster needs it.
    #[arg(long, value_name = "NAME", default_value = "operator-legacy")]
    pub legacy_deployment: String,
    /// How often all HostedClusters are evaluated again, for changes that no watch reports.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub resync_period: Time,
    /// Groups beyond the standard ones that can hold a cluster's objects. May be repeated.
    #[arg(
        long = "group",
        value_name = "STANDARD=PRIVATE",
        env = "CAPI_PROXY_GROUPS",
        value_delimiter = ','
    )]
    pub groups: Vec<GroupPair>,
    /// How often an unchanged HostedCluster is reconciled, for changes that no watch reports: a pull secret
    /// that was replaced, a file of the registry.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub review_period: Time,
    /// Number of concurrent migrations to private types. 0 suspends all migrations, including running ones. The ConfigMap
    /// private-capi-migration in the operator's namespace changes it at run time.
    #[arg(
        long,
        value_name = "N",
        env = "HYPERSHIFT_MIGRATION_CONCURRENCY",
        default_value_t = 1
    )]
    pub migration_concurrency: usize,
    /// How long a hosted cluster has to be healthy before its migration is committed.
    #[arg(
        long,
        value_name = "TIME",
        env = "HYPERSHIFT_MIGRATION_HEALTH_PERIOD",
        default_value = "30s"
    )]
    pub migration_health_period: Time,
    /// Metrics of control planes to collect, unless spec.monitoring.metricsSet of the HostedCluster is set. Default: all
    /// metrics that dashboards and alerts use.
    #[arg(long, value_enum, env = "METRICS_SET")]
    pub metrics_set: Option<CollectedMetrics>,
    /// AWS region of the management cluster, in which the operator manages VPC endpoint services of private hosted clusters.
    /// Without it, new private clusters on AWS are refused.
    #[arg(long, value_name = "REGION", env = "AWS_REGION")]
    pub aws_region: Option<String>,
    /// File with the AWS credentials of the operator for VPC endpoint services: a shared credentials file. Default: the
    /// credentials of the environment.
    #[arg(long, value_name = "FILE", env = "AWS_SHARED_CREDENTIALS_FILE")]
    pub aws_shared_credentials_file: Option<PathBuf>,
    /// Private links on Azure.
    #[command(flatten, next_help_heading = "Private links on Azure")]
    pub azure_private_link: AzurePrivateLinkArgs,
    /// Private Service Connect.
    #[command(flatten, next_help_heading = "Private Service Connect")]
    pub gcp_private_service_connect: GcpPrivateServiceConnectArgs,
    /// Managed service that runs this operator, if any: ARO-HCP is Azure Red Hat OpenShift.
    #[arg(long, value_name = "NAME", env = "MANAGED_SERVICE")]
    pub managed_service: Option<String>,
    /// Client ID of the identity that reads certificates of managed identities from Azure's key vaults. Required for hosted
    /// clusters with managed identities.
    #[arg(long, value_name = "ID", env = "ARO_HCP_KEY_VAULT_USER_CLIENT_ID")]
    pub azure_key_vault_client_id: Option<String>,
    /// Time to complete work in progress after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub drain_timeout: Time,
    /// Documents by which AWS validates tokens.
    #[command(flatten, next_help_heading = "OIDC documents")]
    pub oidc_storage: OidcStorageArgs,
    /// Capacity of machines.
    #[command(flatten, next_help_heading = "Scale from zero")]
    pub scale_from_zero: ScaleFromZeroArgs,
    /// Backups of etcd.
    #[command(flatten, next_help_heading = "Backups of etcd")]
    pub etcd_backups: EtcdBackupArgs,
    /// Settings of all control planes.
    #[command(flatten, next_help_heading = "Control planes")]
    pub control_planes: ControlPlaneArgs,
    /// Images and registries.
    #[command(flatten, next_help_heading = "Images")]
    pub images: ImageArgs,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Which of several replicas acts.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Where private link services of private hosted clusters on Azure are made.
#[derive(Debug, Args)]
pub struct AzurePrivateLinkArgs {
    /// Resource group of the management cluster's load balancers, in which the operator manages private link services of
    /// private hosted clusters. Without it, new private clusters on Azure are refused.
    #[arg(long, value_name = "NAME", env = "AZURE_RESOURCE_GROUP")]
    pub azure_resource_group: Option<String>,
    /// Subscription of that resource group. Default: the one in --azure-credentials-file.
    #[arg(long, value_name = "ID", env = "AZURE_SUBSCRIPTION_ID")]
    pub azure_subscription_id: Option<String>,
    /// Azure cloud of that subscription, and of the one in --scale-from-zero-creds.
    #[arg(
        long,
        value_name = "NAME",
        env = "AZURE_CLOUD_NAME",
        default_value = "AzurePublicCloud"
    )]
    pub azure_cloud_name: String,
    /// File with the Azure credentials of the operator for private link services: JSON with subscriptionId, tenantId,
    /// clientId and clientSecret. Default: the credentials of the environment.
    #[arg(long, value_name = "FILE", env = "AZURE_CREDENTIALS_FILE")]
    pub azure_credentials_file: Option<PathBuf>,
}

/// Where service attachments of hosted clusters on Google Cloud are made.
#[derive(Debug, Args)]
pub struct GcpPrivateServiceConnectArgs {
    /// Project of the management cluster, in which the operator manages service attachments of hosted clusters on Google
    /// Cloud. Requires --gcp-region. Without them, new clusters on Google Cloud are refused.
    #[arg(long, value_name = "ID", env = "GCP_PROJECT")]
    pub gcp_project: Option<String>,
    /// Region of the management cluster.
    #[arg(long, value_name = "NAME", env = "GCP_REGION")]
    pub gcp_region: Option<String>,
}

/// Where the documents are by which AWS validates tokens of hosted clusters.
#[derive(Debug, Args)]
pub struct OidcStorageArgs {
    /// Bucket of S3 for the OIDC documents of hosted clusters on AWS, which everyone can read. Requires the other two.
    #[arg(long, value_name = "NAME")]
    pub oidc_storage_provider_s3_bucket_name: Option<String>,
    /// Region of the bucket.
    #[arg(long, value_name = "REGION")]
    pub oidc_storage_provider_s3_region: Option<String>,
    /// File with the credentials for it: a shared credentials file whose default profile may put, get and delete objects.
    #[arg(long, value_name = "FILE")]
    pub oidc_storage_provider_s3_credentials: Option<PathBuf>,
}

/// How HCPEtcdBackups of the technology preview are carried out.
#[derive(Debug, Args)]
pub struct EtcdBackupArgs {
    /// Succeeded HCPEtcdBackups to keep for each hosted cluster: older ones are deleted, but not what they stored. 0 or less
    /// keeps all.
    #[arg(
        long,
        value_name = "N",
        env = "ETCD_BACKUP_MAX_COUNT",
        default_value_t = 5,
        allow_negative_numbers = true
    )]
    pub etcd_backup_max_count: i64,
    /// Let backups of all hosted clusters use each Secret of the operator's namespace that has the label
    /// hypershift.openshift.io/etcd-backup=true, as the copies of the OADP plugin have. For management clusters with a single
    /// tenant. Without it, the annotation hypershift.openshift.io/etcd-backup-consumers of a Secret lists who may use it.
    #[arg(
        long,
        value_name = "BOOL",
        env = "ETCD_BACKUP_SHARED_CREDENTIALS",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub etcd_backup_shared_credentials: bool,
}

/// How the capacity of a machine is known before there is one.
#[derive(Debug, Args)]
pub struct ScaleFromZeroArgs {
    /// Cloud that says how many processors and how much memory a machine has, so that the cluster autoscaler can add the
    /// first machine of a NodePool. Requires --scale-from-zero-creds.
    #[arg(long, value_enum, value_name = "CLOUD")]
    pub scale_from_zero_provider: Option<CapacityProvider>,
    /// File with the credentials for it: for aws, a shared credentials file whose default profile may describe instance
    /// types; for azure, JSON with subscriptionId, tenantId, clientId and clientSecret of an application that may read the
    /// subscription.
    #[arg(long, value_name = "FILE")]
    pub scale_from_zero_creds: Option<PathBuf>,
}

/// Clouds that say what a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CapacityProvider {
    /// EC2, in the region of the hosted cluster
    Aws,
    /// Azure Resource Manager of --azure-cloud-name, for the location of the hosted cluster
    Azure,
}

/// Images and registries.
#[derive(Debug, Args)]
pub struct ImageArgs {
    /// Image of the proxy sidecar for controllers that use Cluster API. Required for hosted clusters on private types.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_CAPI_PROXY")]
    pub capi_proxy_image: Option<String>,
    /// Image of this operator, which control planes with AutoNode run, too. Required for these.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_HYPERSHIFT_OPERATOR")]
    pub hypershift_operator_image: Option<String>,
    /// Images of the control-plane-operator.
    #[command(flatten)]
    pub operator: OperatorImageArgs,
    /// Image of Cluster API's core controllers, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_CLUSTER_API")]
    pub cluster_api_image: Option<String>,
    /// Image of the Cluster API provider for AWS, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_AWS_CAPI_PROVIDER")]
    pub aws_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for Azure, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_AZURE_CAPI_PROVIDER")]
    pub azure_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for Agent. No release includes it.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_AGENT_CAPI_PROVIDER")]
    pub agent_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for KubeVirt. No release includes it.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_KUBEVIRT_CAPI_PROVIDER")]
    pub kubevirt_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for Power Virtual Server, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_POWERVS_CAPI_PROVIDER")]
    pub powervs_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for Google Cloud, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_GCP_CAPI_PROVIDER")]
    pub gcp_capi_provider_image: Option<String>,
    /// Image of the Cluster API provider for OpenStack, in place of the one of the release.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_OPENSTACK_CAPI_PROVIDER")]
    pub openstack_capi_provider_image: Option<String>,
    /// Image of the controllers of OpenStack's images, in place of the one of the release.
    #[arg(
        long,
        value_name = "IMAGE",
        env = "IMAGE_OPENSTACK_RESOURCE_CONTROLLER"
    )]
    pub openstack_resource_controller_image: Option<String>,
    /// Registries.
    #[command(flatten)]
    pub releases: ReleaseArgs,
}

// === impl RunArgs ===

impl RunArgs {
    /// How often all HostedClusters are evaluated again.
    pub fn resync(&self) -> Duration {
        self.resync_period.0
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// As the operator renders it.
    #[test]
    fn the_command_line_of_karpenter_operator_is_accepted() {
        let args = [
            "hypershift-operator",
            "karpenter-operator",
            "--target-kubeconfig=/mnt/kubeconfig/kubeconfig",
            "--namespace=clusters-dev",
            "--hosted-control-plane=dev",
            "--control-plane-operator-image=images.example.com/operator:v1",
            "--ignition-endpoint=ignition.dev.example.com",
            "--capi-types=private",
        ];
        let Command::KarpenterOperator(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        assert_eq!(args.capi_types, CapiTypes::Private);
        assert_eq!(args.metrics_addr, Address::All(8080));
    }

    #[test]
    fn flags_of_a_pod_are_taken() {
        let args = [
            "hypershift-operator",
            "run",
            "--scope=legacy",
            "--namespace=hypershift",
            "--pod-name=operator-1",
            "--metrics-addr=127.0.0.1:0",
            "--leader-elect=false",
        ];
        let Command::Run(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        assert_eq!(args.scope, Scope::Legacy);
        assert!(!args.leader.leader_elect);
        assert_eq!(args.resync(), Duration::from_secs(30));
    }
}
