//! `create infra powervs`, `destroy infra powervs`.

use std::path::PathBuf;

use clap::Args;
use support::ibm_cloud::{ApiKey, Endpoints, Tokens};
use support::rest::Client;

use super::REGION;
use super::api::Api;
use super::create::{CreateRequest, Keys};
use super::executor::Executor;
use super::output::Output;
use super::scope::{Place, Reused, Scope};
use crate::Usage;
use crate::infra::aws::Domain;
use crate::install::display::{Display, print};
use crate::install::runtime;

/// Flags that name a cluster, its domain and its infrastructure.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Name of the infrastructure: the first part of the names of its resources, and part of their tags
    #[arg(long, value_name = "ID")]
    infra_id: String,

    /// Base domain of the cluster, which is a zone of Internet Services (CIS)
    #[arg(long, value_name = "DOMAIN")]
    base_domain: String,

    /// Name of the resource group
    #[arg(long, value_name = "NAME")]
    resource_group: String,

    /// Report what there is and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Flags of resources that exist. `destroy` keeps them, but not what was created in them.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReuseArgs {
    /// Identifier (GUID) of a workspace of Power VS that exists and is used [default: one is created]
    #[arg(long, value_name = "GUID")]
    pub(crate) cloud_instance_id: Option<String>,

    /// Name of a VPC that exists and is used [default: one is created]
    #[arg(long, value_name = "NAME")]
    pub(crate) vpc: Option<String>,
}

/// Flags of the transit gateway that connects workspace and VPC.
#[derive(Debug, Clone, Args)]
pub(crate) struct TransitArgs {
    /// Name of a transit gateway that exists and is used [default: one is created]
    #[arg(long, value_name = "NAME")]
    pub(crate) transit_gateway: Option<String>,

    /// Location of the transit gateway that is created
    #[arg(long, value_name = "NAME", default_value = REGION)]
    pub(crate) transit_gateway_location: String,

    /// Let the transit gateway route between locations. It always does if the regions of workspace and VPC differ
    #[arg(long)]
    pub(crate) transit_gateway_global_routing: bool,

    /// Replace all API keys of the service IDs of an earlier run, which cannot be read again. Components of a cluster that has
    /// them lose access. Not needed to continue after an interruption
    #[arg(long)]
    pub(crate) recreate_secrets: bool,
}

/// Flags of `create infra powervs`.
#[derive(Debug, Args)]
pub(crate) struct CreateInfraArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "example")]
    name: String,

    /// Namespace of the Secrets in the file that is written
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Region of Power VS
    #[arg(long, value_name = "NAME", default_value = REGION)]
    region: String,

    /// Zone of the region
    #[arg(long, value_name = "NAME", default_value = REGION)]
    zone: String,

    /// Region of the VPC
    #[arg(long, value_name = "NAME", default_value = REGION)]
    vpc_region: String,

    #[command(flatten)]
    reuse: ReuseArgs,

    #[command(flatten)]
    transit: TransitArgs,

    /// File for the description of the infrastructure in JSON, with API keys; each key is written as soon as it exists. Keys
    /// that the file has already are kept, and those that an interruption lost are replaced [default: standard output]
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Flags of `destroy infra powervs`.
#[derive(Debug, Args)]
pub(crate) struct DestroyInfraArgs {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Region of Power VS
    #[arg(long, value_name = "NAME")]
    region: String,

    /// Zone of the region
    #[arg(long, value_name = "NAME")]
    zone: String,

    /// Region of the VPC
    #[arg(long, value_name = "NAME")]
    vpc_region: String,

    #[command(flatten)]
    reuse: ReuseArgs,

    /// File that create infra powervs has written: it says which VPC and which workspace are reused
    #[arg(long, value_name = "FILE")]
    infra_json: Option<PathBuf>,

    #[command(flatten)]
    unneeded: UnneededArgs,

    /// Accepted because upstream has it
    #[arg(long, value_name = "NAME", hide = true)]
    namespace: Option<String>,
}

/// Flags that upstream has for a destruction, and that are not needed here.
#[derive(Debug, Args)]
pub(crate) struct UnneededArgs {
    /// Accepted because upstream has it
    #[arg(long, value_name = "NAME", hide = true)]
    transit_gateway: Option<String>,

    /// Accepted because upstream requires it
    #[arg(long, value_name = "NAME", hide = true)]
    transit_gateway_location: Option<String>,
}

/// Makes calls for a scope.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client<Tokens>,
    key: ApiKey,
    api: Api,
    pub(crate) scope: Scope,
}

// === impl Session ===

impl Session {
    /// With the API key and the endpoints of the environment.
    pub(crate) fn from_env(scope: Scope) -> anyhow::Result<Self> {
        let key = ApiKey::from_env()?;
        let endpoints = Endpoints::from_env()?;
        Ok(Self {
            client: Client::new(Tokens::new(key.clone(), &endpoints)),
            key,
            api: Api::new(&endpoints, &scope),
            scope,
        })
    }

