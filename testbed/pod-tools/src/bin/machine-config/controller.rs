//! `machine-config-controller bootstrap`: renders the MachineConfig of each pool.
//!
//! ```text
//! DEST/controller-config/machine-config-controller.yaml
//! DEST/machine-configs/rendered-POOL-HASH.yaml
//! DEST/machine-pools/POOL.yaml
//! ```

use crate::Result;
use crate::container_runtime;
use crate::controller_config::{self, ControllerConfig};
use crate::flags::{Flag, Flags, required};
use crate::ignition::{content, document};
use crate::kubelet;
use crate::manifests::{Manifest, ROLE, directory, object, text, write_object};
use crate::operator::pull_secret;
use crate::registries;
use crate::rendered::{DEFAULT_STREAM, OperatingSystem, render, updated};
use crate::selector::selects;
use crate::templates::{self, Variables};

/// The flags for releases from 4.14 on.
const FLAGS: [Flag; 5] = [
    required("dest-dir"),
    required("manifest-dir"),
    required("payload-version"),
    required("pull-secret"),
    required("templates"),
];
const POOL: &str = "MachineConfigPool";
const CONFIG: &str = "MachineConfig";
/// Where a KubeletConfig or ContainerRuntimeConfig selects pools.
const POOL_SELECTOR: &str = "machineConfigPoolSelector";

/// The manifests of the directory.
#[derive(Debug)]
struct Manifests(Vec<Manifest>);

/// Runs the command.
pub(crate) fn bootstrap(args: impl IntoIterator<Item = String>) -> Result<()> {
    let flags = Flags::parse(&FLAGS, args)?;
    let manifests = Manifests(directory(&flags.path("manifest-dir")?)?);
    let source = manifests.only(controller_config::KIND)?;
    let config = ControllerConfig::read(source)?;
    check_features(
        manifests.only("FeatureGate")?,
        flags.text("payload-version")?,
    )?;
    let secret = pull_secret(&object(&flags.path("pull-secret")?, "Secret")?)?;
    let system = OperatingSystem::of(manifests.stream()?, &config)?;
    let variables = Variables::new(&config, &secret);
    let mut configs = templates::render(&flags.path("templates")?, &variables)?;
    for pool in manifests.of(POOL) {
        let generated = manifests.generated(pool, &configs)?;
        configs.extend(generated);
    }
    configs.extend(manifests.of(CONFIG).cloned());
    let destination = flags.path("dest-dir")?;
    let file = |kind: &str, name: &str| destination.join(kind).join(format!("{name}.yaml"));
    let mut count = 0;
    for pool in manifests.of(POOL) {
        let rendered = render(pool, &configs, &system)?;
        write_object(&file("machine-configs", &rendered.name), rendered.object())?;
        write_object(
            &file("machine-pools", &pool.name),
            &updated(pool, &rendered),
        )?;
        count += 1;
    }
    if count == 0 {
        return Err(format!("the manifests have no {POOL}: add one"));
    }
    write_object(&file("controller-config", &source.name), source.object())?;
    println!("machine-config-controller: rendered the MachineConfigs of {count} pools");
    Ok(())
}

/// The features of a release are known when its FeatureGate was rendered for its version.
fn check_features(gate: &Manifest, version: &str) -> Result<()> {
    let versions = gate.status()["featureGates"].as_array();
    let mut versions = versions.into_iter().flatten();
    if versions.any(|entry| text(entry, "/version") == version) {
        return Ok(());
    }
    let problem = format!("no features of version {version}: render them for it");
    Err(gate.invalid("status.featureGates", problem))
}

// === impl Manifests ===

impl Manifests {
    fn of(&self, kind: &str) -> impl Iterator<Item = &Manifest> {
        self.0.iter().filter(move |manifest| manifest.kind == kind)
    }

    /// The only object of a kind.
    fn only(&self, kind: &str) -> Result<&Manifest> {
        let mut found = self.of(kind);
        match (found.next(), found.next()) {
            (Some(manifest), None) => Ok(manifest),
            (None, _) => Err(format!("the manifests have no {kind}: add it")),
            _ => Err(format!("the manifests have more than one {kind}: keep one")),
        }
    }

    /// The stream of the operating system.
    fn stream(&self) -> Result<&str> {
        let kind = "OSImageStream";
        if self.of(kind).next().is_none() {
            return Ok(DEFAULT_STREAM);
        }
        let manifest = self.only(kind)?;
        match manifest.text("/spec/defaultStream") {
            "" => Err(manifest.invalid("spec.defaultStream", "missing: name a stream")),
            stream => Ok(stream),
        }
    }

    /// The MachineConfigs that are generated for a pool. They are for the role of its name, whatever it selects.
    fn generated(&self, pool: &Manifest, templates: &[Manifest]) -> Result<Vec<Manifest>> {
        let role = &pool.name;
        let kubelets = self.selecting("KubeletConfig", pool)?;
        let kubelet = match kubelet_template(role, templates) {
            Some(original) => kubelet::files(&original, self.only("APIServer")?, &kubelets)?,
            // This role has no kubelet.
            None => Vec::new(),
        };
        let runtimes = self.selecting("ContainerRuntimeConfig", pool)?;
        let generated = [
            ("containerruntime", container_runtime::files(&runtimes)?),
            ("kubelet", kubelet),
            (
                "registries",
                registries::files(self.only("Image")?, &self.0)?,
            ),
        ];
        let generated = generated.into_iter().filter(|(_, files)| !files.is_empty());
        let generated = generated.map(|(part, files)| {
            let name = format!("99-{role}-generated-{part}");
            Manifest::machine_config(&name, role, &document(&files))
        });
        Ok(generated.collect())
    }

    /// The objects of a kind that select a pool, in the order of their names.
    fn selecting(&self, kind: &str, pool: &Manifest) -> Result<Vec<&Manifest>> {
        let mut selecting = Vec::new();
        for manifest in self.of(kind) {
            if selects(manifest, POOL_SELECTOR, pool.labels())? {
                selecting.push(manifest);
            }
        }
        selecting.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(selecting)
    }
}

/// The kubelet's configuration in the templates of a role.
fn kubelet_template(role: &str, templates: &[Manifest]) -> Option<String> {
    let of_role = templates
        .iter()
        .filter(|config| config.labels()[ROLE] == role);
    let files = of_role.filter_map(|config| config.spec()["config"]["storage"]["files"].as_array());
    let mut files = files.flatten();
    let file = files.find(|file| text(file, "/path") == kubelet::CONFIG)?;
    content(file)
}
