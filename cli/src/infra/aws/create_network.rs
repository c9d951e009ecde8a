//! Creates the network of a cluster and its private hosted zones.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::accounts::Accounts;
use super::call::{Call, Calls};
use super::command::VpcArgs;
use super::executor::Executor;
use super::kind::Kind;
use super::network::{self, DHCP_OPTIONS, INTERNET_GATEWAY, Network, SHARE, VPC, Zone};
use super::proxy::{PrivateKey, Proxy, ProxyOutput};
use super::scope::tags;
use super::zones::Domain;
use crate::create::ssh_key::SshKey;

/// What is new is not known everywhere at once.
const NEW_SUBNET: [&str; 3] = [
    "InvalidSubnet",
    "InvalidSubnetID.NotFound",
    "InvalidElasticIpID.NotFound",
];

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct NetworkRequest {
    pub(crate) domain: Domain,
    /// Availability zones; the first one of the region if there are none.
    pub(crate) zones: Vec<String>,
    pub(crate) cidr: String,
    pub(crate) public_only: bool,
    pub(crate) single_nat: bool,
    /// The proxy that nodes use instead of NAT gateways.
    pub(crate) proxy: Option<Proxy>,
}

/// What there is: the file of `--infra-json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkOutput {
    pub(crate) region: String,
    pub(crate) zone: String,
    #[serde(rename = "infraID")]
    pub(crate) infra_id: String,
    #[serde(rename = "machineCIDR")]
    pub(crate) machine_cidr: String,
    #[serde(rename = "vpcID")]
    pub(crate) vpc_id: String,
    pub(crate) zones: Vec<ZoneOutput>,
    #[serde(rename = "Name")]
    pub(crate) name: String,
    pub(crate) base_domain: String,
    pub(crate) base_domain_prefix: String,
    #[serde(rename = "publicZoneID")]
    pub(crate) public_zone_id: String,
    #[serde(rename = "privateZoneID")]
    pub(crate) private_zone_id: String,
    #[serde(rename = "localZoneID")]
    pub(crate) local_zone_id: String,
    pub(crate) public_only: bool,
    /// URL of the proxy.
    #[serde(default)]
    pub(crate) proxy_addr: String,
    /// URL of a proxy that decrypts TLS.
    #[serde(default)]
    pub(crate) secure_proxy_addr: String,
    /// The key with which users log in to the proxy.
    #[serde(rename = "proxyPrivateSSHKey", default)]
    pub(crate) proxy_private_ssh_key: PrivateKey,
    /// The certificate of the proxy's authority, in PEM.
    #[serde(rename = "proxyCA", default)]
    pub(crate) proxy_ca: String,
    /// The account of the VPC and that of the cluster, if they are different ones.
    #[serde(rename = "vpcCreatorAccountID", default)]
    pub(crate) vpc_creator_account_id: String,
    #[serde(rename = "clusterAccountID", default)]
    pub(crate) cluster_account_id: String,
}

/// The subnet of nodes in an availability zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ZoneOutput {
    pub(crate) name: String,
    #[serde(rename = "subnetID")]
    pub(crate) subnet_id: String,
}

/// A VPC with its subnets, in the order of the zones.
pub(super) struct Vpc {
    pub(super) id: String,
    pub(super) subnets: Vec<Subnets>,
}

/// The subnets of a zone.
pub(super) struct Subnets {
    pub(super) private: Option<String>,
    pub(super) public: String,
}

// === impl Subnets ===

impl Subnets {
    /// The one of nodes.
    pub(super) fn of_nodes(&self) -> &String {
        self.private.as_ref().unwrap_or(&self.public)
    }
}

// === impl NetworkRequest ===

impl NetworkRequest {
    /// What flags ask for. `key` is that of a proxy that may exist.
    pub(crate) fn new(domain: Domain, args: &VpcArgs, key: Option<SshKey>) -> anyhow::Result<Self> {
        Ok(Self {
            domain,
            zones: args.zones.clone(),
            cidr: args.vpc_cidr.clone(),
            public_only: args.public_only,
            single_nat: args.single_nat_gateway,
            proxy: args.proxy.proxy(key)?,
        })
    }
}

