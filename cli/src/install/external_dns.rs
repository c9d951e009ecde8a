//! ExternalDNS, which publishes host names of hosted clusters in zones of a cloud's DNS: its flags, and what they amount to.

pub(super) mod look;
mod objects;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use api::hypershift::v1beta1::common::Duration;
use clap::{Args, ValueEnum};
use serde_json::Value;
use support::google_resources;

use super::aws_role::Roles;
use super::parameters::{
    DNS_DOMAIN, DNS_IMAGE, DNS_INTERVAL, DNS_OWNER, DNS_PROJECT, DNS_SECRET, DNS_ZONES_CACHE,
    Parameters,
};
use super::secret_file::{SecretFile, read_aws};
use crate::Usage;
use crate::create::text::is_name;
pub(super) use objects::objects;

/// Name of the Deployment, its container, its service account and its `PodMonitor`.
const NAME: &str = "external-dns";
/// Secret with the credentials of `--external-dns-credentials` or the profile of `--external-dns-role-arn`.
const SECRET: &str = "external-dns-credentials";
/// Key in it, and name of the file.
const KEY: &str = "credentials";
const VOLUME: &str = "credentials";
const DIRECTORY: &str = "/etc/provider";
const PROVIDER: &str = "--external-dns-provider";
const CREDENTIALS: &str = "--external-dns-credentials";
const EXISTING: &str = "--external-dns-secret";
const ROLE: &str = "--external-dns-role-arn";
const DOMAIN: &str = "--external-dns-domain-filter";
const OWNER: &str = "--external-dns-txt-owner-id";
const PROJECT: &str = "--external-dns-google-project";
const IMAGE: &str = "--external-dns-image";
const INTERVAL: &str = "--external-dns-interval";
const ZONES_CACHE: &str = "--external-dns-aws-zones-cache-duration";
/// What a file with credentials for Azure has in any case.
const AZURE_FIELDS: [&str; 2] = ["subscriptionId", "resourceGroup"];
/// Limits of DNS.
const LABEL_LENGTH: usize = 63;
const NAME_LENGTH: usize = 253;

/// The flags.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of the flags are those of HyperShift"
)]
pub(super) struct ExternalDnsArgs {
    /// Install ExternalDNS, which publishes host names of hosted clusters in public zones of this cloud; needs
    /// --external-dns-domain-filter, --external-dns-image, and one of --external-dns-credentials and --external-dns-secret,
    /// or on AWS --external-dns-role-arn. Google Cloud needs no credentials where pods have them
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "CLOUD",
        ignore_case = true
    )]
    external_dns_provider: Option<Provider>,

    /// File with the credentials for the zones: for aws, a shared credentials file with a default profile; for azure, the
    /// configuration of ExternalDNS in JSON, with subscriptionId, resourceGroup, tenantId and an application; for google, JSON
    /// with the key of a service account
    #[arg(long, global = true, value_name = "FILE")]
    external_dns_credentials: Option<PathBuf>,

    /// Secret with the credentials of --external-dns-credentials under the key credentials, in the namespace of the operator
    #[arg(long, global = true, value_name = "NAME")]
    external_dns_secret: Option<String>,

    /// Role for the zones on AWS, which ExternalDNS assumes with tokens of its service account
    #[arg(long, global = true, value_name = "ARN")]
    external_dns_role_arn: Option<String>,

    /// Domain of the host names to publish, for example clusters.example.com: other names are left alone
    #[arg(long, global = true, value_name = "DOMAIN")]
    external_dns_domain_filter: Option<String>,

    /// Marks the DNS records that ExternalDNS made, and deletes again. Management clusters that share a zone need different
    /// ones. Needed by render [default: the installed one; on a first installation the UID of namespace kube-system]
    #[arg(long, global = true, value_name = "ID")]
    external_dns_txt_owner_id: Option<String>,

    /// Project of the zones on Google Cloud [default: the one of the credentials]
    #[arg(long, global = true, value_name = "ID")]
    external_dns_google_project: Option<String>,

    /// Image of ExternalDNS [default: the one of --image-refs; no release of this command has one]
    #[arg(long, global = true, value_name = "IMAGE")]
    external_dns_image: Option<String>,

    /// Time between two comparisons of all DNS records [default: 1m]
    #[arg(long, global = true, value_name = "TIME")]
    external_dns_interval: Option<String>,

    /// Time for which the list of zones on AWS is not read again; 0s reads it each time [default: 1h]
    #[arg(long, global = true, value_name = "TIME")]
    external_dns_aws_zones_cache_duration: Option<String>,
}

/// Clouds with zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// Amazon Route 53
    Aws,
    /// Azure DNS
    Azure,
    /// Cloud DNS of Google Cloud
    Google,
}

/// How ExternalDNS runs.
#[derive(Debug, Clone)]
pub(crate) struct ExternalDns {
    cloud: Cloud,
    credentials: Option<SecretFile>,
    /// Whether it needs tokens.
    with_token: bool,
    domain_filter: String,
    /// Owner of its DNS records, if a flag says so.
    owner: Option<String>,
    image: String,
    interval: String,
}

