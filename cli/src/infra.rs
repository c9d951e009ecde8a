//! `create` and `destroy` of infrastructure in clouds: networks, identities of components, and bastions.

pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod gcp;
pub(crate) mod power_vs;
mod private_file;

use clap::Subcommand;

/// The clouds in which networks are created.
#[derive(Debug, Subcommand)]
pub(crate) enum CreateInfra {
    /// A VPC with subnets, gateways, routes and private hosted zones on AWS
    #[command(after_help = include_str!("infra/aws/create_infra.txt"))]
    Aws(Box<aws::CreateInfraArgs>),
    /// Resource groups with a virtual network, egress and a private DNS zone on Azure
    #[command(after_help = include_str!("infra/azure/create_infra.txt"))]
    Azure(Box<azure::CreateInfraArgs>),
    /// A workspace, a VPC, the transit gateway between them, and API keys of components on Power VS of IBM Cloud
    #[command(name = "powervs", after_help = include_str!("infra/power_vs/create_infra.txt"))]
    PowerVs(Box<power_vs::CreateInfraArgs>),
    /// A network with a subnet, a firewall rule, a router and a NAT gateway on Google Cloud
    #[command(after_help = include_str!("infra/gcp/create_infra.txt"))]
    Gcp(Box<gcp::CreateInfraArgs>),
}

/// The clouds in which identities are created.
#[derive(Debug, Subcommand)]
pub(crate) enum CreateIam {
    /// An identity provider, IAM roles and an instance profile on AWS
    #[command(after_help = include_str!("infra/aws/create_iam.txt"))]
    Aws(Box<aws::CreateIamArgs>),
    /// The role with which this command creates and destroys clusters on AWS
    #[command(after_help = include_str!("infra/aws/create_cli_role.txt"))]
    CliRole(Box<aws::CreateCliRoleArgs>),
    /// Managed identities with federated credentials on Azure
    #[command(after_help = include_str!("infra/azure/create_iam.txt"))]
    Azure(Box<azure::CreateIamArgs>),
    /// A workload identity pool and service accounts on Google Cloud
    #[command(after_help = include_str!("infra/gcp/create_iam.txt"))]
    Gcp(Box<gcp::CreateIamArgs>),
}

/// The clouds in which roles of the operator are created.
#[derive(Debug, Subcommand)]
pub(crate) enum CreateOperatorRoles {
    /// The IAM roles that the operator and external-dns of a management cluster assume on AWS
    #[command(after_help = include_str!("infra/aws/create_operator_roles.txt"))]
    Aws(Box<aws::CreateOperatorRolesArgs>),
}

/// The clouds in which bastions are created.
#[derive(Debug, Subcommand)]
pub(crate) enum CreateBastion {
    /// An instance in a public subnet of a cluster on AWS, with a key pair and a security group
    #[command(after_help = include_str!("infra/aws/create_bastion.txt"))]
    Aws(Box<aws::CreateBastionArgs>),
}

/// The clouds in which networks are destroyed.
#[derive(Debug, Subcommand)]
pub(crate) enum DestroyInfra {
    /// The VPC of a cluster on AWS, with all that is in it
    Aws(Box<aws::DestroyInfraArgs>),
    /// The resource groups of a cluster on Azure, with all that is in them
    Azure(Box<azure::DestroyInfraArgs>),
    /// What create infra powervs has created, and what the cluster has left there
    #[command(name = "powervs")]
    PowerVs(Box<power_vs::DestroyInfraArgs>),
    /// The network of a cluster on Google Cloud
    Gcp(Box<gcp::DestroyInfraArgs>),
}

/// The clouds in which identities are destroyed.
#[derive(Debug, Subcommand)]
pub(crate) enum DestroyIam {
    /// The identity provider, IAM roles and instance profile of a cluster on AWS
    Aws(Box<aws::DestroyIamArgs>),
    /// The identities of a cluster on Azure, with their role assignments
    Azure(Box<azure::DestroyIamArgs>),
    /// The workload identity pool and service accounts of a cluster on Google Cloud
    Gcp(Box<gcp::DestroyIamArgs>),
}

/// The clouds in which bastions are destroyed.
#[derive(Debug, Subcommand)]
pub(crate) enum DestroyBastion {
    /// The bastion of a cluster on AWS, with its key pair and its security group
    #[command(after_help = include_str!("infra/aws/destroy_bastion.txt"))]
    Aws(Box<aws::DestroyBastionArgs>),
}

// === impl CreateInfra ===

impl CreateInfra {
    /// Creates it, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
            Self::Azure(args) => args.run(),
            Self::PowerVs(args) => args.run(),
            Self::Gcp(args) => args.run(),
        }
    }
}

// === impl CreateIam ===

impl CreateIam {
    /// Creates them, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
            Self::CliRole(args) => args.run(),
            Self::Azure(args) => args.run(),
            Self::Gcp(args) => args.run(),
        }
    }
}

// === impl CreateOperatorRoles ===

impl CreateOperatorRoles {
    /// Creates them, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
        }
    }
}

// === impl CreateBastion ===

impl CreateBastion {
    /// Creates it, or reports what would be created.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
        }
    }
}

// === impl DestroyBastion ===

impl DestroyBastion {
    /// Destroys it, or reports what would be destroyed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
        }
    }
}

// === impl DestroyInfra ===

impl DestroyInfra {
    /// Destroys it, or reports what would be destroyed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
            Self::Azure(args) => args.run(),
            Self::PowerVs(args) => args.run(),
            Self::Gcp(args) => args.run(),
        }
    }
}

// === impl DestroyIam ===

impl DestroyIam {
    /// Destroys them, or reports what would be destroyed.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Aws(args) => args.run(),
            Self::Azure(args) => args.run(),
            Self::Gcp(args) => args.run(),
        }
    }
}
