//! Creates the infrastructure that no file and no flag describes.

use anyhow::Context as _;
use support::azure::Cloud;

use super::infrastructure::Infrastructure;
use super::{AzureArgs, CommonArgs, Options, Parts, RunArgs, no_identities};
use crate::Usage;
use crate::create::cluster::run::{refuse_existing, say_how_to_continue};
use crate::create::text;
use crate::hosted::Hosted;
use crate::infra::aws::Domain;
use crate::infra::azure::{
    Account, CreateRequest, Executor, Identities, IdentityRequest, LOCATION, NetworkRequest, Scope,
    registry, role_set,
};
use crate::install::display::Display;

impl AzureArgs {
    /// An infrastructure that does not exist yet, for checks.
    pub(super) fn future_infrastructure(
        &self,
        common: &CommonArgs,
        account: &Account,
    ) -> anyhow::Result<Infrastructure> {
        // Objects on a network that exists can be rendered without a DNS zone.
        if common.base_domain.is_some() || !self.is_described() {
            NetworkRequest::new(domain(common)?, &self.network)?;
        }
        Ok(Infrastructure::stand_in(&account.subscription_id))
    }

    /// Whether flags name a network and identities that exist.
    pub(super) fn is_described(&self) -> bool {
        let has_identities =
            self.workload_identities_file.is_some() || self.managed_identities_file.is_some();
        self.network.is_complete() && has_identities
    }

    /// Whether identities are created if no file describes them.
    pub(super) fn creates_identities(&self) -> bool {
        self.infra_json.is_none() && self.oidc_issuer_url.is_some()
    }

    /// Creates what is missing, unless this is a dry run.
    pub(super) async fn create(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        if run.renders() {
            let message = "--render creates no infrastructure: describe it with --infra-json, which create infra azure \
                           writes, or with --resource-group-name, --vnet-id, --subnet-id, --network-security-group-id and \
                           a file of identities";
            return Err(Usage::new(&message).into());
        }
        let account = Account::read(&self.azure_creds)?;
        let location = self.location.as_deref().unwrap_or(LOCATION);
        let tags = text::pairs("--resource-group-tags", &self.network.resource_group_tags)?;
        let (infra_id, name) = (&options.infra_id, &common.name);
        let scope = Scope::new(infra_id, name, location, &account, Cloud::Public, tags)?;
        let request = self.request(common, &scope)?;
        let display = Display::new(run.quiet);
        let azure = account.connect(Cloud::Public)?;
        let hosted = Hosted::connect(&run.target.access()).await?;
        refuse_existing(&hosted, common).await?;
        let executor = Executor {
            calls: &azure,
            scope: &scope,
            display: &display,
        };
        if common.infra_id.is_none() {
            executor.refuse_other().await?;
        }
        if run.dry_run {
            Box::pin(executor.report(&request)).await?;
            return Ok(None);
        }
        say_how_to_continue(&display, infra_id);
        let output = Box::pin(executor.create(&request)).await?;
        let infra = Infrastructure::made(&output)?;
        let identities = self.identities(&infra)?;
        let identities = identities.context("the infrastructure has no identities")?;
        self.parts_of(common, &account, &infra, &identities)
            .map(Some)
    }

    /// What is created.
    fn request(&self, common: &CommonArgs, scope: &Scope) -> anyhow::Result<CreateRequest> {
        let network = NetworkRequest::new(domain(common)?, &self.network)?;
        let mut assigns = self.assign_service_principal_roles;
        let identities = if let Some(files) = self.identities(&Infrastructure::default())? {
            Identities::Existing(files)
        } else {
            // Nothing else can give roles to identities that did not exist before.
            assigns = true;
            let group = network.main_group(scope);
            let issuer = self.oidc_issuer_url.as_deref().ok_or_else(no_identities)?;
            let mut created = IdentityRequest::new(&group, issuer)?;
            if self.encryption_key_id.is_some() {
                created = created.with_kms();
            }
            Identities::Created(created)
        };
        let roles = role_set(assigns, self.assign_custom_hcp_roles);
        let registry = registry(&common.control_plane.disable_cluster_capabilities);
        Ok(CreateRequest::new(network, identities, roles, registry)?)
    }
}

fn domain(common: &CommonArgs) -> Result<Domain, Usage> {
    let base = common.base_domain.as_deref().ok_or_else(|| {
        Usage::new(
            &"--base-domain is needed for the infrastructure that is created without --infra-json",
        )
    })?;
    Domain::new(base, common.base_domain_prefix.as_deref(), &common.name)
}