/// A cloud, with the settings that others do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cloud {
    Aws { zones_cache: String },
    Azure,
    Google { project: Option<String> },
}

/// What ExternalDNS depends on, as far as the cluster decides it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DnsSurroundings {
    /// OpenShift's Routes are served.
    pub(crate) routes: bool,
    /// ExternalDNS's own kind is served.
    pub(crate) endpoints: bool,
    /// Owner of DNS records unless a flag says otherwise.
    pub(crate) owner: Option<String>,
    /// Variables with the proxy of the cluster.
    pub(crate) proxy: Vec<(&'static str, String)>,
}

// === impl ExternalDnsArgs ===

impl ExternalDnsArgs {
    /// Checks the flags and reads the file. `listed` is the image of a list of images, and `overridden` takes an image to
    /// where it is mirrored.
    pub(super) fn resolve(
        &self,
        listed: Option<&str>,
        roles: &Roles,
        overridden: impl Fn(&str) -> String,
    ) -> anyhow::Result<Option<ExternalDns>> {
        let Some(provider) = self.external_dns_provider else {
            return match self.given().into_iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => refused(format!("{flag} needs {PROVIDER}")),
                None => Ok(None),
            };
        };
        let cloud = self.cloud(provider)?;
        let Some(domain_filter) = &self.external_dns_domain_filter else {
            return refused(format!("{PROVIDER} needs {DOMAIN}"));
        };
        check_domain(domain_filter)?;
        if let Some(owner) = &self.external_dns_txt_owner_id {
            check_owner(owner)?;
        }
        let Some(image) = self.external_dns_image.as_deref().or(listed) else {
            return refused(format!(
                "{PROVIDER} needs {IMAGE}: no release of this command has an image of ExternalDNS"
            ));
        };
        Ok(Some(ExternalDns {
            cloud,
            credentials: self.credentials(provider, roles)?,
            with_token: self.role(provider, roles).is_some() && roles.need_tokens(),
            domain_filter: domain_filter.clone(),
            owner: self.external_dns_txt_owner_id.clone(),
            image: overridden(image),
            interval: time(INTERVAL, self.external_dns_interval.as_deref(), "1m", 1)?,
        }))
    }

    /// The flags that need a provider, and which of them are set.
    fn given(&self) -> [(&'static str, bool); 9] {
        [
            (CREDENTIALS, self.external_dns_credentials.is_some()),
            (EXISTING, self.external_dns_secret.is_some()),
            (ROLE, self.external_dns_role_arn.is_some()),
            (DOMAIN, self.external_dns_domain_filter.is_some()),
            (OWNER, self.external_dns_txt_owner_id.is_some()),
            (PROJECT, self.external_dns_google_project.is_some()),
            (IMAGE, self.external_dns_image.is_some()),
            (INTERVAL, self.external_dns_interval.is_some()),
            (
                ZONES_CACHE,
                self.external_dns_aws_zones_cache_duration.is_some(),
            ),
        ]
    }

    fn cloud(&self, provider: Provider) -> anyhow::Result<Cloud> {
        let zones_cache = self.external_dns_aws_zones_cache_duration.as_deref();
        let project = &self.external_dns_google_project;
        if provider != Provider::Aws && zones_cache.is_some() {
            return refused(format!("{ZONES_CACHE} needs {PROVIDER}=aws"));
        }
        if provider != Provider::Google && project.is_some() {
            return refused(format!("{PROJECT} needs {PROVIDER}=google"));
        }
        match provider {
            Provider::Aws => Ok(Cloud::Aws {
                zones_cache: time(ZONES_CACHE, zones_cache, "1h", 0)?,
            }),
            Provider::Azure => Ok(Cloud::Azure),
            Provider::Google => {
                let not_name = project.as_ref().filter(|it| !google_resources::is_name(it));
                if let Some(project) = not_name {
                    return refused(format!(
                        "{PROJECT} {project:?} is not a name in Google Cloud"
                    ));
                }
                Ok(Cloud::Google {
                    project: project.clone(),
                })
            }
        }
    }

    /// The role. A file may have one that is not wanted.
    fn role<'a>(&'a self, provider: Provider, roles: &'a Roles) -> Option<&'a String> {
        let listed = roles.external_dns.as_ref();
        let listed = listed.filter(|_| provider == Provider::Aws);
        self.external_dns_role_arn.as_ref().or(listed)
    }

    fn credentials(&self, provider: Provider, roles: &Roles) -> anyhow::Result<Option<SecretFile>> {
        let (file, secret, role) = (
            &self.external_dns_credentials,
            &self.external_dns_secret,
            self.role(provider, roles),
        );
        if provider != Provider::Aws && role.is_some() {
            return refused(format!("{ROLE} needs {PROVIDER}=aws"));
        }
        let made = |content| Some(SecretFile::made(SECRET, KEY, content));
        match (file, secret, role) {
            (Some(file), None, None) => read(provider, file).map(made),
            (None, Some(name), None) if is_object_name(name) => {
                Ok(Some(SecretFile::existing(name, KEY)))
            }
            (None, Some(name), None) => {
                refused(format!("{EXISTING} {name:?} is not the name of a Secret"))
            }
            (None, None, Some(role)) => roles.profile(ROLE, role).map(made),
            (None, None, None) if provider == Provider::Google => Ok(None),
            _ => refused(format!(
                "{PROVIDER} needs one of {CREDENTIALS} and {EXISTING}, or on AWS {ROLE}"
            )),
        }
    }
}

