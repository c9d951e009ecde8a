//! The command line, resolved before anything is started.

mod private_links;
mod scale_from_zero;

use std::path::PathBuf;
use std::time::Duration;

use api::features::FeatureSet;
use api::group::GroupTable;
use api::hypershift::v1beta1::monitoring::MetricsSet;
use ipnet::IpNet;
use ownership::Scope;
use payload::{OperatorImages, Options, Overrides};
use support::args::Address;
use support::azure;
use support::azure_resources::Group;
use support::google_resources::Region;
use support::lease;

use crate::args::{ControlPlaneArgs, EtcdBackupArgs, ImageArgs, OidcStorageArgs, RunArgs};
use crate::error::Fatal;
pub(crate) use scale_from_zero::ScaleFromZero;

/// Lease of the operator of private types. The name is that of releases before them, so that an upgrade hands over.
const LEASE: &str = "hypershift-operator-leader-elect";
/// Lease of operator-legacy.
pub(crate) const LEGACY_LEASE: &str = "hypershift-operator-legacy-leader-elect";

/// What to run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) scope: Scope,
    pub(crate) namespace: String,
    pub(crate) metrics_addr: Address,
    pub(crate) legacy_deployment: String,
    pub(crate) resync: Duration,
    pub(crate) review: Duration,
    pub(crate) images: Images,
    pub(crate) cloud: Cloud,
    pub(crate) releases: Options,
    pub(crate) drain: Duration,
    pub(crate) groups: GroupTable,
    pub(crate) migration: MigrationSettings,
    pub(crate) etcd_backups: EtcdBackups,
    pub(crate) lease: lease::Settings,
    pub(crate) leader_elect: bool,
}

/// How migrations are done, according to flags.
#[derive(Debug, Clone)]
pub(crate) struct MigrationSettings {
    /// Maximum number of concurrent migrations. With 0, not even those in progress continue.
    pub(crate) concurrency: usize,
    /// How long a cluster has to be healthy before its migration is committed.
    pub(crate) health_window: Duration,
    /// The groups that are moved.
    pub(crate) groups: GroupTable,
}

/// How HCPEtcdBackups are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EtcdBackups {
    /// The operator's own namespace, which has the Jobs and the Secrets with credentials.
    pub(crate) namespace: String,
    /// Succeeded backups to keep for each hosted cluster; `None` keeps all.
    pub(crate) max_count: Option<usize>,
    /// Whether all hosted clusters may use the Secrets that are labelled for backups.
    pub(crate) shares_credentials: bool,
}

/// Images that this operator selects, and other settings that it passes to control planes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Images {
    /// The proxy beside controllers that speak Cluster API.
    pub(crate) capi_proxy: Option<String>,
    /// This operator itself, for programs of it in control planes.
    pub(crate) own: Option<String>,
    /// The control-plane-operator, where the release's cannot be run.
    pub(crate) operator: OperatorImages,
    /// Cluster API's core controllers, in place of the release's.
    pub(crate) cluster_api: Option<String>,
    /// Cluster API's provider for AWS, in place of the release's.
    pub(crate) aws_provider: Option<String>,
    /// Cluster API's provider for Azure, in place of the release's.
    pub(crate) azure_provider: Option<String>,
    /// Cluster API's provider for Agent.
    pub(crate) agent_provider: Option<String>,
    /// Cluster API's provider for KubeVirt.
    pub(crate) kubevirt_provider: Option<String>,
    /// Cluster API's provider for Power Virtual Server, in place of the release's.
    pub(crate) power_vs_provider: Option<String>,
    /// Cluster API's provider for Google Cloud, in place of the release's.
    pub(crate) gcp_provider: Option<String>,
    /// Cluster API's provider for OpenStack, in place of the release's.
    pub(crate) openstack_provider: Option<String>,
    /// Controllers of OpenStack's images, in place of the release's.
    pub(crate) resource_controller: Option<String>,
    /// Which metrics of control planes are collected, where a cluster does not say so itself.
    pub(crate) metrics_set: Option<MetricsSet>,
    /// Settings of all control planes.
    pub(crate) control_planes: ControlPlanes,
    /// Registries that are replaced by others.
    pub(crate) overrides: Overrides,
    /// Registries that are spoken to without TLS.
    pub(crate) insecure: Vec<String>,
}

