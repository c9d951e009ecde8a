//! Helpers of adapt functions to edit manifests.

use api::hypershift::v1beta1::capabilities::OptionalCapability::ImageRegistry;
use control_plane_component::settings::Pairs;
use control_plane_component::{Context, Error, Release, Result, Workload};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, EnvVar, KeyToPath, PodSpec, SecretVolumeSource,
    Volume, VolumeMount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

/// The guest's image registry.
const REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000";

/// Returns a container or init container by name, or an error if the manifest has none.
pub(crate) fn container<'a>(pod: &'a mut PodSpec, name: &str) -> Result<&'a mut Container> {
    pod.init_containers
        .iter_mut()
        .flatten()
        .chain(&mut pod.containers)
        .find(|container| container.name == name)
        .ok_or_else(|| Error::missing(format!("container {name}"), "in the manifest"))
}

/// Returns the pod spec of a workload.
pub(crate) fn pod(workload: &mut Workload) -> &mut PodSpec {
    workload.template().spec.get_or_insert_default()
}

/// Deserializes a JSON literal to an API type.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("invariant: the literal matches the API type")
}

/// Adds arguments.
pub(crate) fn args(container: &mut Container, args: impl IntoIterator<Item = String>) {
    container.args.get_or_insert_default().extend(args);
}

/// Sets an environment variable.
pub(crate) fn env(container: &mut Container, name: &str, value: impl Into<String>) {
    let variables = container.env.get_or_insert_default();
    variables.retain(|variable| variable.name != name);
    variables.push(EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    });
}

/// Sets environment variables to images of a release: pairs of a variable and the release's name of the image.
pub(crate) fn images(
    container: &mut Container,
    release: &Release,
    images: &[(&str, &str)],
) -> Result<()> {
    for (variable, name) in images {
        env(container, variable, release.image(name)?);
    }
    Ok(())
}

/// Passes on the user of pods, if the management cluster does not assign one: the operator sets it for what it creates.
pub(crate) fn run_as_user(context: &Context<'_>, container: &mut Container) {
    if let Some(uid) = context.settings.uid {
        env(container, "RUN_AS_USER", uid.to_string());
    }
}

/// A volume with the files of a Secret.
pub(crate) fn secret_volume(name: impl Into<String>, secret: &str) -> Volume {
    Volume {
        name: name.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// A volume with the files of a ConfigMap.
pub(crate) fn config_volume(name: impl Into<String>, config_map: &str) -> Volume {
    Volume {
        name: name.into(),
        config_map: Some(ConfigMapVolumeSource {
            name: config_map.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Mounts a volume at a path.
pub(crate) fn mount(volume: impl Into<String>, path: impl Into<String>) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        ..VolumeMount::default()
    }
}

/// Overrides the image with the value of an annotation.
pub(crate) fn image_by(context: &Context<'_>, container: &mut Container, annotation: &str) {
    if let Some(image) = context
        .annotation(annotation)
        .filter(|image| !image.is_empty())
    {
        container.image = Some(image.to_owned());
    }
}

/// Returns a flag and its pairs, unless they are empty.
pub(crate) fn pairs(flag: &str, pairs: &Pairs) -> Vec<String> {
    if pairs.0.is_empty() {
        return Vec::new();
    }
    vec![flag.to_owned(), pairs.to_string()]
}

/// Sets how many pods may be unavailable.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(crate) fn disruption_budget(
    context: &Context<'_>,
    budget: &mut PodDisruptionBudget,
) -> Result<()> {
    let spec = budget.spec.get_or_insert_default();
    if context.is_single_replica() {
        spec.min_available = Some(IntOrString::Int(1));
    } else {
        spec.max_unavailable = Some(IntOrString::Int(1));
    }
    Ok(())
}

/// Edits the configuration in a `ConfigMap` of a manifest, and writes it as YAML.
pub(crate) fn config(
    config_map: &mut ConfigMap,
    key: &str,
    change: impl FnOnce(&mut Value) -> Result<()>,
) -> Result<()> {
    let name = config_map.metadata.name.clone().unwrap_or_default();
    let data = config_map.data.get_or_insert_default();
    let text = data.get(key).map_or("", String::as_str);
    let mut config: Value = serde_saphyr::from_str(text)
        .map_err(|_| Error::missing(format!("manifest of ConfigMap {name}"), key))?;
    change(&mut config)?;
    data.insert(key.to_owned(), super::kubeconfig::yaml(&config));
    Ok(())
}

/// Sets TLS version and ciphers in the configuration of a server.
pub(crate) fn serving_tls(context: &Context<'_>, serving: &mut Value) {
    let tls = context.tls();
    serving["minTLSVersion"] = json!(tls.version());
    if !tls.ciphers.is_empty() {
        serving["cipherSuites"] = json!(tls.ciphers);
    }
}

/// Whether Services and monitors for metrics exist that only monitoring needs: a predicate of manifests.
pub(crate) fn is_monitored(context: &Context<'_>) -> bool {
    context.is_monitored()
}

/// The host and port of the guest's image registry; empty if the guest has none.
pub(crate) fn registry_host(context: &Context<'_>) -> &'static str {
    if context.has_capability(ImageRegistry) {
        REGISTRY
    } else {
        ""
    }
}

/// Mounts the additional CA certificates of users, if there are some, where programs look for the system's.
pub(crate) fn mount_trust_bundle(
    context: &Context<'_>,
    pod: &mut PodSpec,
    container_name: &str,
) -> Result<()> {
    let Some(bundle) = &context.spec().additional_trust_bundle else {
        return Ok(());
    };
    let name = "trusted-ca";
    let mounts = &mut container(pod, container_name)?.volume_mounts;
    mounts
        .get_or_insert_default()
        .push(mount(name, "/etc/pki/tls/certs"));
    let mut volume = config_volume(name, &bundle.name);
    if let Some(source) = &mut volume.config_map {
        source.items = Some(vec![KeyToPath {
            key: "ca-bundle.crt".to_owned(),
            path: "user-ca-bundle.pem".to_owned(),
            mode: None,
        }]);
    }
    pod.volumes.get_or_insert_default().push(volume);
    Ok(())
}

/// Mounts a Secret into a container. `at` are the names of the volume and of the directory.
pub(crate) fn mount_secret(
    pod: &mut PodSpec,
    container_name: &str,
    at: (&str, &str),
    secret: &str,
) -> Result<()> {
    let (volume, path) = at;
    let mounts = &mut container(pod, container_name)?.volume_mounts;
    mounts.get_or_insert_default().push(VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    });
    pod.volumes.get_or_insert_default().push(Volume {
        name: volume.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    });
    Ok(())
}
