//! The accounts of an infrastructure: that of the cluster, and of a shared VPC also that of its owner.
//!
//! Each account has an [`Executor`] of its own. Which of them makes a call is decided by the names of this type, so that
//! credentials cannot be mixed up by a parameter.

use anyhow::Context as _;

use super::call::{Call, Calls};
use super::executor::Executor;
use crate::Usage;

/// The accounts. Without an owner, everything is in that of the cluster.
pub(crate) struct Accounts<'a, C> {
    /// That of the cluster.
    pub(super) cluster: &'a Executor<'a, C>,
    /// That of the VPC, if it is another one.
    pub(super) owner: Option<&'a Executor<'a, C>>,
    private_zones: PrivateZones,
}

/// In which account private hosted zones are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PrivateZones {
    /// In that of the VPC.
    #[default]
    OfVpc,
    /// In that of the cluster.
    OfCluster,
}

/// The identifiers of two accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identifiers {
    pub(super) cluster: String,
    pub(super) owner: String,
}

impl<'a, C: Calls> Accounts<'a, C> {
    pub(crate) fn new(
        cluster: &'a Executor<'a, C>,
        owner: Option<&'a Executor<'a, C>>,
        private_zones: PrivateZones,
    ) -> Self {
        Self {
            cluster,
            owner,
            private_zones,
        }
    }

    /// The account of the VPC.
    pub(crate) fn vpc(&self) -> &'a Executor<'a, C> {
        self.owner.unwrap_or(self.cluster)
    }

    /// The account of private hosted zones.
    pub(super) fn zones(&self) -> &'a Executor<'a, C> {
        match self.private_zones {
            PrivateZones::OfVpc => self.vpc(),
            PrivateZones::OfCluster => self.cluster,
        }
    }

    /// Whether private hosted zones are in another account than the VPC.
    pub(super) fn has_zones_elsewhere(&self) -> bool {
        self.owner.is_some() && self.private_zones == PrivateZones::OfCluster
    }

    /// Each account once.
    pub(super) fn all(&self) -> Vec<&'a Executor<'a, C>> {
        let all = [Some(self.cluster), self.owner];
        all.into_iter().flatten().collect()
    }

    /// The identifiers of both accounts of a shared VPC. Credentials of one account twice are an error.
    pub(super) async fn identifiers(&self) -> anyhow::Result<Option<Identifiers>> {
        let Some(owner) = self.owner else {
            return Ok(None);
        };
        let found = Identifiers {
            cluster: self.cluster.account().await?,
            owner: owner.account().await?,
        };
        if found.cluster == found.owner {
            return Err(Usage::new(&format!(
                "--vpc-owner-aws-creds has credentials of account {}, which is also the account of the cluster: give those of \
                 the account that owns the VPC, or leave out the flag",
                found.owner
            ))
            .into());
        }
        Ok(Some(found))
    }
}

impl<C: Calls> Executor<'_, C> {
    /// The identifier of the account whose credentials make the calls.
    async fn account(&self) -> anyhow::Result<String> {
        let response = self.call(&Call::sts("GetCallerIdentity")).await?;
        let account = response.text_at("GetCallerIdentityResult/Account");
        let account = (!account.is_empty()).then(|| account.to_owned());
        account.context("the response of GetCallerIdentity names no account")
    }
}
