//! Platform AWS: instances of Amazon EC2.
//!
//! Network and IAM roles are described by two files, `--infra-json` and `--iam-json`, in the form in which `create infra aws`
//! and `create iam aws` write them; what they say can also be given by flags. Without a file, what it describes is created.

mod from_nothing;
mod infrastructure;

use std::collections::BTreeMap;
use std::path::PathBuf;

use api::annotations::cluster::AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE;
use clap::Args;
use serde_json::{Value, json};

use super::{Parts, Platform, Pool, issuer_parts};
use crate::Usage;
use crate::create::cluster::args::{Arch, CommonArgs, RunArgs, name_of};
use crate::create::cluster::given::Given;
use crate::create::cluster::options::Options;
use crate::create::cluster::services::Services;
use crate::create::cluster::values::EndpointAccess;
use crate::create::text;
use crate::hosted::Hosted;
use crate::infra::aws::{
    CredentialArgs, OwnerArgs, PrivateKey, REGION, RoleArgs, SecretArgs, SecretValues, VpcArgs,
};
use infrastructure::{Identity, Infrastructure, Proxy};

/// Machines get public addresses.
const PUBLIC_IPS: &str = "hypershift.openshift.io/aws-machine-public-ips";

/// Flags of platform AWS.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("pull_secret", |arg| arg.required(false).required_unless_present("secret_creds")))]
pub(crate) struct AwsArgs {
    /// JSON file that describes the network: vpcID, zones with their subnets, securityGroupID, hosted zones [default: a network
    /// is created]
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    /// JSON file that describes the IAM roles, the issuer of tokens and the instance profile [default: they are created]
    #[arg(long, value_name = "FILE")]
    iam_json: Option<PathBuf>,

    /// Region [default: that of --infra-json, or us-east-1]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Access to the endpoints of the control plane
    #[arg(long, value_enum, default_value_t = EndpointAccess::Public)]
    endpoint_access: EndpointAccess,

    /// Tags of all AWS resources of the cluster, separated by commas
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
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

    /// Have Karpenter make nodes as pods need them (AutoNode), by a role that is created or that the IAM file names
    #[arg(long)]
    auto_node: bool,

    /// Bucket in the region for the documents of the issuer of tokens, if IAM roles are created [default: one is created]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["iam_json", "oidc_issuer_url"])]
    oidc_storage_provider_s3_bucket_name: Option<String>,

    #[command(flatten)]
    network: VpcArgs,

    #[command(flatten)]
    credentials: CredentialArgs,

    #[command(flatten)]
    secret: SecretArgs,

    #[command(flatten)]
    owner: OwnerArgs,

    #[command(flatten)]
    roles: RoleArgs,

    #[command(flatten)]
    nodes: AwsNodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AwsNodeArgs {
    /// Type of the instances [default: m5.large, or m6g.large for --arch arm64]
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,

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

impl Platform for AwsArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        self.check()?;
        let network = match &self.infra_json {
            Some(path) => Infrastructure::read(path)?,
            None => self.future_network(common)?,
        };
        let identity = match &self.iam_json {
            Some(path) => Identity::read(path)?,
            None => Identity::stand_in(self.owner.is_given())?,
        };
        if self.owner.is_given() && identity.shared_roles()?.is_none() {
            return Err(Usage::new(
                &"--iam-json names neither sharedIngressRoleARN nor sharedControlPlaneRoleARN, which a cluster in the VPC of \
                  --vpc-owner-aws-creds needs: write the file with create iam aws --vpc-owner-aws-creds",
            )
            .into());
        }
        if self.iam_json.is_none() {
            self.form(common, Some(&network))?;
        }
        let path = self.sa_token_issuer_private_key_path.as_deref();
        let key = path.map(|path| text::file("--sa-token-issuer-private-key-path", path));
        self.parts_of(common, &network, &identity, key.transpose()?.as_deref())
    }

