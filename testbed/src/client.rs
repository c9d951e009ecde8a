//! A small JSON client of an API server: what tests read and write, by path or by object.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, header};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Field manager of what the testbed applies.
const FIELD_MANAGER: &str = "testbed";

/// The kinds of patch that the testbed sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patch {
    /// JSON merge patch.
    Merge,
    /// Server-side apply, with force.
    Apply,
}

/// One API server (or proxy), as one user.
#[derive(Clone)]
pub struct ApiClient {
    client: kube::Client,
    server: String,
    /// Discovered resource lists, by API version.
    resources: Arc<Mutex<HashMap<String, Value>>>,
}

/// A resource of the API: where its objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource<'a> {
    /// `group/version`, or `v1`.
    pub api_version: &'a str,
    /// The plural, lower-case name.
    pub plural: &'a str,
}

// === impl Resource ===

impl<'a> Resource<'a> {
    /// Names a resource.
    pub const fn new(api_version: &'a str, plural: &'a str) -> Self {
        Self {
            api_version,
            plural,
        }
    }

    /// The path of all of them, in all namespaces.
    pub fn all(&self) -> String {
        format!("{}/{}", self.root(), self.plural)
    }

    /// The path of those in one namespace.
    pub fn within(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }

    /// The path of one of them.
    pub fn named(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.within(namespace))
    }

    fn root(&self) -> String {
        root(self.api_version)
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}

