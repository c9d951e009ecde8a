//! `control-plane-operator etcd-upload`: uploads a snapshot of etcd to an object store.
//!
//! It is the last container of a backup Job. The controller of the Job reads the URL from the termination message.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use support::args::LoggingArgs;
use support::azure::AuthType;

use crate::error::{Failure, Usage};
use crate::object_store::s3::Bucket;
use crate::object_store::{Http, Variable, azure, key, s3};
use crate::tool;

/// Where a container reports its result.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// The flags of `etcd-upload`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// File with the snapshot.
    #[arg(long, value_name = "FILE")]
    pub snapshot_path: PathBuf,
    /// Kind of the object store.
    #[arg(long, value_name = "TYPE")]
    pub storage_type: StorageType,
    /// Prefix of the object's key. The key is PREFIX/SECONDS.EXTENSION: the time since 1970, and the extension of the
    /// file.
    #[arg(long, value_name = "PREFIX")]
    pub key_prefix: String,
    /// File with credentials [default: those of the environment]
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// Flags for S3.
    #[command(flatten, next_help_heading = "S3")]
    pub s3: S3Args,
    /// Flags for Azure Blob Storage.
    #[command(flatten, next_help_heading = "Azure Blob Storage")]
    pub azure: AzureArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Kinds of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StorageType {
    /// Amazon S3.
    #[value(name = "S3")]
    S3,
    /// Azure Blob Storage.
    #[value(name = "AzureBlob")]
    AzureBlob,
}

/// Flags for S3.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct S3Args {
    /// Name of the bucket.
    #[arg(long, value_name = "NAME")]
    pub aws_bucket: Option<String>,
    /// Region of the bucket [default: `$AWS_REGION`]
    #[arg(long, value_name = "REGION")]
    pub aws_region: Option<String>,
    /// KMS key that the object is encrypted with [default: that of the bucket]
    #[arg(long, value_name = "ARN")]
    pub aws_kms_key_arn: Option<String>,
}

/// Flags for Azure Blob Storage.
#[derive(Debug, Clone, clap::Args)]
pub struct AzureArgs {
    /// Name of the container.
    #[arg(long, value_name = "NAME")]
    pub azure_container: Option<String>,
    /// Name of the storage account.
    #[arg(long, value_name = "NAME")]
    pub azure_storage_account: Option<String>,
    /// Encryption scope of the blob [default: that of the container]
    #[arg(long, value_name = "NAME")]
    pub azure_encryption_scope: Option<String>,
    /// What the credentials file has.
    #[arg(long, value_name = "TYPE", default_value = "client-secret")]
    pub azure_auth_type: AuthType,
}

const HELP: &str = "\
Credentials:
  S3: a profile with keys, or with role_arn and web_identity_token_file. Without a file: the variables
  AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or
  AWS_SHARED_CREDENTIALS_FILE.
  Azure: JSON with tenantId, clientId and clientSecret. Without a file, or with an empty one: the variables
  AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, or else the identity
  of the machine.

Output:
  The URL of the object, also in /dev/termination-log.

Example:
  control-plane-operator etcd-upload --snapshot-path /etc/etcd-backup/snapshot.db --storage-type S3 \\
    --aws-bucket backups --aws-region us-east-1 --key-prefix clusters/dev";

/// Where a snapshot goes.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    S3(Bucket),
    Azure(azure::Container),
}

/// Uploads the snapshot.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let target = target(args, &variable)?;
    check_file(&args.snapshot_path)?;
    tool::complete(&args.logging, async {
        let url = upload(args, &target, &variable).await?;
        report(&url, Path::new(TERMINATION_LOG));
        Ok::<_, Failure>(())
    })
}

async fn upload(args: &Args, target: &Target, variable: Variable<'_>) -> Result<String, Failure> {
    let (file, http) = (&args.snapshot_path, Http::new());
    let key = key(&args.key_prefix, file, Timestamp::now());
    let credentials = args.credentials_file.as_deref();
    let url = match target {
        Target::S3(bucket) => s3::upload(&http, bucket, credentials, file, &key, variable).await?,
        Target::Azure(container) => {
            let source = support::azure::source(
                credentials,
                args.azure.azure_auth_type,
                azure::SCOPE,
                variable,
            )?;
            azure::upload(&http, container, &source, file, &key).await?
        }
    };
    Ok(url)
}

