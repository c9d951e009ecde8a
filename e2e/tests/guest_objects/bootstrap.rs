//! The first objects of a hosted cluster: what the release's real `render` writes, as our programs read and apply it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::images::{StaticProgram, build_static};
use testbed::openshift::{self, Definitions, Rendering};
use testbed::process::{Launch, Process};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{conditions, wait};

/// How long an API server may take until a change is visible.
pub(crate) const SOON: Duration = Duration::from_mins(1);
const PROGRAM: &str = "control-plane-operator";
/// Namespace of the hosted control plane.
const NAMESPACE: &str = "hcp";
const VERSIONS: [&str; 2] = ["4.22.0", "4.23.0"];
const PROFILE: &str = "ibm-cloud-managed";
/// Feature sets, as the module names their files.
const SETS: [&str; 3] = ["Default", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade"];
/// The account of `kas-bootstrap`.
const BOOTSTRAPPER: &str = "system:kas-bootstrap-container";
const FEATURE_GATE: &str = "/apis/config.openshift.io/v1/featuregates/cluster";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Our program and the release's.
struct Bootstrap<'a> {
    testbed: &'a Testbed,
    program: PathBuf,
    definitions: Definitions,
}

/// Renders each feature set, and bootstraps the API server with the default one, in two versions.
pub(crate) async fn run(testbed: &Testbed) -> Result<()> {
    let program = StaticProgram {
        package: PROGRAM,
        name: PROGRAM,
    };
    let bootstrap = Bootstrap {
        testbed,
        program: build_static(&program, &testbed.progress).await?,
        definitions: Definitions::read().await?,
    };
    let step = testbed
        .progress
        .step("rendering the feature sets of the release");
    ensure_namespace(&testbed.admin, NAMESPACE).await?;
    for set in SETS {
        let spec = match set {
            "Default" => json!({}),
            set => json!({ "featureSet": set }),
        };
        let directory = bootstrap.render(set, VERSIONS[0], &spec).await?;
        let expected = bootstrap.definitions.feature_gate("Hypershift", set)?;
        let gate = bootstrap.stored_gate(&directory, VERSIONS[0]).await?;
        same_features(&gate, &expected).with_context(|| format!("feature set {set}"))?;
        are_of_set(&directory, set)?;
    }
    bootstrap.custom_features().await?;
    step.done_with(&format!("{} sets", SETS.len() + 1));
    let step = testbed
        .progress
        .step("bootstrapping the API server, in two versions");
    let directory = testbed.path().join("rendered-Default");
    let count = bootstrap.apply(&directory, &VERSIONS[..1]).await?;
    let directory = bootstrap.render("next", VERSIONS[1], &json!({})).await?;
    bootstrap
        .apply(&directory, &[VERSIONS[1], VERSIONS[0]])
        .await?;
    step.done_with(&format!("{count} CRDs"));
    Ok(())
}