impl<C: Calls> Accounts<'_, C> {
    /// Creates what is missing, in an order in which an interrupted run can be continued.
    pub(crate) async fn create_network(
        &self,
        request: &NetworkRequest,
    ) -> anyhow::Result<NetworkOutput> {
        let accounts = self.identifiers().await?;
        let scope = self.cluster.scope;
        let network = self.vpc().network(request).await?;
        // The cluster needs it, and only the owner of the domain can delegate it.
        let public_zone = self.cluster.public_zone(&request.domain).await?;
        let vpc = self.vpc().routed_vpc(&network).await?;
        let seen = match &accounts {
            Some(accounts) => self.share_subnets(accounts, &network, &vpc).await?,
            None => BTreeMap::new(),
        };
        let [private_zone, local_zone] = self
            .private_zones(&vpc.id, &network.cidr, &request.domain)
            .await?;
        let proxy = match &request.proxy {
            Some(proxy) => self.vpc().proxy(proxy, &vpc, &network.cidr).await?,
            None => ProxyOutput::default(),
        };
        let nodes = |(zone, subnets): (&Zone, &Subnets)| {
            let subnet = subnets.of_nodes();
            ZoneOutput {
                name: seen.get(subnet).unwrap_or(&zone.name).clone(),
                subnet_id: subnet.clone(),
            }
        };
        let zones: Vec<_> = network.zones.iter().zip(&vpc.subnets).map(nodes).collect();
        let (owner_account, cluster_account) = accounts
            .map(|accounts| (accounts.owner, accounts.cluster))
            .unwrap_or_default();
        Ok(NetworkOutput {
            region: scope.region.clone(),
            zone: zones
                .first()
                .map(|zone| zone.name.clone())
                .unwrap_or_default(),
            infra_id: scope.infra_id.clone(),
            machine_cidr: network.cidr,
            vpc_id: vpc.id,
            zones,
            name: scope.name.clone(),
            base_domain: request.domain.base.clone(),
            base_domain_prefix: request.domain.flag().to_owned(),
            public_zone_id: public_zone,
            private_zone_id: private_zone,
            local_zone_id: local_zone,
            public_only: request.public_only,
            proxy_addr: proxy.address,
            secure_proxy_addr: proxy.secure_address,
            proxy_private_ssh_key: proxy.key,
            proxy_ca: proxy.ca,
            vpc_creator_account_id: owner_account,
            cluster_account_id: cluster_account,
        })
    }

    /// Says what there is of a network, and creates nothing.
    pub(crate) async fn report_network(&self, request: &NetworkRequest) -> anyhow::Result<()> {
        let accounts = self.identifiers().await?;
        let owner = self.vpc();
        let network = owner.network(request).await?;
        self.cluster.public_zone(&request.domain).await?;
        for (kind, name) in network.resources(owner.scope) {
            let line = match owner.find(kind, &name).await? {
                Some(found) => format!("{} {name}: exists ({})", kind.noun(), kind.id(&found)),
                None => format!("{} {name}: would be created", kind.noun()),
            };
            owner.say(&line);
        }
        if let Some(proxy) = &request.proxy {
            owner.report_proxy(proxy).await?;
        }
        if accounts.is_some() {
            let shares = owner.shares().await?;
            let name = owner.scope.named(SHARE);
            let state = if shares.is_empty() {
                "would be created"
            } else {
                "exists"
            };
            owner.say(&format!("resource share {name}: {state}"));
        }
        let vpc = owner.find(Kind::Vpc, &owner.scope.named(VPC)).await?;
        for name in [request.domain.cluster(), Domain::local(&owner.scope.name)] {
            let found = match &vpc {
                Some(vpc) => owner.zone_of_vpc(Kind::Vpc.id(vpc), &name).await?,
                None => None,
            };
            let line = match found {
                Some(id) => format!("private hosted zone {name}: exists ({id})"),
                None => format!("private hosted zone {name}: would be created"),
            };
            owner.say(&line);
        }
        Ok(())
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Creates the VPC, with subnets, gateways and routes.
    async fn routed_vpc(&self, network: &Network) -> anyhow::Result<Vpc> {
        let vpc = self.ensure_vpc(network).await?;
        let gateway = self.internet_gateway(&vpc).await?;
        let mut subnets = Vec::new();
        for zone in &network.zones {
            subnets.push(self.subnets(&vpc, zone).await?);
        }
        let nats = self.nat_gateways(network, &subnets).await?;
        let mut tables = Vec::new();
        for (zone, subnets) in network.zones.iter().zip(&subnets) {
            let Some(private) = &subnets.private else {
                continue;
            };
            let nat = zone.nat.as_ref().and_then(|zone| nats.get(zone));
            tables.push(self.private_routes(&vpc, zone, private, nat).await?);
        }
        tables.push(self.public_routes(&vpc, &gateway, &subnets).await?);
        self.s3_endpoint(&vpc, &tables).await?;
        Ok(Vpc { id: vpc, subnets })
    }

    /// Refuses to create a second network for a cluster whose creation was interrupted.
    pub(crate) async fn refuse_other(&self) -> anyhow::Result<()> {
        let call = Kind::Vpc
            .describe()
            .filter("tag:hypershift.openshift.io/cluster-name", &self.scope.name)
            .filter("tag:hypershift.openshift.io/source", "cli");
        let response = self.call(&call).await?;
        let Some(vpc) = Kind::Vpc.items(&response).first() else {
            return Ok(());
        };
        let tags = tags(vpc.items("tagSet"));
        let other = tags.get("hypershift.openshift.io/infra-id");
        let other = other.map_or("unknown", String::as_str);
        bail!(
            "{} of infrastructure {other} was created for a cluster {}: continue with --infra-id {other}, delete it with \
             destroy infra aws, or give another --infra-id to create one more",
            Kind::Vpc.id(vpc),
            self.scope.name
        );
    }

    async fn network(&self, request: &NetworkRequest) -> anyhow::Result<Network> {
        let mut zones = request.zones.clone();
        if zones.is_empty() {
            let call = Call::ec2("DescribeAvailabilityZones").filter("state", "available");
            let response = self.call(&call).await?;
            let first = response.items("availabilityZoneInfo").first();
            let first = first.map(|zone| zone.text_at("zoneName").to_owned());
            zones.push(first.context("the region has no availability zone: give --zones")?);
        }
        let public_only = request.public_only;
        let network = Network::new(
            self.scope,
            &request.cidr,
            &zones,
            public_only,
            request.single_nat,
        )?;
        Ok(match request.proxy {
            Some(_) => network.without_gateways(),
            None => network,
        })
    }

    async fn ensure_vpc(&self, network: &Network) -> anyhow::Result<String> {
        let cidr = [("CidrBlock", network.cidr.clone())];
        let name = self.scope.named(VPC);
        let vpc = self.ensure(Kind::Vpc, &name, &[], &cidr, &[]).await?;
        let id = Kind::Vpc.id(&vpc).to_owned();
        let there = vpc.text_at("cidrBlock");
        if there != network.cidr {
            bail!(
                "VPC {name} ({id}) has the CIDR {there}, not {}: give --vpc-cidr {there}, or another --infra-id",
                network.cidr
            );
        }
        for attribute in ["EnableDnsSupport", "EnableDnsHostnames"] {
            let call = Call::ec2("ModifyVpcAttribute")
                .with("VpcId", &id)
                .with(format!("{attribute}.Value"), "true");
            self.call(&call).await?;
        }
        let options = [
            ("DhcpConfiguration.1.Key", "domain-name".to_owned()),
            (
                "DhcpConfiguration.1.Value.1",
                network::instance_domain(&self.scope.region),
            ),
            ("DhcpConfiguration.2.Key", "domain-name-servers".to_owned()),
            (
                "DhcpConfiguration.2.Value.1",
                "AmazonProvidedDNS".to_owned(),
            ),
        ];
        let name = self.scope.named(DHCP_OPTIONS);
        let dhcp = self
            .ensure(Kind::DhcpOptions, &name, &[], &options, &[])
            .await?;
        let call = Call::ec2("AssociateDhcpOptions")
            .with("DhcpOptionsId", Kind::DhcpOptions.id(&dhcp))
            .with("VpcId", &id);
        self.settle(&call, &[], &[]).await?;
        Ok(id)
    }

    async fn internet_gateway(&self, vpc: &str) -> anyhow::Result<String> {
        let kind = Kind::InternetGateway;
        let name = self.scope.named(INTERNET_GATEWAY);
        let gateway = self.ensure(kind, &name, &[], &[], &[]).await?;
        let id = kind.id(&gateway).to_owned();
        let mut attached = gateway.items("attachmentSet").iter();
        if !attached.any(|it| it.text_at("vpcId") == vpc) {
            let call = Call::ec2("AttachInternetGateway")
                .with("InternetGatewayId", &id)
                .with("VpcId", vpc);
            self.settle(&call, &["Resource.AlreadyAssociated"], &[])
                .await?;
        }
        Ok(id)
    }

    async fn subnets(&self, vpc: &str, zone: &Zone) -> anyhow::Result<Subnets> {
        let ensured = async |subnet: &network::Subnet| {
            let parameters = [
                ("VpcId", vpc.to_owned()),
                ("CidrBlock", subnet.cidr.clone()),
                ("AvailabilityZone", zone.name.clone()),
            ];
            let made = self.ensure(Kind::Subnet, &subnet.name, &subnet.tags, &parameters, &[]);
            let made = made.await?;
            anyhow::Ok(Kind::Subnet.id(&made).to_owned())
        };
        let private = match &zone.private {
            Some(subnet) => Some(ensured(subnet).await?),
            None => None,
        };
        Ok(Subnets {
            private,
            public: ensured(&zone.public).await?,
        })
    }

    /// The NAT gateways, by zone.
    async fn nat_gateways(
        &self,
        network: &Network,
        subnets: &[Subnets],
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut gateways = BTreeMap::new();
        let wanted = network.gateways();
        for (zone, subnets) in network.zones.iter().zip(subnets) {
            if !wanted.contains(&zone) {
                continue;
            }
            let name = network::address(self.scope, &zone.name);
            let domain = [("Domain", "vpc".to_owned())];
            let address = self.ensure(Kind::Address, &name, &[], &domain, &[]).await?;
            let parameters = [
                ("SubnetId", subnets.public.clone()),
                ("AllocationId", Kind::Address.id(&address).to_owned()),
            ];
            let name = network::nat_gateway(self.scope, &zone.name);
            let kind = Kind::NatGateway;
            let gateway = self
                .ensure(kind, &name, &[], &parameters, &NEW_SUBNET)
                .await?;
            gateways.insert(zone.name.clone(), kind.id(&gateway).to_owned());
        }
        Ok(gateways)
    }
}
