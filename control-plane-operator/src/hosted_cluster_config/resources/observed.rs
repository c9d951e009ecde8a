//! Configuration that users write in the hosted cluster, and that components of the control plane follow.
//!
//! Build and Project `cluster` are copied to ConfigMaps of the control plane, where openshift-controller-manager and
//! openshift-apiserver find them.

use control_plane_component::Objects;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::Applier;

use super::super::context::Context;
use super::super::control_plane;
use super::super::error::Error;
use super::cache::{GuestCache, Served};
use super::desired::{Guest, Key, OBSERVED};

const MANAGER: &str = "hosted-cluster-config-operator";
const KEY: &str = "config";
/// How much a user of the hosted cluster can write into the control plane, in bytes.
const LIMIT: usize = 256 * 1024;

/// What becomes of a ConfigMap.
#[derive(Debug, PartialEq)]
enum Change {
    None,
    Apply(Value),
    Delete,
}

/// Applies or deletes the ConfigMaps that differ. `sources` has those that exist.
pub(super) async fn apply(
    ctx: &Context,
    hcp: &DynamicObject,
    cache: &GuestCache,
    guest: &Guest,
    sources: &Objects,
) -> Vec<Error> {
    let applier = Applier::new(ctx.management.clone(), MANAGER);
    let resource = ApiResource::erase::<ConfigMap>(&());
    let mut errors = Vec::new();
    for (kind, name) in OBSERVED {
        let key = Key::new("config.openshift.io/v1", kind, "", "cluster");
        if cache.served_object(&key) == Served::Unknown {
            continue;
        }
        let live = sources.get("", "ConfigMap", name);
        let done = match change(hcp, name, guest.get(&key), live) {
            Ok(Change::None) => Ok(()),
            Ok(Change::Apply(value)) => applier.apply_value(&resource, value).await.map(drop),
            Ok(Change::Delete) => {
                let namespace = Some(ctx.namespace.as_str());
                applier.delete(&resource, namespace, name).await.map(drop)
            }
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        errors.extend(done.err().map(Error::from));
    }
    errors
}

fn change(
    hcp: &DynamicObject,
    name: &str,
    observed: Option<&Value>,
    live: Option<&Value>,
) -> Result<Change, Error> {
    let Some(observed) = observed else {
        return Ok(live.map_or(Change::None, |_| Change::Delete));
    };
    let object = json!({
        "apiVersion": observed["apiVersion"],
        "kind": observed["kind"],
        "metadata": { "name": observed["metadata"]["name"] },
        "spec": observed["spec"],
    });
    let invalid = |problem: String| Error::Form {
        object: format!("{} cluster of the hosted cluster", observed["kind"]),
        problem,
    };
    let text = serde_saphyr::to_string(&object).map_err(|error| invalid(error.to_string()))?;
    if text.len() > LIMIT {
        return Err(invalid(format!("it has more than {LIMIT} bytes")));
    }
    if live.is_some_and(|live| live["data"] == json!({ KEY: text })) {
        return Ok(Change::None);
    }
    let owner = hcp.owner_ref(&control_plane::resource());
    Ok(Change::Apply(json!({
        "metadata": {
            "name": name,
            "namespace": hcp.namespace(),
            "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
        },
        "data": { KEY: text },
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control_plane() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
            "metadata": { "name": "hcp", "namespace": "ns", "uid": "u" },
        }))
        .unwrap()
    }

    fn build(message: &str) -> Value {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Build",
            "metadata": { "name": "cluster", "resourceVersion": "7" },
            "spec": { "buildDefaults": { "env": [{ "name": "A", "value": message }] } },
        })
    }

    #[test]
    fn observed_configuration_is_copied_once() {
        let hcp = control_plane();
        let of = |observed: Option<&Value>, live: Option<&Value>| {
            change(&hcp, "observed-config-build", observed, live).unwrap()
        };
        let Change::Apply(applied) = of(Some(&build("a")), None) else {
            panic!("it is not applied");
        };
        let text = applied["data"][KEY].as_str().unwrap();
        let read: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(read["spec"], build("a")["spec"]);
        // Only what users decide.
        assert_eq!(read["metadata"], json!({ "name": "cluster" }));
        assert_eq!(applied["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(of(Some(&build("a")), Some(&applied)), Change::None);
        assert!(matches!(
            of(Some(&build("b")), Some(&applied)),
            Change::Apply(_)
        ));
        assert_eq!(of(None, Some(&applied)), Change::Delete);
        assert_eq!(of(None, None), Change::None);
    }

    #[test]
    fn large_configuration_is_rejected() {
        let large = build(&"a".repeat(LIMIT));
        let error = change(&control_plane(), "a", Some(&large), None).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
    }
}
