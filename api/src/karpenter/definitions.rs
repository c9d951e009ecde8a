//! The CRDs of Karpenter itself, which hosted clusters with AutoNode serve beside those of this group: where they are from, and
//! how a binary carries them. Nothing of their text is in the sources.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The Go module that has them, and the version that this release is tested with.
pub const MODULE: (&str, &str) = ("github.com/aws/karpenter-provider-aws", "v1.8.6");
/// The files in it.
pub const FILES: [&str; 3] = [
    "pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml",
    "pkg/apis/crds/karpenter.sh_nodeclaims.yaml",
    "pkg/apis/crds/karpenter.sh_nodepools.yaml",
];

/// Why CRDs cannot be used, or carried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are of another version.
    #[error(
        "this binary carries the CRDs of Karpenter {found} in place of {wanted}: build it again after cargo xtask embed"
    )]
    Outdated {
        /// The version that they are of.
        found: String,
        /// What is pinned.
        wanted: &'static str,
    },
    /// They cannot be read.
    #[error("this binary's CRDs of Karpenter are damaged: build it again after cargo xtask embed")]
    Damaged(#[source] serde_json::Error),
    /// A file of the module is no CRD.
    #[error("{file} of Karpenter is no CustomResourceDefinition: its kind is {kind}")]
    NoCrd {
        /// The file.
        file: &'static str,
        /// What it is.
        kind: Value,
    },
}

/// CRDs as they lie in a binary.
#[derive(Debug, Serialize, Deserialize)]
struct Package {
    version: String,
    crds: Vec<Value>,
}

/// What a build is to carry, from the documents in [`FILES`] in their order: one JSON document.
pub fn pack(documents: [Value; 3]) -> Result<String, Error> {
    let crds = FILES.into_iter().zip(documents).map(|(file, document)| {
        let kind = document["kind"].clone();
        if kind != "CustomResourceDefinition" {
            return Err(Error::NoCrd { file, kind });
        }
        Ok(without_status(document))
    });
    let package = Package {
        version: MODULE.1.to_owned(),
        crds: crds.collect::<Result<_, _>>()?,
    };
    let mut text = serde_json::to_string(&package).expect("invariant: JSON values are JSON");
    text.push('\n');
    Ok(text)
}

/// The CRDs that a build carries.
pub fn unpack(text: &str) -> Result<Vec<Value>, Error> {
    let Package { version, crds } = serde_json::from_str(text).map_err(Error::Damaged)?;
    if version != MODULE.1 {
        return Err(Error::Outdated {
            found: version,
            wanted: MODULE.1,
        });
    }
    Ok(crds)
}

/// The status of a CRD is the API server's.
fn without_status(mut crd: Value) -> Value {
    if let Some(fields) = crd.as_object_mut() {
        fields.remove("status");
    }
    crd
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents(kind: &str) -> [Value; 3] {
        ["a", "b", "c"]
            .map(|name| json!({ "kind": kind, "metadata": { "name": name }, "status": {} }))
    }

    #[test]
    fn packed_crds_are_read_without_their_status() {
        let packed = pack(documents("CustomResourceDefinition")).unwrap();
        let crds = unpack(&packed).unwrap();
        let names: Vec<_> = crds.iter().map(|it| &it["metadata"]["name"]).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(crds.iter().all(|it| it["status"].is_null()));
    }

    #[test]
    fn what_is_not_usable_is_reported_with_the_way_out() {
        let other = r#"{"version":"v0.1.0","crds":[]}"#;
        for (error, expected) in [
            (unpack(other).unwrap_err(), "Karpenter v0.1.0 in place of v"),
            (unpack("{").unwrap_err(), "cargo xtask embed"),
            (pack(documents("Role")).unwrap_err(), "ec2nodeclasses.yaml"),
        ] {
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