    async fn given(&self, common: &CommonArgs, run: &RunArgs) -> anyhow::Result<Given> {
        let Some(name) = self.secret.name() else {
            return Ok(Given::default());
        };
        let hosted = Hosted::connect(&run.target.access()).await?;
        let secret = SecretValues::read(&hosted, &common.namespace, name).await?;
        self.given_by(common, secret)
    }

    async fn provide(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if self.infra_json.is_some() && self.iam_json.is_some() {
            return Ok(None);
        }
        Box::pin(self.create(common, options, run)).await
    }
}

// === impl AwsArgs ===

impl AwsArgs {
    /// What a Secret has in place of flags.
    pub(in crate::create::cluster) fn given_by(
        &self,
        common: &CommonArgs,
        secret: SecretValues,
    ) -> anyhow::Result<Given> {
        let base_domain = if common.base_domain.is_none() && self.infra_json.is_none() {
            Some(secret.required_base_domain()?)
        } else {
            secret.base_domain().map(str::to_owned)
        };
        let pull_secret = if common.pull_secret.is_none() {
            Some((secret.pull_secret_name(), secret.pull_secret()?))
        } else {
            None
        };
        Ok(Given {
            base_domain,
            pull_secret,
            ssh_key: secret.ssh_key(),
            credentials: Some(secret),
        })
    }

    /// Refuses flags of a network or of roles that exist.
    fn check(&self) -> Result<(), Usage> {
        if let Some(flag) = self.roles.given().filter(|_| self.iam_json.is_some()) {
            return Err(Usage::new(&format!(
                "{flag} is for roles that are created, and --iam-json describes some that exist: leave out one of them"
            )));
        }
        if self.owner.is_given() && self.infra_json.is_some() && self.iam_json.is_some() {
            return Err(Usage::new(
                &"--vpc-owner-aws-creds is for a network or for roles that are created, and --infra-json and --iam-json describe \
                  those that exist: leave out one of them",
            ));
        }
        let network = &self.network;
        let proxy = network.proxy.given();
        for (flag, given) in [
            (proxy.unwrap_or_default(), proxy.is_some()),
            ("--zones", !network.zones.is_empty()),
            ("--single-nat-gateway", network.single_nat_gateway),
            ("--public-only", network.public_only),
        ] {
            if given && self.infra_json.is_some() {
                return Err(Usage::new(&format!(
                    "{flag} is for a network that is created, and --infra-json describes one that exists: leave out one of \
                     them"
                )));
            }
        }
        Ok(())
    }

    /// The parts of a network and of roles; `key` signs tokens.
    fn parts_of(
        &self,
        common: &CommonArgs,
        network: &Infrastructure,
        identity: &Identity,
        key: Option<&str>,
    ) -> anyhow::Result<Parts> {
        let region = self.region(Some(network));
        let platform = json!({ "type": "AWS", "aws": self.aws(network, identity, region)? });
        let domain = common.external_dns_domain.as_deref();
        let services = Services::cloud(domain, self.endpoint_access);
        let pools = network.zones.iter().map(|zone| Pool {
            suffix: Some(zone.name.clone()),
            platform: self.nodes.platform(
                common.arch,
                &zone.subnet_id,
                identity.profile_name.as_deref(),
                network.security_group_id.as_deref(),
            ),
        });
        let issuer = self.oidc_issuer_url.as_ref();
        let issuer = issuer.or(identity.issuer_url.as_ref());
        let (mut spec, mut objects) = issuer_parts(common, issuer, key);
        let proxy = network.proxy().map(|it| proxy_parts(common, &it));
        let (proxy, authorities) = proxy.unzip();
        objects.extend(authorities.flatten());
        let key = network.proxy_key();
        objects.extend(key.map(|key| proxy_key_secret(common, key)));
        if let Some(encryption) = self.encryption(identity, region)? {
            spec.push(("secretEncryption", encryption));
        }
        if let Some(auto_node) = self.auto_node(identity)? {
            spec.push(("autoNode", auto_node));
        }
        let public_ips = network.public_only.then(|| (PUBLIC_IPS, "true".to_owned()));
        let profile = identity.profile_name.as_ref().filter(|_| self.auto_node);
        let profile = profile.map(|it| (AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE.key(), it.clone()));
        Ok(Parts {
            spec,
            objects,
            annotations: public_ips.into_iter().chain(profile).collect(),
            zones: network.hosted_zones(),
            infra_id: network.infra_id.clone(),
            base_domain: network.base_domain.clone(),
            machine_cidrs: network.machine_cidr.iter().cloned().collect(),
            proxy,
            ..Parts::new(platform, services, pools.collect())
        })
    }

