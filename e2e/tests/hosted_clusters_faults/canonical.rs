//! All objects of a hosted cluster without what is another one in each life: times, versions, keys.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use testbed::client::{ApiClient, Resource};

/// Kinds with objects of other controllers, or of none.
const IGNORED: [&str; 6] = [
    "events",
    "leases",
    "endpoints",
    "endpointslices",
    "componentstatuses",
    "controllerrevisions",
];
/// Metadata that the API server makes up.
const MADE_UP: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "selfLink",
];
/// What the API server assigns to each Service and each Job at random.
const GIVEN: [&str; 6] = [
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
];
/// How many differences an error shows.
const SHOWN: usize = 20;

/// Objects by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<String, Value>);

// === impl Snapshot ===

impl Snapshot {
    /// All objects in the namespaces, and those of no namespace that name one of them.
    pub(crate) async fn of(admin: &ApiClient, namespaces: &[&str]) -> Result<Self> {
        let mut all = BTreeMap::new();
        for kind in kinds(admin).await? {
            let found = admin
                .list(&kind.path)
                .await
                .with_context(|| kind.path.clone())?;
            for object in found {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                let (namespace, name) = (text("namespace"), text("name"));
                let is_theirs = if kind.namespaced {
                    namespaces.contains(&namespace)
                } else {
                    namespaces.iter().any(|it| name.contains(it))
                };
                if is_theirs {
                    let key = format!("{} {namespace}/{name}", kind.plural);
                    all.insert(key, object);
                }
            }
        }
        Ok(Self::new(all))
    }

    fn new(objects: BTreeMap<String, Value>) -> Self {
        let addresses = addresses(&objects);
        let objects = objects.into_iter();
        Self(
            objects
                .map(|(key, object)| (key, canonical(object, &addresses)))
                .collect(),
        )
    }

    /// Fails with what differs.
    pub(crate) fn is(&self, other: &Self) -> Result<()> {
        let keys: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let mut differences = Vec::new();
        for key in keys {
            match (self.0.get(key), other.0.get(key)) {
                (Some(one), Some(another)) => {
                    differing(key, one, another, &mut differences);
                }
                (Some(_), None) => differences.push(format!("{key}: there is one too many")),
                (None, _) => differences.push(format!("{key}: it is missing")),
            }
        }
        let count = differences.len();
        differences.truncate(SHOWN);
        ensure!(
            differences.is_empty(),
            "{count} differences:\n{}",
            differences.join("\n")
        );
        Ok(())
    }
}

struct Kind {
    path: String,
    plural: String,
    namespaced: bool,
}

/// All kinds that can be listed, each once.
async fn kinds(admin: &ApiClient) -> Result<Vec<Kind>> {
    let mut versions = vec!["v1".to_owned()];
    let groups = admin.get("/apis").await?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        let version = group["preferredVersion"]["groupVersion"].as_str();
        versions.extend(version.map(str::to_owned));
    }
    let mut kinds = Vec::new();
    for version in versions {
        let root = if version == "v1" {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{version}")
        };
        let list = admin.get(&root).await?;
        for resource in list["resources"].as_array().into_iter().flatten() {
            let plural = resource["name"].as_str().unwrap_or_default();
            let verbs = resource["verbs"].as_array();
            let listed = verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
            if listed && !IGNORED.contains(&plural) {
                kinds.push(Kind {
                    path: Resource::new(&version, plural).all(),
                    plural: plural.to_owned(),
                    namespaced: resource["namespaced"] == true,
                });
            }
        }
    }
    Ok(kinds)
}

/// The address of each Service, and its replacement wherever it is named; the longest first, as some begin others.
type Addresses = Vec<(String, String)>;

fn addresses(objects: &BTreeMap<String, Value>) -> Addresses {
    let services = objects
        .iter()
        .filter(|(key, _)| key.starts_with("services "));
    let mut addresses: Addresses = services
        .filter_map(|(key, object)| {
            let address = object["spec"]["clusterIP"].as_str()?;
            let is_given = address.contains(['.', ':']);
            is_given.then(|| (address.to_owned(), format!("(address of {key})")))
        })
        .collect();
    addresses.sort_by_key(|(address, _)| std::cmp::Reverse(address.len()));
    addresses
}

