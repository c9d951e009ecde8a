//! `OAuthClients`. Their API is aggregated: as long as its `APIService` leads to a server that does not exist, a stand-in of the
//! kind is not served. Therefore they are written before the `APIServices`, and the stand-in is removed.

use anyhow::{Context, Result};
use control_plane_operator::hosted_cluster_config::resources::desired::{Object, STEPS};
use testbed::{crds, wait};

use super::bootstrap::SOON;
use super::guest::Guest;
use super::pass::{self, Found};
use super::profiles::Profile;

/// The step.
const STEP: &str = "OAuth clients";
const KIND: &str = "OAuthClient";
const GROUP: &str = "oauth.openshift.io";
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.oauth.openshift.io";

fn is_client(object: &Object) -> bool {
    object.key().kind == KIND
}

/// Writes the clients twice, and returns them.
pub(crate) async fn objects(guest: &Guest, profile: &Profile) -> Result<Vec<Found>> {
    let kind = crds::of_any_object(GROUP, "v1", KIND, "oauthclients", "Cluster");
    crds::install(&guest.user, std::slice::from_ref(&kind)).await?;
    let step = STEPS.iter().find(|step| step.name == STEP);
    let step = *step.context("there is no such step")?;
    let mut profile = profile.clone();
    pass::run_step(guest, &mut profile, step, is_client).await?;
    let found = pass::of_step(guest, &profile, step, is_client).await?;
    pass::run_step(guest, &mut profile, step, is_client).await?;
    let again = pass::of_step(guest, &profile, step, is_client).await?;
    pass::unchanged(guest, &found, &again);
    crds::remove(&guest.user, &[kind]).await?;
    wait::until(
        "the group of OAuthClients to be gone",
        SOON,
        async || match guest.user.find(API_SERVICE).await? {
            None => Ok(()),
            Some(_) => wait::not_yet("its APIService is there"),
        },
    )
    .await?;
    Ok(found)
}
