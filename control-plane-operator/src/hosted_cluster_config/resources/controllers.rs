//! The controllers of openshift-controller-manager that the image registry of the hosted cluster needs.
//!
//! Without a registry, service accounts need no pull secret for it. The control-plane-operator writes the configuration,
//! and keeps the controllers that are selected here.

use control_plane_component::Objects;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::super::context::Context;
use super::super::error::Error;
use super::desired::{Guest, Key};

const MANAGER: &str = "hosted-cluster-config-operator";
const NAME: &str = "openshift-controller-manager-config";
const KEY: &str = "config.yaml";
const ALL: &str = "*";
const WITHOUT_PULL_SECRETS: &str = "-openshift.io/serviceaccount-pull-secrets";
/// Platforms on which users do not decide it: a policy keeps the registry of Azure, and that of IBM Cloud is removed at
/// first.
const EXEMPT: [&str; 2] = ["Azure", "IBMCloud"];

/// Selects the controllers.
pub(super) async fn apply(
    ctx: &Context,
    hcp: &Value,
    guest: &Guest,
    sources: &Objects,
) -> Result<(), Error> {
    let live = sources.get("", "ConfigMap", NAME);
    let Some(live) = live.filter(|live| is_of(hcp, live)) else {
        return Ok(());
    };
    let Some(is_removed) = is_registry_removed(hcp, guest) else {
        return Ok(());
    };
    let Some(configuration) = changed(live, is_removed)? else {
        return Ok(());
    };
    let patch = json!({
        // Another change is evaluated by the next pass.
        "metadata": { "resourceVersion": live["metadata"]["resourceVersion"] },
        "data": { KEY: configuration },
    });
    let api: Api<ConfigMap> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(NAME, &params, &Patch::Merge(&patch)).await {
        Ok(_) => tracing::info!(is_removed, "Selected controllers for the image registry"),
        Err(error) if is_missing(&error) || is_conflict(&error) => {}
        Err(error) => return Err(Error::client(format!("update ConfigMap {NAME}"))(error)),
    }
    Ok(())
}

/// Whether an object belongs to the control plane.
fn is_of(hcp: &Value, object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    hcp["metadata"]["uid"].is_string() && owners.any(|it| it["uid"] == hcp["metadata"]["uid"])
}

/// Whether users have removed the registry, if it is theirs to decide.
fn is_registry_removed(hcp: &Value, guest: &Guest) -> Option<bool> {
    let spec = &hcp["spec"];
    let platform = spec["platform"]["type"].as_str().unwrap_or_default();
    let disabled = spec["capabilities"]["disabled"].as_array();
    let is_disabled = disabled
        .into_iter()
        .flatten()
        .any(|it| it == "ImageRegistry");
    if is_disabled || EXEMPT.contains(&platform) {
        return None;
    }
    let api_version = "imageregistry.operator.openshift.io/v1";
    let registry = guest.get(&Key::new(api_version, "Config", "", "cluster"))?;
    Some(registry["spec"]["managementState"] == "Removed")
}

/// The configuration with other controllers, if it needs others.
fn changed(live: &Value, is_removed: bool) -> Result<Option<String>, Error> {
    let Some(text) = live["data"][KEY].as_str() else {
        return Ok(None);
    };
    let invalid = |problem: String| Error::Form {
        object: format!("{KEY} of ConfigMap {NAME}"),
        problem,
    };
    let mut configuration: Value =
        serde_saphyr::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if !configuration.is_object() {
        return Err(invalid("it is no object".to_owned()));
    }
    let Some(selected) = select(&configuration["controllers"], is_removed) else {
        return Ok(None);
    };
    configuration["controllers"] = json!(selected);
    let text = serde_saphyr::to_string(&configuration);
    text.map(Some).map_err(|error| invalid(error.to_string()))
}

