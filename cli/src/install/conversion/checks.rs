//! What must hold before a CRD may name the webhook (C06). Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::UnixTime;
use serde_json::{Value, json};

use super::definitions::{INJECT, needs_webhook, served};
use super::{NAME, Setup, Trust};
use crate::install::kind::text;
use crate::install::object::Object;
use conversion_certificates::{Serving, flaw};

/// What is wrong with a CRD, or with the webhook's Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) subject: String,
    pub(crate) reason: String,
}

/// What is wrong with these objects.
pub(crate) fn flaws(setup: &Setup, objects: &[Object], now: UnixTime) -> Vec<Flaw> {
    let bodies = objects.iter().map(|object| &object.body);
    let secret = bodies.clone().find(|body| {
        body["kind"] == "Secret" && body["metadata"]["name"] == Setup::secret_name().as_str()
    });
    let serving = secret.and_then(Serving::of);
    bodies
        .filter(|body| setup.is_concerned(body))
        .filter_map(|crd| {
            let reason = setup.flaw_of(crd, serving.as_ref(), now)?;
            Some(Flaw {
                subject: format!("CustomResourceDefinition {}", text(crd, "/metadata/name")),
                reason,
            })
        })
        .collect()
}

// === impl Setup ===

impl Setup {
    /// CRDs of which more than one version is served, or that name a webhook.
    fn is_concerned(&self, body: &Value) -> bool {
        let is_private = self.converts(text(body, "/spec/group"));
        needs_webhook(body) || (is_private && served(body) > 1)
    }

    fn flaw_of(&self, crd: &Value, serving: Option<&Serving>, now: UnixTime) -> Option<String> {
        if !needs_webhook(crd) {
            return Some("it serves several versions, and no webhook converts them".to_owned());
        }
        let hook = &crd["spec"]["conversion"]["webhook"];
        if hook["conversionReviewVersions"] != json!(["v1"]) {
            return Some("its webhook is asked in another version than v1".to_owned());
        }
        let config = &hook["clientConfig"];
        let service = json!({
            "namespace": self.namespace, "name": NAME, "path": "/convert", "port": 443,
        });
        if config["service"] != service {
            return Some(format!("its webhook is another one than {NAME}"));
        }
        match (&self.trust, serving) {
            (Trust::ServiceCa, _) => {
                let injected = crd["metadata"]["annotations"][INJECT] == "true";
                (!injected).then(|| {
                    format!(
                        "it has no annotation {INJECT}, so no certificate authority is injected"
                    )
                })
            }
            (_, None) => Some(format!(
                "there is no Secret {} whose certificate it could trust",
                Self::secret_name()
            )),
            (_, Some(serving)) => self.distrust(&config["caBundle"], serving, now),
        }
    }

    /// Why the API server would not take the webhook for what the CRD names.
    fn distrust(&self, bundle: &Value, serving: &Serving, now: UnixTime) -> Option<String> {
        let decoded = bundle.as_str().and_then(|text| STANDARD.decode(text).ok());
        let Some(authorities) = decoded.and_then(|pem| String::from_utf8(pem).ok()) else {
            return Some("its webhook has no caBundle".to_owned());
        };
        let flaw = flaw(
            serving.certificate(),
            &authorities,
            &self.server_name(),
            now,
        )?;
        Some(format!(
            "its caBundle does not fit the webhook's Secret {}: {flaw}",
            Self::secret_name()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::conversion::Backend;
    use crate::install::conversion::objects::secret;
    use api::group::{CapiTypes, GroupTable};

    /// Something that is done to a CRD.
    type Change = fn(&mut Value);

    fn now() -> UnixTime {
        UnixTime::since_unix_epoch(std::time::Duration::from_hours(500_000))
    }

    fn setup() -> Setup {
        let serving = Serving::renewed(None, "capi-conversion-webhook-shim.ns.svc", now());
        Setup {
            namespace: "ns".to_owned(),
            backends: vec![(Backend::Core, "image".to_owned())],
            trust: Trust::Own(serving.unwrap()),
        }
    }

    fn crd(setup: &Setup) -> Value {
        let group = Backend::Core.groups(&GroupTable::default(), CapiTypes::Private);
        let mut crd = json!({
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "a"},
            "spec": {
                "group": group[0],
                "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": true}],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"service": {
                        "namespace": "ns", "name": NAME, "path": "/convert", "port": 443,
                    }},
                }},
            },
        });
        match &setup.trust {
            Trust::Own(serving) => {
                let bundle = STANDARD.encode(serving.authorities());
                crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(bundle);
            }
            _ => crd["metadata"]["annotations"] = json!({INJECT: "true"}),
        }
        crd
    }

    fn found(setup: &Setup, crd: Value) -> Option<String> {
        let objects = secret(setup).into_iter().chain([Object::crd(crd)]);
        let flaws = flaws(setup, &objects.collect::<Vec<_>>(), now());
        flaws.into_iter().next().map(|flaw| flaw.reason)
    }

    /// Check C06.
    #[test]
    fn a_missing_webhook_or_wrong_authority_is_found() {
        let own = setup();
        let service = Setup {
            trust: Trust::ServiceCa,
            ..own.clone()
        };
        assert_eq!(found(&own, crd(&own)), None);
        assert_eq!(found(&service, crd(&service)), None);
        let table: [(&str, Change, &str); 6] = [
            (
                "stanza",
                |crd| crd["spec"]["conversion"] = json!({"strategy": "None"}),
                "no webhook converts",
            ),
            (
                "absent",
                |crd| crd["spec"]["conversion"] = json!(null),
                "no webhook converts",
            ),
            (
                "service",
                |crd| {
                    crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] =
                        json!("x")
                },
                "another one",
            ),
            (
                "review",
                |crd| {
                    crd["spec"]["conversion"]["webhook"]["conversionReviewVersions"] =
                        json!(["v1beta1"])
                },
                "another version",
            ),
            (
                "bundle",
                |crd| {
                    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(null)
                },
                "no caBundle",
            ),
            (
                "garbage",
                |crd| {
                    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("eA==")
                },
                "does not fit",
            ),
        ];
        for (name, change, expected) in table {
            let mut changed = crd(&own);
            change(&mut changed);
            let reason = found(&own, changed).unwrap_or_default();
            assert!(reason.contains(expected), "{name}: {reason:?}");
        }
        let other = crd(&setup());
        assert!(found(&own, other).unwrap().contains("does not fit"));
        let uninjected = crd(&own);
        assert!(found(&service, uninjected).unwrap().contains(INJECT));
    }

    /// Check C06.
    #[test]
    fn crds_of_one_version_need_no_webhook() {
        let setup = setup();
        let mut crd = crd(&setup);
        crd["spec"]["conversion"] = json!({"strategy": "None"});
        crd["spec"]["versions"] = json!([{"name": "v1", "served": true}]);
        assert_eq!(found(&setup, crd), None);
    }
}
