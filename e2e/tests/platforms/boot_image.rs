//! The boot image of virtual machines: it is copied once for a pool, and the disks of all machines are clones of the copy.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde_json::Value;
use testbed::hosted::Cluster;
use testbed::virtual_machines::{DATA_VOLUMES, VirtualMachines};

/// The label of a copy, and its value.
const ROLE: (&str, &str) = (
    "hypershift.openshift.io/kubevirt-boot-image-role",
    "kv-boot-image-cache",
);

/// Waits until a pool with so many machines in a namespace has one copy, and as many clones of it; gives the copy's UID.
pub(crate) async fn is_cached_once(
    cluster: &Cluster<'_>,
    machines: &VirtualMachines,
    namespace: &str,
    count: usize,
) -> Result<Value> {
    let fixture = cluster.fixture();
    let image = format!("docker://{}", machines.disk()?);
    let what = format!(
        "{}: the disks of {count} machines are clones of one copy of the boot image",
        cluster.name()
    );
    fixture
        .stage(&what, async || {
            let volumes = DATA_VOLUMES.within(namespace);
            let volumes = fixture.testbed.admin.list(&volumes).await?;
            let (label, role) = ROLE;
            let is_copy = |one: &&Value| one["metadata"]["labels"][label] == role;
            let (copies, disks): (Vec<_>, Vec<_>) = volumes.iter().partition(is_copy);
            let [copy] = copies.as_slice() else {
                bail!("there are {} copies", copies.len());
            };
            is_filled(copy)?;
            let source = &copy["spec"]["source"];
            ensure!(source["registry"]["url"] == image, "it is of {source}");
            ensure!(disks.len() == count, "there are {} disks", disks.len());
            for disk in disks {
                let source = &disk["spec"]["source"]["pvc"];
                ensure!(
                    source["name"] == copy["metadata"]["name"] && source["namespace"] == namespace,
                    "{} is of {}",
                    disk["metadata"]["name"],
                    disk["spec"]["source"]
                );
                is_filled(disk)?;
            }
            Ok(copy["metadata"]["uid"].clone())
        })
        .await
}

/// Neither the number of machines nor a replacement or another release has had it pulled again: once for each pool.
pub(crate) fn was_imported(machines: &VirtualMachines, pools: usize) -> Result<()> {
    let image = format!("docker://{}", machines.disk()?);
    let (imports, expected) = (machines.imports(), BTreeMap::from([(image, pools)]));
    ensure!(
        imports == expected,
        "imported were {imports:?}, and expected is {expected:?}"
    );
    Ok(())
}

fn is_filled(volume: &Value) -> Result<()> {
    let phase = &volume["status"]["phase"];
    ensure!(
        phase == "Succeeded",
        "{} is {phase}",
        volume["metadata"]["name"]
    );
    Ok(())
}
