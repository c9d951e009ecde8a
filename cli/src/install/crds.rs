//! The CRDs of an installation: those of our own kinds, the private ones of Cluster API and its providers, and those of
//! other projects that providers use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use api::features::FeatureSet;
use api::group::GroupTable;
use serde_json::Value;

use super::args::Platform;
use super::conversion;
use super::kind::text;
use super::options::Private;
use crate::Usage;
use crate::crds::source::cluster::Access;
use crate::crds::source::module::Module;
use crate::crds::source::url::{PlainHttp, Url};
use crate::crds::source::{self, SourceError, shared};
use crate::crds::{Batch, Derivation, Descriptions};

/// Where standard CRDs are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The binary itself.
    Embedded,
    Module(Module),
    File(PathBuf),
    Url(Url),
    /// The cluster that is installed to.
    Cluster,
}

/// How kinds of a platform begin.
const PREFIXES: [(&str, Platform); 13] = [
    ("AWS", Platform::Aws),
    ("ROSA", Platform::Aws),
    ("EKS", Platform::Aws),
    ("GCP", Platform::Gcp),
    ("Azure", Platform::Azure),
    ("ASO", Platform::Azure),
    ("Kubevirt", Platform::Kubevirt),
    ("Agent", Platform::Agent),
    ("OpenStack", Platform::Openstack),
    ("IBMPowerVS", Platform::Ibmcloud),
    ("IBMVPC", Platform::Ibmcloud),
    ("Dev", Platform::Dev),
    ("Docker", Platform::Dev),
];

// === impl Source ===

impl Source {
    /// What one use of the flag names: `module` alone stands for all pinned ones. What is refused is not repeated, as a
    /// URL may hold a password.
    pub(crate) fn parse(given: &str) -> Result<Vec<Self>, Usage> {
        let (kind, rest) = match given.split_once('=') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (given, None),
        };
        match (kind, rest) {
            ("embedded", None) => Ok(vec![Self::Embedded]),
            ("cluster", None) => Ok(vec![Self::Cluster]),
            ("module", None) => {
                let modules = Module::pinned().chain(Module::shared());
                Ok(modules.map(Self::Module).collect())
            }
            ("module", Some(module)) => {
                let module = Module::from_str(module).map_err(|error| Usage::new(&error))?;
                Ok(vec![Self::Module(module)])
            }
            ("file", Some(path)) => Ok(vec![Self::File(PathBuf::from(path))]),
            ("url", Some(url)) => {
                let url: Url = url.parse().map_err(|error| Usage::new(&error))?;
                url.check(PlainHttp::Loopback)
                    .map_err(|error| Usage::new(&error))?;
                Ok(vec![Self::Url(url)])
            }
            _ => Err(Usage::new(
                &"--private-crds-from takes embedded, module[=MODULE[@VERSION]], file=PATH, url=URL or cluster",
            )),
        }
    }

    async fn read(&self, access: &Access, table: &GroupTable) -> Result<Batch, SourceError> {
        match self {
            Self::Embedded => Ok(source::embedded::read()?),
            Self::Module(module) => source::module::read(module),
            Self::File(path) => source::file::read(path),
            Self::Url(url) => source::url::read(url, PlainHttp::Loopback).await,
            Self::Cluster => source::cluster::read(access, table).await,
        }
    }
}

/// The CRDs of our own kinds, with what a feature set has of them.
pub(crate) fn own(features: FeatureSet) -> Vec<Value> {
    let own = api::crds::of(features);
    let mut crds: Vec<Value> = own.map(|crd| (crd.render)(features)).collect();
    crds.sort_by(|a, b| text(a, "/metadata/name").cmp(text(b, "/metadata/name")));
    crds
}

/// The private CRDs, and those of other projects that providers on private types use.
pub(crate) async fn private(private: &Private, access: &Access) -> anyhow::Result<Vec<Value>> {
    let mut derivation = Derivation::new(GroupTable::default());
    // With them, the largest CRDs are larger than what an API server takes at once.
    derivation.descriptions = Descriptions::Strip;
    let mut batches = Vec::new();
    let mut shared = Vec::new();
    for source in &private.sources {
        let batch = source
            .read(access, &derivation.table)
            .await
            .context("the private CRDs need a source: see --private-crds-from")?;
        // What the cluster has already stays as it is.
        if *source == Source::Cluster {
            batches.push(batch);
            continue;
        }
        let (others, rest) = part(batch, &derivation.table);
        shared.extend(others);
        batches.extend(rest);
    }
    let derived = conversion::derive(private.conversion.as_ref(), derivation, batches)?;
    Ok(derived
        .into_iter()
        .chain(without_repetition(shared))
        .filter(|crd| is_wanted(crd, &private.platforms))
        .collect())
}

