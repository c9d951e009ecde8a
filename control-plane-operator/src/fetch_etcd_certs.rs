//! `control-plane-operator fetch-etcd-certs`: copies the certificates of an etcd client to files.
//!
//! It is the first container of a backup Job, which runs in the namespace of the operator, and may read these two objects
//! of the control plane's namespace.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use support::args::{ApiServerArgs, LoggingArgs};

use crate::error::Failure;
use crate::tool;

/// Permissions of the files: one is a key.
const MODE: u32 = 0o600;
/// Keys of the Secret, which are the names of the files.
const CERTIFICATE: &str = "etcd-client.crt";
const KEY: &str = "etcd-client.key";
/// Key of the `ConfigMap`, which is the name of the file.
const CA: &str = "ca.crt";

/// The flags of `fetch-etcd-certs`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME")]
    pub hcp_namespace: String,
    /// Directory for etcd-client.crt, etcd-client.key and ca.crt.
    #[arg(long, value_name = "DIR", default_value = "/etc/etcd-certs")]
    pub output_dir: PathBuf,
    /// Secret with the client certificate and its key.
    #[arg(long, value_name = "NAME", default_value = "etcd-client-tls")]
    pub etcd_client_secret: String,
    /// ConfigMap with the certificate authority.
    #[arg(long, value_name = "NAME", default_value = "etcd-ca")]
    pub etcd_ca_configmap: String,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// The certificates could not be copied.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to get {object}")]
    Get { object: String, source: kube::Error },
    #[error("failed to read {object}: it has no key {key}")]
    MissingKey { object: String, key: &'static str },
    #[error("failed to write {path}")]
    Write { path: String, source: io::Error },
}

/// Writes the files. If one cannot be written, those that exist keep their content.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::complete(&args.logging, async {
        let config = support::client::config(&args.api_server).await?;
        let client = support::client::connect(&config)?;
        fetch(args, client).await.map_err(Failure::from)
    })
}

async fn fetch(args: &Args, client: kube::Client) -> Result<(), Error> {
    let namespace = &args.hcp_namespace;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    let (secret, map) = (&args.etcd_client_secret, &args.etcd_ca_configmap);
    let secret_id = format!("Secret {namespace}/{secret}");
    let map_id = format!("ConfigMap {namespace}/{map}");
    let get = |object: &str| {
        let object = object.to_owned();
        move |source| Error::Get { object, source }
    };
    let secret = secrets.get(secret).await.map_err(get(&secret_id))?;
    let map = maps.get(map).await.map_err(get(&map_id))?;
    let mut data = secret.data.unwrap_or_default();
    let mut take = |key: &'static str| {
        let object = secret_id.clone();
        let value = data.remove(key).filter(|value| !value.0.is_empty());
        value
            .map(|value| value.0)
            .ok_or(Error::MissingKey { object, key })
    };
    let (certificate, key) = (take(CERTIFICATE)?, take(KEY)?);
    let ca = map
        .data
        .unwrap_or_default()
        .remove(CA)
        .filter(|ca| !ca.is_empty());
    let ca = ca.ok_or(Error::MissingKey {
        object: map_id,
        key: CA,
    })?;
    write_all(
        &args.output_dir,
        &[
            (CERTIFICATE, &certificate),
            (KEY, &key),
            (CA, ca.as_bytes()),
        ],
    )
}

/// Writes all files under temporary names, and gives them their names only then: without space for one of them, none
/// is replaced.
fn write_all(directory: &Path, files: &[(&str, &[u8])]) -> Result<(), Error> {
    let temporary = |name: &str| directory.join(format!(".{name}.tmp"));
    let failed = |path: &Path, source| Error::Write {
        path: path.display().to_string(),
        source,
    };
    let stage = || {
        for (name, content) in files {
            let path = directory.join(name);
            write(&temporary(name), content).map_err(|source| failed(&path, source))?;
        }
        for (name, _) in files {
            let path = directory.join(name);
            fs::rename(temporary(name), &path).map_err(|source| failed(&path, source))?;
        }
        Ok(())
    };
    let written = stage();
    if written.is_err() {
        for (name, _) in files {
            // It may not exist.
            let _ = fs::remove_file(temporary(name));
        }
    }
    written
}

