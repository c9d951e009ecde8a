//! The status of Authentication `cluster` in the status of the HostedControlPlane: the clients of an OIDC provider that
//! components of the hosted cluster use, and the metadata of the OAuth server.

use api::hypershift::v1beta1::configuration::authentication::status::AuthenticationStatus;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::control_plane;
use super::super::error::Error;
use super::desired::{Guest, Key};

/// Copies the status. It is written separately: if the API server refuses it, conditions are still reported.
pub(super) async fn report(ctx: &Context, hcp: &DynamicObject, guest: &Guest) -> Result<(), Error> {
    let key = Key::new("config.openshift.io/v1", "Authentication", "", "cluster");
    let Some(found) = guest.get(&key) else {
        return Ok(());
    };
    let observed = observed(&found["status"])?;
    control_plane::write(&ctx.control_planes(), hcp, |status| {
        set(status, &observed);
    })
    .await
}

/// What the API of the HostedControlPlane knows of the status.
fn observed(status: &Value) -> Result<Value, Error> {
    let status = if status.is_null() { &json!({}) } else { status };
    let typed: serde_json::Result<AuthenticationStatus> = serde_json::from_value(status.clone());
    let value = typed.and_then(serde_json::to_value);
    value.map_err(|error| Error::Form {
        object: "status of Authentication cluster".to_owned(),
        problem: error.to_string(),
    })
}

fn set(status: &mut Value, observed: &Value) {
    if *observed != json!({}) {
        status["configuration"]["authentication"] = observed.clone();
    } else if let Some(fields) = status.as_object_mut() {
        // Authentication is all that it has.
        fields.remove("configuration");
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::super::super::context::testing::{Cached, context, control_plane};
    use super::*;

    const STATUS: &str =
        "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-a/hostedcontrolplanes/a/status";

    fn authentication(status: &Value) -> Guest {
        let object = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Authentication",
            "metadata": { "name": "cluster" }, "status": status,
        });
        [object].into_iter().collect()
    }

    fn clients(name: &str) -> Value {
        json!({ "oidcClients": [{ "componentName": name, "componentNamespace": "n" }] })
    }

    async fn reported(guest: &Guest, before: Value, calls: Vec<Expect>) -> Result<(), Error> {
        let scenario = Scenario::new(calls);
        let mut object = control_plane(&json!({}));
        object["status"] = before;
        let ctx = context(&scenario, Cached::of(object.clone())).await;
        let result = report(&ctx, &serde_json::from_value(object).unwrap(), guest).await;
        scenario.finish();
        result
    }

    #[tokio::test]
    async fn status_is_copied_when_it_changes() {
        let copy = json!({ "configuration": { "authentication": clients("console") } });
        let put = Expect::put(STATUS).body(json!({ "status": copy }));
        let calls = vec![put.answer(Answer::ok(&control_plane(&json!({}))))];
        let guest = authentication(&clients("console"));
        reported(&guest, json!({}), calls).await.unwrap();
        reported(&guest, copy, vec![]).await.unwrap();
    }

    #[tokio::test]
    async fn missing_object_leaves_the_copy() {
        let copy = json!({ "configuration": { "authentication": clients("console") } });
        reported(&Guest::default(), copy, vec![]).await.unwrap();
    }

    #[tokio::test]
    async fn status_that_does_not_fit_is_an_error() {
        let guest = authentication(&json!({ "oidcClients": "none" }));
        let error = reported(&guest, json!({}), vec![]).await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("invalid status of Authentication cluster: ")
        );
    }

    #[test]
    fn empty_status_removes_the_copy() {
        for status in [Value::Null, json!({}), json!({ "oidcClients": [] })] {
            let observed = observed(&status).unwrap();
            let mut copy =
                json!({ "nodeCount": 1, "configuration": { "authentication": clients("a") } });
            set(&mut copy, &observed);
            assert_eq!(copy, json!({ "nodeCount": 1 }), "{status}");
        }
    }
}
