//! `control-plane-operator etcd-backup`: takes a snapshot of etcd and uploads it to S3.
//!
//! A `CronJob` of older installations runs it. The snapshot is read from etcd itself, so that the image needs no other
//! program, and its checksum is verified before anything is uploaded.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use form_urlencoded::Serializer;
use jiff::Timestamp;
use support::args::LoggingArgs;
use support::etcd::{Connection, Credentials};
use tokio::time::timeout;

use crate::error::{Failure, Usage};
use crate::etcd_upload::region;
use crate::object_store::s3::{self, Bucket};
use crate::object_store::{Http, Variable, key};
use crate::tool;

/// How long a snapshot may take.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_mins(5);
/// Name of the snapshot in the directory.
const SNAPSHOT: &str = "snapshot.db";

/// The flags of `etcd-backup`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Directory for the snapshot until it is uploaded.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub backup_dir: PathBuf,
    /// URL of a member of etcd.
    #[arg(long, value_name = "URL")]
    pub etcd_endpoint: http::Uri,
    /// File with the client certificate for etcd, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd-certs/etcd-client.crt"
    )]
    pub etcd_client_cert: PathBuf,
    /// File with the key of the client certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd-certs/etcd-client.key"
    )]
    pub etcd_client_key: PathBuf,
    /// File with the certificate authority of etcd, PEM.
    #[arg(long, value_name = "FILE", default_value = "/etc/etcd-certs/ca.crt")]
    pub etcd_ca_cert: PathBuf,
    /// Bucket to upload to.
    #[arg(long, value_name = "NAME")]
    pub s3_bucket_name: String,
    /// Region of the bucket [default: `$AWS_REGION`]
    #[arg(long, value_name = "REGION")]
    pub s3_bucket_region: Option<String>,
    /// Prefix of the object's key. The key is PREFIX/SECONDS.db, with the time since 1970.
    #[arg(long, value_name = "PREFIX")]
    pub s3_key_prefix: String,
    /// Tags of the object, separated by commas.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = tag)]
    pub s3_object_tags: Vec<(String, String)>,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const HELP: &str = "\
Credentials for S3 are those of the environment: AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE.

Example:
  control-plane-operator etcd-backup --etcd-endpoint https://etcd-client:2379 --s3-bucket-name backups \\
    --s3-bucket-region us-east-1 --s3-key-prefix clusters/dev --s3-object-tags cluster=dev,keep=30d";

/// The snapshot could not be taken.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to take a snapshot of etcd at {endpoint}")]
    Snapshot {
        endpoint: String,
        source: support::etcd::Error,
    },
    #[error(
        "failed to take a snapshot of etcd at {endpoint}: it took longer than {SNAPSHOT_TIMEOUT:?}"
    )]
    Timeout { endpoint: String },
    #[error("failed to write {path}: choose a directory with free space with --backup-dir")]
    Write {
        path: String,
        source: std::io::Error,
    },
}

/// Takes the snapshot and uploads it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let bucket = bucket(args, &variable)?;
    tool::complete(&args.logging, backup(args, &bucket, &variable))
}

#[expect(clippy::print_stdout, reason = "the result of the command")]
async fn backup(args: &Args, bucket: &Bucket, variable: Variable<'_>) -> Result<(), Failure> {
    let path = args.backup_dir.join(SNAPSHOT);
    let size = snapshot(args, &path).await?;
    tracing::info!(path = %path.display(), size, "Took a snapshot");
    let key = key(&args.s3_key_prefix, &path, Timestamp::now());
    let url = s3::upload(&Http::new(), bucket, None, &path, &key, variable).await?;
    tracing::info!(url, "Uploaded the snapshot");
    println!("{url}");
    Ok(())
}

/// Writes a snapshot to a file; an incomplete one is removed.
async fn snapshot(args: &Args, path: &Path) -> Result<u64, Error> {
    let unwritten = |source| Error::Write {
        path: path.display().to_string(),
        source,
    };
    let mut file = create(path).map_err(unwritten)?;
    let endpoint = args.etcd_endpoint.to_string();
    let credentials = Credentials {
        ca: args.etcd_ca_cert.clone(),
        certificate: args.etcd_client_cert.clone(),
        key: args.etcd_client_key.clone(),
    };
    let taking = async {
        let connection = Connection::open(&credentials, &endpoint)?;
        connection.snapshot(|bytes| file.write_all(bytes)).await
    };
    let taken = match timeout(SNAPSHOT_TIMEOUT, taking).await {
        Ok(Ok(size)) => file.sync_all().map(|()| size).map_err(unwritten),
        Ok(Err(source)) => Err(Error::Snapshot { endpoint, source }),
        Err(_) => Err(Error::Timeout { endpoint }),
    };
    if taken.is_err() {
        // If it stays, the next snapshot replaces it.
        let _ = std::fs::remove_file(path);
    }
    taken
}