impl Bootstrap<'_> {
    async fn render(&self, name: &str, version: &str, spec: &Value) -> Result<PathBuf> {
        let gate = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "FeatureGate",
            "metadata": { "name": "cluster" },
            "spec": spec,
            "status": { "featureGates": null },
        });
        let call = Rendering {
            feature_gate: &gate,
            version,
            profile: PROFILE,
        };
        let directory = self.testbed.path().join(format!("rendered-{name}"));
        self.definitions.render(call, &directory).await?;
        Ok(directory)
    }

    /// Features that the user names are on, and all others are as in the default set.
    async fn custom_features(&self) -> Result<()> {
        let spec = json!({
            "featureSet": "CustomNoUpgrade",
            "customNoUpgrade": { "enabled": ["Example"], "disabled": ["ImageVolume"] },
        });
        let directory = self.render("custom", VERSIONS[0], &spec).await?;
        let gate = self.stored_gate(&directory, VERSIONS[0]).await?;
        for (field, name) in [("enabled", "Example"), ("disabled", "ImageVolume")] {
            ensure!(
                names(&gate, field).contains(name),
                "{name} is not {field}: {gate}"
            );
        }
        // Without features, the program would fail.
        let none = json!({ "featureSet": "CustomNoUpgrade", "customNoUpgrade": {} });
        self.render("custom-none", VERSIONS[0], &none).await?;
        Ok(())
    }

    /// The FeatureGate that `sync-fg-configmap` stores.
    async fn stored_gate(&self, directory: &Path, version: &str) -> Result<Value> {
        let launch = Launch::new("sync-fg-configmap", &self.program)
            .arg("sync-fg-configmap")
            .path_flag("file", &directory.join("99_feature-gate.yaml"))
            .flag("namespace", NAMESPACE)
            .flag("payload-version", version)
            .path_flag("kubeconfig", self.testbed.control_plane.admin_kubeconfig());
        let mut process = launch.spawn(self.testbed.work_dir())?;
        wait::until("sync-fg-configmap to end", SOON, async || {
            match process.exited()? {
                Some(status) if status.success() => Ok(()),
                Some(status) => wait::not_yet(format!("{status}: {}", process.tail())),
                None => wait::not_yet("it runs"),
            }
        })
        .await?;
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/feature-gate");
        let map = self.testbed.admin.get(&path).await?;
        let annotation = &map["metadata"]["annotations"]["hypershift.openshift.io/payload-version"];
        ensure!(*annotation == version, "the annotation is {annotation}");
        let text = map["data"]["feature-gate.yaml"].as_str();
        let gate: Value = serde_saphyr::from_str(text.context("the ConfigMap is empty")?)?;
        let versions = listed_versions(&gate);
        ensure!(versions == [version], "it has features of {versions:?}");
        Ok(gate)
    }

    /// Runs `kas-bootstrap` until the FeatureGate has features of these versions. Returns the number of CRDs.
    async fn apply(&self, directory: &Path, versions: &[&str]) -> Result<usize> {
        let process = self.start(directory)?;
        let admin = &self.testbed.admin;
        let applied = wait::until("the FeatureGate to have its status", SOON, async || {
            let gate = admin.find(FEATURE_GATE).await?.unwrap_or_default();
            let found = listed_versions(&gate);
            if found == versions {
                return Ok(());
            }
            wait::not_yet(format!("it has {found:?}: {}", process.tail()))
        });
        applied.await?;
        let crds = openshift::objects(&directory.join("manifests"))?;
        for crd in &crds {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            wait::until(&format!("{name} to be served"), SOON, async || {
                let live = admin.get(&format!("{CRDS}/{name}")).await?;
                if conditions::is_true(&live, "Established") {
                    return Ok(());
                }
                wait::not_yet(live["status"].to_string())
            })
            .await?;
        }
        process.stop(SOON).await?;
        Ok(crds.len())
    }

    fn start(&self, directory: &Path) -> Result<Process> {
        let kubeconfig = self.testbed.kubeconfig_of(BOOTSTRAPPER, None)?;
        Launch::new("kas-bootstrap", &self.program)
            .arg("kas-bootstrap")
            .path_flag("resources-path", directory)
            .path_flag("kubeconfig", &kubeconfig)
            .path_flag(
                "admin-kubeconfig",
                self.testbed.control_plane.admin_kubeconfig(),
            )
            .spawn(self.testbed.work_dir())
    }
}

fn listed_versions(gate: &Value) -> Vec<&str> {
    let entries = gate["status"]["featureGates"].as_array();
    let entries = entries.into_iter().flatten();
    entries
        .filter_map(|entry| entry["version"].as_str())
        .collect()
}

/// The names of the features in a list of the only entry.
fn names<'a>(gate: &'a Value, field: &str) -> BTreeSet<&'a str> {
    let features = gate["status"]["featureGates"][0][field].as_array();
    let features = features.into_iter().flatten();
    features.filter_map(|it| it["name"].as_str()).collect()
}

fn same_features(gate: &Value, expected: &Value) -> Result<()> {
    for field in ["enabled", "disabled"] {
        let (found, expected) = (names(gate, field), names(expected, field));
        ensure!(!found.is_empty(), "no feature is {field}");
        let different: Vec<_> = found.symmetric_difference(&expected).collect();
        ensure!(different.is_empty(), "{field} differs: {different:?}");
    }
    Ok(())
}

/// Each kind comes once, in the form of the feature set.
fn are_of_set(directory: &Path, set: &str) -> Result<()> {
    let mut kinds = BTreeSet::new();
    for crd in openshift::objects(&directory.join("manifests"))? {
        let annotations = &crd["metadata"]["annotations"];
        let sets = annotations["release.openshift.io/feature-set"].as_str();
        let is_of_set = sets.is_none_or(|sets| sets.split(',').any(|it| it == set));
        let name = crd["metadata"]["name"].to_string();
        ensure!(is_of_set, "{name} is of {sets:?}, not of {set}");
        ensure!(kinds.insert(name.clone()), "{name} comes twice");
    }
    ensure!(kinds.len() >= 20, "{set} has {} kinds", kinds.len());
    Ok(())
}
