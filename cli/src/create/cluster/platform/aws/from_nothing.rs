//! Creates the network and the IAM roles that no file describes.

use serde_json::json;

use super::infrastructure::{Identity, Infrastructure};
use super::{AwsArgs, CommonArgs, Options, Parts, RunArgs};
use crate::Usage;
use crate::create::cluster::run::{refuse_existing, say_how_to_continue};
use crate::create::text;
use crate::hosted::Hosted;
use crate::infra::aws::{
    Accounts, Aws, Domain, Executor, Form, IdentityRequest, Issuer, NetworkRequest, Resources,
    Scope, SigningKey,
};
use crate::install::display::Display;

impl AwsArgs {
    /// A network that does not exist yet, for checks.
    pub(super) fn future_network(&self, common: &CommonArgs) -> anyhow::Result<Infrastructure> {
        let domain = Self::domain(common)?;
        let region = self.region(None);
        let mut zones = self.network.zones.clone();
        if zones.is_empty() {
            zones.push(format!("{region}a"));
        }
        let zones: Vec<_> = zones
            .iter()
            .map(|zone| json!({ "name": zone, "subnetID": "subnet-00000000000000000" }))
            .collect();
        Ok(serde_json::from_value(json!({
            "region": region,
            "machineCIDR": self.network.vpc_cidr,
            "vpcID": "vpc-00000000000000000",
            "zones": zones,
            "baseDomain": domain.base,
            "localZoneID": "Z00000000000000000000",
            "publicOnly": self.network.public_only,
        }))?)
    }

    fn domain(common: &CommonArgs) -> Result<Domain, Usage> {
        let base = common.base_domain.as_deref().ok_or_else(|| {
            Usage::new(
                &"--base-domain is needed for the network that is created without --infra-json",
            )
        })?;
        Domain::new(base, common.base_domain_prefix.as_deref(), &common.name)
    }

    /// Creates what is missing, unless this is a dry run.
    pub(super) async fn create(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if run.renders() {
            let message = "--render creates no infrastructure: describe it with --infra-json and --iam-json, which create \
                           infra aws and create iam aws write";
            return Err(Usage::new(&message).into());
        }
        let network = self
            .infra_json
            .as_deref()
            .map(Infrastructure::read)
            .transpose()?;
        let region = self.region(network.as_ref());
        let scope = Scope::new(&options.infra_id, &common.name, region, self.tags()?)?;
        let key = self.signing_key()?;
        let display = Display::new(run.quiet);
        let secret = common.given.credentials.as_ref();
        let aws = self
            .credentials
            .connect_with(region, "cli-create-cluster", secret)?;
        let owner = self.owner.connect(region, "cli-create-cluster")?;
        let hosted = Hosted::connect(&run.target.access()).await?;
        refuse_existing(&hosted, common).await?;
        let executor = |calls| Executor {
            calls,
            scope: &scope,
            display: &display,
        };
        let (cluster, owner) = (executor(&aws), owner.as_ref().map(executor));
        let accounts = Accounts::new(&cluster, owner.as_ref(), self.owner.private_zones());
        if common.infra_id.is_none() && network.is_none() {
            accounts.vpc().refuse_other().await?;
        }
        if run.dry_run {
            Box::pin(self.report(&accounts, common, network.is_none(), key)).await?;
            return Ok(None);
        }
        say_how_to_continue(&display, &scope.infra_id);
        let network = if let Some(network) = network {
            network
        } else {
            let request = NetworkRequest::new(Self::domain(common)?, &self.network, None)?;
            Infrastructure::made(&Box::pin(accounts.create_network(&request)).await?)?
        };
        let key_pem = key.as_ref().map(|key| key.private.clone());
        let identity = if let Some(path) = &self.iam_json {
            Identity::read(path)?
        } else {
            let request = IdentityRequest {
                issuer: self.issuer(&scope)?,
                resources: network.resources(
                    self.kms_key_arn.clone(),
                    self.auto_node,
                    self.owner.is_given(),
                )?,
                form: self.form(common, Some(&network))?,
                key,
            };
            Identity::made(&Box::pin(accounts.create_identity(&request)).await?)?
        };
        self.parts_of(common, &network, &identity, key_pem.as_deref())
            .map(Some)
    }

    async fn report(
        &self,
        accounts: &Accounts<'_, Aws>,
        common: &CommonArgs,
        network: bool,
        key: Option<SigningKey>,
    ) -> anyhow::Result<()> {
        if network {
            let request = NetworkRequest::new(Self::domain(common)?, &self.network, None)?;
            Box::pin(accounts.report_network(&request)).await?;
        }
        if self.iam_json.is_some() {
            return Ok(());
        }
        let resources = Resources {
            public_zone: String::new(),
            private_zone: String::new(),
            local_zone: String::new(),
            kms_key: self.kms_key_arn.clone(),
            auto_node: self.auto_node,
            shared_vpc: self.owner.is_given(),
        };
        let request = IdentityRequest {
            issuer: self.issuer(accounts.vpc().scope)?,
            resources,
            form: self.form(common, None)?,
            key,
        };
        Box::pin(accounts.report_identity(&request)).await
    }

    /// What roles are like that are created.
    pub(super) fn form(
        &self,
        common: &CommonArgs,
        network: Option<&Infrastructure>,
    ) -> Result<Form, Usage> {
        let described = network.and_then(|network| network.base_domain.as_deref());
        self.roles.form(common.base_domain.as_deref().or(described))
    }

    fn issuer(&self, scope: &Scope) -> Result<Issuer, Usage> {
        let bucket = self.oidc_storage_provider_s3_bucket_name.as_deref();
        let url = self.oidc_issuer_url.as_deref();
        Issuer::new(&scope.infra_id, &scope.region, bucket, url)
    }

    /// The key that signs tokens: the one of the file, or a new one if its documents are published here.
    fn signing_key(&self) -> anyhow::Result<Option<SigningKey>> {
        if let Some(path) = &self.sa_token_issuer_private_key_path {
            let pem = text::file("--sa-token-issuer-private-key-path", path)?;
            return SigningKey::parse(&pem).map(Some);
        }
        let publishes = self.iam_json.is_none() && self.oidc_issuer_url.is_none();
        publishes.then(SigningKey::generate).transpose()
    }
}
