//! What an image is made of, as a CycloneDX document: its files, and the crates that are linked into its program.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testbed::images::{Archive, Image, TARGET};
use tokio::process::Command;

/// The document of an image. It has no time and no serial number: the same sources give the same bytes.
pub(super) async fn of(image: Image, archive: &Archive, source: &Path) -> Result<Vec<u8>> {
    let tree = tree(image.recipe().package, source).await?;
    let document = document(image.name(), archive, &tree)?;
    Ok(format!("{document:#}\n").into_bytes())
}

/// The crates that are linked into a package's program, a line each. Procedural macros run in the compiler only.
async fn tree(package: &str, source: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", package, "--target", TARGET])
        .args([
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--format={p}|{l}",
        ])
        .current_dir(source)
        .stdin(Stdio::null())
        .output()
        .await
        .context("failed to run cargo tree")?;
    ensure!(
        output.status.success(),
        "failed to list the crates of {package}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn document(image: &str, archive: &Archive, tree: &str) -> Result<Value> {
    let lines: BTreeSet<_> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let mut components: Vec<_> = lines.into_iter().filter_map(component).collect();
    components.extend(files(archive)?);
    let digest = &archive.manifest.digest;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": format!("{image}@{digest}"),
                "name": image,
                "version": digest,
            },
        },
        "components": components,
    }))
}

/// A line is `name vVERSION (place)|LICENCE`.
fn component(line: &str) -> Option<Value> {
    let (id, license) = line.split_once('|')?;
    let mut words = id.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let mut component = json!({
        "type": "library",
        "bom-ref": format!("{name}@{version}"),
        "name": name,
        "version": version,
    });
    let license = expression(license);
    // A crate may name a file in place of a license; an empty expression is not valid.
    if !license.is_empty() {
        component["licenses"] = json!([{ "expression": license }]);
    }
    // What has a place is of this tree, and in no registry.
    if words.next().is_none() {
        component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
    }
    Some(component)
}