/// Settings of all control planes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ControlPlanes {
    /// Networks that their pods must not reach, in place of the addresses of the management cluster's API server.
    pub(crate) blocked: Vec<IpNet>,
    /// Whether OpenShift's own monitoring watches their namespaces.
    pub(crate) platform_monitoring: bool,
    /// What counts as a day in the lifetimes of break-glass certificates.
    pub(crate) cert_rotation_scale: Option<String>,
    /// Whether cluster-version-operators read metrics of the management cluster.
    pub(crate) version_metrics: bool,
    /// URL of the Prometheus that they read, if it is not the default one.
    pub(crate) version_metrics_url: Option<String>,
}

/// The bucket with documents by which AWS validates tokens of hosted clusters, and how this operator writes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OidcStorage {
    pub(crate) bucket: String,
    pub(crate) region: String,
    /// A shared credentials file, which is read for each request: it may be replaced.
    pub(crate) credentials: PathBuf,
}

/// Where private link services of clusters on Azure are made, and how this operator makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AzurePrivateLink {
    pub(crate) cloud: azure::Cloud,
    /// The name of the cloud, as objects have it.
    pub(crate) cloud_name: String,
    /// The resource group of the load balancers.
    pub(crate) group: Group,
    /// A file, which is read for each pass: it may be replaced.
    pub(crate) credentials: Option<PathBuf>,
}

/// Cloud settings of this operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cloud {
    /// The feature set of the operator, which decides about platforms.
    pub(crate) features: FeatureSet,
    /// The region of AWS that it works in.
    pub(crate) aws_region: Option<String>,
    /// Its credentials on AWS.
    pub(crate) aws_credentials: Option<PathBuf>,
    /// Where private link services of clusters on Azure are made, if they are.
    pub(crate) azure_private_link: Option<AzurePrivateLink>,
    /// Where service attachments of clusters on Google Cloud are made, if they are.
    pub(crate) gcp_private_service_connect: Option<Region>,
    /// The managed service that runs this operator, if any.
    pub(crate) managed_service: Option<String>,
    /// Client ID of the identity that reads certificates of managed identities from key vaults of Azure.
    pub(crate) azure_key_vault_client_id: Option<String>,
    /// The bucket with documents by which AWS validates tokens of hosted clusters.
    pub(crate) oidc: Option<OidcStorage>,
    /// The cloud that says what a machine has, for NodePools without machines.
    pub(crate) scale_from_zero: Option<ScaleFromZero>,
}

// === impl Config ===

