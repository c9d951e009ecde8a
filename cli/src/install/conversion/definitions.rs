//! The private CRDs, with the versions that can be converted. Pure.
//!
//! A CRD that names the webhook before it answers would make objects unreadable, and the webhook's managers do not
//! start before their CRDs are there. So a CRD comes twice: first with its stored version alone, which needs no
//! conversion, and with all of them once the webhook is available.

use serde_json::{Value, json};

use super::{NAME, Setup, Trust};
use crate::crds::{Batch, Conversion, Derivation, Versions};
use crate::install::difference::Outcome;
use crate::install::kind::{Kind, text};
use crate::install::object::Object;
use crate::install::preflight::Observed;

/// Has OpenShift's service CA write its authority into the stanza.
pub(super) const INJECT: &str = "service.beta.openshift.io/inject-cabundle";

/// The private CRDs.
pub(crate) fn derive(
    setup: Option<&Setup>,
    mut derivation: Derivation,
    batches: Vec<Batch>,
) -> anyhow::Result<Vec<Value>> {
    derivation.conversion = Conversion::None;
    derivation.versions = Some(Versions::Storage);
    let Some(setup) = setup else {
        return Ok(derivation.run(batches)?.crds);
    };
    let stored = derivation.run(batches.clone())?.crds;
    derivation.conversion = setup.stanza()?;
    derivation.versions = Some(Versions::All);
    let all = derivation.run(batches)?.crds;
    // Of the same documents, so in the same order.
    let pairs = stored.into_iter().zip(all);
    Ok(pairs
        .map(|(stored, all)| {
            if served(&all) > 1 && setup.converts(text(&all, "/spec/group")) {
                setup.finished(all)
            } else {
                stored
            }
        })
        .collect())
}

/// An object, and what applying it does.
type Step = (Object, Outcome);

/// What is applied before the webhook is there, in the place of these steps; and what comes after it.
///
/// A CRD that names a webhook already stays as it is wanted: its other versions are in use.
pub(crate) fn early(steps: &[Step], observed: &[Observed]) -> (Vec<Step>, Vec<Step>) {
    let mut late = Vec::new();
    let first = steps
        .iter()
        .zip(observed)
        .map(|((object, outcome), observed)| {
            let waits = *outcome != Outcome::Unchanged
                && needs_webhook(&object.body)
                && !observed.live.as_ref().is_some_and(needs_webhook);
            if !waits {
                return (object.clone(), outcome.clone());
            }
            late.push((object.clone(), outcome.clone()));
            let body = stored_only(object.body.clone());
            (Object::crd(body), outcome.clone())
        })
        .collect();
    (first, late)
}

/// Lets CRDs whose authority the service CA is going to write keep the one that they trust until then. Without it they
/// would have no authority until the service CA has written its own, and nothing would be converted.
pub(crate) fn keep_trust(objects: &mut [Object], observed: &[Observed]) {
    for (object, observed) in objects.iter_mut().zip(observed) {
        let injected = object.body["metadata"]["annotations"][INJECT] == "true";
        let Some(live) = observed.live.as_ref().filter(|_| injected) else {
            continue;
        };
        let trusted = &live["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        let wanted = &mut object.body["spec"]["conversion"]["webhook"]["clientConfig"];
        if trusted.is_string() && wanted.is_object() {
            wanted["caBundle"] = trusted.clone();
        }
    }
}

/// Whether this is a CRD whose objects a webhook converts.
pub(super) fn needs_webhook(object: &Value) -> bool {
    object["kind"] == Kind::Crd.name() && object["spec"]["conversion"]["strategy"] == "Webhook"
}

/// How many versions a CRD serves.
pub(super) fn served(crd: &Value) -> usize {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["served"] == true).count()
}

fn stored_only(mut crd: Value) -> Value {
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.retain(|version| version["storage"] == true);
    }
    crd["spec"]["conversion"] = json!({"strategy": "None"});
    if let Some(annotations) = crd["metadata"]["annotations"].as_object_mut() {
        annotations.remove(INJECT);
    }
    crd
}

// === impl Setup ===

impl Setup {
    fn stanza(&self) -> anyhow::Result<Conversion> {
        let text = format!("webhook={}/{NAME}", self.namespace);
        Ok(match (text.parse()?, &self.trust) {
            (Conversion::Webhook(webhook), Trust::Own(serving)) => {
                Conversion::Webhook(webhook.with_ca(serving.authorities().as_bytes())?)
            }
            (conversion, _) => conversion,
        })
    }

    fn finished(&self, mut crd: Value) -> Value {
        if matches!(self.trust, Trust::ServiceCa) {
            crd["metadata"]["annotations"][INJECT] = json!("true");
        }
        crd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::object::Id;

    fn crd(strategy: &str) -> Value {
        json!({
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "a", "annotations": {INJECT: "true"}},
            "spec": {
                "conversion": {"strategy": strategy},
                "versions": [
                    {"name": "v1", "served": true, "storage": false},
                    {"name": "v2", "served": true, "storage": true},
                ],
            },
        })
    }

    fn observed(live: Option<Value>) -> Observed {
        let id = Id {
            kind: Kind::Crd,
            namespace: None,
            name: "a".to_owned(),
        };
        Observed { id, live }
    }

    /// Check C06.
    #[test]
    fn no_crd_names_the_webhook_before_it_is_available() {
        let new = vec![(Object::crd(crd("Webhook")), Outcome::Create)];
        let (first, late) = early(&new, &[observed(None)]);
        let body = &first[0].0.body;
        assert_eq!(body["spec"]["conversion"], json!({"strategy": "None"}));
        assert_eq!(served(body), 1);
        assert_eq!(body["metadata"]["annotations"], json!({}));
        assert_eq!(late, new);
    }

    /// Check C06.
    #[test]
    fn the_current_authority_is_kept_until_the_service_ca_injects_its_own() {
        let with = |config: Value| {
            let mut crd = crd("Webhook");
            crd["spec"]["conversion"]["webhook"] = json!({ "clientConfig": config });
            crd
        };
        let (bare, trusting) = (json!({ "service": {} }), json!({ "caBundle": "eA==" }));
        let mut own = with(bare.clone());
        own["metadata"]["annotations"] = json!({});
        for (wanted, live, expected) in [
            (
                with(bare.clone()),
                Some(with(trusting.clone())),
                json!("eA=="),
            ),
            (with(bare.clone()), Some(with(bare.clone())), Value::Null),
            (with(bare), None, Value::Null),
            // What we issue ourselves says itself what is trusted.
            (own, Some(with(trusting)), Value::Null),
        ] {
            let mut objects = [Object::crd(wanted)];
            keep_trust(&mut objects, &[observed(live)]);
            let config = &objects[0].body["spec"]["conversion"]["webhook"]["clientConfig"];
            assert_eq!(config["caBundle"], expected);
        }
    }

    /// Check C06.
    #[test]
    fn crds_that_use_the_webhook_keep_using_it() {
        for (wanted, live, outcome) in [
            ("Webhook", Some(crd("Webhook")), Outcome::Claim),
            ("Webhook", Some(crd("Webhook")), Outcome::Unchanged),
            ("None", None, Outcome::Create),
            ("None", Some(crd("None")), Outcome::Claim),
        ] {
            let steps = vec![(Object::crd(crd(wanted)), outcome)];
            let (first, late) = early(&steps, &[observed(live)]);
            assert_eq!(first, steps);
            assert_eq!(late, []);
        }
    }
}
