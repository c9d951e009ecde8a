//! The input of `control-plane-component/tests/data/base`, as input of the renderer.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use api::group::CapiTypes;
use control_plane_component::proxy::OwnProxy;
use control_plane_component::settings::{MonitoringStack, Pairs, Settings};
use control_plane_component::{Predicates, Release};
use control_plane_operator::render::Input;

/// Image names of a release; each image is its own name, so that golden files show which one is used.
const IMAGES: &str = include_str!("../../../control-plane-component/tests/data/base/images.txt");

/// The crate's directory.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pairs(text: &str) -> Pairs {
    text.parse().unwrap()
}

/// The input.
pub(crate) fn base() -> Input {
    let directory = root().join("../control-plane-component/tests/data/base");
    let read = |path: PathBuf| fs::read_to_string(&path).unwrap();
    let hcp = read(directory.join("hosted-control-plane.yaml"));
    let files = fs::read_dir(directory.join("objects")).unwrap();
    let objects = files.map(|file| serde_saphyr::from_str(&read(file.unwrap().path())).unwrap());
    let images: BTreeMap<_, _> = IMAGES
        .lines()
        .map(|name| (name.to_owned(), name.to_owned()))
        .collect();
    let release = Release {
        pull_spec: "registry.example.com/release:4.16.10-x86_64".to_owned(),
        digest: String::new(),
        version: "4.18.0".to_owned(),
        component_versions: [("kubernetes".to_owned(), "1.30.1".to_owned())].into(),
        images: BTreeMap::new(),
        catalogs: BTreeMap::new(),
    };
    Input {
        hosted_control_plane: serde_saphyr::from_str(&hcp).unwrap(),
        release: release.with_overrides("own", &images),
        objects: objects.collect(),
        settings: settings(images),
        predicates: Predicates::Ignored,
    }
}

fn settings(image_overrides: BTreeMap<String, String>) -> Settings {
    Settings {
        own_image: "own".to_owned(),
        image_overrides,
        registry_overrides: pairs("registry=override"),
        openshift_img_overrides: pairs("registry=override"),
        insecure_registries: Vec::new(),
        capi_types: CapiTypes::Standard,
        capi_proxy_image: None,
        default_ingress_domain: String::new(),
        uid: None,
        managed_service: None,
        azure_key_vault_client_id: None,
        metrics_set: None,
        monitoring: MonitoringStack::Platform,
        cert_rotation_scale: None,
        version_metrics: false,
        version_metrics_url: None,
        proxy: OwnProxy::default(),
        served_groups: [
            "monitoring.coreos.com",
            "route.openshift.io",
            "image.openshift.io",
        ]
        .map(str::to_owned)
        .into(),
    }
}
