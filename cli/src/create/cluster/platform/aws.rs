//! Platform AWS: instances of Amazon EC2, on infrastructure that exists.
//!
//! Network and IAM roles are described by two files, `--infra-json` and `--iam-json`, in the form in which
//! infrastructure tools of HyperShift write them; what they say can also be given by flags.

mod infrastructure;
mod unsupported;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{Parts, Platform, Pool};
use crate::Usage;
use crate::create::cluster::args::{CommonArgs, name_of};
use crate::create::cluster::services::Services;
use crate::create::text;
use infrastructure::{Identity, Infrastructure};
use unsupported::UnsupportedArgs;

/// Flags of platform AWS.
#[derive(Debug, Clone, Args)]
pub(crate) struct AwsArgs {
    /// JSON file that describes the network: vpcID, zones with their subnets, securityGroupID, hosted zones
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    /// JSON file that describes the IAM roles, the issuer of tokens and the instance profile
    #[arg(long, value_name = "FILE")]
    iam_json: Option<PathBuf>,

    /// Region, if the infrastructure file does not name it
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Access to the endpoints of the control plane
    #[arg(long, value_enum, default_value_t = EndpointAccess::Public)]
    endpoint_access: EndpointAccess,

    /// Tag for all AWS resources of the cluster. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    additional_tags: Vec<String>,

    /// ARN of the KMS key for encrypting Secrets [default: a generated key]
    #[arg(long, value_name = "ARN")]
    kms_key_arn: Option<String>,

    /// URL of the issuer of tokens, if the IAM file does not name it
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,

    /// File with the private key (PEM) that signs service account tokens, if there is one for the issuer
    #[arg(long, value_name = "FILE")]
    sa_token_issuer_private_key_path: Option<PathBuf>,

    /// The release has images of every architecture
    #[arg(long)]
    multi_arch: bool,

    #[command(flatten)]
    nodes: AwsNodeArgs,

    #[command(flatten)]
    unsupported: UnsupportedArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AwsNodeArgs {
    /// Type of the instances
    #[arg(long, value_name = "TYPE", default_value = "m5.large")]
    pub(in crate::create) instance_type: String,

    /// Type of the root volumes
    #[arg(long, value_name = "TYPE", default_value = "gp3")]
    root_volume_type: String,

    /// Size of the root volumes in GiB
    #[arg(long, value_name = "GIB", default_value_t = 120, value_parser = clap::value_parser!(i64).range(8..))]
    root_volume_size: i64,

    /// IOPS of the root volumes
    #[arg(long, value_name = "N")]
    root_volume_iops: Option<i64>,

    /// ARN of the KMS key for encrypting root volumes
    #[arg(long, value_name = "ARN")]
    root_volume_kms_key: Option<String>,
}

/// From where the control plane is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum EndpointAccess {
    /// From the internet
    Public,
    /// From the internet, and by nodes through a private endpoint
    PublicAndPrivate,
    /// From the VPC alone
    Private,
}

impl Platform for AwsArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        self.unsupported.refuse()?;
        let network = Infrastructure::read(described(
            "--infra-json",
            "network",
            self.infra_json.as_deref(),
        )?)?;
        let identity = Identity::read(described(
            "--iam-json",
            "IAM roles",
            self.iam_json.as_deref(),
        )?)?;
        let region = self.region(&network)?;
        let platform = json!({ "type": "AWS", "aws": self.aws(&network, &identity, &region)? });
        let services = Services::ingress(common.external_dns_domain.as_deref());
        let pools = network.zones.iter().map(|zone| Pool {
            suffix: Some(zone.name.clone()),
            platform: self.nodes.platform(
                &zone.subnet_id,
                identity.profile_name.as_deref(),
                network.security_group_id.as_deref(),
            ),
        });
        let mut spec = Vec::new();
        if let Some(url) = self
            .oidc_issuer_url
            .as_ref()
            .or(identity.issuer_url.as_ref())
        {
            spec.push(("issuerURL", json!(url)));
        }
        let mut objects = Vec::new();
        if let Some(path) = &self.sa_token_issuer_private_key_path {
            let name = format!("{}-sa-signing-key", common.name);
            spec.push(("serviceAccountSigningKey", json!({ "name": name })));
            objects.push(signing_key(common, &name, path)?);
        }
        if let Some(encryption) = self.encryption(&identity, &region)? {
            spec.push(("secretEncryption", encryption));
        }
        Ok(Parts {
            spec,
            objects,
            zones: network.hosted_zones(),
            infra_id: network.infra_id.clone(),
            base_domain: network.base_domain.clone(),
            machine_cidrs: network.machine_cidr.iter().cloned().collect(),
            ..Parts::new(platform, services, pools.collect())
        })
    }
}

