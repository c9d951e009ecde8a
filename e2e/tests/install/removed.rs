//! What `uninstall` takes away, and what it leaves.

use anyhow::{Context, Result, ensure};
use testbed::client::Resource;
use testbed::testbed::Testbed;

use crate::install::command::{Hypershift, NAMESPACE};
use crate::install::stored;

const NAMESPACES: Resource<'_> = Resource::new("v1", "namespaces");
const CLAIMS: Resource<'_> = Resource::new(
    "ipam.cluster.hypershift.openshift.io/v1beta2",
    "ipaddressclaims",
);
const CRD_KEYS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/// Where else an installation has left something, if it has.
const KEYS: [&str; 4] = [
    "/registry/clusterroles/hypershift-",
    "/registry/clusterrolebindings/hypershift-",
    "/registry/priorityclasses/hypershift-",
    "/registry/deployments/hypershift/",
];

/// There is an object of a private kind: its CRD stays, and the output explains why and how to continue.
pub(crate) async fn but_for_what_is_somebodys(
    testbed: &Testbed,
    hypershift: &Hypershift,
) -> Result<()> {
    let before = stored::revisions(testbed).await?;
    let predicted = hypershift
        .run(&["uninstall", "--dry-run"])
        .await?
        .succeeded()?;
    let kept = "ipaddressclaims.ipam.cluster.hypershift.openshift.io: keep: it has objects";
    ensure!(predicted.contains(kept), "the dry run says:\n{predicted}");
    let changed = stored::changed(testbed, &before).await?;
    // The controllers are at work on the Deployment.
    ensure!(
        changed.iter().all(|key| !key.starts_with(CRD_KEYS)),
        "a dry run changed {changed:?}"
    );

    let remarks = hypershift.run(&["uninstall"]).await?.remarks()?;
    ensure!(
        remarks.contains(kept) && remarks.contains("1 objects kept"),
        "it says:\n{remarks}"
    );
    let left = private_crds(testbed).await?;
    ensure!(left.len() == 1, "left: {left:?}");
    let claim = testbed
        .admin
        .get(&CLAIMS.named(crate::install::PLATFORM, "precious"))
        .await;
    claim.context("the object is gone with its CRD").map(drop)
}

/// Without the object, nothing stays; and doing it again is no error.
pub(crate) async fn to_the_last_object(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let admin = &testbed.admin;
    admin
        .delete(&CLAIMS.named(crate::install::PLATFORM, "precious"))
        .await?;
    hypershift.run(&["uninstall"]).await?.succeeded()?;
    testbed::wait::until(
        "everything to go",
        std::time::Duration::from_mins(2),
        async || {
            let left = private_crds(testbed).await?;
            ensure!(left.is_empty(), "left: {left:?}");
            for prefix in KEYS {
                let left = testbed.control_plane.etcd.keys(prefix).await?;
                ensure!(left.is_empty(), "left: {left:?}");
            }
            let namespace = admin
                .find(&format!("{}/{NAMESPACE}", NAMESPACES.all()))
                .await?;
            ensure!(namespace.is_none(), "the namespace is left");
            Ok(())
        },
    )
    .await?;
    let remarks = hypershift.run(&["uninstall"]).await?.remarks()?;
    ensure!(remarks.contains("0 objects kept"), "it says:\n{remarks}");
    Ok(())
}

/// CRDs that are not the platform's.
async fn private_crds(testbed: &Testbed) -> Result<Vec<String>> {
    let mut crds = testbed.control_plane.etcd.keys(CRD_KEYS).await?;
    crds.retain(|key| key.ends_with("openshift.io"));
    Ok(crds)
}
