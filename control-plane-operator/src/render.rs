//! `control-plane-operator render`: renders all objects of a hosted control plane to files, without a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use api::hypershift::v1beta1::{ControlPlaneComponentStatus, HostedControlPlane};
use control_plane_component::facts::Infra;
use control_plane_component::render::{Rendered, identity};
use control_plane_component::settings::Settings;
use control_plane_component::status::{Observation, status};
use control_plane_component::{Component, Context, Objects, Predicates, Release, render};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use payload::Overrides;
use serde_json::{Value, json};

use crate::components;
use crate::error::{Failure, Usage};
use crate::settings::SettingsArgs;

/// The flags of `render`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File with the HostedControlPlane, YAML.
    #[arg(long, value_name = "FILE")]
    pub hosted_control_plane: PathBuf,
    /// File with the release's image references: the ImageStream /release-manifests/image-references of a release
    /// image.
    #[arg(long, value_name = "FILE")]
    pub release_images: PathBuf,
    /// Directory with existing objects, YAML. It must contain objects that components read, for example certificates.
    #[arg(long, value_name = "DIR")]
    pub objects: Option<PathBuf>,
    /// Output directory; files are named COMPONENT/KIND-NAME.yaml.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Render all components, even those that are disabled for this hosted control plane.
    #[arg(long)]
    pub all_platforms: bool,
    /// Rendering flags.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// The input of rendering.
#[derive(Debug, Clone)]
pub struct Input {
    /// The hosted control plane.
    pub hosted_control_plane: HostedControlPlane,
    /// The release.
    pub release: Release,
    /// Existing objects.
    pub objects: Objects,
    /// Settings of the management cluster.
    pub settings: Settings,
    /// Whether component predicates are evaluated.
    pub predicates: Predicates,
}

/// An output file.
#[derive(Debug, Clone)]
pub struct File {
    /// `<component>/<kind>-<name>.yaml`.
    pub path: String,
    /// The object.
    pub object: Value,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let input = Input::read(args)?;
    let mut problems = Vec::new();
    let mut written = 0;
    for component in components::all() {
        match input.component(component) {
            Ok(files) => {
                for file in files {
                    write(&args.output, &file)?;
                    written += 1;
                }
            }
            Err(error) => problems.push(format!(
                "{}: {}",
                component.name,
                support::error::chain(&error)
            )),
        }
    }
    println!("Wrote {written} objects to {}", args.output.display());
    if problems.is_empty() {
        return Ok(());
    }
    Err(problems.join("\n").into())
}

// === impl Input ===

impl Input {
    fn read(args: &Args) -> Result<Self, Failure> {
        let hcp: HostedControlPlane = parse(&args.hosted_control_plane)?;
        let settings = args.settings.settings()?;
        let references = read(&args.release_images)?;
        let overrides = Overrides::new(settings.registry_overrides.0.clone());
        let pull_spec = &hcp.spec.release_image;
        let release =
            payload::Release::from_image_references(pull_spec, references.as_bytes(), &overrides)?;
        let release =
            Release::from(&release).with_overrides(&settings.own_image, &settings.image_overrides);
        Ok(Self {
            hosted_control_plane: hcp,
            release,
            objects: args
                .objects
                .as_deref()
                .map(objects)
                .transpose()?
                .unwrap_or_default(),
            predicates: if args.all_platforms {
                Predicates::Ignored
            } else {
                Predicates::Evaluated
            },
            settings,
        })
    }

    /// Renders the objects of a component, and its initial `ControlPlaneComponent`.
    pub fn component(&self, component: &Component) -> control_plane_component::Result<Vec<File>> {
        let infra = Infra::default();
        let context = Context {
            hcp: &self.hosted_control_plane,
            release: &self.release,
            user_release: &self.release,
            infra: &infra,
            objects: &self.objects,
            settings: &self.settings,
            predicates: self.predicates,
        };
        let rendered = render::render(component, &context)?;
        if rendered.workload.is_none() {
            return Ok(Vec::new());
        }
        let mut files: Vec<_> = rendered
            .objects()
            .map(|object| file(component, object))
            .collect();
        files.push(file(
            component,
            &component_status(component, &context, &rendered),
        ));
        Ok(files)
    }
}

/// Returns the `ControlPlaneComponent` of a component whose workload was just created.
fn component_status(component: &Component, context: &Context<'_>, rendered: &Rendered) -> Value {
    let observation = Observation {
        name: component.name,
        workload: rendered.workload.as_ref(),
        is_current: false,
        waiting_for: &[],
        operands: &[],
        error: None,
    };
    let status = status(
        &observation,
        rendered.resources.clone(),
        &context.release.version,
        context.hcp.metadata.generation,
        &ControlPlaneComponentStatus::default(),
        // A fixed time makes the output deterministic.
        &Time(Timestamp::UNIX_EPOCH),
    );
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "ControlPlaneComponent",
        "metadata": { "name": component.name, "namespace": context.namespace() },
        "spec": {},
        "status": status,
    })
}

fn file(component: &Component, object: &Value) -> File {
    let identity = identity(object);
    let kind = identity.kind.to_lowercase();
    File {
        path: format!("{}/{kind}-{}.yaml", component.name, identity.name),
        object: object.clone(),
    }
}

fn write(directory: &Path, file: &File) -> Result<(), Failure> {
    let path = directory.join(&file.path);
    let cannot = |error| usage(&path, "write", &error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(cannot)?;
    }
    fs::write(&path, yaml(&file.object)).map_err(cannot)?;
    Ok(())
}

/// Formats an object as YAML.
pub fn yaml(object: &Value) -> String {
    components::kubeconfig::yaml(object)
}

/// Reads all objects of the YAML files of a directory.
fn objects(directory: &Path) -> Result<Objects, Failure> {
    let files = fs::read_dir(directory).map_err(|error| usage(directory, "list", &error))?;
    let mut all = Objects::default();
    for file in files {
        let path = file
            .map_err(|error| usage(directory, "list", &error))?
            .path();
        if path
            .extension()
            .is_some_and(|ending| ending == "yaml" || ending == "yml")
        {
            all.insert(parse(&path)?);
        }
    }
    Ok(all)
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    serde_saphyr::from_str(&read(path)?).map_err(|error| {
        let message = format!("failed to parse {}: {error}", path.display());
        Usage { message }.into()
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    Ok(fs::read_to_string(path).map_err(|error| usage(path, "read", &error))?)
}

fn usage(path: &Path, what: &str, error: &std::io::Error) -> Usage {
    Usage {
        message: format!("failed to {what} {}: {error}", path.display()),
    }
}
