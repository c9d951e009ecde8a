//! What etcd must hold, and must not.

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};
use testbed::etcd::Etcd;
use testbed::sides::side_of;

pub(crate) use testbed::sides::{CRDS, world};

/// Checks that private keys are there, and no standard ones.
pub(crate) async fn only_private(etcd: &Etcd) -> Result<()> {
    let table = GroupTable::default();
    let keys = etcd.keys("/registry/").await?;
    let of = |side| {
        let keys = keys.iter().filter(|key| side_of(&table, key) == Some(side));
        keys.collect::<Vec<_>>()
    };
    let standard = of(Side::Standard);
    ensure!(
        standard.is_empty(),
        "etcd holds standard keys: {standard:?}"
    );
    let machines = of(Side::Private)
        .into_iter()
        .filter(|key| key.contains("/machines/"))
        .count();
    ensure!(
        machines == 8,
        "etcd holds {machines} private machines, not 8"
    );
    Ok(())
}