    pub(crate) fn executor<'a>(&'a self, display: &'a Display) -> Executor<'a, Client<Tokens>> {
        Executor {
            calls: &self.client,
            scope: &self.scope,
            api: &self.api,
            key: &self.key,
            display,
        }
    }
}

// === impl ReuseArgs ===

impl ReuseArgs {
    /// What is reused beside a gateway.
    pub(crate) fn reused(&self) -> Reused {
        Reused {
            workspace: self.cloud_instance_id.clone(),
            vpc: self.vpc.clone(),
            gateway: None,
        }
    }
}

// === impl TransitArgs ===

impl TransitArgs {
    /// What is asked for.
    pub(crate) fn request(&self, namespace: &str, reuse: &ReuseArgs) -> CreateRequest {
        CreateRequest {
            namespace: namespace.to_owned(),
            reused: Reused {
                gateway: self.transit_gateway.clone(),
                ..reuse.reused()
            },
            gateway_location: self.transit_gateway_location.clone(),
            global_routing: self.transit_gateway_global_routing,
            keys: if self.recreate_secrets {
                Keys::ReplaceAll
            } else {
                Keys::Keep
            },
        }
    }
}

// === impl UnneededArgs ===

impl UnneededArgs {
    /// Reports flags that have no effect.
    pub(crate) fn report(&self, display: &Display) {
        for (flag, given) in [
            ("--transit-gateway", &self.transit_gateway),
            ("--transit-gateway-location", &self.transit_gateway_location),
        ] {
            if given.is_some() {
                display.say(&format!(
                    "{flag} is not needed: gateways and connections are found by their names"
                ));
            }
        }
    }
}

// === impl ClusterArgs ===

impl ClusterArgs {
    fn scope(&self, name: &str, [region, zone, vpc_region]: [&String; 3]) -> anyhow::Result<Scope> {
        let domain = Domain::new(&self.base_domain, None, name)?;
        let place = Place {
            resource_group: self.resource_group.clone(),
            region: region.clone(),
            zone: zone.clone(),
            vpc_region: vpc_region.clone(),
        };
        Ok(Scope::new(&self.infra_id, name, domain, place)?)
    }
}

// === impl CreateInfraArgs ===

impl CreateInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let regions = [&self.region, &self.zone, &self.vpc_region];
        let scope = self.cluster.scope(&self.name, regions)?;
        scope.check_zone()?;
        let path = self.output_file.as_deref();
        let mut output = Output::continued(&scope, path)?;
        let session = Session::from_env(scope)?;
        let request = self.transit.request(&self.namespace, &self.reuse);
        let display = Display::new(self.cluster.quiet);
        runtime()?.block_on(async {
            let executor = session.executor(&display);
            if self.cluster.dry_run {
                return executor.report(&request, &output).await;
            }
            let record = |output: &Output| output.record(path);
            let result = Box::pin(executor.create(&request, &mut output, &record)).await;
            // Also after a failure: it may have the only copy of API keys.
            let written = match path {
                Some(path) => output.write(path),
                None => output.text().and_then(|text| print(&text)),
            };
            result.and(written)
        })
    }
}

// === impl DestroyInfraArgs ===

impl DestroyInfraArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let regions = [&self.region, &self.zone, &self.vpc_region];
        let scope = self.cluster.scope(&self.name, regions)?;
        let reused = self.reused(&scope)?;
        let session = Session::from_env(scope)?;
        let display = Display::new(self.cluster.quiet);
        self.unneeded.report(&display);
        if self.namespace.is_some() {
            display.say("--namespace is not needed: this command deletes no Secrets");
        }
        runtime()?.block_on(async {
            let executor = session.executor(&display);
            if self.cluster.dry_run {
                return executor.report_destruction(&reused).await;
            }
            Box::pin(executor.destroy(&reused)).await
        })
    }

    /// What flags and the file name. What has a name of the infrastructure is not reused, whatever they say.
    fn reused(&self, scope: &Scope) -> anyhow::Result<Reused> {
        let mut reused = self.reuse.reused();
        let Some(path) = &self.infra_json else {
            return Ok(reused);
        };
        let output = Output::read(path)?;
        if output.id != scope.infra_id {
            let message = format!(
                "--infra-json {} describes infrastructure {}, not {}",
                path.display(),
                output.id,
                scope.infra_id
            );
            return Err(Usage::new(&message).into());
        }
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        reused.vpc = reused.vpc.or(given(output.vpc_name));
        reused.workspace = reused.workspace.or(given(output.cloud_instance_id));
        Ok(reused)
    }
}