/// Prints the URL, and leaves it as the termination message. Outside of a pod there is no such file, and none is created.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn report(url: &str, log: &Path) {
    println!("{url}");
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).truncate(true).open(log);
    match opened.and_then(|mut file| file.write_all(url.as_bytes())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %log.display(), "Failed to write the termination message");
        }
        Ok(()) | Err(_) => {}
    }
}

/// The target, if all of its flags are set.
fn target(args: &Args, variable: Variable<'_>) -> Result<Target, Usage> {
    if args.key_prefix.trim_matches('/').is_empty() {
        return Err(usage("--key-prefix must not be empty"));
    }
    let needs = |flag: &str, value: &Option<String>| {
        let value = value.clone().filter(|value| !value.is_empty());
        value.ok_or_else(|| usage(&format!("set {flag}: --storage-type requires it")))
    };
    let optional = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    match args.storage_type {
        StorageType::S3 => {
            let S3Args {
                aws_bucket,
                aws_region,
                aws_kms_key_arn,
            } = &args.s3;
            Ok(Target::S3(Bucket {
                name: needs("--aws-bucket", aws_bucket)?,
                region: region("--aws-region", aws_region.as_deref(), variable)?,
                kms_key: optional(aws_kms_key_arn),
                tags: None,
                endpoint: s3::endpoint("s3", variable),
            }))
        }
        StorageType::AzureBlob => {
            let AzureArgs {
                azure_container,
                azure_storage_account,
                azure_encryption_scope,
                azure_auth_type: _,
            } = &args.azure;
            let account = needs("--azure-storage-account", azure_storage_account)?;
            // It becomes the first label of a host name.
            let is_account = (3..=24).contains(&account.len())
                && account
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
            if !is_account {
                return Err(usage(
                    "--azure-storage-account must have 3 to 24 lower-case letters and digits",
                ));
            }
            Ok(Target::Azure(azure::Container {
                account,
                name: needs("--azure-container", azure_container)?,
                encryption_scope: optional(azure_encryption_scope),
            }))
        }
    }
}

/// The region of a bucket, of a flag or of the environment.
pub(crate) fn region(
    flag: &str,
    value: Option<&str>,
    variable: Variable<'_>,
) -> Result<String, Usage> {
    let names = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let value = value.map(str::to_owned).filter(|value| !value.is_empty());
    let region = value.or_else(|| names.iter().find_map(|name| variable(name)));
    let region = region.filter(|region| support::aws::is_region(region));
    region.ok_or_else(|| {
        usage(&format!(
            "set {flag} or AWS_REGION to the region of the bucket"
        ))
    })
}

/// Links are not followed: in a backup Job, the container before this one runs another image, and has none of the
/// credentials that a link could lead to.
fn check_file(path: &Path) -> Result<(), Usage> {
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.is_file() && file.len() > 0 => Ok(()),
        Ok(_) => Err(usage(&format!(
            "--snapshot-path {} is not a file with a snapshot",
            path.display()
        ))),
        Err(error) => Err(usage(&format!(
            "failed to use --snapshot-path {}: {error}",
            path.display()
        ))),
    }
}