/// Replaces the file by an empty one that only its owner may read: a snapshot has all Secrets.
fn create(path: &Path) -> std::io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn bucket(args: &Args, variable: Variable<'_>) -> Result<Bucket, Usage> {
    let empty = |flag: &str| Usage {
        message: format!("{flag} must not be empty"),
    };
    if args.s3_key_prefix.trim_matches('/').is_empty() {
        return Err(empty("--s3-key-prefix"));
    }
    if args.s3_bucket_name.is_empty() {
        return Err(empty("--s3-bucket-name"));
    }
    let flag = args.s3_bucket_region.as_deref();
    Ok(Bucket {
        name: args.s3_bucket_name.clone(),
        region: region("--s3-bucket-region", flag, variable)?,
        kms_key: None,
        tags: tags(&args.s3_object_tags),
        endpoint: s3::endpoint("s3", variable),
    })
}

/// Tags as S3 takes them: encoded like the query of a URL.
fn tags(tags: &[(String, String)]) -> Option<String> {
    let encoded = Serializer::new(String::new()).extend_pairs(tags).finish();
    (!encoded.is_empty()).then_some(encoded)
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    const REQUIRED: [&str; 3] = [
        "--etcd-endpoint=https://etcd-client:2379",
        "--s3-bucket-name=backups",
        "--s3-key-prefix=clusters/dev",
    ];

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        let line = ["control-plane-operator", "etcd-backup"];
        match Cli::try_parse_from(line.iter().chain(flags))?.command {
            Command::EtcdBackup(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    fn with(more: &[&'static str]) -> Vec<&'static str> {
        REQUIRED.iter().chain(more).copied().collect()
    }

    #[test]
    fn files_have_defaults_and_the_rest_is_required() {
        let args = parse(&REQUIRED).unwrap();
        assert_eq!(args.backup_dir, Path::new("/tmp"));
        assert_eq!(
            args.etcd_client_cert,
            Path::new("/etc/etcd-certs/etcd-client.crt")
        );
        assert_eq!(
            args.etcd_client_key,
            Path::new("/etc/etcd-certs/etcd-client.key")
        );
        assert_eq!(args.etcd_ca_cert, Path::new("/etc/etcd-certs/ca.crt"));
        for index in 0..REQUIRED.len() {
            let mut flags = REQUIRED.to_vec();
            flags.remove(index);
            assert!(parse(&flags).is_err(), "{flags:?}");
        }
        for tags in ["--s3-object-tags=a", "--s3-object-tags==b"] {
            assert!(parse(&with(&[tags])).is_err(), "{tags}");
        }
    }

    #[test]
    fn the_bucket_has_the_tags_and_a_region() {
        let none = |_: &str| None;
        let flags = with(&[
            "--s3-bucket-region=eu-west-1",
            "--s3-object-tags=a=b c,d=e=f",
        ]);
        let found = bucket(&parse(&flags).unwrap(), &none).unwrap();
        assert_eq!(found.tags.as_deref(), Some("a=b+c&d=e%3Df"));
        assert_eq!(found.region, "eu-west-1");
        let error = bucket(&parse(&REQUIRED).unwrap(), &none).unwrap_err();
        assert!(
            error.message.contains("--s3-bucket-region or AWS_REGION"),
            "{error}"
        );
        let mut args = parse(&flags).unwrap();
        args.s3_key_prefix = "/".to_owned();
        let error = bucket(&args, &none).unwrap_err();
        assert_eq!(error.message, "--s3-key-prefix must not be empty");
    }

    #[tokio::test]
    async fn an_unusable_certificate_or_directory_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut args = parse(&with(&["--etcd-ca-cert=/does/not/exist.crt"])).unwrap();
        let path = directory.path().join(SNAPSHOT);
        let error = snapshot(&args, &path).await.unwrap_err();
        let text = support::error::chain(&error);
        assert!(text.contains("https://etcd-client:2379"), "{text}");
        assert!(
            text.contains("failed to read /does/not/exist.crt"),
            "{text}"
        );
        assert!(!path.exists());
        args.backup_dir = "/does/not/exist".into();
        let path = args.backup_dir.join(SNAPSHOT);
        let error = snapshot(&args, &path).await.unwrap_err().to_string();
        assert!(
            error.contains("/does/not/exist/snapshot.db: choose a directory"),
            "{error}"
        );
    }

    #[test]
    fn snapshots_are_readable_by_their_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("snapshot.db");
        for round in 0..2 {
            create(&path).unwrap().write_all(b"keys").unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "round {round}");
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(&path, open).unwrap();
        }
        assert!(create(&directory.path().join("absent/snapshot.db")).is_err());
    }
}
