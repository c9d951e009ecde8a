//! What etcd holds, by the side that a key belongs to.

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};
use e2e::etcd::{Etcd, Stored};

/// Where CRDs are stored; their names end with the group.
pub(crate) const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// The side that a key belongs to, if it is one of Cluster API's.
fn side_of(table: &GroupTable, key: &str) -> Option<Side> {
    let side = |group: &str| Some(table.find(group.as_bytes())?.1);
    if let Some(name) = key.strip_prefix(CRDS) {
        return side(name.split_once('.')?.1);
    }
    side(key.strip_prefix("/registry/")?.split('/').next()?)
}

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

/// Everything stored of one side, CRDs and objects, byte for byte.
pub(crate) async fn world(etcd: &Etcd, side: Side) -> Result<Vec<Stored>> {
    let table = GroupTable::default();
    let mut all = etcd.stored("/registry/").await?;
    all.retain(|stored| side_of(&table, &stored.key) == Some(side));
    ensure!(!all.is_empty(), "etcd holds nothing of the {side:?} side");
    Ok(all)
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
                "/registry/cluster.hypershift.openshift.io/machines/n/m",
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
