//! The bucket of S3 in which the operators store the documents by which AWS validates tokens of hosted clusters.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use support::aws::is_region;

use super::aws_role::{self, Roles};
use super::kind::Kind;
use super::object::Object;
use super::parameters::{OIDC_KEY, OIDC_NAME, OIDC_REGION, OIDC_SECRET, Parameters};
use super::secret_file::{SecretFile, read_aws};
use crate::Usage;
use crate::create::text;

/// Secret with the credentials.
const SECRET: &str = "hypershift-operator-oidc-provider-s3-credentials";
/// Key in it, and name of the file.
const KEY: &str = "credentials";
/// `ConfigMap` by which everyone finds the bucket, and its namespace.
const CONFIG: (&str, &str) = ("kube-public", "oidc-storage-provider-s3-config");
const VOLUME: &str = "oidc-storage-provider-s3";
const DIRECTORY: &str = "/etc/hypershift/oidc-storage-provider-s3";
const ROLE: &str = "--oidc-storage-provider-s3-role-arn";

/// The flags.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the flags are those of HyperShift"
)]
pub(super) struct OidcStorageArgs {
    /// Bucket of S3 for the OIDC documents of hosted clusters on AWS, which everyone can read; needs
    /// --oidc-storage-provider-s3-region and one of -credentials, -secret and -role-arn
    #[arg(long, global = true, value_name = "NAME")]
    oidc_storage_provider_s3_bucket_name: Option<String>,

    /// Region of the bucket
    #[arg(long, global = true, value_name = "REGION")]
    oidc_storage_provider_s3_region: Option<String>,

    /// File with the credentials for it: a shared credentials file whose default profile may put, get and delete objects
    #[arg(long, global = true, value_name = "FILE")]
    oidc_storage_provider_s3_credentials: Option<PathBuf>,

    /// Secret with the credentials for the bucket, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    oidc_storage_provider_s3_secret: Option<String>,

    /// Key of the Secret of --oidc-storage-provider-s3-secret
    #[arg(long, global = true, value_name = "KEY", default_value = KEY)]
    oidc_storage_provider_s3_secret_key: String,

    /// Role that the operators assume with tokens of their service accounts
    #[arg(long, global = true, value_name = "ARN")]
    oidc_storage_provider_s3_role_arn: Option<String>,
}

/// The bucket, and how the operators write to it.
#[derive(Debug, Clone)]
pub(crate) struct OidcStorage {
    bucket: String,
    region: String,
    credentials: SecretFile,
    /// Whether the operators need tokens.
    with_token: bool,
}

// === impl OidcStorageArgs ===

impl OidcStorageArgs {
    /// Checks the flags and reads the file. A role of `roles` is used where a bucket is wanted.
    pub(super) fn resolve(&self, roles: &Roles) -> anyhow::Result<Option<OidcStorage>> {
        let Self {
            oidc_storage_provider_s3_bucket_name: bucket,
            oidc_storage_provider_s3_region: region,
            oidc_storage_provider_s3_credentials: file,
            oidc_storage_provider_s3_secret: secret,
            oidc_storage_provider_s3_secret_key: key,
            oidc_storage_provider_s3_role_arn: role,
        } = self;
        let is_wanted = bucket.is_some() || region.is_some();
        let listed = roles.oidc.as_ref().filter(|_| is_wanted);
        let role = role.as_ref().or(listed);
        let credentials = match (file, secret, role) {
            (None, None, None) if !is_wanted => return Ok(None),
            (Some(file), None, None) => SecretFile::made(SECRET, KEY, read_aws(file)?),
            (None, Some(name), None) => SecretFile::existing(name, key),
            (None, None, Some(role)) => SecretFile::made(SECRET, KEY, roles.profile(ROLE, role)?),
            _ => {
                let message = "a bucket for OIDC documents needs one of --oidc-storage-provider-s3-credentials, \
                               --oidc-storage-provider-s3-secret and --oidc-storage-provider-s3-role-arn";
                return Err(Usage::new(&message).into());
            }
        };
        let (Some(bucket), Some(region)) = (bucket, region) else {
            let message = "credentials for OIDC documents need --oidc-storage-provider-s3-bucket-name and \
                           --oidc-storage-provider-s3-region";
            return Err(Usage::new(&message).into());
        };
        check(bucket, region)?;
        Ok(Some(OidcStorage {
            bucket: bucket.clone(),
            region: region.clone(),
            credentials,
            with_token: role.is_some() && roles.need_tokens(),
        }))
    }
}

/// Both become parts of issuer URLs.
fn check(bucket: &str, region: &str) -> anyhow::Result<()> {
    if !text::is_plain(bucket) {
        let message = format!(
            "--oidc-storage-provider-s3-bucket-name {bucket:?}: a bucket with lower-case letters, digits and dashes, and \
             without dots, is needed"
        );
        return Err(Usage::new(&message).into());
    }
    if !is_region(region) {
        let message = format!(
            "--oidc-storage-provider-s3-region {region:?} is not a region (for example us-east-1)"
        );
        return Err(Usage::new(&message).into());
    }
    Ok(())
}

// === impl OidcStorage ===

impl OidcStorage {
    /// The Secret, unless it is the user's, and what everyone may know.
    pub(super) fn objects(&self, namespace: &str) -> Vec<Object> {
        let (place, name) = CONFIG;
        let config = json!({ "data": { "name": self.bucket, "region": self.region } });
        let mut objects = vec![Object::new(Kind::ConfigMap, place, name, config)];
        objects.extend(self.credentials.object(namespace));
        objects
    }

    /// Puts parameters in the place of values.
    pub(super) fn parameterize(&mut self, parameters: &mut Parameters) {
        let Self {
            bucket,
            region,
            credentials,
            with_token: _,
        } = self;
        parameters.take(OIDC_NAME, bucket);
        parameters.take(OIDC_REGION, region);
        credentials.parameterize(parameters, OIDC_SECRET, OIDC_KEY);
    }

    /// The arguments of an operator.
    pub(super) fn arguments(&self) -> [String; 3] {
        [
            format!("--oidc-storage-provider-s3-bucket-name={}", self.bucket),
            format!("--oidc-storage-provider-s3-region={}", self.region),
            format!("--oidc-storage-provider-s3-credentials={DIRECTORY}/{KEY}"),
        ]
    }

    /// The volumes of its pod, and where its container has them.
    pub(super) fn volumes(&self) -> Vec<(Value, Value)> {
        let credentials = self.credentials.volume(VOLUME, DIRECTORY, KEY);
        let token = self.with_token.then(aws_role::token);
        [credentials].into_iter().chain(token).collect()
    }
}