/// The CRDs of other projects, and what is left to derive from. A batch that has only the former is no mistake; one that
/// has neither is reported by the derivation.
fn part(mut batch: Batch, table: &GroupTable) -> (Vec<Value>, Option<Batch>) {
    let others = shared::take(&mut batch);
    let has_derivable = batch.documents.iter().any(|document| {
        let group = text(&document.value, "/spec/group");
        table.find(group.as_bytes()).is_some()
    });
    let rest = (others.is_empty() || has_derivable).then_some(batch);
    (others, rest)
}

/// Each CRD once: of those with one name, the one of the last source, which is the most explicit one.
fn without_repetition(crds: Vec<Value>) -> impl Iterator<Item = Value> {
    let named = crds.into_iter().map(|crd| {
        let name = text(&crd, "/metadata/name").to_owned();
        (name, crd)
    });
    let by_name: BTreeMap<_, _> = named.collect();
    by_name.into_values()
}

/// Whether a CRD is of one of the platforms, or of none in particular.
fn is_wanted(crd: &Value, platforms: &[Platform]) -> bool {
    match platform(crd) {
        Some(platform) => platforms.contains(&Platform::All) || platforms.contains(&platform),
        None => true,
    }
}

/// The platform that a CRD is for.
fn platform(crd: &Value) -> Option<Platform> {
    if text(crd, "/spec/group") == shared::OPENSTACK {
        return Some(Platform::Openstack);
    }
    let kind = text(crd, "/spec/names/kind");
    let found = PREFIXES.iter().find(|(prefix, _)| kind.starts_with(prefix));
    found.map(|(_, platform)| *platform)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_named_or_refused_without_being_repeated() {
        assert_eq!(Source::parse("embedded").unwrap(), [Source::Embedded]);
        assert_eq!(Source::parse("cluster").unwrap(), [Source::Cluster]);
        assert_eq!(
            Source::parse("file=/a/b").unwrap(),
            [Source::File(PathBuf::from("/a/b"))]
        );
        assert_eq!(
            Source::parse("module").unwrap().len(),
            source::module::PINNED.len() + source::module::SHARED.len()
        );
        for given in [
            "",
            "files",
            "file",
            "url",
            "embedded=a",
            "url=http://user:hunter2@example.com/",
            "url=ftp://user:hunter2@example.com/",
        ] {
            let refused = Source::parse(given).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn platforms_limit_their_own_kinds_only() {
        let crd = |kind: &str| json!({"spec": {"names": {"kind": kind}}});
        let image = json!({"spec": {"group": shared::OPENSTACK, "names": {"kind": "Image"}}});
        assert!(is_wanted(&image, &[Platform::Openstack]));
        assert!(!is_wanted(&image, &[Platform::Aws]));
        let table = [
            ("AWSMachine", Platform::Aws, true),
            ("AWSMachine", Platform::Gcp, false),
            ("ROSACluster", Platform::Aws, true),
            ("GCPCluster", Platform::All, true),
            ("DockerMachine", Platform::Aws, false),
            ("Machine", Platform::Aws, true),
            ("KubeadmConfig", Platform::Gcp, true),
            ("AzureASOManagedCluster", Platform::Azure, true),
            ("IBMVPCMachine", Platform::Ibmcloud, true),
            ("IBMPowerVSMachine", Platform::Kubevirt, false),
            ("OpenStackServer", Platform::Openstack, true),
        ];
        for (kind, platform, expected) in table {
            assert_eq!(is_wanted(&crd(kind), &[platform]), expected, "{kind}");
        }
    }

    #[test]
    fn crds_of_other_projects_are_parted_from_those_to_derive() {
        let crd = |group: &str, plural: &str| {
            json!({
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}")},
                "spec": {"group": group, "names": {"plural": plural}},
            })
        };
        let image = crd(shared::OPENSTACK, "images");
        let network = crd(shared::OPENSTACK, "networks");
        let machine = crd("cluster.x-k8s.io", "machines");
        let table = [
            (vec![image.clone(), machine.clone()], 1, Some(1)),
            (vec![image.clone(), network.clone()], 1, None),
            (vec![machine], 0, Some(1)),
            (vec![network], 0, Some(1)),
        ];
        for (given, others, rest) in table {
            let batch = Batch::of_values("test", given.clone());
            let (found, left) = part(batch, &GroupTable::default());
            let left = left.map(|batch| batch.documents.len());
            assert_eq!((found.len(), left), (others, rest), "{given:?}");
        }
        let mut other = image.clone();
        other["spec"]["scope"] = json!("Namespaced");
        let once: Vec<_> = without_repetition(vec![image, other.clone()]).collect();
        assert_eq!(once, [other]);
    }
}
