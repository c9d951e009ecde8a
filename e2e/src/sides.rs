//! What etcd holds, by the side of the group table that a key belongs to.

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};

use crate::etcd::{Etcd, Stored};

/// Where CRDs are stored; their names end with the group.
pub const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// The side that a key belongs to, if it is one of Cluster API's.
pub fn side_of(table: &GroupTable, key: &str) -> Option<Side> {
    let side = |group: &str| Some(table.find(group.as_bytes())?.1);
    if let Some(name) = key.strip_prefix(CRDS) {
        return side(name.split_once('.')?.1);
    }
    side(key.strip_prefix("/registry/")?.split('/').next()?)
}

/// Everything stored of one side, CRDs and objects, byte for byte.
pub async fn world(etcd: &Etcd, side: Side) -> Result<Vec<Stored>> {
    let table = GroupTable::default();
    let mut all = etcd.stored("/registry/").await?;
    all.retain(|stored| side_of(&table, &stored.key) == Some(side));
    ensure!(!all.is_empty(), "etcd holds nothing of the {side:?} side");
    Ok(all)
}

/// The keys of objects of one side, without CRDs.
pub async fn objects(etcd: &Etcd, side: Side) -> Result<Vec<String>> {
    let table = GroupTable::default();
    let mut keys = etcd.keys("/registry/").await?;
    keys.retain(|key| !key.starts_with(CRDS) && side_of(&table, key) == Some(side));
    Ok(keys)
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