impl Config {
    /// Validates combinations of flags.
    pub(crate) fn new(args: &RunArgs) -> Result<Self, Fatal> {
        let usage = |message: String| Fatal::Usage { message };
        let mut groups = GroupTable::default();
        for pair in &args.groups {
            groups = groups
                .with(pair.clone())
                .map_err(|error| usage(format!("--group {pair}: {error}")))?;
        }
        let lease = lease_settings(args);
        if args.leader.leader_elect {
            lease
                .check()
                .map_err(|problem| usage(format!("{problem}: see --leader-elect-*")))?;
        }
        Ok(Self {
            scope: args.scope,
            namespace: args.namespace.clone(),
            metrics_addr: args.metrics_addr,
            legacy_deployment: args.legacy_deployment.clone(),
            resync: args.resync(),
            review: args.review_period.0,
            images: Images {
                metrics_set: args.metrics_set.map(MetricsSet::from),
                control_planes: control_planes(&args.control_planes),
                ..images(&args.images)?
            },
            cloud: Cloud {
                features: args.feature_set,
                aws_region: given(args.aws_region.as_ref()),
                aws_credentials: args
                    .aws_shared_credentials_file
                    .clone()
                    .filter(|it| !it.as_os_str().is_empty()),
                azure_private_link: private_links::azure(
                    &args.azure_private_link,
                    args.managed_service.as_deref(),
                )?,
                gcp_private_service_connect: private_links::gcp(&args.gcp_private_service_connect)?,
                managed_service: given(args.managed_service.as_ref()),
                azure_key_vault_client_id: given(args.azure_key_vault_client_id.as_ref()),
                oidc: oidc_storage(&args.oidc_storage)?,
                scale_from_zero: scale_from_zero::settings(
                    &args.scale_from_zero,
                    &args.azure_private_link.azure_cloud_name,
                )?,
            },
            etcd_backups: etcd_backups(&args.etcd_backups, &args.namespace),
            releases: args.images.releases.options().map_err(Fatal::file)?,
            drain: args.drain_timeout.0,
            migration: MigrationSettings {
                concurrency: args.migration_concurrency,
                health_window: args.migration_health_period.0,
                groups: groups.clone(),
            },
            groups,
            lease,
            leader_elect: args.leader.leader_elect,
        })
    }
}

fn images(args: &ImageArgs) -> Result<Images, Fatal> {
    Ok(Images {
        capi_proxy: args.capi_proxy_image.clone(),
        own: given(args.hypershift_operator_image.as_ref()),
        operator: args.operator.images().map_err(Fatal::file)?,
        cluster_api: given(args.cluster_api_image.as_ref()),
        aws_provider: given(args.aws_capi_provider_image.as_ref()),
        azure_provider: args.azure_capi_provider_image.clone(),
        agent_provider: args.agent_capi_provider_image.clone(),
        kubevirt_provider: args.kubevirt_capi_provider_image.clone(),
        power_vs_provider: args.powervs_capi_provider_image.clone(),
        gcp_provider: args.gcp_capi_provider_image.clone(),
        openstack_provider: args.openstack_capi_provider_image.clone(),
        resource_controller: given(args.openstack_resource_controller_image.as_ref()),
        metrics_set: None,
        control_planes: ControlPlanes::default(),
        overrides: Overrides::new(args.releases.registry_overrides.clone()),
        insecure: args.releases.registries.insecure_registries.clone(),
    })
}

fn etcd_backups(args: &EtcdBackupArgs, namespace: &str) -> EtcdBackups {
    let EtcdBackupArgs {
        etcd_backup_max_count,
        etcd_backup_shared_credentials,
    } = args;
    let count = usize::try_from(*etcd_backup_max_count).ok();
    EtcdBackups {
        namespace: namespace.to_owned(),
        max_count: count.filter(|count| *count > 0),
        shares_credentials: *etcd_backup_shared_credentials,
    }
}

fn control_planes(args: &ControlPlaneArgs) -> ControlPlanes {
    let ControlPlaneArgs {
        hcp_egress_block_cidrs,
        enable_ocp_cluster_monitoring,
        cert_rotation_scale,
        enable_cvo_management_cluster_metrics_access,
        cvo_prometheus_url,
    } = args;
    ControlPlanes {
        blocked: hcp_egress_block_cidrs.clone(),
        platform_monitoring: *enable_ocp_cluster_monitoring,
        cert_rotation_scale: cert_rotation_scale.clone(),
        version_metrics: *enable_cvo_management_cluster_metrics_access,
        version_metrics_url: given(cvo_prometheus_url.as_ref()),
    }
}

/// A flag that is given and not empty: environments set variables to nothing.
fn given(flag: Option<&String>) -> Option<String> {
    flag.filter(|it| !it.is_empty()).cloned()
}

