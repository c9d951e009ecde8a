//! What is to be installed, once its arguments are checked and its files read.

use std::fs;
use std::path::Path;

use anyhow::Context;
use api::features::FeatureSet;
use serde_json::Value;

use super::args::{MetricsSet, OptionArgs, Platform, PlatformMonitoring, PullPolicy};
use super::control_planes::ControlPlanes;
use super::conversion::Setup;
use super::crds::Source;
use super::external_dns::ExternalDns;
use super::image_refs::{self, ImageRefs};
use super::images::{self, Needed};
use super::oidc::OidcStorage;
use super::private_links::PrivateLinks;
use super::scale_from_zero::ScaleFromZero;
use super::tenant_policy::{Mode, ReleaseImages};
use crate::Usage;

/// What is to be installed.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) namespace: String,
    pub(crate) types: Types,
    pub(crate) operator_image: String,
    /// Variables of the operators for images of control planes.
    pub(crate) image_refs: Vec<(&'static str, String)>,
    pub(crate) pull_policy: PullPolicy,
    /// None while the operator runs elsewhere.
    pub(crate) replicas: u8,
    /// Text of a `.dockerconfigjson`.
    pub(crate) pull_secret: Option<String>,
    /// PEM certificates.
    pub(crate) trust_bundle: Option<String>,
    pub(crate) operator_overrides: Option<Table>,
    pub(crate) features: FeatureSet,
    /// Variables by which the operators know the managed service that they are part of.
    pub(crate) managed_service: Vec<(&'static str, String)>,
    pub(crate) control_planes: ControlPlanes,
    pub(crate) oidc_storage: Option<OidcStorage>,
    pub(crate) external_dns: Option<ExternalDns>,
    pub(crate) private_links: Option<PrivateLinks>,
    pub(crate) scale_from_zero: Option<ScaleFromZero>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) platform_monitoring: PlatformMonitoring,
    pub(crate) metrics_set: MetricsSet,
    pub(crate) dashboards: bool,
    /// Whether there are roles of clients and readers.
    pub(crate) admin_rbac: bool,
    /// What the tenant policy does, if a flag says so.
    pub(crate) tenant_policy: Option<Mode>,
    pub(crate) tenant_release_images: ReleaseImages,
}

/// Images of the control-plane-operator.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// As the file has them.
    pub(crate) text: String,
    /// What they come down to, in short.
    pub(crate) hash: String,
}

/// Which API groups hold Cluster API's objects.
#[derive(Debug, Clone)]
pub(crate) enum Types {
    /// The standard ones, whose CRDs are the platform's.
    Standard,
    /// The private ones.
    Private(Private),
}

/// What the private groups need.
#[derive(Debug, Clone)]
pub(crate) struct Private {
    pub(crate) proxy_image: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) platforms: Vec<Platform>,
    /// The conversion webhook, where one is wanted.
    pub(crate) conversion: Option<Setup>,
}

// === impl Options ===

impl Options {
    /// Checks arguments and reads the files that they name.
    pub(super) fn resolve(args: &OptionArgs) -> anyhow::Result<Self> {
        check_namespace(&args.namespace)?;
        let overrides = pairs(&args.registry_overrides, "--registry-overrides")?;
        let roles = args.aws_roles.resolve()?;
        let refs = ImageRefs::read(args.image_refs.as_deref())?;
        let image = |needed: Needed, given: &Option<String>| {
            let given = given.as_deref().filter(|image| !image.trim().is_empty());
            let image = needed.or_released(given.or(refs.get(needed.tag)))?;
            Ok::<_, Usage>(overridden(image, &overrides))
        };
        Ok(Self {
            namespace: args.namespace.clone(),
            types: types(args, &image, &overrides)?,
            operator_image: image(images::OPERATOR, &args.hypershift_image)?,
            image_refs: refs
                .variables()
                .map(|(variable, image)| (variable, overridden(image, &overrides)))
                .collect(),
            pull_policy: args.image_pull_policy,
            replicas: if args.development { 0 } else { args.replicas },
            pull_secret: args.pull_secret.as_deref().map(pull_secret).transpose()?,
            trust_bundle: args
                .additional_trust_bundle
                .as_deref()
                .map(trust_bundle)
                .transpose()?,
            operator_overrides: args
                .control_plane_operator_overrides
                .as_deref()
                .map(operator_overrides)
                .transpose()?,
            features: features(args),
            private_links: args
                .private_links
                .resolve(args.managed_service.is_given(), &roles)?,
            managed_service: args.managed_service.resolve()?,
            control_planes: args.control_planes.resolve()?,
            oidc_storage: args.oidc_storage.resolve(&roles)?,
            external_dns: args.external_dns.resolve(
                refs.get(image_refs::EXTERNAL_DNS),
                &roles,
                |image| overridden(image, &overrides),
            )?,
            scale_from_zero: args.scale_from_zero.resolve()?,
            environment: pairs(
                &args.additional_operator_env_vars,
                "--additional-operator-env-vars",
            )?,
            platform_monitoring: args.platform_monitoring,
            metrics_set: args.metrics_set,
            dashboards: args.monitoring_dashboards,
            admin_rbac: args.enable_admin_rbac_generation,
            tenant_policy: args.tenant_policy,
            tenant_release_images: ReleaseImages::parse(&args.tenant_release_images)?,
        })
    }

    /// What the private groups need, where they are used.
    pub(crate) fn private(&self) -> Option<&Private> {
        match &self.types {
            Types::Standard => None,
            Types::Private(private) => Some(private),
        }
    }
}