fn usage(message: &str) -> Usage {
    Usage {
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::error::exit_code;

    fn parse(more: &[&str]) -> Result<Args, clap::Error> {
        let line = ["control-plane-operator", "etcd-upload"];
        match Cli::try_parse_from(line.iter().chain(more))?.command {
            Command::EtcdUpload(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    const COMMON: [&str; 2] = [
        "--snapshot-path=/etc/etcd-backup/snapshot.db",
        "--key-prefix=a/b/",
    ];

    fn target_of(more: &[&str], variables: &[(&str, &str)]) -> Result<Target, String> {
        let flags: Vec<_> = COMMON.iter().chain(more).copied().collect();
        let args = parse(&flags).map_err(|error| error.to_string())?;
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        target(&args, &variable).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_of_backup_jobs_are_accepted() {
        let s3 = [
            "--storage-type=S3",
            "--aws-bucket=backups",
            "--aws-region=eu-west-1",
            "--aws-kms-key-arn=arn:aws:kms:eu-west-1:1:key/k",
            "--credentials-file=/etc/etcd-backup-creds/credentials",
        ];
        let bucket = Bucket {
            name: "backups".to_owned(),
            region: "eu-west-1".to_owned(),
            kms_key: Some("arn:aws:kms:eu-west-1:1:key/k".to_owned()),
            tags: None,
            endpoint: None,
        };
        assert_eq!(target_of(&s3, &[]), Ok(Target::S3(bucket)));
        let azure = [
            "--storage-type=AzureBlob",
            "--azure-container=backups",
            "--azure-storage-account=account1",
            "--azure-encryption-scope=scope",
            "--azure-auth-type=managed-identity",
        ];
        let container = azure::Container {
            account: "account1".to_owned(),
            name: "backups".to_owned(),
            encryption_scope: Some("scope".to_owned()),
        };
        assert_eq!(target_of(&azure, &[]), Ok(Target::Azure(container)));
        let flags: Vec<_> = COMMON.iter().chain(&azure).copied().collect();
        let args = parse(&flags).unwrap();
        assert_eq!(args.azure.azure_auth_type, AuthType::ManagedIdentity);
    }

    #[test]
    fn the_region_may_come_from_the_environment() {
        let flags = ["--storage-type=S3", "--aws-bucket=backups"];
        let found = target_of(&flags, &[("AWS_REGION", "us-east-2")]).unwrap();
        assert!(matches!(found, Target::S3(bucket) if bucket.region == "us-east-2"));
    }

    #[test]
    fn flags_that_are_missing_or_invalid_are_named() {
        for (flags, expected) in [
            (vec![], "--storage-type"),
            (
                vec!["--storage-type=GCS"],
                "[possible values: S3, AzureBlob]",
            ),
            (
                vec!["--storage-type=S3", "--aws-region=a"],
                "set --aws-bucket",
            ),
            (
                vec!["--storage-type=S3", "--aws-bucket=a"],
                "set --aws-region or AWS_REGION",
            ),
            (
                vec![
                    "--storage-type=S3",
                    "--aws-bucket=a",
                    "--aws-region=a.example.com/",
                ],
                "set --aws-region or AWS_REGION",
            ),
            (
                vec!["--storage-type=AzureBlob", "--azure-container=a"],
                "set --azure-storage-account",
            ),
            (
                vec!["--storage-type=AzureBlob", "--azure-storage-account=abc"],
                "set --azure-container",
            ),
            (
                vec![
                    "--storage-type=AzureBlob",
                    "--azure-storage-account=a.example.com",
                ],
                "3 to 24 lower-case letters",
            ),
        ] {
            let error = target_of(&flags, &[]).unwrap_err();
            assert!(error.contains(expected), "{flags:?}: {error}");
        }
    }

    /// Errors of the command line exit with 64, before anything is sent.
    #[test]
    fn a_missing_snapshot_is_a_usage_error() {
        let flags = [
            "--snapshot-path=/does/not/exist.db",
            "--key-prefix=a",
            "--storage-type=S3",
            "--aws-bucket=a",
            "--aws-region=a",
        ];
        let error = run(&parse(&flags).unwrap()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("--snapshot-path /does/not/exist.db"),
            "{error}"
        );
        let code = format!("{:?}", exit_code(error.as_ref()));
        assert_eq!(code, format!("{:?}", std::process::ExitCode::from(64)));
    }

    /// Check T27.
    #[test]
    fn a_snapshot_is_a_file_and_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&file, "a snapshot").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(check_file(&file).is_ok());
        for path in [link.as_path(), directory.path()] {
            let error = check_file(path).unwrap_err().to_string();
            assert!(error.contains("is not a file with a snapshot"), "{error}");
        }
    }

    #[test]
    fn the_url_is_the_termination_message() {
        let log = tempfile::NamedTempFile::new().unwrap();
        report("s3://backups/a/1.db", log.path());
        let written = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(written, "s3://backups/a/1.db");
        // A longer message of an earlier attempt is replaced.
        report("s3://b/a/1.db", log.path());
        assert_eq!(
            std::fs::read_to_string(log.path()).unwrap(),
            "s3://b/a/1.db"
        );
        // Outside of a pod.
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("termination-log");
        report("s3://backups/a/1.db", &absent);
        assert!(!absent.exists());
    }
}
