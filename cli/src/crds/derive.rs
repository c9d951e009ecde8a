//! From standard CRDs to private ones: documents in, documents out, no I/O.

use std::collections::BTreeMap;
use std::fmt;

use api::group::{CapiTypes, GroupPair, GroupTable};
use serde_json::{Map, Value};

use super::{
    Batch, ContractLabel, Conversion, Document, Error, Origin, Refusal, Versions, contract,
    metadata, plural::plural, schema, versions,
};

const CRD_KIND: &str = "CustomResourceDefinition";
const CRD_GROUP: &str = "apiextensions.k8s.io";
const CRD_API_VERSION: &str = "apiextensions.k8s.io/v1";

/// What to do with the descriptions in schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptions {
    /// Leave them, so that `kubectl explain` has something to say.
    Keep,
    /// Remove them, which more than halves the size.
    Strip,
}

/// How private CRDs are derived.
#[derive(Debug, Clone)]
pub struct Derivation {
    /// Which private group stands for which standard one.
    pub table: GroupTable,
    /// Which versions are kept; none asks for a choice where one is needed.
    pub versions: Option<Versions>,
    /// The conversion stanza.
    pub conversion: Conversion,
    /// What becomes of descriptions.
    pub descriptions: Descriptions,
    /// For CRDs that need contract labels and carry none.
    pub contract_labels: Vec<ContractLabel>,
}

/// The outcome of a derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The private CRDs, ordered by name.
    pub crds: Vec<Value>,
    /// What was left out beside them.
    pub skipped: Vec<Skipped>,
    /// What is unusual about a CRD, and does no harm.
    pub warnings: Vec<Warning>,
}

/// What is unusual about a CRD that was derived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it came from.
    pub origin: Origin,
    /// Its private name.
    pub crd: String,
    /// What a CRD would be refused for whose kind is looked up by contract.
    pub unusual: Box<Refusal>,
}

/// A document that is not derived, and needs not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it came from.
    pub origin: Origin,
    /// Kind and name.
    pub subject: String,
    /// Why it is left out.
    pub reason: SkipReason,
}

/// Why a document is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It is an object of another kind.
    NotACrd,
    /// Its group has no private group.
    UnpairedGroup(String),
}

/// What a document is to the derivation.
enum Class<'t> {
    Crd(&'t GroupPair),
    Other(SkipReason),
}

/// What came of rewriting a CRD.
struct Rewritten {
    /// Its private name.
    name: String,
    /// What it would be refused for if its kind were looked up by contract.
    unusual: Option<Box<Refusal>>,
}

/// A batch, parted into what is derived and what is not.
struct Sorted<'t> {
    chosen: Vec<(Document, &'t GroupPair)>,
    skipped: Vec<Skipped>,
}

// === impl Skipped ===

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            SkipReason::NotACrd => write!(f, "{} is not a {CRD_KIND}", self.subject),
            SkipReason::UnpairedGroup(group) => write!(
                f,
                "{} is of group {group}, which has no private group (add one with --group-pair)",
                self.subject
            ),
        }
    }
}

// === impl Warning ===

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crd, unusual, .. } = self;
        write!(
            f,
            "{crd}: {unusual}; derived all the same, since nothing refers to its kind by contract"
        )
    }
}

// === impl Derivation ===

impl Derivation {
    /// Without a conversion webhook, everything else as it is.
    pub fn new(table: GroupTable) -> Self {
        Self {
            table,
            versions: None,
            conversion: Conversion::None,
            descriptions: Descriptions::Keep,
            contract_labels: Vec::new(),
        }
    }

    /// Derives the private CRD of every CRD of a paired group.
    ///
    /// Other documents are left out and listed; a batch that holds nothing else is refused.
    pub fn run(&self, batches: Vec<Batch>) -> Result<Derived, Error> {
        let mut crds: BTreeMap<String, (Origin, Value)> = BTreeMap::new();
        let (mut skipped, mut warnings) = (Vec::new(), Vec::new());
        for batch in batches {
            let sorted = self.sort(batch)?;
            skipped.extend(sorted.skipped);
            for (mut document, pair) in sorted.chosen {
                let Rewritten { name, unusual } = self.derive(&mut document, pair)?;
                let Document { origin, value: crd } = document;
                warnings.extend(unusual.map(|unusual| Warning {
                    origin: origin.clone(),
                    crd: name.clone(),
                    unusual,
                }));
                if let Some((first, _)) = crds.get(&name) {
                    return Err(Error::Duplicate {
                        first: first.clone(),
                        second: origin,
                        crd: name,
                    });
                }
                crds.insert(name, (origin, crd));
            }
        }
        Ok(Derived {
            crds: crds.into_values().map(|(_, crd)| crd).collect(),
            skipped,
            warnings,
        })
    }

