//! `hypershift install helm`: an installation as a Helm chart.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::args::{HelmArgs, Outputs};
use super::display::Display;
use super::kind::Kind;
use super::object::{Id, Object};
use super::options::Options;
use super::parameters::Parameters;
use super::plan::{Definitions, Plan, Surroundings};
use super::render;
use crate::crds::output::{self, Format, Readers};
use crate::crds::source::cluster::Access;

/// Directory of what Helm installs before all else, and does not change when it upgrades.
const CRDS: &str = "crds";
const TEMPLATES: &str = "templates";

/// A file of a chart, by its path in it.
#[derive(Debug, PartialEq)]
struct File {
    path: String,
    content: Value,
    readers: Readers,
}

/// Writes a chart of what would be installed.
pub(super) async fn helm(
    options: &Options,
    args: &HelmArgs,
    access: &Access,
) -> anyhow::Result<()> {
    let definitions = render::definitions(options, access).await?;
    let surroundings = render::surroundings(&args.assume);
    let files = chart(options, &definitions, &surroundings)?;
    refuse_others(&args.output_dir, &files)?;
    for File {
        path,
        content,
        readers,
    } in &files
    {
        let text = output::stream(std::slice::from_ref(content), Format::Yaml)?;
        output::file(&args.output_dir.join(path), &text, *readers)?;
    }
    let display = Display::new(false);
    display.say(&format!(
        "wrote {} files to {}",
        files.len(),
        args.output_dir.display()
    ));
    Ok(())
}

/// The files. The Namespace is that of the release, which Helm makes.
fn chart(
    options: &Options,
    definitions: &Definitions,
    surroundings: &Surroundings,
) -> anyhow::Result<Vec<File>> {
    let mut open = options.clone();
    let parameters = Parameters::extract(&mut open)?;
    let plan = |options: &Options, outputs| {
        let plan = Plan::make(options, outputs, definitions, surroundings)?;
        let objects = plan.objects.into_iter();
        let kept = objects.filter(|object| object.id.kind != Kind::Namespace);
        Ok::<_, anyhow::Error>(kept.collect::<Vec<Object>>())
    };
    let mut files = vec![
        File::new("Chart.yaml".to_owned(), about()),
        File::new("values.yaml".to_owned(), parameters.values()),
    ];
    let crds = plan(options, Outputs::Crds)?.into_iter();
    files.extend(crds.map(|crd| File::new(format!("{CRDS}/{}.yaml", crd.id.name), crd.body)));
    // Both have the same objects in the same order. What the first is called is what the second is called by default.
    let named = plan(options, Outputs::Resources)?.into_iter();
    let resources = named.zip(plan(&open, Outputs::Resources)?);
    files.extend(resources.map(|(named, object)| {
        let path = format!("{TEMPLATES}/{}", file_name(&named.id));
        let file = File::new(path, parameters.in_chart(&object.body));
        if object.id.kind == Kind::Secret {
            return file.for_owner();
        }
        file
    }));
    Ok(files)
}

fn about() -> Value {
    json!({
        "apiVersion": "v2",
        "name": "hypershift-operator",
        "description": "The operators of hosted clusters",
        "type": "application",
        "version": "0.1.0",
        "appVersion": env!("CARGO_PKG_VERSION"),
    })
}

fn file_name(id: &Id) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let kind = id.kind.name().to_lowercase();
    let name: String = id.name.chars().map(plain).collect();
    format!("{kind}-{name}.yaml")
}

/// Helm would install files of an earlier chart, too.
fn refuse_others(directory: &Path, files: &[File]) -> anyhow::Result<()> {
    for part in [CRDS, TEMPLATES] {
        let place = directory.join(part);
        let entries = match fs::read_dir(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.with_context(|| format!("cannot read {}", place.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", place.display()))?;
            let path = format!("{part}/{}", entry.file_name().display());
            if !files.iter().any(|file| file.path == path) {
                bail!(
                    "{} is not of this chart, and Helm would install it: remove it, or give another --output-dir",
                    entry.path().display()
                );
            }
        }
    }
    Ok(())
}

// === impl File ===

impl File {
    fn new(path: String, content: Value) -> Self {
        Self {
            path,
            content,
            readers: Readers::Everyone,
        }
    }

    /// A file with a Secret.
    fn for_owner(self) -> Self {
        Self {
            readers: Readers::Owner,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_chart_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let files = [File::new("templates/a.yaml".to_owned(), json!({}))];
        refuse_others(directory.path(), &files).unwrap();
        fs::create_dir(directory.path().join(TEMPLATES)).unwrap();
        fs::write(directory.path().join("templates/a.yaml"), "{}").unwrap();
        refuse_others(directory.path(), &files).unwrap();
        fs::write(directory.path().join("templates/b.yaml"), "{}").unwrap();
        let error = refuse_others(directory.path(), &files).unwrap_err();
        assert!(error.to_string().contains("b.yaml is not of this chart"));
    }
}