fn refused<T>(message: impl Into<String>) -> anyhow::Result<T> {
    let message: String = message.into();
    Err(Usage::new(&message).into())
}

/// A name in DNS. A dot before it is for names below it only.
fn check_domain(domain: &str) -> anyhow::Result<()> {
    let name = domain.strip_prefix('.').unwrap_or(domain);
    let is_label = |label: &str| is_name(label) && label.len() <= LABEL_LENGTH;
    if name.len() <= NAME_LENGTH && name.split('.').all(is_label) {
        return Ok(());
    }
    refused(format!(
        "{DOMAIN} {domain:?} is not a domain (for example clusters.example.com)"
    ))
}

/// It becomes a part of a TXT record, in which `,`, `=` and quotes separate fields.
fn check_owner(owner: &str) -> anyhow::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    if !owner.is_empty() && owner.len() <= LABEL_LENGTH && owner.bytes().all(is_plain) {
        return Ok(());
    }
    refused(format!(
        "{OWNER} {owner:?} has other characters than letters, digits, -, _, ., / and :, or not between 1 and \
         {LABEL_LENGTH} of them"
    ))
}

fn is_object_name(name: &str) -> bool {
    name.len() <= NAME_LENGTH && name.split('.').all(is_name)
}

/// A time of at least so many seconds, as ExternalDNS takes it.
fn time(flag: &str, given: Option<&str>, default: &str, at_least: u64) -> anyhow::Result<String> {
    let text = given.unwrap_or(default);
    let length = Duration(text.to_owned()).length();
    if length.is_ok_and(|length| length.as_secs() >= at_least) {
        return Ok(text.to_owned());
    }
    refused(format!(
        "{flag} {text:?} is not a time of at least {at_least}s (for example {default})"
    ))
}

/// ExternalDNS would fail long after the installation: the file is checked here. Its content is not repeated.
fn read(provider: Provider, path: &Path) -> anyhow::Result<String> {
    let needed: &[&str] = match provider {
        Provider::Aws => return read_aws(path),
        Provider::Azure => &AZURE_FIELDS,
        Provider::Google => &["type"],
    };
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let content: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_missing = |field: &&&str| content[**field].as_str().is_none_or(str::is_empty);
    if let Some(missing) = needed.iter().find(is_missing) {
        let format = match provider {
            Provider::Aws => "a shared credentials file",
            Provider::Azure => {
                "JSON with subscriptionId, resourceGroup, tenantId, aadClientId and aadClientSecret"
            }
            Provider::Google => "JSON with the key of a service account",
        };
        anyhow::bail!("{} has no {missing}: give {format}", path.display());
    }
    Ok(text)
}

// === impl ExternalDns ===

impl ExternalDns {
    /// Whether it makes DNS records of its own kind, too.
    fn uses_endpoints(&self, dns: &DnsSurroundings) -> bool {
        matches!(self.cloud, Cloud::Google { .. }) && dns.endpoints
    }

    /// Puts parameters in the place of values.
    pub(super) fn parameterize(&mut self, parameters: &mut Parameters) {
        let Self {
            cloud,
            credentials,
            with_token: _,
            domain_filter,
            owner,
            image,
            interval,
        } = self;
        if let Some(credentials) = credentials.as_mut().filter(|it| it.content.is_none()) {
            parameters.take(DNS_SECRET, &mut credentials.secret);
        }
        parameters.take(DNS_DOMAIN, domain_filter);
        if let Some(owner) = owner {
            parameters.take(DNS_OWNER, owner);
        }
        parameters.take(DNS_IMAGE, image);
        parameters.take(DNS_INTERVAL, interval);
        match cloud {
            Cloud::Aws { zones_cache } => parameters.take(DNS_ZONES_CACHE, zones_cache),
            Cloud::Google {
                project: Some(project),
            } => parameters.take(DNS_PROJECT, project),
            Cloud::Azure | Cloud::Google { project: None } => {}
        }
    }

    /// What it does not publish, and why.
    pub(super) fn left_out(&self, dns: &DnsSurroundings) -> Vec<(&'static str, &'static str)> {
        let mut left_out = Vec::new();
        if !dns.routes {
            left_out.push((
                "host names of Routes",
                "this cluster has no Routes (for render: --assume=routes)",
            ));
        }
        if matches!(self.cloud, Cloud::Google { .. }) && !dns.endpoints {
            left_out.push((
                "delegations of zones",
                "this cluster has no DNSEndpoints; install their CRD and then again (for render: --assume=dns-endpoints)",
            ));
        }
        left_out
    }
}
