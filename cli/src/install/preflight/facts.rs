//! What checks are about: as much of the cluster as was looked at.

use std::fmt;

use serde_json::Value;

use super::Finding;
use crate::install::cluster::Permission;
use crate::install::conversion::Flaw;
use crate::install::object::Id;

/// What is known when checks run. What was not read is empty, and passes the checks.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Namespace of the operator.
    pub(crate) installation: String,
    pub(crate) wanted: Installed,
    pub(crate) take_over: bool,
    pub(crate) version: Option<Version>,
    /// Rights that installing needs and the user does not have.
    pub(crate) denied: Vec<Permission>,
    /// Rights that the operators get, and the user cannot hand out.
    pub(crate) not_held: Vec<Permission>,
    /// What is installed already.
    pub(crate) installed: Option<Installed>,
    /// Why objects could not be converted.
    pub(crate) conversion: Vec<Flaw>,
    pub(crate) observed: Vec<Observed>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Which types an operator works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Installed {
    #[default]
    Standard,
    Private,
}

/// An object that is to be applied, and what is there under its name.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) id: Id,
    pub(crate) live: Option<Value>,
}

/// Version of an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

/// What a new CRD would do to what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Objects may be stored in a version that it no longer has.
    Orphaned { crd: String, version: String },
    /// It drops fields of an object.
    Pruned {
        crd: String,
        object: String,
        fields: Vec<String>,
    },
}

/// An object that the API server would not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) id: Id,
    pub(crate) code: u16,
    pub(crate) message: String,
}

// === impl Installed ===

impl Installed {
    /// By the arguments of a live Deployment.
    pub(crate) fn of(deployment: &Value) -> Option<Self> {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
        let mut words = containers
            .iter()
            .filter_map(|container| container["args"].as_array())
            .flatten()
            .filter_map(Value::as_str);
        let scope = words.find_map(|word| word.strip_prefix("--scope="))?;
        Some(if scope == "private" {
            Self::Private
        } else {
            Self::Standard
        })
    }
}

// === impl Version ===

impl Version {
    /// By what an API server says of itself; some write `35+`.
    pub(crate) fn of(version: &Value) -> Option<Self> {
        let number = |field: &str| {
            let text = version[field].as_str()?;
            text.trim_end_matches(|c: char| !c.is_ascii_digit())
                .parse()
                .ok()
        };
        Some(Self {
            major: number("major")?,
            minor: number("minor")?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

// === impl Loss ===

impl Loss {
    pub(super) fn finding(&self) -> Finding {
        match self {
            Self::Orphaned { crd, version } => Finding {
                subject: format!("CustomResourceDefinition {crd}"),
                reason: format!("its objects may be stored in version {version}, which the new one does not have"),
                way_out: format!(
                    "serve every version (--enable-conversion-webhook), write each object once, and take {version} \
                     out of status.storedVersions"
                ),
            },
            Self::Pruned {
                crd,
                object,
                fields,
            } => Finding {
                subject: format!("CustomResourceDefinition {crd}"),
                reason: format!(
                    "its new schema does not know {} of {object}, and the API server would drop it",
                    fields.join(", ")
                ),
                way_out: "take the CRDs from a newer source (--private-crds-from), or remove the fields from the object"
                    .to_owned(),
            },
        }
    }
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn finding(&self) -> Finding {
        let Self { id, code, message } = self;
        let way_out = match code {
            409 => {
                "give --take-over to manage these fields from now on, or have the other manager give them up"
            }
            403 => "install as a user who may, or ask who keeps the policy that says no",
            422 => "change what the message names, or delete the object if it is no longer managed",
            _ => "fix what the message names, and install again",
        };
        Finding {
            subject: id.to_string(),
            reason: format!(
                "the API server would not take it ({})",
                message.replace('\n', " ")
            ),
            way_out: way_out.to_owned(),
        }
    }
}
