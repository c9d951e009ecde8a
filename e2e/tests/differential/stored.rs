//! What the private server's etcd holds after the run: nothing under a standard name (R32).

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};
use testbed::etcd::Etcd;
use testbed::sides::{CRDS, side_of};

/// Fails when a key belongs to a standard group, or none to a private one.
pub(crate) async fn is_private(etcd: &Etcd) -> Result<()> {
    let table = GroupTable::default();
    let keys = etcd.keys("/registry/").await?;
    let of = |side| {
        keys.iter()
            .filter(|key| side_of(&table, key) == Some(side))
            .collect()
    };
    let (standard, private): (Vec<_>, Vec<_>) = (of(Side::Standard), of(Side::Private));
    ensure!(
        standard.is_empty(),
        "R32: etcd holds standard keys: {standard:?}"
    );
    let objects = private.iter().filter(|key| !key.starts_with(CRDS)).count();
    ensure!(objects > 0, "R32: etcd holds no private objects at all");
    Ok(())
}
