//! The sidecar `kube-apiserver-proxy`: lets unmodified controllers work on private API groups.
//!
//! The proxy runs as a native sidecar (an init container with restart policy Always): it starts before and stops after
//! the other containers. The environment variable `KUBECONFIG` directs the controllers to it.

mod container;
mod kubeconfig;

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMapVolumeSource, Container, EnvVar, PodSpec, Volume, VolumeMount},
};

pub use kubeconfig::config_map;

/// Name of the container, of the volume and of the `ConfigMap` with the kubeconfig.
pub const NAME: &str = "kube-apiserver-proxy";
/// Address at which the proxy serves the API server.
pub const LISTEN: &str = "127.0.0.1:8080";
/// Port of health checks and metrics.
pub const ADMIN_PORT: i32 = 9081;

const KUBECONFIG: &str = "KUBECONFIG";
const MOUNT_PATH: &str = "/etc/kube-apiserver-proxy";
const KUBECTL_DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The sidecar cannot be added to a Deployment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SidecarError {
    /// It has no pod template.
    #[error(
        "deployment {deployment} has no pod template: add the sidecar to a complete deployment"
    )]
    NoTemplate {
        /// The Deployment's name.
        deployment: String,
    },
    /// The proxy would have no credentials.
    #[error(
        "deployment {deployment} does not mount its service account's token, with which the proxy authenticates \
         to the API server: set automountServiceAccountToken to true"
    )]
    NoToken {
        /// The Deployment's name.
        deployment: String,
    },
    /// A container sets `KUBECONFIG` itself.
    #[error(
        "container {container} of deployment {deployment} sets {KUBECONFIG}: pass the kubeconfig by a flag if it \
         is for another cluster, or remove it"
    )]
    KubeconfigTaken {
        /// The Deployment's name.
        deployment: String,
        /// The container's name.
        container: String,
    },
    /// A container uses a port of the proxy.
    #[error(
        "container {container} of deployment {deployment} uses port {port}, which the proxy needs: use another port"
    )]
    PortTaken {
        /// The Deployment's name.
        deployment: String,
        /// The container's name.
        container: String,
        /// The port.
        port: i32,
    },
}

/// Options of the sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// The proxy's image.
    pub image: String,
}

// === impl Sidecar ===

impl Sidecar {
    /// Adds the sidecar to a Deployment and directs its containers to it.
    ///
    /// An existing sidecar is replaced. Init containers are not changed: they do not use Cluster API.
    pub fn add_to(&self, deployment: &mut Deployment) -> Result<(), SidecarError> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let no_template = || SidecarError::NoTemplate {
            deployment: name.clone(),
        };
        let template = &mut deployment.spec.as_mut().ok_or_else(no_template)?.template;
        let pod = template.spec.as_mut().ok_or_else(no_template)?;
        check(pod, &name)?;
        let main = pod
            .containers
            .first()
            .map(|container| container.name.clone());
        self.add_to_pod(pod);
        let annotations = template
            .metadata
            .get_or_insert_default()
            .annotations
            .get_or_insert_default();
        keep_default_container(annotations, main);
        Ok(())
    }

    fn add_to_pod(&self, pod: &mut PodSpec) {
        let init = pod.init_containers.get_or_insert_default();
        init.retain(|container| container.name != NAME);
        // First, so that it is ready for init containers, too.
        init.insert(0, container::proxy(&self.image));
        let volumes = pod.volumes.get_or_insert_default();
        volumes.retain(|volume| volume.name != NAME);
        volumes.push(volume());
        pod.containers.iter_mut().for_each(point_at_proxy);
    }
}

fn check(pod: &PodSpec, deployment: &str) -> Result<(), SidecarError> {
    let deployment = deployment.to_owned();
    if pod.automount_service_account_token == Some(false) {
        return Err(SidecarError::NoToken { deployment });
    }
    for container in &pod.containers {
        let name = container.name.clone();
        if has_own_kubeconfig(container) {
            return Err(SidecarError::KubeconfigTaken {
                deployment,
                container: name,
            });
        }
        if let Some(port) = taken_port(container) {
            return Err(SidecarError::PortTaken {
                deployment,
                container: name,
                port,
            });
        }
    }
    Ok(())
}

fn has_own_kubeconfig(container: &Container) -> bool {
    let ours = kubeconfig_path();
    let variables = container.env.iter().flatten();
    variables
        .filter(|variable| variable.name == KUBECONFIG)
        .any(|variable| variable.value.as_ref() != Some(&ours))
}

/// Returns a proxy port that a container declares, or uses in an address in its arguments.
fn taken_port(container: &Container) -> Option<i32> {
    [container::LISTEN_PORT, ADMIN_PORT]
        .into_iter()
        .find(|port| {
            let address = format!(":{port}");
            let words = container.command.iter().chain(&container.args).flatten();
            let ports = container.ports.iter().flatten();
            words.into_iter().any(|word| word.ends_with(&address))
                || ports
                    .into_iter()
                    .any(|declared| declared.container_port == *port)
        })
}

fn volume() -> Volume {
    Volume {
        name: NAME.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: NAME.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn point_at_proxy(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    variables.retain(|variable| variable.name != KUBECONFIG);
    variables.push(EnvVar {
        name: KUBECONFIG.to_owned(),
        value: Some(kubeconfig_path()),
        value_from: None,
    });
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.retain(|mount| mount.name != NAME);
    mounts.push(VolumeMount {
        name: NAME.to_owned(),
        mount_path: MOUNT_PATH.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    });
}

/// Path of the kubeconfig for the proxy in the containers.
pub fn kubeconfig_path() -> String {
    format!("{MOUNT_PATH}/{}", kubeconfig::KEY)
}

/// Keeps the controller as the default container of `kubectl logs` and `kubectl exec`.
fn keep_default_container(annotations: &mut BTreeMap<String, String>, main: Option<String>) {
    if let Some(main) = main {
        annotations
            .entry(KUBECTL_DEFAULT_CONTAINER.to_owned())
            .or_insert(main);
    }
}

#[cfg(test)]
mod tests;
