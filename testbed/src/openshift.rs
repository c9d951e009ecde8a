//! OpenShift's kinds as its own Go module defines them, and those of others that a hosted cluster has.
//!
//! ```text
//!   image cluster-config-api   /usr/bin/render + all CRDs of the payload  -> feature gates, CRDs that bootstrapping needs
//!   operators of a release     CRDs that the cluster-version-operator applies
//!   others                     monitoring, OLM, volume snapshots: from the modules of their projects
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::binaries::{Binaries, Binary};
use crate::crds;
use crate::images::File;
use crate::modules::Module;

const MODULE: &str = "github.com/openshift/api";
/// Where the image has its CRDs: `render` chooses among them.
const IMAGE_MANIFESTS: &str = "/usr/share/bootkube/manifests/manifests";
/// What the cluster-version-operator applies of the image.
const RELEASE_MANIFESTS: &str = "/manifests";
/// The directories of the module that the image copies, and where to.
const COPIED: [(&str, &str); 4] = [
    ("payload-manifests/crds", IMAGE_MANIFESTS),
    ("payload-manifests/crds", RELEASE_MANIFESTS),
    ("payload-manifests/featuregates", RELEASE_MANIFESTS),
    ("payload-command/empty-resources", RELEASE_MANIFESTS),
];
/// The kinds that other images of a release bring, and that components or objects of a hosted cluster need: the directory of
/// the API, and the file in it.
const OF_OPERATORS: [(&str, &str); 13] = [
    (
        "config/v1",
        "0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
    ),
    (
        "config/v1",
        "0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
    ),
    ("config/v1", "0000_03_marketplace_01_operatorhubs.crd.yaml"),
    (
        "config/v1",
        "0000_10_openshift-controller-manager_01_builds.crd.yaml",
    ),
    ("imageregistry/v1", "00_configs.crd.yaml"),
    ("networkoperator/v1", "001_egressrouters.crd.yaml"),
    (
        "operator/v1",
        "0000_40_cloud-credential_00_cloudcredentials.crd.yaml",
    ),
    (
        "operator/v1",
        "0000_50_csi-driver_01_clustercsidrivers-Default.crd.yaml",
    ),
    (
        "operator/v1",
        "0000_50_ingress_00_ingresscontrollers-Default.crd.yaml",
    ),
    ("operator/v1", "0000_50_storage_01_storages.crd.yaml"),
    ("operator/v1", "0000_70_dns_00_dnses.crd.yaml"),
    (
        "operator/v1",
        "0000_70_network_01_networks-Default.crd.yaml",
    ),
    (
        "operator/v1",
        "0000_80_csi-snapshot-controller_01_csisnapshotcontrollers.crd.yaml",
    ),
];
/// Kinds of other projects: module, and the file in it.
const OF_OTHERS: [(&str, &str); 5] = [
    (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
    ),
    (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    (
        "github.com/operator-framework/api",
        "crds/operators.coreos.com_catalogsources.yaml",
    ),
    (
        "github.com/kubernetes-csi/external-snapshotter/client/v8",
        "config/crd/snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
    ),
];

/// The sources of OpenShift's module.
#[derive(Debug, Clone)]
pub struct Definitions {
    sources: PathBuf,
}

/// What `render` is called with.
#[derive(Debug, Clone, Copy)]
pub struct Rendering<'a> {
    /// A FeatureGate, in JSON: the program writes its status.
    pub feature_gate: &'a Value,
    /// Version of the release.
    pub version: &'a str,
    /// `ibm-cloud-managed` for hosted clusters.
    pub profile: &'a str,
}

// === impl Definitions ===

impl Definitions {
    /// Finds the module, and downloads it when it is not there yet.
    pub async fn read() -> Result<Self> {
        let sources = Module::OpenshiftApi.sources_of(MODULE).await?;
        Ok(Self { sources })
    }

