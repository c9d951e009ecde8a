//! Rendered MachineConfigs: all those that a pool selects, as one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::Result;
use crate::controller_config::ControllerConfig;
use crate::ignition::{self, VERSION};
use crate::manifests::{API, Manifest, text};
use crate::merge::merge;
use crate::selector::selects;

/// Streams of the operating system, and the tags of their images and of the images with their extensions.
const STREAMS: [(&str, &str, &str); 2] = [
    ("rhel-9", "rhel-coreos", "rhel-coreos-extensions"),
    ("rhel-10", "rhel-coreos-10", "rhel-coreos-10-extensions"),
];
/// The stream where no manifest names one.
pub(crate) const DEFAULT_STREAM: &str = "rhel-9";
/// The kernel of machines without another one.
const DEFAULT_KERNEL: &str = "default";
/// Fields of a MachineConfig's spec.
const FIELDS: [&str; 7] = [
    "baseOSExtensionsContainerImage",
    "config",
    "extensions",
    "fips",
    "kernelArguments",
    "kernelType",
    "osImageURL",
];

/// The images of an operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatingSystem {
    image: String,
    /// Not every release has one.
    extensions: String,
}

/// What MachineConfigs set beside the Ignition document.
#[derive(Debug)]
struct Settings {
    fips: bool,
    kernel_arguments: Vec<String>,
    kernel_type: String,
    extensions: BTreeSet<String>,
    system: OperatingSystem,
}

/// Renders the MachineConfig of a pool. Those that it selects are merged in the order of their names.
pub(crate) fn render(
    pool: &Manifest,
    configs: &[Manifest],
    system: &OperatingSystem,
) -> Result<Manifest> {
    let mut selected = Vec::new();
    for config in configs {
        if selects(pool, "machineConfigSelector", config.labels())? {
            selected.push(config);
        }
    }
    if selected.is_empty() {
        let problem = "it selects no MachineConfig: select those of a role";
        return Err(pool.invalid("spec.machineConfigSelector", problem));
    }
    selected.sort_by(|a, b| a.name.cmp(&b.name));
    let mut ignition = json!({ "ignition": { "version": VERSION } });
    let mut settings = Settings {
        fips: false,
        kernel_arguments: Vec::new(),
        kernel_type: DEFAULT_KERNEL.to_owned(),
        extensions: BTreeSet::new(),
        system: system.clone(),
    };
    for config in selected {
        merge(&mut ignition, ignition::checked(config)?);
        settings.add(config)?;
    }
    let spec = settings.spec(&ignition);
    let hash = format!("{:x}", Sha256::digest(spec.to_string()));
    let name = format!("rendered-{}-{}", pool.name, &hash[..32]);
    Ok(Manifest::of(json!({
        "apiVersion": API,
        "kind": "MachineConfig",
        "metadata": { "name": name },
        "spec": spec,
    })))
}

/// Returns a pool as it is when its machines run a rendered MachineConfig.
pub(crate) fn updated(pool: &Manifest, rendered: &Manifest) -> Value {
    let configuration = json!({ "name": rendered.name });
    let mut object = pool.object().clone();
    object["spec"]["configuration"] = configuration.clone();
    object["status"] = json!({ "configuration": configuration });
    object
}

// === impl OperatingSystem ===

impl OperatingSystem {
    /// Finds the images of a stream in the release.
    pub(crate) fn of(stream: &str, config: &ControllerConfig) -> Result<Self> {
        let Some((_, image, extensions)) = STREAMS.iter().find(|(name, _, _)| *name == stream)
        else {
            let known = STREAMS.map(|(name, _, _)| name).join(" or ");
            return Err(format!("unknown stream {stream:?}: use {known}"));
        };
        Ok(Self {
            image: config.image(image)?.to_owned(),
            extensions: config.image(extensions).unwrap_or_default().to_owned(),
        })
    }
}

// === impl Settings ===

impl Settings {
    fn add(&mut self, config: &Manifest) -> Result<()> {
        let spec = config.spec();
        let mut fields = spec.as_object().into_iter().flat_map(Map::keys);
        if let Some(field) = fields.find(|field| !FIELDS.contains(&field.as_str())) {
            let problem = "unknown field of MachineConfig: remove it";
            return Err(config.invalid(&format!("spec.{field}"), problem));
        }
        self.fips |= spec["fips"] == true;
        self.kernel_arguments
            .extend(list(config, "kernelArguments")?);
        self.extensions.extend(list(config, "extensions")?);
        for (field, value) in [
            ("kernelType", &mut self.kernel_type),
            ("osImageURL", &mut self.system.image),
            (
                "baseOSExtensionsContainerImage",
                &mut self.system.extensions,
            ),
        ] {
            let found = text(spec, &format!("/{field}"));
            if !found.is_empty() {
                found.clone_into(value);
            }
        }
        Ok(())
    }