/// The bucket for documents, if there is one.
fn oidc_storage(args: &OidcStorageArgs) -> Result<Option<OidcStorage>, Fatal> {
    let usage = |message: String| Fatal::Usage { message };
    let OidcStorageArgs {
        oidc_storage_provider_s3_bucket_name,
        oidc_storage_provider_s3_region,
        oidc_storage_provider_s3_credentials,
    } = args;
    let bucket = given(oidc_storage_provider_s3_bucket_name.as_ref());
    let region = given(oidc_storage_provider_s3_region.as_ref());
    match (bucket, region, oidc_storage_provider_s3_credentials) {
        (None, None, None) => Ok(None),
        (Some(bucket), Some(region), Some(credentials)) => {
            if !support::aws::is_region(&region) {
                return Err(usage(format!(
                    "--oidc-storage-provider-s3-region {region:?} is not a region (for example us-east-1)"
                )));
            }
            let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            if !bucket.chars().all(is_name) {
                return Err(usage(format!(
                    "--oidc-storage-provider-s3-bucket-name {bucket:?} is not the name of a bucket without dots, which issuer \
                     URLs need: it has lower-case letters, digits and dashes"
                )));
            }
            if !credentials.is_file() {
                return Err(usage(format!(
                    "--oidc-storage-provider-s3-credentials {} is not a file: mount the Secret with the credentials",
                    credentials.display()
                )));
            }
            Ok(Some(OidcStorage {
                bucket,
                region,
                credentials: credentials.clone(),
            }))
        }
        _ => Err(usage(
            "--oidc-storage-provider-s3-bucket-name, --oidc-storage-provider-s3-region and \
             --oidc-storage-provider-s3-credentials require each other: set all or none"
                .to_owned(),
        )),
    }
}

fn lease_settings(args: &RunArgs) -> lease::Settings {
    let name = match args.scope {
        Scope::Private | Scope::All => LEASE,
        Scope::Legacy => LEGACY_LEASE,
    };
    let leader = &args.leader;
    leader.settings(&args.namespace, name, &args.pod_name)
}

#[cfg(test)]
impl Config {
    /// The config from these flags.
    pub(crate) fn of_flags(flags: &[&str]) -> Result<Self, Fatal> {
        use clap::Parser as _;

        use crate::args::{Cli, Command};

        let fixed = [
            "hypershift-operator",
            "run",
            "--namespace=hypershift",
            "--pod-name=operator-1",
        ];
        let args = fixed.iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(args).unwrap().command else {
            panic!("another command");
        };
        Self::new(&args)
    }

