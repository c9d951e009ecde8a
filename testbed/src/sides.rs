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

/// The keys of objects of one namespace, by side, without CRDs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Those in the standard groups.
    pub standard: Vec<String>,
    /// Those in the private groups.
    pub private: Vec<String>,
}

/// What a namespace has of Cluster API.
pub async fn within(etcd: &Etcd, namespace: &str) -> Result<Within> {
    Ok(Within::of(etcd.keys("/registry/").await?, namespace))
}

// === impl Within ===

impl Within {
    fn of(keys: Vec<String>, namespace: &str) -> Self {
        let (table, within) = (GroupTable::default(), format!("/{namespace}/"));
        let mut all = Self::default();
        for key in keys.into_iter().filter(|key| key.contains(&within)) {
            match side_of(&table, &key) {
                Some(Side::Standard) => all.standard.push(key),
                Some(Side::Private) => all.private.push(key),
                None => {}
            }
        }
        all
    }

    /// Fails unless there are some on a side, and none on the other.
    pub fn are_only_on(&self, side: Side) -> Result<()> {
        for one in [Side::Standard, Side::Private] {
            let keys = self.on(one);
            ensure!(
                keys.is_empty() == (one != side),
                "on the {one:?} side there are {keys:?}"
            );
        }
        Ok(())
    }

    fn on(&self, side: Side) -> &[String] {
        match side {
            Side::Standard => &self.standard,
            Side::Private => &self.private,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_its_own_objects_on_each_side() {
        let keys = [
            "/registry/cluster.x-k8s.io/machines/n/m",
            "/registry/cluster.x-k8s.io/machines/n-2/m",
            "/registry/cluster.hypershift.openshift.io/machines/n/m",
            "/registry/pods/n/p",
            "/registry/apiextensions.k8s.io/customresourcedefinitions/machines.cluster.x-k8s.io",
        ];
        let found = Within::of(keys.map(str::to_owned).to_vec(), "n");
        assert_eq!(found.standard, [keys[0]]);
        assert_eq!(found.private, [keys[2]]);
        let of = |keys: &[&str]| Within::of(keys.iter().map(|&key| key.to_owned()).collect(), "n");
        of(&keys[..1]).are_only_on(Side::Standard).unwrap();
        of(&keys[2..]).are_only_on(Side::Private).unwrap();
        for (keys, side) in [
            (&keys[..], Side::Private),
            (&keys[..1], Side::Private),
            (&keys[3..], Side::Standard),
        ] {
            assert!(of(keys).are_only_on(side).is_err(), "{keys:?}, {side:?}");
        }
    }

    #[test]
    fn keys_are_distinguished_by_their_group() {
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
