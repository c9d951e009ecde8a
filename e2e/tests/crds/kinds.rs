//! The kinds of the pinned modules and what their objects refer to: a migration finds kinds by discovery, and references by
//! `apiVersion` and `apiGroup`. Whatever else names an object was looked at, and is in a table here.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes, GroupTable};
use cli::crds::Batch;
use serde_json::Value;

/// The migration's table of kinds.
const TABLE: &str = include_str!("../../../migration/tests/kinds.txt");
/// Below these, nothing is a reference, whatever it is called.
const OPAQUE: [&str; 3] = ["variables", "openAPIV3Schema", "jsonPatches"];
/// Fields with a name of an object or of a group, and no `apiVersion` or `apiGroup`.
const REVIEWED: [&str; 23] = [
    // Identities, which the migration follows.
    "identityRef",
    "sourceIdentityRef",
    // In the namespace of the object, of a kind that the field implies: their names do not change.
    "addressRef",
    "claimRef",
    "classRef",
    "imageRef",
    "rosaNetworkRef",
    "rosaRoleConfigRef",
    // Secrets and ConfigMaps, which do not move.
    "configMapKeyRef",
    "credentialsRef",
    "credentialsSecretRef",
    "customHAProxyConfigTemplateRef",
    "networkDataSecretRef",
    "resources",
    "secretKeyRef",
    "secretRef",
    "userDataRef",
    // Nodes of the hosted cluster.
    "nodeRef",
    // Of KubeVirt and its importer.
    "instancetype",
    "preference",
    "sourceRef",
    // Of Azure: a kind of its service operator, and a group of a fleet's members.
    "resource",
    "fleetsMember",
];

/// Fails at a kind that the table does not have as it is, and at a field that is not in the table of references.
pub(crate) fn are_known(batches: &[Batch]) -> Result<()> {
    let documents = batches.iter().flat_map(|batch| &batch.documents);
    let crds = documents.map(|document| &document.value);
    let crds: Vec<_> = crds.filter(|crd| is_moved(crd)).collect();
    let lines = crds.iter().map(|crd| line(crd));
    let found: BTreeSet<_> = lines.collect::<Result<_>>()?;
    let table = TABLE.lines().filter(|line| !line.starts_with('#'));
    let table: BTreeSet<_> = table.map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&table).collect();
    let old: Vec<_> = table.difference(&found).collect();
    ensure!(
        new.is_empty() && old.is_empty(),
        "migration/tests/kinds.txt lacks {new:#?} and has {old:#?}"
    );
    let mut places = BTreeMap::new();
    for crd in crds {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let schema = &stored(crd)?["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            collect(&schema["properties"][part], part, kind, &mut places);
        }
    }
    places.retain(|field, _| !REVIEWED.contains(&field.as_str()));
    ensure!(
        places.is_empty(),
        "look at these references: does a migration have to change them? {places:#?}"
    );
    Ok(())
}

fn is_moved(crd: &Value) -> bool {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    crd["kind"] == "CustomResourceDefinition"
        && GroupTable::default().find(group.as_bytes()).is_some()
}

/// The line of a kind in the table.
fn line(crd: &Value) -> Result<String> {
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&spec["group"]);
    let core = api::group::core(CapiTypes::Standard);
    let group = match group.strip_suffix(&core) {
        Some("") => "core",
        Some(prefix) => prefix.trim_end_matches('.'),
        None => &group,
    };
    let version = stored(crd)?;
    let has_status = version["subresources"].get("status").is_some();
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    let served: Vec<_> = served.map(|version| text(&version["name"])).collect();
    let (kind, plural) = (&spec["names"]["kind"], &spec["names"]["plural"]);
    let words = [
        group.to_owned(),
        text(kind),
        text(plural),
        text(&spec["scope"]),
        text(&version["name"]),
        if has_status { "status" } else { "-" }.to_owned(),
        served.join(","),
    ];
    Ok(words.join(" "))
}

fn stored(crd: &Value) -> Result<&Value> {
    let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.find(|version| version["storage"] == true);
    found.with_context(|| format!("{} stores no version", crd["metadata"]["name"]))
}

/// The fields that refer to something without a group of its own: where each is.
fn collect(schema: &Value, field: &str, at: &str, places: &mut BTreeMap<String, Vec<String>>) {
    let at = format!("{at}/{field}");
    if let Some(properties) = schema["properties"].as_object() {
        let has = |name: &str| properties.contains_key(name);
        if !has("apiVersion") && !has("apiGroup") && is_reference(field, has) {
            places.entry(field.to_owned()).or_default().push(at.clone());
        }
        for (name, property) in properties {
            if !OPAQUE.contains(&name.as_str()) {
                collect(property, name, &at, places);
            }
        }
    }
    for inner in ["items", "additionalProperties"] {
        let inner = &schema[inner];
        if inner.is_object() {
            collect(inner, field, &at, places);
        }
    }
}

fn is_reference(field: &str, has: impl Fn(&str) -> bool) -> bool {
    let names_group = ["kind", "group", "groupKind", "groupVersion", "apiGroups"];
    let is_called_so = ["Ref", "Refs", "Reference"]
        .iter()
        .any(|end| field.ends_with(end));
    names_group.into_iter().any(&has) || (is_called_so && has("name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_without_a_group_are_found() {
        let text = json!({ "type": "string" });
        let schema = json!({ "properties": {
            "aRef": { "properties": { "name": text, "apiGroup": text } },
            "list": { "items": { "properties": { "bRef": { "properties": { "name": text } } } } },
            "map": { "additionalProperties": { "properties": { "kind": text } } },
            "variables": { "properties": { "cRef": { "properties": { "name": text } } } },
            "other": { "properties": { "name": text } },
        } });
        let mut places = BTreeMap::new();
        collect(&schema, "spec", "Kind", &mut places);
        let found: Vec<_> = places.keys().map(String::as_str).collect();
        assert_eq!(found, ["bRef", "map"]);
    }
}
