//! The two files that describe what a cluster finds on AWS.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Usage;
use crate::create::text;
use crate::infra::aws::{IdentityOutput, NetworkOutput, PrivateKey, Resources};

/// The network. Fields that are not listed are for other tools.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Infrastructure {
    pub(super) region: Option<String>,
    #[serde(rename = "infraID")]
    pub(super) infra_id: Option<String>,
    #[serde(rename = "machineCIDR", alias = "computeCIDR")]
    pub(super) machine_cidr: Option<String>,
    #[serde(rename = "vpcID")]
    pub(super) vpc_id: String,
    pub(super) zones: Vec<Zone>,
    #[serde(rename = "securityGroupID")]
    pub(super) security_group_id: Option<String>,
    pub(super) base_domain: Option<String>,
    #[serde(rename = "publicZoneID")]
    public_zone_id: Option<String>,
    #[serde(rename = "privateZoneID")]
    private_zone_id: Option<String>,
    #[serde(rename = "localZoneID")]
    local_zone_id: Option<String>,
    #[serde(default)]
    pub(super) public_only: bool,
    /// URL of a proxy through which the cluster reaches the internet.
    proxy_addr: Option<String>,
    /// URL of a proxy with TLS, for HTTPS.
    secure_proxy_addr: Option<String>,
    /// PEM certificates of that proxy.
    #[serde(rename = "proxyCA")]
    proxy_ca: Option<String>,
    /// The key with which users log in to the proxy.
    #[serde(rename = "proxyPrivateSSHKey")]
    proxy_key: Option<PrivateKey>,
}

/// A proxy through which the cluster reaches the internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) http: Option<String>,
    pub(super) https: String,
    pub(super) ca: Option<String>,
}

/// An availability zone.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Zone {
    pub(super) name: String,
    #[serde(rename = "subnetID")]
    pub(super) subnet_id: String,
}

/// Who components of the cluster are on AWS.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity {
    pub(super) profile_name: Option<String>,
    #[serde(rename = "issuerURL")]
    pub(super) issuer_url: Option<String>,
    /// `rolesRef` of the HostedCluster.
    pub(super) roles: Value,
    #[serde(rename = "kmsKeyARN")]
    pub(super) kms_key_arn: Option<String>,
    #[serde(rename = "kmsProviderRoleARN")]
    pub(super) kms_provider_role_arn: Option<String>,
    #[serde(rename = "karpenterRoleARN")]
    pub(super) karpenter_role_arn: Option<String>,
    #[serde(rename = "sharedIngressRoleARN")]
    shared_ingress_role_arn: Option<String>,
    #[serde(rename = "sharedControlPlaneRoleARN")]
    shared_control_plane_role_arn: Option<String>,
}

/// Roles in the account that owns the VPC.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedRoles<'a> {
    pub(super) ingress: &'a str,
    pub(super) control_plane: &'a str,
}

/// The roles that there must be.
const ROLES: [&str; 7] = [
    "ingressARN",
    "imageRegistryARN",
    "storageARN",
    "networkARN",
    "kubeCloudControllerARN",
    "nodePoolManagementARN",
    "controlPlaneOperatorARN",
];

// === impl Infrastructure ===

