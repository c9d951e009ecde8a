//! What an image is made of, as a CycloneDX document: the crates that are linked into its program.

use std::collections::BTreeSet;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::images::TARGET;
use tokio::process::Command;

/// The document of the image of a package. It has no time and no serial number: the same sources give the same bytes.
pub(super) async fn of(package: &str, digest: &str) -> Result<Vec<u8>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", package, "--target", TARGET])
        .args(["--edges=normal", "--prefix=none", "--format={p}|{l}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .await
        .context("failed to run cargo tree")?;
    ensure!(
        output.status.success(),
        "failed to list the crates of {package}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document = document(package, digest, &String::from_utf8_lossy(&output.stdout));
    Ok(format!("{document:#}\n").into_bytes())
}

fn document(package: &str, digest: &str, tree: &str) -> Value {
    let lines: BTreeSet<_> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let components: Vec<_> = lines.into_iter().filter_map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "container", "name": package, "version": digest },
        },
        "components": components,
    })
}

/// A line is `name vVERSION (place)|LICENCE`. Macros are not linked.
fn component(line: &str) -> Option<Value> {
    let (id, license) = line.split_once('|')?;
    let mut words = id.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let place = words.next();
    if place == Some("(proc-macro)") {
        return None;
    }
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "licenses": [{ "expression": license.replace('/', " OR ") }],
    });
    // What has a place is of this tree, and in no registry.
    if place.is_none() {
        component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
    }
    Some(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "capi-proxy v0.0.0 (/tree/capi-proxy)|Apache-2.0
bytes v1.12.1|MIT
serde_derive v1.0.0 (proc-macro)|MIT
memchr v2.8.3|Unlicense/MIT
bytes v1.12.1|MIT (*)
";

    #[test]
    fn crates_are_listed_once_with_version_licence_and_package_url() {
        let document = document("capi-proxy", "sha256:00", TREE);
        let components = document["components"].as_array().unwrap();
        let names: Vec<_> = components
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["bytes", "capi-proxy", "memchr"]);
        assert_eq!(components[0]["purl"], "pkg:cargo/bytes@1.12.1");
        assert_eq!(components[1]["purl"], Value::Null);
        assert_eq!(
            components[2]["licenses"][0]["expression"],
            "Unlicense OR MIT"
        );
        assert!(!document.to_string().contains("/tree"), "{document}");
    }
}