    /// Tags of all resources.
    fn tags(&self) -> Result<BTreeMap<String, String>, Usage> {
        let mut tags = text::pairs("--additional-tags", &self.additional_tags)?;
        self.roles.add_tags(&mut tags);
        Ok(tags)
    }

    /// The region, which `network` may name.
    fn region<'a>(&'a self, network: Option<&'a Infrastructure>) -> &'a str {
        let described = network.and_then(|network| network.region.as_deref());
        self.region.as_deref().or(described).unwrap_or(REGION)
    }

    /// `spec.platform.aws` of the HostedCluster.
    fn aws(
        &self,
        network: &Infrastructure,
        identity: &Identity,
        region: &str,
    ) -> anyhow::Result<Value> {
        let first = network.zones.first();
        let tags = self.tags()?;
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
        if let Some(roles) = identity.shared_roles()? {
            let zone = network.local_zone().ok_or_else(|| {
                Usage::new(&"--infra-json names no localZoneID, which a cluster in a shared VPC needs: add it")
            })?;
            aws["sharedVPC"] = json!({
                "rolesRef": { "ingressARN": roles.ingress, "controlPlaneARN": roles.control_plane },
                "localZoneID": zone,
            });
            aws["additionalAllowedPrincipals"] = json!([roles.control_plane]);
        }
        Ok(aws)
    }

    /// `spec.autoNode`, if Karpenter makes nodes.
    fn auto_node(&self, identity: &Identity) -> Result<Option<Value>, Usage> {
        if !self.auto_node {
            return Ok(None);
        }
        let role = identity.karpenter_role_arn.as_ref().ok_or_else(|| {
            Usage::new(
                &"--auto-node needs a role of Karpenter: name it as karpenterRoleARN in the file of --iam-json, which create \
                  iam aws --auto-node writes",
            )
        })?;
        Ok(Some(json!({ "provisionerConfig": {
            "name": "Karpenter",
            "karpenter": { "platform": "AWS", "aws": { "roleARN": role } },
        } })))
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

/// `spec.configuration.proxy`, and the `ConfigMap` with the certificates of the proxy.
fn proxy_parts(common: &CommonArgs, proxy: &Proxy) -> (Value, Option<Value>) {
    let mut fields = json!({ "httpsProxy": proxy.https });
    if let Some(http) = &proxy.http {
        fields["httpProxy"] = json!(http);
    }
    let authorities = proxy.ca.as_ref().map(|ca| {
        let name = format!("{}-proxy-ca", common.name);
        fields["trustedCA"] = json!({ "name": name });
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "namespace": common.namespace, "name": name },
            "data": { "ca-bundle.crt": ca },
        })
    });
    (fields, authorities)
}

/// The Secret with the key with which users log in to the proxy.
fn proxy_key_secret(common: &CommonArgs, key: &PrivateKey) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": common.namespace,
            "name": format!("{}-proxy-ssh-key", common.name),
        },
        "type": "Opaque",
        "data": { "privatekey": key.in_base64() },
    })
}

// === impl AwsNodeArgs ===

impl AwsNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(
        &self,
        arch: Arch,
        subnet: &str,
        profile: Option<&str>,
        security_group: Option<&str>,
    ) -> Value {
        let usual = match arch {
            Arch::Arm64 => "m6g.large",
            Arch::Amd64 | Arch::Ppc64le | Arch::S390x => "m5.large",
        };
        let mut aws = json!({
            "instanceType": self.instance_type.as_deref().unwrap_or(usual),
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
