//! Creates the network and the identities that neither flags nor files describe.

use anyhow::anyhow;

use super::infrastructure::{Identity, Network};
use super::{CommonArgs, GcpArgs, Options, Parts, RunArgs, signing_key};
use crate::Usage;
use crate::create::cluster::run::{refuse_existing, say_how_to_continue};
use crate::hosted::Hosted;
use crate::infra::aws::SigningKey;
use crate::infra::gcp::{
    Executor, GoogleCloud, IdentityOutput, IdentityRequest, Jwks, NetworkOutput, NetworkRequest,
    Scope, connect, issuer_of,
};
use crate::install::display::Display;

/// The number of a project that was not looked up, for checks.
const UNKNOWN_NUMBER: &str = "1";

/// What is created.
#[derive(Default)]
struct Missing {
    network: Option<NetworkRequest>,
    identity: Option<IdentityRequest>,
}

// === impl GcpArgs ===

impl GcpArgs {
    /// A network that does not exist yet, for checks.
    pub(super) fn future_network(
        &self,
        infra_id: &str,
        identity: Option<&Identity>,
    ) -> Result<Network, Usage> {
        let described = identity.and_then(|identity| identity.project.clone());
        let project = match described {
            Some(project) => project,
            None => self.required_project()?,
        };
        let scope = Scope::new(infra_id, &project)?;
        let request = self.network_request(&self.required_region()?)?;
        Ok(Network::made(NetworkOutput::new(&scope, &request)))
    }

    /// Identities that do not exist yet, for checks.
    pub(super) fn future_identity(
        &self,
        infra_id: &str,
        network: &Network,
    ) -> anyhow::Result<Identity> {
        let scope = Scope::new(infra_id, &network.project)?;
        scope.check_identities()?;
        // Checked now, used when identities are created.
        let issuer = issuer_of(&scope, self.oidc_issuer_url.as_deref())?;
        made(IdentityOutput::new(&scope, UNKNOWN_NUMBER, &issuer))
    }

    fn network_request(&self, region: &str) -> Result<NetworkRequest, Usage> {
        NetworkRequest::new(region, self.cidr())
    }

    /// Creates what is missing, unless this is a dry run.
    pub(super) async fn create(
        &self,
        common: &CommonArgs,
        options: &Options,
        run: &RunArgs,
    ) -> anyhow::Result<Option<Parts>> {
        let (network, identity) = (self.known_network()?, self.known_identity()?);
        if network.is_some() && identity.is_some() {
            return Ok(None);
        }
        if run.renders() {
            let message = "--render creates no infrastructure: describe it with --infra-json and --iam-json, which create \
                           infra gcp and create iam gcp write, or with flags";
            return Err(Usage::new(&message).into());
        }
        let future = match &network {
            Some(network) => network.clone(),
            None => self.future_network(&options.infra_id, identity.as_ref())?,
        };
        let scope = Scope::new(&options.infra_id, &future.project)?;
        let key = self.signing_key(identity.is_none())?;
        let display = Display::new(run.quiet);
        let google_cloud = connect()?;
        let hosted = Hosted::connect(&run.target.access()).await?;
        refuse_existing(&hosted, common).await?;
        let executor = Executor {
            calls: &google_cloud,
            scope: &scope,
            display: &display,
        };
        let mut missing = Missing::default();
        if network.is_none() {
            missing.network = Some(self.network_request(&future.region)?);
        }
        if identity.is_none() {
            missing.identity = Some(self.identity_request(&scope, key.as_ref())?);
        }
        if run.dry_run {
            Box::pin(missing.report(&executor)).await?;
            return Ok(None);
        }
        say_how_to_continue(&display, &scope.infra_id);
        let network = match &missing.network {
            Some(request) => Network::made(Box::pin(executor.create_network(request)).await?),
            None => future,
        };
        let identity = match (identity, &missing.identity) {
            (None, Some(request)) => made(Box::pin(executor.create_identity(request)).await?)?,
            (Some(identity), _) => identity,
            (None, None) => return Ok(None),
        };
        let key = key.as_ref().map(|key| key.private.as_str());
        self.parts_of(common, &network, &identity, key).map(Some)
    }

    fn identity_request(
        &self,
        scope: &Scope,
        key: Option<&SigningKey>,
    ) -> anyhow::Result<IdentityRequest> {
        let jwks = key.map(|key| Jwks::new(key.public_keys().clone()));
        let jwks = jwks
            .transpose()
            .map_err(|problem| anyhow!("the key that signs tokens: {problem}"))?;
        Ok(IdentityRequest {
            issuer: issuer_of(scope, self.oidc_issuer_url.as_deref())?,
            jwks,
        })
    }

    /// The key that signs tokens: the one of the file, or a new one if its public part is uploaded here.
    fn signing_key(&self, creates_identities: bool) -> anyhow::Result<Option<SigningKey>> {
        if let Some(path) = &self.service_account_signing_key_path {
            return SigningKey::parse(&signing_key(path)?).map(Some);
        }
        let uploads = creates_identities && self.oidc_issuer_url.is_none();
        uploads.then(SigningKey::generate).transpose()
    }
}

// === impl Missing ===

impl Missing {
    /// Says what would be created.
    async fn report(&self, executor: &Executor<'_, GoogleCloud>) -> anyhow::Result<()> {
        if let Some(request) = &self.network {
            executor.report_network(request).await?;
        }
        if let Some(request) = &self.identity {
            executor.report_identity(request).await?;
        }
        Ok(())
    }
}

fn made(output: IdentityOutput) -> anyhow::Result<Identity> {
    Identity::made(output).map_err(|missing| anyhow!("there is no service account for {missing}"))
}