/// The controllers, if they are to be others.
fn select(live: &Value, is_removed: bool) -> Option<Vec<Value>> {
    let mut controllers = live.as_array().cloned().unwrap_or_default();
    let is_selected = controllers.iter().any(|it| it == WITHOUT_PULL_SECRETS);
    if is_selected == is_removed {
        return None;
    }
    controllers.retain(|it| it != WITHOUT_PULL_SECRETS);
    if controllers.is_empty() {
        controllers.push(json!(ALL));
    }
    if is_removed {
        controllers.push(json!(WITHOUT_PULL_SECRETS));
    }
    Some(controllers)
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::super::super::context::testing::{Cached, context, control_plane, refused};
    use super::*;

    const PATH: &str =
        "/api/v1/namespaces/clusters-a/configmaps/openshift-controller-manager-config";

    fn registry(state: &str) -> Guest {
        let object = json!({
            "apiVersion": "imageregistry.operator.openshift.io/v1", "kind": "Config",
            "metadata": { "name": "cluster" }, "spec": { "managementState": state },
        });
        [object].into_iter().collect()
    }

    fn config_map(owner: &str, controllers: &Value) -> Value {
        let configuration = json!({ "kind": "K", "controllers": controllers });
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": NAME, "namespace": "clusters-a", "resourceVersion": "7",
                "ownerReferences": [{ "uid": owner }],
            },
            "data": { KEY: configuration.to_string() },
        })
    }

    async fn applied(
        hcp: &Value,
        guest: &Guest,
        live: Option<Value>,
        calls: Vec<Expect>,
    ) -> Result<(), Error> {
        let scenario = Scenario::new(calls);
        let ctx = context(&scenario, Cached::of(hcp.clone())).await;
        let mut sources = Objects::default();
        if let Some(object) = live {
            sources.insert(object);
        }
        let result = apply(&ctx, hcp, guest, &sources).await;
        scenario.finish();
        result
    }

    fn patch() -> Expect {
        Expect::patch(PATH)
            .body(json!({ "metadata": { "resourceVersion": "7" } }))
            .answer(Answer::ok(&config_map("u", &json!([]))))
    }

    #[test]
    fn controllers_follow_the_registry() {
        let without = WITHOUT_PULL_SECRETS;
        for (live, is_removed, expected) in [
            (Value::Null, true, Some(json!([ALL, without]))),
            (json!([]), true, Some(json!([ALL, without]))),
            (json!([ALL]), true, Some(json!([ALL, without]))),
            (json!(["a", "-b"]), true, Some(json!(["a", "-b", without]))),
            (json!([ALL, without]), true, None),
            (Value::Null, false, None),
            (json!(["a"]), false, None),
            (json!([ALL, without]), false, Some(json!([ALL]))),
            (json!([without]), false, Some(json!([ALL]))),
            (json!(["a", without, "-b"]), false, Some(json!(["a", "-b"]))),
        ] {
            let found = select(&live, is_removed).map(Value::from);
            assert_eq!(found, expected, "{live} {is_removed}");
        }
    }

    #[test]
    fn only_the_controllers_change() {
        let text = changed(&config_map("u", &json!([ALL])), true)
            .unwrap()
            .unwrap();
        let found: Value = serde_saphyr::from_str(&text).unwrap();
        let expected = json!({ "kind": "K", "controllers": [ALL, WITHOUT_PULL_SECRETS] });
        assert_eq!(found, expected);
        for data in [Value::Null, json!({ "other": "" })] {
            assert_eq!(changed(&json!({ "data": data }), true).unwrap(), None);
        }
        for text in ["{", "a"] {
            let error = changed(&json!({ "data": { KEY: text } }), true).unwrap_err();
            let object = "invalid config.yaml of ConfigMap openshift-controller-manager-config: ";
            assert!(error.to_string().starts_with(object), "{error}");
        }
    }

    #[tokio::test]
    async fn removed_registry_deselects_a_controller() {
        let hcp = control_plane(&json!({}));
        let live = || Some(config_map("u", &json!([ALL])));
        let removed = registry("Removed");
        applied(&hcp, &removed, live(), vec![patch()])
            .await
            .unwrap();
        // Another writer was faster: its change triggers the next pass.
        for code in [404, 409] {
            let calls = vec![patch().answer(Answer::error(code, "Other"))];
            applied(&hcp, &removed, live(), calls).await.unwrap();
        }
        let calls = vec![patch().answer(refused())];
        let error = applied(&hcp, &removed, live(), calls).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("failed to update ConfigMap {NAME}")
        );
    }

    #[tokio::test]
    async fn nothing_is_selected_where_users_do_not_decide() {
        let on = |platform: &str| control_plane(&json!({ "platform": { "type": platform } }));
        let disabled = json!({ "capabilities": { "disabled": ["ImageRegistry"] } });
        let ours = || Some(config_map("u", &json!([ALL])));
        let removed = registry("Removed");
        for (hcp, guest, live) in [
            (on("Azure"), &removed, ours()),
            (on("IBMCloud"), &removed, ours()),
            (control_plane(&disabled), &removed, ours()),
            (on("AWS"), &registry("Managed"), ours()),
            (on("AWS"), &Guest::default(), ours()),
            (on("AWS"), &removed, None),
            // A ConfigMap of another owner.
            (
                on("AWS"),
                &removed,
                Some(config_map("other", &json!([ALL]))),
            ),
        ] {
            applied(&hcp, guest, live, vec![]).await.unwrap();
        }
    }
}