    fn spec(self, ignition: &Value) -> Value {
        json!({
            "config": ignition,
            "fips": self.fips,
            "kernelArguments": self.kernel_arguments,
            "kernelType": self.kernel_type,
            "extensions": self.extensions,
            "osImageURL": self.system.image,
            "baseOSExtensionsContainerImage": self.system.extensions,
        })
    }
}

/// The texts of a field.
fn list(config: &Manifest, field: &str) -> Result<Vec<String>> {
    let value = &config.spec()[field];
    let texts = match value {
        Value::Null => Some(Vec::new()),
        _ => serde_json::from_value(value.clone()).ok(),
    };
    texts.ok_or_else(|| config.invalid(&format!("spec.{field}"), "use a list of strings"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::manifests::ROLE;

    fn config(name: &str, role: &str, spec: Value) -> Manifest {
        let mut object = json!({
            "kind": "MachineConfig",
            "metadata": { "name": name, "labels": { ROLE: role } },
            "spec": { "config": { "ignition": { "version": VERSION } } },
        });
        merge(&mut object["spec"], spec);
        Manifest::of(object)
    }

    fn pool(role: &str) -> Manifest {
        Manifest::of(json!({
            "kind": "MachineConfigPool",
            "metadata": { "name": "master" },
            "spec": { "machineConfigSelector": { "matchLabels": { ROLE: role } } },
        }))
    }

    fn system() -> OperatingSystem {
        OperatingSystem {
            image: "images.example.com/os".to_owned(),
            extensions: String::new(),
        }
    }

    #[test]
    fn settings_of_all_selected_configs_are_combined() {
        let configs = [
            config(
                "60-b",
                "worker",
                json!({ "kernelArguments": ["b=1"], "osImageURL": "images.example.com/b", "fips": false }),
            ),
            config(
                "50-a",
                "worker",
                json!({
                    "kernelArguments": ["a"], "fips": true, "extensions": ["usbguard", "kerberos"],
                    "osImageURL": "images.example.com/a", "kernelType": "realtime",
                }),
            ),
            config("70-c", "master", json!({ "kernelArguments": ["c"] })),
        ];
        let rendered = render(&pool("worker"), &configs, &system()).unwrap();
        assert!(
            rendered.name.starts_with("rendered-master-"),
            "{}",
            rendered.name
        );
        let expected = json!({
            "config": { "ignition": { "version": VERSION } },
            "fips": true,
            "kernelArguments": ["a", "b=1"],
            "kernelType": "realtime",
            "extensions": ["kerberos", "usbguard"],
            "osImageURL": "images.example.com/b",
            "baseOSExtensionsContainerImage": "",
        });
        assert_eq!(*rendered.spec(), expected);
        let pool = updated(&pool("worker"), &rendered);
        assert_eq!(pool["status"]["configuration"]["name"], rendered.name);
    }

    #[test]
    fn the_name_follows_the_content() {
        let rendered = |argument: &str| {
            let config = config("50-a", "worker", json!({ "kernelArguments": [argument] }));
            render(&pool("worker"), &[config], &system()).unwrap().name
        };
        assert_eq!(rendered("a"), rendered("a"));
        assert_ne!(rendered("a"), rendered("b"));
    }

    #[test]
    fn invalid_configs_and_pools_are_refused() {
        for (spec, expected) in [
            (json!({ "confg": {} }), "MachineConfig 50-a: spec.confg: "),
            (
                json!({ "kernelArguments": "a" }),
                "MachineConfig 50-a: spec.kernelArguments: ",
            ),
        ] {
            let configs = [config("50-a", "worker", spec)];
            let error = render(&pool("worker"), &configs, &system()).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = render(&pool("worker"), &[], &system()).unwrap_err();
        assert!(
            error.starts_with("MachineConfigPool master: spec.machineConfigSelector: "),
            "{error}"
        );
    }

    #[test]
    fn streams_have_images_of_the_release() {
        let images = [
            ("rhel-coreos", "images.example.com/9"),
            ("rhel-coreos-extensions", "images.example.com/9-extensions"),
        ];
        let images = images.map(|(tag, image)| (tag.to_owned(), image.to_owned()));
        let config = ControllerConfig {
            images: BTreeMap::from(images),
            ..ControllerConfig::default()
        };
        let system = OperatingSystem::of("rhel-9", &config).unwrap();
        assert_eq!(system.image, "images.example.com/9");
        assert_eq!(system.extensions, "images.example.com/9-extensions");
        for (stream, expected) in [
            ("rhel-10", "the release has no image rhel-coreos-10"),
            ("rhel-8", "unknown stream \"rhel-8\": use rhel-9 or rhel-10"),
        ] {
            let error = OperatingSystem::of(stream, &config).unwrap_err();
            assert_eq!(error, expected);
        }
    }
}
