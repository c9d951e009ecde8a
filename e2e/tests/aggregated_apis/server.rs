//! One server as a process, with the files and flags that its pod would have.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_component::Objects;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::ports;
use testbed::process::Launch;
use testbed::service::{Health, Service};
use testbed::work_dir::WorkDir;

/// Where components mount certificates and configuration.
const MOUNTS: &str = "/etc/kubernetes";

/// A certificate and its key, PEM.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A server that runs.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    authority: Vec<u8>,
    service: Service,
}

// === impl Server ===

impl Server {
    /// Starts `program` as the first container of the component's Deployment. `as_name` is its name in the image.
    pub(crate) async fn start(
        name: &'static str,
        as_name: &str,
        program: &Path,
        rendered: &[Value],
        objects: &Objects,
        work_dir: &Arc<WorkDir>,
    ) -> Result<Self> {
        let deployment = rendered.iter().find(|it| it["kind"] == "Deployment");
        let deployment: Deployment =
            serde_json::from_value(deployment.context("no Deployment")?.clone())?;
        let pod = deployment
            .spec
            .and_then(|spec| spec.template.spec)
            .context("no pod")?;
        let container = pod.containers.first().context("no container")?.clone();
        let root = work_dir.join(name);
        let mut files = objects.clone();
        for object in rendered {
            files.insert(object.clone());
        }
        mount(&pod, &container, &files, &root)?;
        let link = root.join(as_name);
        std::os::unix::fs::symlink(program, &link)?;
        let port = ports::allocate()?;
        let mut launch = Launch::new(name, &link);
        for arg in container.args.unwrap_or_default() {
            launch = launch.arg(relocated(&arg, &root));
        }
        launch = launch.flag("secure-port", port);
        let authority = objects
            .secret_value("root-ca", "ca.crt")
            .context("no root-ca")?;
        let client = client(name, port, &authority, None).await?;
        let health = Health {
            client,
            path: "/readyz",
        };
        let mut service = Service::new(launch, work_dir, health);
        service.start().await?;
        Ok(Self {
            name,
            port,
            authority,
            service,
        })
    }

    /// A client that connects directly, by the name that the API server uses.
    pub(crate) async fn client(&self, credentials: Option<Pair>) -> Result<ApiClient> {
        client(self.name, self.port, &self.authority, credentials).await
    }

    /// Fails when it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.service.check()
    }
}

async fn client(
    name: &str,
    port: u16,
    authority: &[u8],
    credentials: Option<Pair>,
) -> Result<ApiClient> {
    let user = credentials.map_or(json!({}), |(certificate, key)| {
        json!({
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        })
    });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        "clusters": [{ "name": "it", "cluster": {
            "server": format!("https://{}:{port}", Ipv4Addr::LOCALHOST),
            "tls-server-name": format!("{name}.default.svc"),
            "certificate-authority-data": STANDARD.encode(authority),
        } }],
        "users": [{ "name": "it", "user": user }],
    });
    // JSON is YAML.
    ApiClient::from_text(&config.to_string()).await
}

/// Writes the ConfigMaps and Secrets that a container mounts.
fn mount(pod: &PodSpec, container: &Container, objects: &Objects, root: &Path) -> Result<()> {
    for mount in container.volume_mounts.iter().flatten() {
        let volumes = pod.volumes.iter().flatten();
        let volume = volumes.into_iter().find(|volume| volume.name == mount.name);
        let volume = volume.with_context(|| format!("no volume {}", mount.name))?;
        let (kind, name, items) = if let Some(source) = &volume.config_map {
            ("ConfigMap", source.name.clone(), &source.items)
        } else if let Some(source) = &volume.secret {
            (
                "Secret",
                source.secret_name.clone().unwrap_or_default(),
                &source.items,
            )
        } else {
            continue;
        };
        let directory = root.join(mount.mount_path.trim_start_matches('/'));
        std::fs::create_dir_all(&directory)?;
        // What this program does not read may be absent.
        let data = objects.get("", kind, &name).map(|found| &found["data"]);
        for (key, value) in data.and_then(Value::as_object).into_iter().flatten() {
            let Some(file) = file(key, items.as_deref()) else {
                continue;
            };
            let text = value.as_str().unwrap_or_default();
            let bytes = match kind {
                "Secret" => STANDARD.decode(text)?,
                _ => relocated(text, root).into_bytes(),
            };
            std::fs::write(directory.join(file), bytes)?;
        }
    }
    Ok(())
}

/// The file of a key; without items, each key has one.
fn file<'a>(key: &'a str, items: Option<&'a [KeyToPath]>) -> Option<&'a str> {
    match items {
        None => Some(key),
        Some(items) => {
            let item = items.iter().find(|item| item.key == key);
            item.map(|item| item.path.as_str())
        }
    }
}

/// A text with the mounts below another directory.
fn relocated(text: &str, root: &Path) -> String {
    let below: PathBuf = root.join(MOUNTS.trim_start_matches('/'));
    text.replace(MOUNTS, &below.to_string_lossy())
}