/// The SPDX expression of a license; older crates write `MIT/Apache-2.0`.
fn expression(license: &str) -> String {
    let license = license.replace('/', " OR ");
    license.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The files of the image, with their checksums.
fn files(archive: &Archive) -> Result<Vec<Value>> {
    let mut layer = tar::Archive::new(archive.layer.bytes.as_ref());
    let mut files = Vec::new();
    for entry in layer.entries().context("failed to read the layer")? {
        let mut entry = entry.context("failed to read the layer")?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path().context("failed to read the layer")?;
        let name = format!("/{}", path.display());
        let mut bytes = Vec::new();
        entry
            .read_to_end(&mut bytes)
            .with_context(|| format!("failed to read {name} in the layer"))?;
        files.push(json!({
            "type": "file",
            "bom-ref": format!("file:{name}"),
            "name": name,
            "hashes": [{ "alg": "SHA-256", "content": format!("{:x}", Sha256::digest(&bytes)) }],
        }));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use testbed::images::{Contents, File};

    use super::*;

    const TREE: &str = "capi-proxy v0.0.0 (/tree/capi-proxy)|Apache-2.0
bytes v1.12.1|MIT
memchr v2.8.3|Unlicense / MIT
odd v1.0.0|
bytes v1.12.1|MIT (*)
";

    fn archive() -> Archive {
        let contents = Contents {
            entrypoint: "/program".to_owned(),
            command: &["run"],
            files: vec![File::script("/bin/program", "#!/bin/sh\n")],
        };
        Archive::of(&contents).unwrap()
    }

    /// What CycloneDX 1.5 requires of a document, and of the parts that are written here.
    fn violations(document: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                found.push(what);
            }
        };
        check(document["bomFormat"] == "CycloneDX", "bomFormat".to_owned());
        check(document["specVersion"] == "1.5", "specVersion".to_owned());
        check(
            document["version"].as_u64() >= Some(1),
            "version".to_owned(),
        );
        let image = &document["metadata"]["component"];
        let listed = document["components"].as_array().unwrap();
        let mut references = BTreeSet::new();
        for component in listed.iter().chain([image]) {
            let text = |key: &str| component[key].as_str().unwrap_or_default();
            let kinds = ["container", "file", "library"];
            check(kinds.contains(&text("type")), format!("type: {component}"));
            check(!text("name").is_empty(), format!("name: {component}"));
            check(
                references.insert(text("bom-ref")) && !text("bom-ref").is_empty(),
                format!("bom-ref is not unique: {component}"),
            );
            let purl = component.get("purl").and_then(Value::as_str);
            check(
                purl.is_none_or(|it| it.starts_with("pkg:cargo/") && it.contains('@')),
                format!("purl: {component}"),
            );
            for license in component["licenses"].as_array().into_iter().flatten() {
                let license = license["expression"].as_str().unwrap_or_default();
                check(is_spdx(license), format!("license: {component}"));
            }
            for hash in component["hashes"].as_array().into_iter().flatten() {
                let content = hash["content"].as_str().unwrap_or_default();
                let is_hex = content.bytes().all(|it| it.is_ascii_hexdigit());
                check(
                    hash["alg"] == "SHA-256" && content.len() == 64 && is_hex,
                    format!("hash: {component}"),
                );
            }
        }
        found
    }

    /// Whether identifiers and operators take turns, and parentheses match.
    fn is_spdx(expression: &str) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ");
        let (mut depth, mut wants_name) = (0_i32, true);
        for word in spaced.split_whitespace() {
            let fits = match word {
                "(" => {
                    depth += 1;
                    wants_name
                }
                ")" => {
                    depth -= 1;
                    !wants_name && depth >= 0
                }
                "AND" | "OR" | "WITH" => !std::mem::replace(&mut wants_name, true),
                name => {
                    let mut bytes = name.bytes();
                    let is_name =
                        bytes.all(|it| it.is_ascii_alphanumeric() || b"-.+".contains(&it));
                    is_name && std::mem::replace(&mut wants_name, false)
                }
            };
            if !fits {
                return false;
            }
        }
        depth == 0 && !wants_name
    }

    #[test]
    fn crates_are_listed_once_with_version_licence_and_package_url() {
        let document = document("capi-proxy", &archive(), TREE).unwrap();
        assert_eq!(violations(&document), Vec::<String>::new());
        let components = document["components"].as_array().unwrap();
        let names: Vec<_> = components
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        let expected = ["bytes", "capi-proxy", "memchr", "odd", "/bin/program"];
        assert_eq!(names, expected);
        assert_eq!(components[0]["purl"], "pkg:cargo/bytes@1.12.1");
        assert_eq!(components[1]["purl"], Value::Null);
        assert_eq!(
            components[2]["licenses"][0]["expression"],
            "Unlicense OR MIT"
        );
        assert_eq!(components[3]["licenses"], Value::Null);
        assert!(!document.to_string().contains("/tree"), "{document}");
    }

    /// Issue 12, deliver 8: every image has a valid document, which is the same each time.
    #[tokio::test]
    async fn the_document_of_every_image_is_valid_and_reproducible() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        for image in Image::ALL {
            let bytes = of(image, &archive(), source).await.unwrap();
            let document: Value = serde_json::from_slice(&bytes).unwrap();
            let name = image.name();
            assert_eq!(violations(&document), Vec::<String>::new(), "{name}");
            assert_eq!(document["metadata"]["component"]["name"], name);
            let components = document["components"].as_array().unwrap();
            assert!(components.len() > 50, "{name}: {}", components.len());
            let unlicensed: Vec<_> = components
                .iter()
                .filter(|one| one["type"] == "library" && one.get("licenses").is_none())
                .collect();
            assert!(unlicensed.is_empty(), "{name}: {unlicensed:?}");
            let again = of(image, &archive(), source).await.unwrap();
            assert_eq!(again, bytes, "{name}");
        }
    }

    #[test]
    fn invalid_documents_are_found() {
        let valid = document("capi-proxy", &archive(), TREE).unwrap();
        for (pointer, value) in [
            ("/specVersion", json!("1.9")),
            ("/version", json!(0)),
            ("/components/0/type", json!("crate")),
            ("/components/0/name", json!("")),
            ("/components/0/bom-ref", json!("memchr@2.8.3")),
            ("/components/0/purl", json!("bytes")),
            ("/components/0/licenses/0/expression", json!("MIT/X11")),
            ("/components/0/licenses/0/expression", json!("MIT OR")),
            ("/components/4/hashes/0/content", json!("00")),
        ] {
            let mut invalid = valid.clone();
            *invalid.pointer_mut(pointer).unwrap() = value;
            assert_eq!(violations(&invalid).len(), 1, "{pointer}");
        }
    }
}
