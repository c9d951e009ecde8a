//! The CRDs of an installation: those of our own kinds, and the private twins of Cluster API's.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
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
use crate::crds::source::{self, SourceError};
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
            ("module", None) => Ok(Module::pinned().map(Self::Module).collect()),
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

/// The CRDs of our own kinds.
pub(crate) fn own() -> Vec<Value> {
    let mut crds: Vec<Value> = api::crds::ALL.iter().map(|crd| (crd.render)()).collect();
    crds.sort_by(|a, b| text(a, "/metadata/name").cmp(text(b, "/metadata/name")));
    crds
}

/// The private CRDs.
pub(crate) async fn private(private: &Private, access: &Access) -> anyhow::Result<Vec<Value>> {
    let mut derivation = Derivation::new(GroupTable::default());
    // With them, the largest CRDs are larger than what an API server takes at once.
    derivation.descriptions = Descriptions::Strip;
    let mut batches = Vec::new();
    for source in &private.sources {
        batches.push(
            source
                .read(access, &derivation.table)
                .await
                .context("the private CRDs need a source: see --private-crds-from")?,
        );
    }
    let derived = conversion::derive(private.conversion.as_ref(), derivation, batches)?;
    Ok(derived
        .into_iter()
        .filter(|crd| is_wanted(crd, &private.platforms))
        .collect())
}

/// Whether a CRD is of one of the platforms, or of none in particular.
fn is_wanted(crd: &Value, platforms: &[Platform]) -> bool {
    let kind = text(crd, "/spec/names/kind");
    match PREFIXES.iter().find(|(prefix, _)| kind.starts_with(prefix)) {
        Some((_, platform)) => platforms.contains(&Platform::All) || platforms.contains(platform),
        None => true,
    }
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
            source::module::PINNED.len()
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
        let table = [
            ("AWSMachine", Platform::Aws, true),
            ("AWSMachine", Platform::Gcp, false),
            ("ROSACluster", Platform::Aws, true),
            ("GCPCluster", Platform::All, true),
            ("DockerMachine", Platform::Aws, false),
            ("Machine", Platform::Aws, true),
            ("KubeadmConfig", Platform::Gcp, true),
        ];
        for (kind, platform, expected) in table {
            assert_eq!(is_wanted(&crd(kind), &[platform]), expected, "{kind}");
        }
    }
}