fn features(args: &OptionArgs) -> FeatureSet {
    if args.tech_preview_no_upgrade {
        FeatureSet::TechPreviewNoUpgrade
    } else {
        FeatureSet::Default
    }
}

fn types(
    args: &OptionArgs,
    image: &impl Fn(Needed, &Option<String>) -> Result<String, Usage>,
    overrides: &[(String, String)],
) -> anyhow::Result<Types> {
    if !args.private_capi_types {
        if !args.private_crds_from.is_empty() || args.conversion.enable_conversion_webhook {
            let message =
                "--private-crds-from and --enable-conversion-webhook need --private-capi-types";
            return Err(Usage::new(&message).into());
        }
        return Ok(Types::Standard);
    }
    let mut sources = Vec::new();
    for text in &args.private_crds_from {
        sources.extend(Source::parse(text)?);
    }
    if sources.is_empty() {
        sources.push(Source::Embedded);
    }
    Ok(Types::Private(Private {
        proxy_image: image(images::PROXY, &args.capi_proxy_image)?,
        sources,
        platforms: args.limit_crd_install.clone(),
        conversion: args
            .conversion
            .resolve(&args.namespace, |image| overridden(image, overrides))?,
    }))
}

fn check_namespace(name: &str) -> Result<(), Usage> {
    let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = !name.is_empty() && name.len() <= 63 && name.bytes().all(valid);
    if fits && !name.starts_with('-') && !name.ends_with('-') {
        return Ok(());
    }
    let message = format!(
        "--namespace {name:?} is not a valid namespace name: use at most 63 lower-case letters, digits and dashes"
    );
    Err(Usage::new(&message))
}

/// Pairs of the form `KEY=VALUE`. Values may be secret, so they are not repeated.
pub(crate) fn pairs(texts: &[String], flag: &str) -> Result<Vec<(String, String)>, Usage> {
    texts
        .iter()
        .map(|text| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(Usage::new(&format!(
                "{flag} takes pairs of the form KEY=VALUE, joined by commas"
            ))),
        })
        .collect()
}

/// The first override whose source is the image's registry and repository, or the beginning of it, counts.
fn overridden(image: &str, overrides: &[(String, String)]) -> String {
    for (source, mirror) in overrides {
        if let Some(rest) = image.strip_prefix(source.as_str())
            && (rest.is_empty() || rest.starts_with(['/', ':', '@']))
        {
            return format!("{mirror}{rest}");
        }
    }
    image.to_owned()
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The kubelet refuses another form, long after the installation: the file is checked here.
fn pull_secret(path: &Path) -> anyhow::Result<String> {
    let text = read(path)?;
    // The parser's message would quote the file.
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    if parsed.is_some_and(|value| value["auths"].is_object()) {
        return Ok(text);
    }
    anyhow::bail!(
        "{} is no pull secret: give a JSON file with an object auths, as docker login and podman login write",
        path.display()
    )
}

pub(crate) fn trust_bundle(path: &Path) -> anyhow::Result<String> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let text = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    if certificates.is_ok_and(|certificates| !certificates.is_empty()) {
        return Ok(text);
    }
    anyhow::bail!(
        "{} holds no certificates: give a file with certificates in PEM form",
        path.display()
    )
}

/// The operator refuses a table that is wrong when it starts: the file is checked here.
pub(crate) fn operator_overrides(path: &Path) -> anyhow::Result<Table> {
    let text = read(path)?;
    let table = payload::OperatorOverrides::parse(&text)
        .with_context(|| format!("{} is no table of images", path.display()))?;
    let hash = table.hash();
    Ok(Table { text, hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_replace_whole_parts_of_an_image() {
        let overrides = [("quay.example/a".to_owned(), "mirror.example/b".to_owned())];
        let table = [
            ("quay.example/a:v1", "mirror.example/b:v1"),
            ("quay.example/a/c@sha256:0", "mirror.example/b/c@sha256:0"),
            ("quay.example/ab:v1", "quay.example/ab:v1"),
            ("other.example/a:v1", "other.example/a:v1"),
        ];
        for (image, expected) in table {
            assert_eq!(overridden(image, &overrides), expected);
        }
    }

    #[test]
    fn refused_pairs_do_not_repeat_what_may_be_secret() {
        let refused = pairs(&["hunter2".to_owned()], "--flag").unwrap_err();
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
        assert_eq!(
            pairs(&["A=b=c".to_owned()], "--flag").unwrap(),
            [("A".to_owned(), "b=c".to_owned())]
        );
    }

    #[test]
    fn namespaces_are_dns_labels() {
        assert!(check_namespace("hypershift-2").is_ok());
        for name in ["", "Hypershift", "a.b", "-a", "a-", "a/b"] {
            assert!(check_namespace(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_table_of_operators_is_checked_before_anything_is_installed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(
            file.path(),
            "platforms: {aws: {overrides: [{version: '4.14', cpoImage: x}]}}",
        )
        .unwrap();
        let error = format!("{:#}", operator_overrides(file.path()).unwrap_err());
        assert!(
            error.contains("platforms.aws.overrides[0].version"),
            "{error}"
        );
        let entry = "{version: 4.14.9, cpoImage: 'registry.example.com/operator:v1'}";
        let table = format!("platforms: {{aws: {{overrides: [{entry}]}}}}");
        fs::write(file.path(), &table).unwrap();
        assert_eq!(operator_overrides(file.path()).unwrap().text, table);
    }

    #[test]
    fn a_refused_pull_secret_is_not_quoted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "{\"auth\": \"hunter2\"").unwrap();
        let error = pull_secret(file.path()).unwrap_err();
        assert!(!format!("{error:#}").contains("hunter2"), "{error:#}");
    }
}
