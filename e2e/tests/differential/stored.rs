//! What the private server's etcd holds after the run: nothing under a standard name (R32).

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};
use e2e::etcd::Etcd;

/// Where CRDs are stored; their names end with the group.
const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

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

fn side_of(table: &GroupTable, key: &str) -> Option<Side> {
    let side = |group: &str| Some(table.find(group.as_bytes())?.1);
    match key.strip_prefix(CRDS) {
        Some(name) => side(name.split_once('.')?.1),
        None => side(key.strip_prefix("/registry/")?.split('/').next()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_by_their_group() {
        let table = GroupTable::default();
        for (key, side) in [
            (
                "/registry/cluster.x-k8s.io/machines/n/m",
                Some(Side::Standard),
            ),
            (
                "/registry/ipam.cluster.hypershift.openshift.io/ipaddresses/n/m",
                Some(Side::Private),
            ),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/machines.cluster.x-k8s.io",
                Some(Side::Standard),
            ),
            ("/registry/secrets/n/cluster.x-k8s.io", None),
        ] {
            assert_eq!(side_of(&table, key), side, "{key}");
        }
    }
}
