//! Volumes: the local-path provisioner, as the default storage class.

use anyhow::Result;

use crate::binaries::{Binaries, Binary};
use crate::client::Resource;
use crate::fixtures;
use crate::images::{Archive, Contents, File};
use crate::node::{NodeTestbed, condition};
use crate::payload::shell;
use crate::wait;

const WITHIN: std::time::Duration = std::time::Duration::from_mins(2);
const NAMESPACE: &str = "local-path-storage";

/// Installs it, and waits until it runs.
pub async fn install(testbed: &NodeTestbed) -> Result<()> {
    let binaries = Binaries::ensure(&[Binary::LocalPath], &testbed.progress).await?;
    let step = testbed.progress.step("installing what makes volumes");
    let mut files = shell()?;
    files.push(File::program(
        "/usr/bin/local-path-provisioner",
        binaries.path(Binary::LocalPath)?,
    ));
    let image = Archive::of(&Contents {
        entrypoint: "/usr/bin/local-path-provisioner".to_owned(),
        command: &[],
        files,
    })?;
    let image = testbed.registry.push("local-path", &image).await?;
    let directory = testbed.path().join("volumes").display().to_string();
    let values = [("IMAGE", image.as_str()), ("DIRECTORY", &directory)];
    testbed
        .admin
        .apply(&fixtures::render("node/storage", &values)?)
        .await?;
    let path = Resource::new("apps/v1", "deployments").named(NAMESPACE, "local-path-provisioner");
    wait::until("the provisioner of volumes", WITHIN, async || {
        condition(&testbed.admin.get(&path).await?, "Available")
    })
    .await?;
    step.done();
    Ok(())
}