// === impl AwsArgs ===

impl AwsArgs {
    fn region(&self, network: &Infrastructure) -> Result<String, Usage> {
        let region = self.region.as_ref().or(network.region.as_ref());
        region
            .cloned()
            .ok_or_else(|| Usage::new(&"the file of --infra-json names no region: give --region"))
    }

    /// `spec.platform.aws` of the HostedCluster.
    fn aws(
        &self,
        network: &Infrastructure,
        identity: &Identity,
        region: &str,
    ) -> anyhow::Result<Value> {
        let first = network.zones.first();
        let tags = text::pairs("--additional-tags", &self.additional_tags)?;
        let tags: Vec<_> = tags
            .iter()
            .map(|(key, value)| json!({ "key": key, "value": value }))
            .collect();
        let mut aws = json!({
            "region": region,
            "rolesRef": identity.roles,
            "endpointAccess": name_of(self.endpoint_access),
            "multiArch": self.multi_arch,
            "cloudProviderConfig": {
                "vpc": network.vpc_id,
                "zone": first.map(|zone| &zone.name),
                "subnet": { "id": first.map(|zone| &zone.subnet_id) },
            },
        });
        if !tags.is_empty() {
            aws["resourceTags"] = json!(tags);
        }
        Ok(aws)
    }

    /// `spec.secretEncryption`, if it is by a key of KMS.
    fn encryption(&self, identity: &Identity, region: &str) -> Result<Option<Value>, Usage> {
        let Some(arn) = self.kms_key_arn.as_ref().or(identity.kms_key_arn.as_ref()) else {
            return Ok(None);
        };
        let role = identity.kms_provider_role_arn.as_ref().ok_or_else(|| {
            Usage::new(
                &"a KMS key is used through a role: name it as kmsProviderRoleARN in the file of --iam-json",
            )
        })?;
        Ok(Some(json!({
            "type": "kms",
            "kms": {
                "provider": "AWS",
                "aws": { "region": region, "activeKey": { "arn": arn }, "auth": { "awsKms": role } },
            },
        })))
    }
}

/// The file that describes what this command does not create.
fn described<'a>(flag: &str, what: &str, file: Option<&'a Path>) -> Result<&'a Path, Usage> {
    file.ok_or_else(|| {
        Usage::new(&format!(
            "{flag} FILE is needed: this command creates no {what} on AWS yet, so describe the existing ones (fields: \
             docs/clusters.md)"
        ))
    })
}

fn signing_key(common: &CommonArgs, name: &str, path: &Path) -> anyhow::Result<Value> {
    let key = text::file("--sa-token-issuer-private-key-path", path)?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": common.namespace, "name": name },
        "type": "Opaque",
        "stringData": { "key": key },
    }))
}

// === impl AwsNodeArgs ===

impl AwsNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(
        &self,
        subnet: &str,
        profile: Option<&str>,
        security_group: Option<&str>,
    ) -> Value {
        let mut aws = json!({
            "instanceType": self.instance_type,
            "subnet": { "id": subnet },
            "rootVolume": self.root_volume(),
        });
        if let Some(profile) = profile {
            aws["instanceProfile"] = json!(profile);
        }
        if let Some(id) = security_group {
            aws["securityGroups"] = json!([{ "id": id }]);
        }
        json!({ "type": "AWS", "aws": aws })
    }

    fn root_volume(&self) -> Value {
        let mut volume = json!({ "size": self.root_volume_size, "type": self.root_volume_type });
        if let Some(iops) = self.root_volume_iops {
            volume["iops"] = json!(iops);
        }
        if let Some(key) = &self.root_volume_kms_key {
            volume["encrypted"] = json!(true);
            volume["encryptionKey"] = json!(key);
        }
        volume
    }
}
