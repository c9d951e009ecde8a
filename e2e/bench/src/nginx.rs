//! nginx from Debian, as a reverse proxy that a careful person would set up.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use testbed::binaries;
use testbed::progress::Progress;

/// Where to find it when it is not in the path.
const USUAL_PLACE: &str = "/usr/sbin/nginx";
/// What to do when it cannot be had.
const WAY_OUT: &str = "install it yourself (apt-get install nginx) and run the bench again";

/// What the configuration depends on.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// The port to listen on.
    pub(super) port: u16,
    /// The API server's port.
    pub(super) upstream_port: u16,
    /// The authority of the API server's certificate.
    pub(super) authority: &'a Path,
    /// The token to send.
    pub(super) token: &'a str,
    /// A directory for its own files.
    pub(super) directory: &'a Path,
}

/// Finds nginx, or fetches Debian's package and unpacks it into the cache.
///
/// It is not installed: the package's scripts would start a web server on every address of the machine.
pub(super) async fn find(progress: &Progress) -> Result<PathBuf> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&directories).map(|directory| directory.join("nginx"));
    let cache = binaries::cache()?.join("nginx");
    let unpacked = cache.join(USUAL_PLACE.trim_start_matches('/'));
    let mut places = in_path.chain([PathBuf::from(USUAL_PLACE), unpacked.clone()]);
    if let Some(found) = places.find(|path| path.is_file()) {
        return Ok(found);
    }
    let step = progress.step("fetching nginx from Debian");
    fetch(&cache)
        .await
        .with_context(|| format!("cannot fetch nginx: {WAY_OUT}"))?;
    if !unpacked.is_file() {
        bail!("Debian's package has no {USUAL_PLACE}: {WAY_OUT}");
    }
    step.done();
    Ok(unpacked)
}

async fn fetch(cache: &Path) -> Result<()> {
    std::fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let download = ["apt-get", "download", "nginx"];
    if run(cache, &download).await.is_err() {
        // The machine may never have heard of any package.
        run(cache, &["apt-get", "update"]).await?;
        run(cache, &download).await?;
    }
    let package = std::fs::read_dir(cache)
        .with_context(|| format!("cannot read {}", cache.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get left no package")?;
    let package = package.to_str().context("the package's name is not text")?;
    run(cache, &["dpkg-deb", "--extract", package, "."]).await
}

async fn run(directory: &Path, command: &[&str]) -> Result<()> {
    let text = command.join(" ");
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {text}"))?;
    if !output.status.success() {
        bail!(
            "{text} failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// What it says its version is.
pub(super) async fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("-v")
        .output()
        .await
        .context("cannot run nginx -v")?;
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text
        .trim()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// A reverse proxy to a TLS upstream with connections kept alive with both types. Responses are buffered, as nginx does
/// by default, but never on disk; watches are not buffered.
pub(super) fn configuration(settings: &Settings<'_>) -> String {
    let Settings {
        port,
        upstream_port,
        authority,
        token,
        directory,
    } = settings;
    let (authority, directory) = (authority.display(), directory.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {directory}/{kind};\n"))
        .concat();
    format!(
        r#"daemon off;
user root;
worker_processes auto;
worker_rlimit_nofile 8192;
pid {directory}/nginx.pid;
error_log stderr;
events {{
    worker_connections 4096;
}}
http {{
    access_log off;
{temporary}    keepalive_requests 100000000;
    upstream api {{
        server 127.0.0.1:{upstream_port};
        keepalive 64;
        keepalive_requests 100000000;
    }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header Authorization "Bearer {token}";
    proxy_ssl_verify on;
    proxy_ssl_name localhost;
    proxy_ssl_trusted_certificate {authority};
    proxy_max_temp_file_size 0;
    proxy_read_timeout 600s;
    server {{
        listen 127.0.0.1:{port};
        error_page 418 = @watch;
        location / {{
            if ($arg_watch = true) {{
                return 418;
            }}
            proxy_pass https://api;
        }}
        location @watch {{
            proxy_buffering off;
            proxy_pass https://api;
        }}
    }}
}}
"#
    )
}
