//! What programs embed: fetched before they are built, since nothing of upstream's text is committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use api::karpenter::definitions::{self, FILES, MODULE};
use cli::crds::source::{embedded, module};
use serde_json::Value;
use tokio::sync::OnceCell;

/// What this process has written.
static FILLED: OnceCell<Vec<(PathBuf, usize)>> = OnceCell::const_new();

/// Writes the files that the next builds of `hypershift` and of `hypershift-operator` take up, once in each process; gives the
/// files and their sizes.
pub async fn fill() -> Result<Vec<(PathBuf, usize)>> {
    FILLED.get_or_try_init(write).await.cloned()
}

async fn write() -> Result<Vec<(PathBuf, usize)>> {
    let crds = tokio::task::spawn_blocking(embedded::pack)
        .await?
        .context("failed to read the CRDs of the pinned modules")?;
    let karpenter = tokio::task::spawn_blocking(karpenter)
        .await?
        .context("failed to read the CRDs of Karpenter")?;
    Ok(vec![
        replace("../cli/embedded/crds.json", &crds)?,
        replace("../hypershift-operator/embedded/karpenter.json", &karpenter)?,
    ])
}

/// The CRDs of Karpenter, which hosted clusters with AutoNode serve.
fn karpenter() -> Result<String> {
    let (path, version) = MODULE;
    let root = module::download(&format!("{path}@{version}").parse()?)?;
    let mut documents = Vec::new();
    for name in FILES {
        let text = std::fs::read_to_string(root.join(name));
        let text = text.with_context(|| format!("failed to read {name} of {path}"))?;
        let document: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("failed to parse {name} of {path}"))?;
        documents.push(document);
    }
    let documents: [Value; 3] = documents
        .try_into()
        .ok()
        .context("not all files were read")?;
    Ok(definitions::pack(documents)?)
}

/// A file with the same content is left alone, so that nothing is built again for it.
fn replace(name: &str, text: &str) -> Result<(PathBuf, usize)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::fs::read_to_string(&file).is_ok_and(|found| found == text) {
        return Ok((file, text.len()));
    }
    // Whole or not at all: a build may be continuing.
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, text)
        .and_then(|()| std::fs::rename(&fresh, &file))
        .with_context(|| format!("failed to write {}", file.display()))?;
    Ok((file, text.len()))
}