/// Writes a new file. One that a killed process has left is removed: it may have other permissions.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(MODE).open(path)?;
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use clap::Parser as _;
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        let line = ["control-plane-operator", "fetch-etcd-certs"];
        match Cli::try_parse_from(line.iter().chain(flags))?.command {
            Command::FetchEtcdCerts(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    fn secret(keys: &[&str]) -> Answer {
        let data: serde_json::Map<String, Value> = keys
            .iter()
            .map(|key| ((*key).to_owned(), json!("YQ==")))
            .collect();
        Answer::ok(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "etcd-client-tls" }, "data": data,
        }))
    }

    fn map(data: &Value) -> Answer {
        Answer::ok(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "etcd-ca" }, "data": data,
        }))
    }

    const SECRET: &str = "/api/v1/namespaces/clusters-dev/secrets/etcd-client-tls";
    const MAP: &str = "/api/v1/namespaces/clusters-dev/configmaps/etcd-ca";

    #[tokio::test]
    async fn files_are_written_with_their_permissions() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(KEY), "a longer previous key").unwrap();
        let output = format!("--output-dir={}", directory.path().display());
        let args = parse(&["--hcp-namespace=clusters-dev", &output]).unwrap();
        let scenario = Scenario::new([
            Expect::get(SECRET).answer(secret(&[CERTIFICATE, KEY])),
            Expect::get(MAP).answer(map(&json!({ "ca.crt": "CA" }))),
        ]);
        fetch(&args, scenario.client()).await.unwrap();
        scenario.finish();
        for (name, expected) in [(CERTIFICATE, "a"), (KEY, "a"), (CA, "CA")] {
            let path = directory.path().join(name);
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{name}");
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{name}");
        }
    }

    #[tokio::test]
    async fn incomplete_objects_are_named_and_nothing_is_written() {
        let ca = || map(&json!({ "ca.crt": "CA" }));
        for (answers, expected) in [
            (
                vec![secret(&[CERTIFICATE]), ca()],
                "Secret clusters-dev/etcd-client-tls: it has no key etcd-client.key",
            ),
            (
                vec![secret(&[CERTIFICATE, KEY]), map(&json!({}))],
                "ConfigMap clusters-dev/etcd-ca: it has no key ca.crt",
            ),
            (
                vec![Answer::error(403, "Forbidden")],
                "failed to get Secret clusters-dev/etcd-client-tls",
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let output = format!("--output-dir={}", directory.path().display());
            let args = parse(&["--hcp-namespace=clusters-dev", &output]).unwrap();
            let calls = [SECRET, MAP].into_iter().zip(answers);
            let scenario =
                Scenario::new(calls.map(|(path, answer)| Expect::get(path).answer(answer)));
            let error = fetch(&args, scenario.client())
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
            scenario.finish();
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_all_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::write(path.join(CERTIFICATE), "old").unwrap();
        // A directory of its temporary name stands for a full disk.
        fs::create_dir(path.join(format!(".{CA}.tmp"))).unwrap();
        let files: [(&str, &[u8]); 3] = [(CERTIFICATE, b"new"), (KEY, b"new"), (CA, b"new")];
        let error = write_all(path, &files).unwrap_err().to_string();
        assert!(error.contains("failed to write"), "{error}");
        assert!(error.contains("/ca.crt"), "{error}");
        assert_eq!(fs::read_to_string(path.join(CERTIFICATE)).unwrap(), "old");
        let names = fs::read_dir(path).unwrap();
        let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let absent = write_all(Path::new("/does/not/exist"), &files).unwrap_err();
        let expected = "failed to write /does/not/exist/etcd-client.crt";
        assert_eq!(absent.to_string(), expected);
    }

    #[test]
    fn the_namespace_is_required() {
        assert!(parse(&[]).is_err());
        let args = parse(&["--hcp-namespace=clusters-dev"]).unwrap();
        assert_eq!(args.output_dir, Path::new("/etc/etcd-certs"));
    }
}
