//! The CRDs of Karpenter, which the binary carries: hosted clusters with AutoNode serve them.
//!
//! They are fetched before the build (`cargo xtask embed`); a binary that was built without them says so when a cluster needs
//! them. Nothing of their text is in the sources.

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

#[cfg(embedded_karpenter)]
const PACKED: Option<&str> = Some(include_str!("../embedded/karpenter.json"));
#[cfg(not(embedded_karpenter))]
const PACKED: Option<&str> = None;

/// Why the binary's CRDs cannot be used, or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The build had none.
    #[error(
        "this binary was built without the CRDs of Karpenter: build it again after cargo xtask embed"
    )]
    Missing,
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
    #[error("{file} of Karpenter is no CustomResourceDefinition: {problem}")]
    NoCrd {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// CRDs as they lie in the binary.
#[derive(Debug, Serialize, Deserialize)]
struct Package {
    version: String,
    crds: Vec<Value>,
}

/// The CRDs that this binary carries.
pub fn read() -> Result<Vec<Value>, Error> {
    unpack(PACKED.ok_or(Error::Missing)?)
}

/// What the next build is to carry, from the texts of [`FILES`] in their order: one JSON document.
pub fn pack(texts: &[String; 3]) -> Result<String, Error> {
    let crds = FILES.into_iter().zip(texts).map(|(file, text)| {
        let problem = |problem: String| Error::NoCrd { file, problem };
        let crd: Value =
            serde_saphyr::from_str(text).map_err(|error| problem(error.to_string()))?;
        if crd["kind"] != "CustomResourceDefinition" {
            return Err(problem(format!("its kind is {}", crd["kind"])));
        }
        Ok(without_status(crd))
    });
    let package = Package {
        version: MODULE.1.to_owned(),
        crds: crds.collect::<Result<_, _>>()?,
    };
    let mut text = serde_json::to_string(&package).expect("invariant: JSON values are JSON");
    text.push('\n');
    Ok(text)
}

/// The status of a CRD is the API server's.
fn without_status(mut crd: Value) -> Value {
    if let Some(fields) = crd.as_object_mut() {
        fields.remove("status");
    }
    crd
}

fn unpack(text: &str) -> Result<Vec<Value>, Error> {
    let Package { version, crds } = serde_json::from_str(text).map_err(Error::Damaged)?;
    if version != MODULE.1 {
        return Err(Error::Outdated {
            found: version,
            wanted: MODULE.1,
        });
    }
    Ok(crds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: &str) -> [String; 3] {
        ["a", "b", "c"].map(|name| {
            format!("kind: {kind}\nmetadata: {{name: {name}}}\nstatus: {{conditions: []}}\n")
        })
    }

    #[test]
    fn packed_crds_are_read_without_their_status() {
        let packed = pack(&texts("CustomResourceDefinition")).unwrap();
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
            (unpack("{").unwrap_err(), "damaged"),
            (Error::Missing, "cargo xtask embed"),
            (pack(&texts("Role")).unwrap_err(), "ec2nodeclasses.yaml"),
        ] {
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    /// With `cargo xtask embed`, the binary has them.
    #[test]
    fn the_binarys_own_crds_are_those_of_the_pinned_version() {
        match read() {
            Err(Error::Missing) => assert!(PACKED.is_none()),
            read => assert_eq!(read.unwrap().len(), FILES.len()),
        }
    }
}