impl Infrastructure {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let read: Self = json_file("--infra-json", path)?;
        if read.zones.is_empty() {
            let message = format!("--infra-json {}: it names no zones", path.display());
            return Err(Usage::new(&message).into());
        }
        Ok(read)
    }

    /// A network that was created.
    pub(super) fn made(output: &NetworkOutput) -> anyhow::Result<Self> {
        Ok(serde_json::from_value(serde_json::to_value(output)?)?)
    }

    /// The hosted zones that policies of roles name.
    pub(super) fn resources(
        &self,
        kms_key: Option<String>,
        auto_node: bool,
        shared_vpc: bool,
    ) -> Result<Resources, Usage> {
        let zone = |field: &str, id: Option<&String>| {
            id.filter(|id| !id.is_empty()).cloned().ok_or_else(|| {
                Usage::new(&format!(
                    "--infra-json names no {field}, which the policies of IAM roles need: add it, or give --iam-json"
                ))
            })
        };
        Ok(Resources {
            public_zone: zone("publicZoneID", self.public_zone_id.as_ref())?,
            private_zone: zone("privateZoneID", self.private_zone_id.as_ref())?,
            local_zone: zone("localZoneID", self.local_zone_id.as_ref())?,
            kms_key,
            auto_node,
            shared_vpc,
        })
    }

    /// The key with which users log in to the proxy, if it is known.
    pub(super) fn proxy_key(&self) -> Option<&PrivateKey> {
        self.proxy_key.as_ref().filter(|key| !key.is_empty())
    }

    /// The proxy, if there is one. One that is reached without TLS is for HTTP and HTTPS, also if it decrypts TLS.
    pub(super) fn proxy(&self) -> Option<Proxy> {
        let http = self.proxy_addr.clone().filter(|it| !it.is_empty());
        let secure = self.secure_proxy_addr.clone().filter(|it| !it.is_empty());
        let plain = secure.clone().filter(|it| it.starts_with("http://"));
        let https = secure.or_else(|| http.clone())?;
        let http = http.or(plain);
        let ca = self.proxy_ca.clone().filter(|it| !it.trim().is_empty());
        Some(Proxy { http, https, ca })
    }

    /// The private zone `<name>.hypershift.local` of the VPC.
    pub(super) fn local_zone(&self) -> Option<&str> {
        self.local_zone_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Fields of `spec.dns` that it names.
    pub(super) fn hosted_zones(&self) -> Vec<(&'static str, String)> {
        [
            ("publicZoneID", &self.public_zone_id),
            ("privateZoneID", &self.private_zone_id),
        ]
        .into_iter()
        .filter_map(|(field, id)| Some((field, id.clone().filter(|id| !id.is_empty())?)))
        .collect()
    }
}

// === impl Identity ===

impl Identity {
    /// Roles that were created.
    pub(super) fn made(output: &IdentityOutput) -> anyhow::Result<Self> {
        let mut made: Self = serde_json::from_value(serde_json::to_value(output)?)?;
        made.drop_empty();
        Ok(made)
    }

    /// Roles that do not exist yet, for checks.
    pub(super) fn stand_in(shared_vpc: bool) -> anyhow::Result<Self> {
        let arn = "arn:aws:iam::000000000000:role/not-created-yet";
        let roles = ROLES.map(|role| (role.to_owned(), arn.to_owned()));
        let shared = shared_vpc.then_some(arn);
        Ok(serde_json::from_value(json!({
            "roles": BTreeMap::from(roles),
            "kmsProviderRoleARN": arn,
            "karpenterRoleARN": arn,
            "sharedIngressRoleARN": shared,
            "sharedControlPlaneRoleARN": shared,
        }))?)
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut read: Self = json_file("--iam-json", path)?;
        let roles = ROLES.iter().map(|role| {
            let arn = read.roles[role].as_str().ok_or_else(|| {
                Usage::new(&format!(
                    "--iam-json {}: there is no {role} under roles",
                    path.display()
                ))
            })?;
            Ok::<_, Usage>(((*role).to_owned(), Value::from(arn)))
        });
        read.roles = roles.collect::<Result<serde_json::Map<_, _>, _>>()?.into();
        read.drop_empty();
        Ok(read)
    }

    /// Tools write an empty text for what there is not.
    fn drop_empty(&mut self) {
        for empty in [
            &mut self.profile_name,
            &mut self.issuer_url,
            &mut self.kms_key_arn,
            &mut self.kms_provider_role_arn,
            &mut self.karpenter_role_arn,
            &mut self.shared_ingress_role_arn,
            &mut self.shared_control_plane_role_arn,
        ] {
            empty.take_if(|text| text.is_empty());
        }
    }

    /// The roles in the account that owns the VPC, if it is another one. One without the other is an error.
    pub(super) fn shared_roles(&self) -> Result<Option<SharedRoles<'_>>, Usage> {
        let ingress = self.shared_ingress_role_arn.as_deref();
        match (ingress, self.shared_control_plane_role_arn.as_deref()) {
            (None, None) => Ok(None),
            (Some(ingress), Some(control_plane)) => Ok(Some(SharedRoles {
                ingress,
                control_plane,
            })),
            (Some(_), None) | (None, Some(_)) => Err(Usage::new(
                &"--iam-json: a shared VPC needs both sharedIngressRoleARN and sharedControlPlaneRoleARN",
            )),
        }
    }
}

fn json_file<T: DeserializeOwned>(flag: &str, path: &Path) -> anyhow::Result<T> {
    let text = text::file(flag, path)?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{flag} {}: this is not what is expected there",
            path.display()
        )
    })
}