    /// Parts what is to be derived from what is not.
    fn sort(&self, batch: Batch) -> Result<Sorted<'_>, Error> {
        let mut chosen = Vec::new();
        let mut skipped = Vec::new();
        for document in batch.documents {
            match self
                .classify(&document.value)
                .map_err(|r| refused(&document, r))?
            {
                Class::Crd(pair) => chosen.push((document, pair)),
                Class::Other(reason) => skipped.push(Skipped {
                    subject: subject(&document.value),
                    origin: document.origin,
                    reason,
                }),
            }
        }
        if chosen.is_empty() {
            return Err(Error::NothingToDerive {
                name: batch.name,
                skipped,
            });
        }
        Ok(Sorted { chosen, skipped })
    }

    fn classify<'t>(&'t self, object: &Value) -> Result<Class<'t>, Refusal> {
        let (Some(api_version), Some(kind)) =
            (object["apiVersion"].as_str(), object["kind"].as_str())
        else {
            return Err(Refusal::NotAnObject);
        };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if kind != CRD_KIND || group != CRD_GROUP {
            return Ok(Class::Other(SkipReason::NotACrd));
        }
        if api_version != CRD_API_VERSION {
            return Err(Refusal::OldApi {
                api_version: api_version.to_owned(),
            });
        }
        let group = text(&object["spec"]["group"], "spec.group")?;
        match self.table.find(group.as_bytes()) {
            Some((pair, CapiTypes::Standard)) => Ok(Class::Crd(pair)),
            Some((pair, CapiTypes::Private)) => Err(Refusal::AlreadyPrivate {
                group: group.to_owned(),
                standard: pair.name(CapiTypes::Standard).to_owned(),
            }),
            None => Ok(Class::Other(SkipReason::UnpairedGroup(group.to_owned()))),
        }
    }

    /// Rewrites a document in place.
    fn derive(&self, document: &mut Document, pair: &GroupPair) -> Result<Rewritten, Error> {
        let mut crd = document.value.clone();
        let rewritten = self
            .rewrite(&mut crd, pair)
            .map_err(|refusal| refused(document, refusal))?;
        document.value = crd;
        Ok(rewritten)
    }

    /// Rewrites one CRD in place.
    fn rewrite(&self, crd: &mut Value, pair: &GroupPair) -> Result<Rewritten, Refusal> {
        check(crd, pair)?;
        let root = object(Some(crd), "the document")?;
        root.shift_remove("status");
        let served = self.rewrite_spec(object(root.get_mut("spec"), "spec")?, pair)?;
        let plural = text(&root["spec"]["names"]["plural"], "spec.names.plural")?;
        let plural = plural.to_owned();
        let name = format!("{plural}.{}", pair.name(CapiTypes::Private));
        let metadata = object(root.get_mut("metadata"), "metadata")?;
        contract::ensure(metadata, pair, &self.contract_labels)?;
        let unusual = contract::check_served(metadata, &plural, &served)?;
        metadata::clean(metadata, name.clone());
        Ok(Rewritten {
            name,
            unusual: unusual.map(Box::new),
        })
    }

    fn rewrite_spec(
        &self,
        spec: &mut Map<String, Value>,
        pair: &GroupPair,
    ) -> Result<Vec<String>, Refusal> {
        // Both are shared by all groups: `kubectl get cl` keeps meaning the platform's clusters.
        let names = object(spec.get_mut("names"), "spec.names")?;
        names.shift_remove("shortNames");
        names.shift_remove("categories");
        let Some(Value::Array(list)) = spec.get_mut("versions") else {
            return Err(Refusal::Malformed {
                field: "spec.versions",
            });
        };
        let served = versions::keep(list, self.versions, &self.conversion)?;
        if self.descriptions == Descriptions::Strip {
            list.iter_mut()
                .filter_map(|version| version.pointer_mut("/schema/openAPIV3Schema"))
                .for_each(schema::strip_descriptions);
        }
        spec.insert("group".to_owned(), pair.name(CapiTypes::Private).into());
        // The stanza comes first, where upstream's build puts it, whether or not the source had one.
        spec.shift_remove("conversion");
        spec.shift_insert(0, "conversion".to_owned(), self.conversion.stanza());
        Ok(served)
    }
}

/// What must hold of the CRD as it was given.
fn check(crd: &Value, pair: &GroupPair) -> Result<(), Refusal> {
    if !crd["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refusal::BeingDeleted);
    }
    if crd["spec"]["preserveUnknownFields"].as_bool() == Some(true) {
        return Err(Refusal::PreservesUnknownFields);
    }
    let names = &crd["spec"]["names"];
    let kind = text(&names["kind"], "spec.names.kind")?;
    let given = text(&names["plural"], "spec.names.plural")?;
    let expected = plural(kind);
    if given != expected {
        return Err(Refusal::Plural {
            kind: kind.to_owned(),
            plural: given.to_owned(),
            expected,
        });
    }
    let name = format!("{given}.{}", pair.name(CapiTypes::Standard));
    if text(&crd["metadata"]["name"], "metadata.name")? != name {
        return Err(Refusal::Name { expected: name });
    }
    Ok(())
}

fn refused(document: &Document, refusal: Refusal) -> Error {
    Error::Refused {
        origin: document.origin.clone(),
        subject: subject(&document.value),
        refusal: Box::new(refusal),
    }
}

fn subject(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("the document");
    match object["metadata"]["name"].as_str() {
        Some(name) => format!("{kind} {name}"),
        None => kind.to_owned(),
    }
}

fn text<'v>(value: &'v Value, field: &'static str) -> Result<&'v str, Refusal> {
    value.as_str().ok_or(Refusal::Malformed { field })
}

fn object<'v>(
    value: Option<&'v mut Value>,
    field: &'static str,
) -> Result<&'v mut Map<String, Value>, Refusal> {
    value
        .and_then(Value::as_object_mut)
        .ok_or(Refusal::Malformed { field })
}

#[cfg(test)]
mod tests;
