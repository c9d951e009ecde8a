//! All steps of the script, in order, with templates expanded.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use testbed::client::ApiClient;

use crate::differential::script::{self, Step, Values};

/// The files, in the order in which they are run.
const FILES: [(&str, &str); 12] = [
    ("discovery.http", include_str!("script/discovery.http")),
    ("objects.http", include_str!("script/objects.http")),
    ("patches.http", include_str!("script/patches.http")),
    ("core.http", include_str!("script/core.http")),
    ("tables.http", include_str!("script/tables.http")),
    ("errors.http", include_str!("script/errors.http")),
    ("rights.http", include_str!("script/rights.http")),
    ("types.http", include_str!("script/types.http")),
    ("managers.http", include_str!("script/managers.http")),
    ("names.http", include_str!("script/names.http")),
    ("watches.http", include_str!("script/watches.http")),
    ("ends.http", include_str!("script/ends.http")),
];

/// The tables of `@each`.
struct Tables {
    crds: Vec<Values>,
    versions: Vec<Values>,
}

/// Reads the script; the CRDs of the standard server show which types there are.
pub(crate) async fn all(admin: &ApiClient) -> Result<Vec<Step>> {
    let crds = admin
        .list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .await?;
    let tables = Tables::of(&crds)?;
    let mut steps = Vec::new();
    for (file, text) in FILES {
        for step in script::parse(file, text)? {
            match &step.each {
                None => steps.push(step),
                Some(table) => {
                    steps.extend(tables.rows(table)?.iter().map(|row| step.for_row(row)))
                }
            }
        }
    }
    Ok(steps)
}

// === impl Tables ===

impl Tables {
    fn of(crds: &[Value]) -> Result<Self> {
        let rows: Result<Vec<Values>> = crds.iter().map(row).collect();
        let rows = rows?;
        let versions: BTreeSet<(String, String)> = crds.iter().flat_map(served).collect();
        let versions = versions.into_iter().map(|(group, version)| {
            Values::from([("group".to_owned(), group), ("version".to_owned(), version)])
        });
        Ok(Self {
            versions: versions.collect(),
            crds: rows,
        })
    }

    fn rows(&self, table: &str) -> Result<&[Values]> {
        match table {
            "crd" => Ok(&self.crds),
            "version" => Ok(&self.versions),
            _ => bail!("there is no table {table:?}"),
        }
    }
}

/// The group and each served version of a CRD.
fn served(crd: &Value) -> Vec<(String, String)> {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array();
    versions
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .filter_map(|version| Some((group.to_owned(), version["name"].as_str()?.to_owned())))
        .collect()
}

fn row(crd: &Value) -> Result<Values> {
    let spec = &crd["spec"];
    let versions = spec["versions"]
        .as_array()
        .context("a CRD has no versions")?;
    let stored = versions.iter().find(|version| version["storage"] == true);
    let field = |value: &Value| {
        value
            .as_str()
            .map(str::to_owned)
            .context("a CRD lacks a name")
    };
    Ok(Values::from([
        ("crd".to_owned(), field(&crd["metadata"]["name"])?),
        ("group".to_owned(), field(&spec["group"])?),
        ("plural".to_owned(), field(&spec["names"]["plural"])?),
        ("kind".to_owned(), field(&spec["names"]["kind"])?),
        (
            "version".to_owned(),
            field(&stored.context("no version is stored")?["name"])?,
        ),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::allowed::BY_STEP;
    use crate::differential::programs;

    #[test]
    fn steps_allow_known_differences_only_and_each_is_needed() {
        let mut used = BTreeSet::new();
        let mut steps = programs::commands().unwrap();
        for (file, text) in FILES {
            steps.extend(script::parse(file, text).unwrap());
        }
        for step in steps {
            let refused = step.refusal.iter().map(|(difference, _)| difference);
            let named: Vec<&String> = step.allowed.iter().chain(refused).collect();
            assert!(
                step.direct_headers.is_empty() || !named.is_empty(),
                "{}",
                step.name()
            );
            for difference in named {
                assert!(
                    BY_STEP.contains(&difference.as_str()),
                    "{}: {difference}",
                    step.name()
                );
                used.insert(difference.clone());
            }
        }
        assert_eq!(used, BY_STEP.map(str::to_owned).into());
    }
}
