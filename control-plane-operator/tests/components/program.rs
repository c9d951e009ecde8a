//! `control-plane-operator render --all-platforms`: the program writes what the comparison with the reference facts renders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use control_plane_operator::components;
use control_plane_operator::render::{Input, yaml};
use serde_json::json;

use crate::input;

/// Described objects of all components.
const DESCRIBED: usize = 242;
/// The Role of etcd's defragmentation and its binding: the API's availability policy is `HighlyAvailable`, and the
/// described control plane has none.
const DEFRAGMENTATION: usize = 2;

/// The file `image-references` of the release of the input.
fn image_references(input: &Input) -> String {
    let kubernetes = json!({ "io.openshift.build.versions": "kubernetes=1.30.1" });
    let tag = json!({
        "name": "hyperkube", "annotations": kubernetes,
        "from": { "kind": "DockerImage", "name": "images.example.com/hyperkube@sha256:1" },
    });
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": { "name": input.release.version },
        "spec": { "tags": [tag] },
    })
    .to_string()
}

/// Runs the program with the settings of the input. Without variables: that of a proxy would be a setting.
fn render(input: &Input, directory: &Path, flags: &[&str]) -> Output {
    let references = directory.join("image-references");
    fs::write(&references, image_references(input)).unwrap();
    let base = input::root().join("../control-plane-component/tests/data/base");
    let images = &input.settings.image_overrides;
    let images = images.iter().map(|(name, image)| format!("{name}={image}"));
    Command::new(env!("CARGO_BIN_EXE_control-plane-operator"))
        .env_clear()
        .arg("render")
        .args(flags)
        .arg("--hosted-control-plane")
        .arg(base.join("hosted-control-plane.yaml"))
        .arg("--objects")
        .arg(base.join("objects"))
        .arg("--release-images")
        .arg(references)
        .arg("--output")
        .arg(directory.join("out"))
        .args(["--control-plane-operator-image", &input.settings.own_image])
        .args(["--image-overrides", &images.collect::<Vec<_>>().join(",")])
        .args(["--registry-overrides", "registry=override"])
        .args(["--openshift-img-overrides", "registry=override"])
        .args(["--served-groups", &input.settings.served_groups.join(",")])
        .output()
        .unwrap()
}

/// All files of the output by `<component>/<file>`.
fn written(directory: &Path) -> BTreeMap<String, String> {
    let entries = |path: &Path| fs::read_dir(path).unwrap().map(|it| it.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut all = BTreeMap::new();
    for component in entries(directory) {
        for file in entries(&component) {
            let text = fs::read_to_string(&file).unwrap();
            all.insert(format!("{}/{}", name(&component), name(&file)), text);
        }
    }
    all
}

#[test]
fn program_renders_the_components_of_all_platforms() {
    let input = input::base();
    let directory = tempfile::tempdir().unwrap();
    let output = render(&input, directory.path(), &["--all-platforms"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let files = written(&directory.path().join("out"));
    let directories: BTreeSet<_> = files
        .keys()
        .filter_map(|path| path.split('/').next())
        .collect();
    println!(
        "{} objects in {} directories",
        files.len(),
        directories.len()
    );
    assert_eq!(directories.len(), 46);
    assert_eq!(files.len(), DESCRIBED + DEFRAGMENTATION);
    let expected: BTreeMap<_, _> = components::all()
        .iter()
        .flat_map(|component| input.component(component).unwrap())
        .map(|file| (file.path, yaml(&file.object)))
        .collect();
    let paths = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(&files), paths(&expected));
    let differ = files
        .iter()
        .filter(|(path, text)| expected[*path] != **text);
    let differ: Vec<_> = differ.map(|(path, _)| path).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn program_renders_one_platform_by_default() {
    let input = input::base();
    let directory = tempfile::tempdir().unwrap();
    let output = render(&input, directory.path(), &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let files = written(&directory.path().join("out"));
    let has = |component: &str| files.keys().any(|path| path.starts_with(component));
    assert!(has("aws-cloud-controller-manager/"), "{:?}", files.keys());
    for component in [
        "azure-cloud-controller-manager/",
        "kubevirt-csi-controller/",
    ] {
        assert!(!has(component), "{component}");
    }
}
