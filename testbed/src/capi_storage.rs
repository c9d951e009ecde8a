//! The Cluster API objects in etcd, by the types (standard or private) that a key belongs to.

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};

use crate::etcd::{Etcd, Stored};

/// Where CRDs are stored; their names end with the group.
pub const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// The types that a key belongs to, if it is one of Cluster API's.
pub fn types_of_key(table: &GroupTable, key: &str) -> Option<CapiTypes> {
    let capi_types = |group: &str| Some(table.find(group.as_bytes())?.1);
    if let Some(name) = key.strip_prefix(CRDS) {
        return capi_types(name.split_once('.')?.1);
    }
    capi_types(key.strip_prefix("/registry/")?.split('/').next()?)
}

/// Everything stored of one set of types, CRDs and objects, byte for byte.
pub async fn stored(etcd: &Etcd, capi_types: CapiTypes) -> Result<Vec<Stored>> {
    let table = GroupTable::default();
    let mut all = etcd.stored("/registry/").await?;
    all.retain(|stored| types_of_key(&table, &stored.key) == Some(capi_types));
    ensure!(!all.is_empty(), "etcd has no {capi_types:?} types");
    Ok(all)
}

/// The keys of objects of one set of types, without CRDs.
pub async fn objects(etcd: &Etcd, capi_types: CapiTypes) -> Result<Vec<String>> {
    let table = GroupTable::default();
    let mut keys = etcd.keys("/registry/").await?;
    keys.retain(|key| !key.starts_with(CRDS) && types_of_key(&table, key) == Some(capi_types));
    Ok(keys)
}

/// The keys of objects of one namespace, by types, without CRDs.
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
            match types_of_key(&table, &key) {
                Some(CapiTypes::Standard) => all.standard.push(key),
                Some(CapiTypes::Private) => all.private.push(key),
                None => {}
            }
        }
        all
    }

    /// Fails unless there are some of given types, and none of the others.
    pub fn are_only_on(&self, capi_types: CapiTypes) -> Result<()> {
        for one in [CapiTypes::Standard, CapiTypes::Private] {
            let keys = self.on(one);
            ensure!(
                keys.is_empty() == (one != capi_types),
                "of the {one:?} types there are {keys:?}"
            );
        }
        Ok(())
    }

    fn on(&self, capi_types: CapiTypes) -> &[String] {
        match capi_types {
            CapiTypes::Standard => &self.standard,
            CapiTypes::Private => &self.private,
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
        of(&keys[..1]).are_only_on(CapiTypes::Standard).unwrap();
        of(&keys[2..]).are_only_on(CapiTypes::Private).unwrap();
        for (keys, capi_types) in [
            (&keys[..], CapiTypes::Private),
            (&keys[..1], CapiTypes::Private),
            (&keys[3..], CapiTypes::Standard),
        ] {
            assert!(
                of(keys).are_only_on(capi_types).is_err(),
                "{keys:?}, {capi_types:?}"
            );
        }
    }

    #[test]
    fn keys_are_distinguished_by_their_group() {
        let table = GroupTable::default();
        for (key, capi_types) in [
            (
                "/registry/cluster.x-k8s.io/machines/n/m",
                Some(CapiTypes::Standard),
            ),
            (
                "/registry/ipam.cluster.hypershift.openshift.io/ipaddresses/n/m",
                Some(CapiTypes::Private),
            ),
            (
                "/registry/cluster.hypershift.openshift.io/machines/n/m",
                Some(CapiTypes::Private),
            ),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/machines.cluster.x-k8s.io",
                Some(CapiTypes::Standard),
            ),
            ("/registry/secrets/n/cluster.x-k8s.io", None),
        ] {
            assert_eq!(types_of_key(&table, key), capi_types, "{key}");
        }
    }
}
