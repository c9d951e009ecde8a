//! What the private server's etcd holds after the run: nothing under a standard name (R32).

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use testbed::capi_storage::{CRDS, types_of_key};
use testbed::etcd::Etcd;

/// Fails when a key belongs to a standard group, or none to a private one.
pub(crate) async fn is_private(etcd: &Etcd) -> Result<()> {
    let table = GroupTable::default();
    let keys = etcd.keys("/registry/").await?;
    let of = |side| {
        keys.iter()
            .filter(|key| types_of_key(&table, key) == Some(side))
            .collect()
    };
    let (standard, private): (Vec<_>, Vec<_>) = (of(CapiTypes::Standard), of(CapiTypes::Private));
    ensure!(
        standard.is_empty(),
        "R32: etcd holds standard keys: {standard:?}"
    );
    let objects = private.iter().filter(|key| !key.starts_with(CRDS)).count();
    ensure!(objects > 0, "R32: etcd holds no private objects at all");
    Ok(())
}
