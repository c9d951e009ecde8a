//! A real OCI registry in a testbed, and a small client that pushes images to it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use http::{Request, StatusCode, header};
use serde_json::json;

use crate::certs::write;
use crate::images::{Archive, Blob};
use crate::process::Launch;
use crate::raw::{RawClient, Response};
use crate::service::{Service, plain_health_at};
use crate::site::Site;
use crate::work_dir::WorkDir;

/// The registry's name and port in the references of images: the same in every testbed, whatever its addresses are. Pods
/// find it by that name, too.
pub const NAME: &str = "registry.testbed:5000";
/// The name alone.
pub const HOST: &str = "registry.testbed";
const PORT: u16 = 5000;
/// The tag of what the testbed pushes.
const TAG: &str = "testbed";

/// A registry.
#[derive(Debug)]
pub struct Registry {
    /// The program.
    pub service: Service,
    address: SocketAddr,
    client: RawClient,
}

// === impl Registry ===

impl Registry {
    /// Prepares a registry that keeps its images in the testbed's directory.
    pub fn new(program: &Path, site: Site<'_>, work_dir: &Arc<WorkDir>) -> Result<Self> {
        let address = site.address(PORT)?;
        let config = work_dir.join("registry.json");
        let settings = json!({
            "version": "0.1",
            "log": { "level": "warn", "accesslog": { "disabled": true } },
            "storage": {
                "filesystem": { "rootdirectory": work_dir.join("registry") },
                "delete": { "enabled": true },
            },
            "http": { "addr": address.to_string() },
        });
        write(&config, &settings.to_string())?;
        let launch = Launch::new("registry", program)
            .arg("serve")
            .arg(config)
            .environment("OTEL_TRACES_EXPORTER", "none");
        Ok(Self {
            service: Service::new(
                site.place(launch),
                work_dir,
                plain_health_at(address, "/v2/")?,
            ),
            address,
            client: RawClient::new(&format!("http://{address}"), None)?,
        })
    }

    /// Where it listens, without TLS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The reference under which pods name the image `name`.
    pub fn reference(name: &str) -> String {
        format!("{NAME}/{name}:{TAG}")
    }

    /// Pushes an image; gives its reference by digest, which no later push changes.
    pub async fn push(&self, name: &str, image: &Archive) -> Result<String> {
        self.push_as(name, TAG, image).await
    }

    /// Pushes an image under a tag of its own; gives its reference by digest.
    pub async fn push_as(&self, name: &str, tag: &str, image: &Archive) -> Result<String> {
        for blob in [&image.layer, &image.config] {
            self.push_blob(name, blob)
                .await
                .with_context(|| format!("cannot push {} of {name}", blob.digest))?;
        }
        let manifest = &image.manifest;
        let request = Request::put(format!("/v2/{name}/manifests/{tag}"))
            .header(header::CONTENT_TYPE, manifest.kind)
            .body(manifest.bytes.to_vec())?;
        expect(self.client.send(request).await?, StatusCode::CREATED)
            .await
            .with_context(|| format!("cannot push the manifest of {name}"))?;
        Ok(format!("{NAME}/{name}@{}", manifest.digest))
    }

    async fn push_blob(&self, name: &str, blob: &Blob) -> Result<()> {
        let there = Request::head(format!("/v2/{name}/blobs/{}", blob.digest)).body(Vec::new())?;
        if self.client.send(there).await?.status == StatusCode::OK {
            return Ok(());
        }
        let start = Request::post(format!("/v2/{name}/blobs/uploads/")).body(Vec::new())?;
        let response = expect(self.client.send(start).await?, StatusCode::ACCEPTED).await?;
        let upload = upload_path(&response, &blob.digest)?;
        let request = Request::put(upload)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(blob.bytes.to_vec())?;
        expect(self.client.send(request).await?, StatusCode::CREATED).await?;
        Ok(())
    }
}

/// Where to put a blob, which the registry says in a header.
fn upload_path(response: &Response, digest: &str) -> Result<String> {
    let location = response
        .headers
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok())
        .context("the registry does not say where to put a blob")?;
    let location: http::Uri = location
        .parse()
        .with_context(|| format!("{location:?} is not a URL"))?;
    let path = location
        .path_and_query()
        .context("the registry's location has no path")?;
    let separator = if path.query().is_some() { '&' } else { '?' };
    Ok(format!("{path}{separator}digest={digest}"))
}

async fn expect(response: Response, status: StatusCode) -> Result<Response> {
    if response.status == status {
        return Ok(response);
    }
    let got = response.status;
    let said = response.bytes().await?;
    bail!(
        "the registry returned {got}: {}",
        String::from_utf8_lossy(&said)
    )
}