    /// The files of image `cluster-config-api`, but for its program.
    pub fn of_config_api(&self) -> Result<Vec<File>> {
        let mut files = Vec::new();
        for (from, to) in COPIED {
            for path in list(&self.sources.join(from))? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                files.push(File::copy(format!("{to}/{name}"), &path));
            }
        }
        Ok(files)
    }

    /// The CRDs that other images of a release bring, as files below a directory.
    pub fn of_operators(&self, directory: &str) -> Result<Vec<File>> {
        let files = self.operator_files().map(|path| {
            ensure!(path.is_file(), "{} does not exist", path.display());
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Ok(File::copy(format!("{directory}/manifests/{name}"), &path))
        });
        let mut files: Vec<_> = files.collect::<Result<_>>()?;
        let own = operator_pki();
        let name = own["metadata"]["name"].as_str().unwrap_or_default();
        // JSON is YAML.
        let path = format!("{directory}/manifests/{name}.crd.yaml");
        files.push(File::text(path, own.to_string()));
        Ok(files)
    }

    /// The same as objects.
    pub fn operators(&self) -> Result<Vec<Value>> {
        let mut all: Vec<_> = self
            .operator_files()
            .map(|path| parse(&path))
            .collect::<Result<_>>()?;
        all.push(operator_pki());
        Ok(all)
    }

    /// The features of a profile (`Hypershift`, `SelfManagedHA`) and feature set, as the module lists them.
    pub fn feature_gate(&self, profile: &str, set: &str) -> Result<Value> {
        let name = format!("featureGate-4-10-{profile}-{set}.yaml");
        parse(&self.sources.join(COPIED[2].0).join(name))
    }

    /// Runs `render` as the control plane does, and leaves its files in a directory: `99_feature-gate.yaml`, and
    /// `manifests/` with CRDs.
    pub async fn render(&self, call: Rendering<'_>, directory: &Path) -> Result<()> {
        let progress = crate::progress::Progress::detect();
        let binaries = Binaries::ensure(&[Binary::Render], &progress).await?;
        let gates = directory.join("99_feature-gate.yaml");
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(&gates, call.feature_gate.to_string()))
            .with_context(|| format!("cannot write {}", gates.display()))?;
        let output = tokio::process::Command::new(binaries.path(Binary::Render)?)
            .arg("--image-manifests")
            .arg(self.sources.join(COPIED[0].0))
            .arg("--asset-output-dir")
            .arg(directory)
            .arg("--rendered-manifest-dir")
            .arg(directory)
            .args(["--payload-version", call.version])
            .args(["--cluster-profile", call.profile])
            .output()
            .await
            .context("cannot run render")?;
        ensure!(
            output.status.success(),
            "render failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    fn operator_files(&self) -> impl Iterator<Item = PathBuf> {
        OF_OPERATORS.into_iter().map(|(api, file)| {
            let directory = self.sources.join(api).join("zz_generated.crd-manifests");
            directory.join(file)
        })
    }
}

/// The CRDs of other projects.
pub async fn others() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (module, file) in OF_OTHERS {
        let sources = Module::GuestCrds.sources_of(module).await?;
        all.push(parse(&sources.join(file))?);
    }
    Ok(all)
}

/// The objects of a directory's files, sorted by name.
pub fn objects(directory: &Path) -> Result<Vec<Value>> {
    list(directory)?.iter().map(|path| parse(path)).collect()
}

/// A kind of the cluster-network-operator, whose module is not available: it takes any object.
fn operator_pki() -> Value {
    let mut crd = crds::of_any_object(
        "network.operator.openshift.io",
        "v1",
        "OperatorPKI",
        "operatorpkis",
        "Namespaced",
    );
    crd["metadata"]["annotations"] =
        json!({ "include.release.openshift.io/ibm-cloud-managed": "true" });
    crd
}

fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot list {}", directory.display());
    let entries = std::fs::read_dir(directory).with_context(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<_> = paths.collect::<std::io::Result<_>>().with_context(failed)?;
    paths.sort();
    ensure!(!paths.is_empty(), "{} is empty", directory.display());
    Ok(paths)
}

fn parse(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
}