// === impl ApiClient ===

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials.
        f.debug_struct("ApiClient")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl ApiClient {
    /// The server and user of a kubeconfig file.
    pub async fn from_kubeconfig(path: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(path)
            .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
        Self::from_config(kubeconfig)
            .await
            .with_context(|| format!("cannot use the kubeconfig {}", path.display()))
    }

    /// The server and user of a kubeconfig's text.
    pub async fn from_text(text: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(text).context("cannot read the kubeconfig")?;
        Self::from_config(kubeconfig).await
    }

    /// A plain HTTP port on loopback, without credentials.
    pub fn plain(port: u16) -> Result<Self> {
        Self::plain_at((Ipv4Addr::LOCALHOST, port).into())
    }

    /// A plain HTTP port anywhere, without credentials.
    pub fn plain_at(address: SocketAddr) -> Result<Self> {
        let server = format!("http://{address}");
        Self::connect(kube::Config::new(parse(&server)?))
    }

    /// A TLS port, without credentials.
    pub fn anonymous(address: SocketAddr, authority: &Path) -> Result<Self> {
        let server = format!("https://{address}");
        let pem = std::fs::read(authority)
            .with_context(|| format!("cannot read {}", authority.display()))?;
        let mut config = kube::Config::new(parse(&server)?);
        config.root_cert = Some(vec![der(&pem)?]);
        Self::connect(config)
    }

    /// A TLS port whose certificate is not verified, without credentials: for probes.
    pub fn unverified(address: SocketAddr) -> Result<Self> {
        let mut config = kube::Config::new(parse(&format!("https://{address}"))?);
        config.accept_invalid_certs = true;
        Self::connect(config)
    }

    async fn from_config(kubeconfig: Kubeconfig) -> Result<Self> {
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .context("the kubeconfig does not name a server and a user")?;
        Self::connect(config)
    }

    fn connect(config: kube::Config) -> Result<Self> {
        let server = config.cluster_url.to_string();
        let client = kube::Client::try_from(config)
            .with_context(|| format!("cannot make a client of {server}"))?;
        Ok(Self {
            client,
            server,
            resources: Arc::default(),
        })
    }

    /// The underlying client, for what is not offered here.
    pub fn kube(&self) -> &kube::Client {
        &self.client
    }

    /// The server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads `path` as text.
    pub async fn text(&self, path: &str) -> Result<String> {
        let request = request(Method::GET, path, None, None)?;
        self.client
            .request_text(request)
            .await
            .with_context(|| format!("GET {path} at {}", self.server))
    }

    /// Reads `path` as JSON.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, None, None).await
    }

    /// Reads `path`, or gives nothing if it does not exist.
    pub async fn find(&self, path: &str) -> Result<Option<Value>> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if status_code(&error) == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The items of a list.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        match self.get(path).await?["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Posts `body` to the collection (or action) at `path`.
    pub async fn create(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::POST, path, Some(body), Some("application/json"))
            .await
    }

    /// Puts `body` to `path`.
    pub async fn replace(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::PUT, path, Some(body), Some("application/json"))
            .await
    }

    /// Patches `path`.
    pub async fn patch(&self, path: &str, kind: Patch, body: &Value) -> Result<Value> {
        match kind {
            Patch::Merge => {
                let kind = "application/merge-patch+json";
                self.send(Method::PATCH, path, Some(body), Some(kind)).await
            }
            Patch::Apply => {
                let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
                let kind = "application/apply-patch+yaml";
                self.send(Method::PATCH, &path, Some(body), Some(kind))
                    .await
            }
        }
    }

    /// A value of the Secret at `path`.
    pub async fn secret_value(&self, path: &str, key: &str) -> Result<Vec<u8>> {
        let secret = self.get(path).await?;
        let encoded = secret["data"][key].as_str();
        let encoded = encoded.with_context(|| format!("{path} has no {key}"))?;
        let decoded = STANDARD.decode(encoded);
        decoded.with_context(|| format!("{key} of {path} is not in base64"))
    }

    /// Deletes `path`; gone already is fine.
    pub async fn delete(&self, path: &str) -> Result<()> {
        match self.send(Method::DELETE, path, None, None).await {
            Err(error) if status_code(&error) != Some(404) => Err(error),
            _ => Ok(()),
        }
    }

    /// Applies objects, in order, each at the path that discovery has for its kind.
    pub async fn apply(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            let path = self.path_of(object).await?;
            self.patch(&path, Patch::Apply, object).await?;
        }
        Ok(())
    }

    /// The path of an object, by discovery.
    pub async fn path_of(&self, object: &Value) -> Result<String> {
        let field = |at: &str| {
            let text = object.pointer(at).and_then(Value::as_str);
            text.with_context(|| format!("the object has no {at}: {object:.200}"))
        };
        let (api_version, kind) = (field("/apiVersion")?, field("/kind")?);
        let name = field("/metadata/name")?;
        let (plural, namespaced) = self.resource(api_version, kind).await?;
        let resource = Resource::new(api_version, &plural);
        if !namespaced {
            return Ok(format!("{}/{name}", resource.all()));
        }
        Ok(resource.named(field("/metadata/namespace")?, name))
    }

    /// The plural name of a kind, and whether it has namespaces.
    async fn resource(&self, api_version: &str, kind: &str) -> Result<(String, bool)> {
        if let Some(found) = self.cached(api_version, kind) {
            return Ok(found);
        }
        let list = self.get(&root(api_version)).await?;
        self.remembered().insert(api_version.to_owned(), list);
        self.cached(api_version, kind)
            .with_context(|| format!("{} serves no {kind} in {api_version}", self.server))
    }

    fn cached(&self, api_version: &str, kind: &str) -> Option<(String, bool)> {
        let remembered = self.remembered();
        let resources = remembered.get(api_version)?["resources"].as_array()?;
        resources.iter().find_map(|resource| {
            let plural = resource["name"].as_str()?;
            let desired = resource["kind"] == kind && !plural.contains('/');
            desired.then(|| (plural.to_owned(), resource["namespaced"] == true))
        })
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<String, Value>> {
        self.resources
            .lock()
            .expect("invariant: no thread panics while holding it")
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: Option<&str>,
    ) -> Result<Value> {
        let context = format!("{method} {path} at {}", self.server);
        let request = request(method, path, body, content_type)?;
        self.client.request(request).await.context(context)
    }
}

/// The HTTP status of the API server's response, if that is the cause of the error.
pub fn status_code(error: &anyhow::Error) -> Option<u16> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    })
}

fn request(
    method: Method,
    path: &str,
    body: Option<&Value>,
    content_type: Option<&str>,
) -> Result<Request<Vec<u8>>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
    request
        .body(body)
        .with_context(|| format!("{path:?} is not a path"))
}

fn parse(server: &str) -> Result<http::Uri> {
    server
        .parse()
        .with_context(|| format!("{server:?} is not a URL"))
}

/// The first certificate of a PEM file.
fn der(pem: &[u8]) -> Result<Vec<u8>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let certificate = CertificateDer::from_pem_slice(pem).context("no certificate in it")?;
    Ok(certificate.to_vec())
}
