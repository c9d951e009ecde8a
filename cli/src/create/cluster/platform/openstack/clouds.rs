//! The file `clouds.yaml`: where it is, and the one cloud of it that a hosted cluster gets.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::Usage;
use crate::crds::output::{Format, stream};
use crate::create::text;

/// Name of the cloud in the Secret, whatever the file calls it: components of hosted clusters look for this one.
pub(super) const CLOUD: &str = "openstack";
/// Key of the Secret for the clouds.
const CLOUDS: &str = "clouds.yaml";
/// Key of the Secret, and field of a cloud, for the certificates of its authorities.
const AUTHORITIES: &str = "cacert";
const FILE_FLAG: &str = "--openstack-credentials-file";
const AUTHORITIES_FLAG: &str = "--openstack-ca-cert-file";
/// Variables of the environment that name the file and the cloud.
const FILE_VARIABLE: &str = "OS_CLIENT_CONFIG_FILE";
const CLOUD_VARIABLE: &str = "OS_CLOUD";
/// What each certificate begins with.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Gets variables of the environment.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Credentials for a cloud.
pub(super) struct Credentials {
    /// A `clouds.yaml` with this cloud only.
    clouds: String,
    /// Certificates of its authorities, if they are not public.
    authorities: Option<String>,
}

// === impl Credentials ===

impl Credentials {
    /// Reads them from the file and the cloud that are given, or from those that the environment names.
    pub(super) fn read(
        file: Option<&Path>,
        cloud: Option<&str>,
        authorities: Option<&Path>,
        variable: Variable<'_>,
    ) -> anyhow::Result<Self> {
        let (path, source) = locate(file, variable)?;
        let content = text::file(source, &path)?;
        let name = cloud
            .map(str::to_owned)
            .or_else(|| variable(CLOUD_VARIABLE));
        let name = name.unwrap_or_else(|| CLOUD.to_owned());
        let fields = find(&content, &name, &path)?;
        let named = format!("cloud {name} of {}", path.display());
        check(&fields, &named)?;
        let authorities = read_authorities(authorities, &fields, &named, variable)?;
        // Components know the certificates by the key of the Secret, and not by a file of this machine.
        let fields = fields.into_iter().filter(|(key, _)| key != AUTHORITIES);
        let fields: Map<_, _> = fields.collect();
        let clouds = stream(&[json!({ "clouds": { CLOUD: fields } })], Format::Yaml)?;
        Ok(Self {
            clouds,
            authorities,
        })
    }

    /// Data of the Secret.
    pub(super) fn data(&self) -> Value {
        let mut data = json!({ CLOUDS: self.clouds });
        if let Some(authorities) = &self.authorities {
            data[AUTHORITIES] = json!(authorities);
        }
        data
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        f.debug_struct("Credentials")
            .field("authorities", &self.authorities)
            .finish_non_exhaustive()
    }
}

/// The file, and what names it.
fn locate(given: Option<&Path>, variable: Variable<'_>) -> Result<(PathBuf, &'static str), Usage> {
    if let Some(path) = given {
        return Ok((path.to_owned(), FILE_FLAG));
    }
    if let Some(path) = variable(FILE_VARIABLE) {
        return Ok((path.into(), FILE_VARIABLE));
    }
    let home = variable("HOME").map(PathBuf::from);
    let places = [
        Some(PathBuf::from(CLOUDS)),
        home.map(|home| home.join(".config/openstack").join(CLOUDS)),
        Some(Path::new("/etc/openstack").join(CLOUDS)),
    ];
    let mut places = places.into_iter().flatten();
    let found = places.find(|path| path.is_file());
    let found = found.map(|path| (path, "the default of --openstack-credentials-file"));
    found.ok_or_else(|| {
        Usage::new(&format!(
            "{FILE_FLAG} is needed: there is no {CLOUDS} in this directory, in ~/.config/openstack or in /etc/openstack, \
             and {FILE_VARIABLE} is not set"
        ))
    })
}

/// The fields of a cloud.
fn find(content: &str, name: &str, path: &Path) -> Result<Map<String, Value>, Usage> {
    let path = path.display();
    // Without the parser's message, which may quote a password.
    let file: Value = serde_saphyr::from_str(content)
        .map_err(|_| Usage::new(&format!("{path}: this is not YAML")))?;
    let Some(clouds) = file["clouds"].as_object() else {
        let message = format!("{path}: this is not a clouds.yaml: mapping \"clouds\" is missing");
        return Err(Usage::new(&message));
    };
    match clouds.get(name) {
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(Usage::new(&format!("cloud {name} of {path} is empty"))),
        None => {
            let names: Vec<_> = clouds.keys().map(String::as_str).collect();
            Err(Usage::new(&format!(
                "{path} has no cloud {name:?}: choose one with --openstack-cloud or {CLOUD_VARIABLE} (it has: {})",
                names.join(", ")
            )))
        }
    }
}

/// Refuses a cloud that components could not use, or that would not be the same in the Secret.
fn check(cloud: &Map<String, Value>, named: &str) -> Result<(), Usage> {
    let auth = cloud.get("auth").and_then(Value::as_object);
    let Some(auth) = auth.filter(|auth| auth.contains_key("auth_url")) else {
        return Err(Usage::new(&format!(
            "{named} has no auth.auth_url: set it in this file, profiles and other files are not read"
        )));
    };
    if let Some((key, _)) = auth.iter().find(|(_, value)| !is_text(value)) {
        return Err(Usage::new(&format!(
            "{named}: auth.{key} is empty, or is not a text: put its value in quotes"
        )));
    }
    if let Some((key, _)) = cloud.iter().find(|(_, value)| has_fraction(value)) {
        return Err(Usage::new(&format!(
            "{named}: {key} has a number that could lose digits: put it in quotes"
        )));
    }
    if let Some(key) = ["cert", "key"].iter().find(|key| cloud.contains_key(**key)) {
        return Err(Usage::new(&format!(
            "{named}: {key} is a file of a client certificate, which components cannot read: use other credentials"
        )));
    }
    Ok(())
}

/// Whether a value is a text, and not a number or a boolean that lacks quotes.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Whether there is a number that is not written again as it was, such as a version 2.90.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The certificates that are given, or that the cloud names.
fn read_authorities(
    given: Option<&Path>,
    cloud: &Map<String, Value>,
    named: &str,
    variable: Variable<'_>,
) -> anyhow::Result<Option<String>> {
    let (path, source) = match (given, cloud.get(AUTHORITIES)) {
        (Some(path), _) => (path.to_owned(), AUTHORITIES_FLAG.to_owned()),
        (None, None | Some(Value::Null)) => return Ok(None),
        (None, Some(Value::String(path))) => (
            expanded(path, variable),
            format!("{AUTHORITIES} of {named}"),
        ),
        (None, Some(_)) => {
            let message = format!("{named}: {AUTHORITIES} is not the path of a file");
            return Err(Usage::new(&message).into());
        }
    };
    let content = text::file(&source, &path)?;
    if content.contains(CERTIFICATE) {
        return Ok(Some(content));
    }
    Err(Usage::new(&format!(
        "{source}: {} has no certificate (PEM)",
        path.display()
    ))
    .into())
}

/// A path with the home directory in place of a tilde.
fn expanded(path: &str, variable: Variable<'_>) -> PathBuf {
    let home = path.strip_prefix("~/").zip(variable("HOME"));
    home.map_or_else(
        || PathBuf::from(path),
        |(rest, home)| Path::new(&home).join(rest),
    )
}

#[cfg(test)]
mod tests;
