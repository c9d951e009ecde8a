//! What etcd must hold, and must not.

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use testbed::capi_storage::types_of_key;
use testbed::etcd::Etcd;

pub(crate) use testbed::capi_storage::{CRDS, stored};

/// Checks that private keys are there, and no standard ones.
pub(crate) async fn only_private(etcd: &Etcd) -> Result<()> {
    let table = GroupTable::default();
    let keys = etcd.keys("/registry/").await?;
    let of = |capi_types| {
        let keys = keys
            .iter()
            .filter(|key| types_of_key(&table, key) == Some(capi_types));
        keys.collect::<Vec<_>>()
    };
    let standard = of(CapiTypes::Standard);
    ensure!(
        standard.is_empty(),
        "etcd holds standard keys: {standard:?}"
    );
    let machines = of(CapiTypes::Private)
        .into_iter()
        .filter(|key| key.contains("/machines/"))
        .count();
    ensure!(
        machines == 8,
        "etcd holds {machines} private machines, not 8"
    );
    Ok(())
}
