//! The aggregated API of KubeVirt, as far as it says which version it is: a program in a pod, and who may ask it.

use std::time::Duration;

use anyhow::Result;

use crate::certs::encoded;
use crate::client::Resource;
use crate::fixtures;
use crate::images::{Archive, Contents, File, StaticProgram, build_static};
use crate::node::{NodeTestbed, condition};
use crate::wait;

/// The program.
const PROGRAM: &str = "extension";
/// The name of the image, the Deployment and its Service.
const NAME: &str = "virt-api";
const NAMESPACE: &str = "kubevirt";
const API_SERVICES: Resource<'_> = Resource::new("apiregistration.k8s.io/v1", "apiservices");
const API_SERVICE: &str = "v1.subresources.kubevirt.io";
/// How long its pod may take to be reached.
const WITHIN: Duration = Duration::from_mins(2);

/// Installs it, and waits until the API server reaches it; returns the reference of its image.
pub(super) async fn install(testbed: &NodeTestbed) -> Result<String> {
    let program = StaticProgram {
        package: "pod-tools",
        name: PROGRAM,
    };
    let built = build_static(&program, &testbed.progress).await?;
    let entrypoint = format!("/{PROGRAM}");
    let archive = Archive::of(&Contents {
        files: vec![File::program(&entrypoint, built)],
        entrypoint,
        command: &[],
    })?;
    let image = testbed.registry.push(NAME, &archive).await?;
    let authority = &testbed.control_plane.authority;
    let certificate = authority.server_at(NAME, &[format!("{NAME}.{NAMESPACE}.svc")])?;
    let objects = fixtures::render(
        "kubevirt/subresources",
        &[
            ("IMAGE", &image),
            ("CERTIFICATE", &encoded(&certificate.certificate)?),
            ("KEY", &encoded(&certificate.key)?),
            ("AUTHORITY", &encoded(&authority.certificate())?),
        ],
    )?;
    testbed.admin.apply(&objects).await?;
    let path = format!("{}/{API_SERVICE}", API_SERVICES.all());
    wait::until("the aggregated API of KubeVirt", WITHIN, async || {
        condition(&testbed.admin.get(&path).await?, "Available")
    })
    .await?;
    Ok(image)
}