fn canonical(mut object: Value, addresses: &Addresses) -> Value {
    let is_secret = object["type"].is_string() && object["data"].is_object();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !MADE_UP.contains(&key.as_str()));
        for owner in metadata
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            owner["uid"] = json!("");
        }
    }
    if is_secret && let Some(data) = object["data"].as_object_mut() {
        for value in data.values_mut() {
            *value = json!("(secret)");
        }
    }
    plain(&mut object, addresses);
    object
}

/// Takes out what is generated each time, wherever it is.
fn plain(value: &mut Value, addresses: &Addresses) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| key != "observedGeneration");
            for (key, value) in fields.iter_mut() {
                if is_time(key) || is_digest(key) || GIVEN.contains(&key.as_str()) {
                    *value = json!("(made up)");
                } else {
                    plain(value, addresses);
                }
            }
            sort_conditions(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(|it| plain(it, addresses)),
        Value::String(text) if holds_certificate(text) => "(certificate)".clone_into(text),
        Value::String(text) => {
            for (address, name) in addresses {
                if text.contains(address.as_str()) {
                    *text = text.replace(address, name);
                }
            }
        }
        _ => {}
    }
}

/// The order of conditions says nothing.
fn sort_conditions(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(conditions)) = fields.get_mut("conditions") {
        conditions.sort_by_key(|it| it["type"].to_string());
    }
}

fn is_time(key: &str) -> bool {
    ["Time", "Timestamp", "-timestamp", "-time", "-at"]
        .iter()
        .any(|end| key.ends_with(end))
}

/// Digests of keys and certificates.
fn is_digest(key: &str) -> bool {
    ["desired-state-hash", "config-hash", "-hash", "Hash"]
        .iter()
        .any(|end| key.ends_with(end))
}

fn holds_certificate(text: &str) -> bool {
    text.contains("-----BEGIN") || text.starts_with("LS0tLS1CRUdJTi")
}

/// Where two values differ.
fn differing(at: &str, one: &Value, another: &Value, differences: &mut Vec<String>) {
    match (one, another) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                differing(
                    &format!("{at} .{key}"),
                    &one[key],
                    &another[key],
                    differences,
                );
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, another)) in left.iter().zip(right).enumerate() {
                differing(&format!("{at}[{index}]"), one, another, differences);
            }
        }
        _ if one == another => {}
        _ => differences.push(format!("{at}: {}, not {}", short(one), short(another))),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

#[test]
fn generated_values_make_no_difference() {
    let object = |uid: &str, time: &str, data: &str, replicas: u32| {
        let value = json!({
            "type": "Opaque",
            "metadata": {
                "name": "a", "uid": uid, "labels": { "controller-uid": uid },
                "ownerReferences": [{ "name": "o", "uid": uid }],
            },
            "data": { "key": data },
            "spec": { "replicas": replicas },
            "status": { "conditions": [{ "type": "A", "lastTransitionTime": time }] },
        });
        Snapshot::new(BTreeMap::from([("a".to_owned(), value)]))
    };
    let one = object("1", "2030-01-31T12:00:00Z", "x", 1);
    let same = object("2", "2030-01-31T12:00:01Z", "y", 1);
    let other = object("1", "2030-01-31T12:00:00Z", "x", 2);
    one.is(&same).unwrap();
    let reported = one.is(&other).unwrap_err().to_string();
    assert!(
        reported.contains("a .spec .replicas: 1, not 2"),
        "{reported}"
    );
    let none = Snapshot(BTreeMap::new());
    assert!(
        one.is(&none)
            .unwrap_err()
            .to_string()
            .contains("one too many")
    );
    assert!(none.is(&one).unwrap_err().to_string().contains("missing"));
}

#[test]
fn addresses_differ_by_their_service_only() {
    let snapshot = |of_a: &str, of_b: &str, named: &str| {
        let service = |address: &str| json!({ "spec": { "clusterIP": address } });
        Snapshot::new(BTreeMap::from([
            ("services n/a".to_owned(), service(of_a)),
            ("services n/b".to_owned(), service(of_b)),
            ("services n/c".to_owned(), service("None")),
            ("pods n/p".to_owned(), json!({ "args": [named] })),
        ]))
    };
    let one = snapshot("10.0.0.4", "10.0.0.40", "ip=10.0.0.4&ip=10.0.0.40");
    one.is(&snapshot(
        "10.0.0.50",
        "10.0.0.5",
        "ip=10.0.0.50&ip=10.0.0.5",
    ))
    .unwrap();
    let exchanged = snapshot("10.0.0.50", "10.0.0.5", "ip=10.0.0.5&ip=10.0.0.50");
    assert!(one.is(&exchanged).is_err());
}