    /// The config from default flags.
    pub(crate) fn for_tests(scope: Scope) -> Self {
        let flags = [
            "--scope=all",
            "--capi-proxy-image=images.example.com/capi-proxy:v1",
        ];
        let config = Self::of_flags(&flags).unwrap();
        Self { scope, ..config }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use api::hypershift::v1beta1::platform::PlatformType;

    use super::*;

    fn config(flags: &[&str]) -> Result<Config, Fatal> {
        Config::of_flags(flags)
    }

    #[test]
    fn operators_of_different_scope_use_different_leases() {
        let lease = |scope: &str| config(&[scope]).unwrap().lease.name;
        assert_ne!(lease("--scope=private"), lease("--scope=legacy"));
        assert_eq!(lease("--scope=private"), lease("--scope=all"));
    }

    #[test]
    fn an_invalid_operator_image_table_fails_startup() {
        let name = format!("hypershift-operator-{}-overrides.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let flag = format!("--control-plane-operator-overrides={}", path.display());
        let given = || config(&["--scope=private", &flag]);
        let refused = |given: Result<Config, Fatal>| given.unwrap_err().to_string();
        assert!(refused(given()).contains("overrides.yaml: No such file"));
        fs::write(&path, "platforms: {aws: {overrides: [{version: '4.14'}]}}").unwrap();
        assert!(refused(given()).contains("overrides.yaml: it is not of the form"));
        let entry = "{version: 4.14.9, cpoImage: images.example.com/operator:v1}";
        fs::write(
            &path,
            format!("platforms: {{aws: {{overrides: [{entry}]}}}}"),
        )
        .unwrap();
        let table = given().unwrap().images.operator.overrides;
        let version = "4.14.9".parse().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(table.image(PlatformType::Aws, &version).is_some());
    }

    #[test]
    fn backups_are_kept_as_flags_say() {
        for (flag, count, shares) in [
            ("--scope=all", Some(5), false),
            ("--etcd-backup-max-count=1", Some(1), false),
            ("--etcd-backup-max-count=0", None, false),
            ("--etcd-backup-max-count=-1", None, false),
            ("--etcd-backup-shared-credentials", Some(5), true),
            ("--etcd-backup-shared-credentials=false", Some(5), false),
        ] {
            let flags = if flag == "--scope=all" {
                vec![flag]
            } else {
                vec!["--scope=all", flag]
            };
            let found = config(&flags).unwrap().etcd_backups;
            let expected = EtcdBackups {
                namespace: "hypershift".to_owned(),
                max_count: count,
                shares_credentials: shares,
            };
            assert_eq!(found, expected, "{flag}");
        }
    }

    #[test]
    fn contradicting_flags_are_rejected() {
        for flags in [
            ["--scope=all", "--leader-elect-renew-deadline=20s"],
            ["--scope=all", "--leader-elect-retry-period=12s"],
            ["--scope=all", "--leader-elect-lease-duration=1500ms"],
            ["--scope=all", "--group=cluster.x-k8s.io=a.example.com"],
            ["--scope=all", "--scale-from-zero-provider=aws"],
            ["--scope=all", "--scale-from-zero-creds=/dev/null"],
        ] {
            let error = config(&flags).unwrap_err();
            assert!(matches!(error, Fatal::Usage { .. }), "{flags:?}: {error}");
        }
    }

    #[test]
    fn oidc_documents_need_a_bucket_with_a_region_and_credentials() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let credentials = format!(
            "--oidc-storage-provider-s3-credentials={}",
            file.path().display()
        );
        let bucket = |name: &str| format!("--oidc-storage-provider-s3-bucket-name={name}");
        let region = |name: &str| format!("--oidc-storage-provider-s3-region={name}");
        let absent = "--oidc-storage-provider-s3-credentials=/does/not/exist".to_owned();
        let storage = OidcStorage {
            bucket: "documents".to_owned(),
            region: "us-east-1".to_owned(),
            credentials: file.path().to_owned(),
        };
        for (flags, expected) in [
            (vec![], Ok(None)),
            (
                vec![
                    bucket("documents"),
                    region("us-east-1"),
                    credentials.clone(),
                ],
                Ok(Some(storage)),
            ),
            (vec![bucket("documents")], Err("set all or none")),
            (
                vec![bucket("documents"), region("us-east-1")],
                Err("set all or none"),
            ),
            (vec![credentials.clone()], Err("set all or none")),
            (
                vec![
                    bucket("with.dots"),
                    region("us-east-1"),
                    credentials.clone(),
                ],
                Err("without dots"),
            ),
            (
                vec![bucket("documents"), region("a/b"), credentials.clone()],
                Err("is not a region"),
            ),
            (
                vec![bucket("documents"), region("us-east-1"), absent],
                Err("/does/not/exist is not a file"),
            ),
        ] {
            let all: Vec<_> = flags.iter().map(String::as_str).collect();
            let all = [&["--scope=all"][..], &all].concat();
            match (config(&all), expected) {
                (Ok(config), Ok(expected)) => assert_eq!(config.cloud.oidc, expected, "{flags:?}"),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{flags:?}: {error}");
                }
                (found, _) => panic!("{flags:?}: {found:?}"),
            }
        }
    }
}
