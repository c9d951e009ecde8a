//! Whole reviews, with a backend in memory.

use std::sync::Mutex;

use api::group::{CapiTypes, GroupPair};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::convert::{Ask, BackendError, Converted, Converter, Failure};
use super::review::InvalidReview;
use super::route::{BackendId, Routes};
use capi_translate::Rules;

/// A backend that knows standard groups only, converts by writing the version, and can be made to misbehave.
#[derive(Debug, Default)]
struct Backend {
    fault: Fault,
    /// Objects in each question.
    requested: Mutex<Vec<usize>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Only objects that say so cannot be converted.
    #[default]
    None,
    Uid,
    Count,
    Order,
    Version,
    NoJson,
    NoReason,
    Away,
    /// The first question fails, whatever it is.
    Once,
}

impl Ask for Backend {
    async fn ask(&self, backend: BackendId, question: Bytes) -> Result<Bytes, BackendError> {
        let question: Value = serde_json::from_slice(&question).expect("questions are JSON");
        let objects = question["request"]["objects"].as_array().expect("a list");
        let first = {
            let mut requested = self.requested.lock().unwrap();
            requested.push(objects.len());
            requested.len() == 1
        };
        for object in objects {
            let standard = core(CapiTypes::Standard);
            for place in ["/apiVersion", "/metadata/ownerReferences/0/apiVersion"] {
                let found = object.pointer(place).and_then(Value::as_str);
                assert!(
                    found.is_some_and(|text| text.starts_with(&standard)),
                    "{object}"
                );
            }
        }
        match self.fault {
            Fault::Away => Err(BackendError {
                backend: format!("backend-{}", backend.0),
                problem: "cannot be reached".to_owned(),
            }),
            Fault::NoJson => Ok(Bytes::from_static(b"{\"kind\":")),
            Fault::Once if first => Ok(failed(&question, "not yet")),
            fault => Ok(response(&question, objects, fault)),
        }
    }
}

fn response(question: &Value, objects: &[Value], fault: Fault) -> Bytes {
    if objects.iter().any(|one| one["spec"]["bad"] == true) {
        let message = if fault == Fault::NoReason {
            ""
        } else {
            "cannot unmarshal"
        };
        return failed(question, message);
    }
    let mut converted: Vec<Value> = objects.to_vec();
    for object in &mut converted {
        object["apiVersion"] = question["request"]["desiredAPIVersion"].clone();
    }
    let mut uid = question["request"]["uid"].clone();
    match fault {
        Fault::Uid => uid = json!("another"),
        Fault::Count => drop(converted.pop()),
        Fault::Order => converted.reverse(),
        Fault::Version => converted[0]["apiVersion"] = json!("x/v1"),
        _ => {}
    }
    let response =
        json!({"uid": uid, "convertedObjects": converted, "result": {"status": "Success"}});
    wrapped(&json!({"response": response}))
}

fn failed(question: &Value, message: &str) -> Bytes {
    let result = json!({"status": "Failed", "message": message});
    wrapped(&json!({"response": {"uid": question["request"]["uid"], "result": result}}))
}

fn wrapped(part: &Value) -> Bytes {
    let mut review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"});
    for (key, value) in part.as_object().expect("an object") {
        review[key] = value.clone();
    }
    review.to_string().into()
}

fn core(types: CapiTypes) -> String {
    Rules::default().table().pairs()[0].name(types).to_owned()
}

fn converter(fault: Fault) -> Converter<Backend> {
    let route = format!("{}=https://localhost:1", core(CapiTypes::Private));
    Converter {
        rules: Rules::default(),
        routes: Routes::new([route.parse().unwrap()]),
        ask: Backend {
            fault,
            requested: Mutex::default(),
        },
    }
}

fn object(index: usize, version: &str, spec: &Value) -> Value {
    let private = core(CapiTypes::Private);
    json!({
        "apiVersion": format!("{private}/{version}"),
        "kind": "Machine",
        "metadata": {
            "namespace": "clusters", "name": format!("m-{index}"), "uid": format!("uid-{index}"),
            "labels": {"cluster.x-k8s.io/cluster-name": "c", format!("{private}/v1beta1"): "key"},
            "annotations": {"cluster.x-k8s.io/conversion-data": "{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\"}"},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [{"apiVersion": format!("{private}/v1beta2"), "kind": "MachineSet", "name": "s", "uid": "u"}],
            "managedFields": [{"apiVersion": format!("{private}/v1beta2"), "manager": "m", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": spec,
    })
}

fn question(objects: &[Value]) -> Vec<u8> {
    let desired = format!("{}/v1beta1", core(CapiTypes::Private));
    let request = json!({"uid": "the-uid", "desiredAPIVersion": desired, "objects": objects});
    wrapped(&json!({"request": request})).to_vec()
}

async fn ask(fault: Fault, objects: &[Value]) -> (Value, Result<Converted, Failure>) {
    let response = converter(fault).respond(&question(objects)).await.unwrap();
    let mut body: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(body["response"]["uid"], "the-uid");
    (body["response"].take(), response.result)
}

fn machines(count: usize) -> Vec<Value> {
    let spec = json!({"infrastructureRef": {"apiGroup": format!("infrastructure.{}", core(CapiTypes::Private))}});
    (0..count)
        .map(|index| {
            // Some are there already, which the API server never requests, and no backend should fail on them.
            let version = if index % 3 == 2 { "v1beta1" } else { "v1beta2" };
            object(index, version, &spec)
        })
        .collect()
}

/// Check C01.
#[tokio::test]
async fn conversion_keeps_uid_count_order_and_metadata() {
    for count in [0, 1, 2, 100, 5000] {
        let objects = machines(count);
        let (response, result) = ask(Fault::None, &objects).await;
        assert_eq!(result, Ok(Converted(count)));
        assert_eq!(response["result"]["status"], "Success");
        let converted = response["convertedObjects"].as_array().unwrap();
        let mut expected = objects;
        for object in &mut expected {
            object["apiVersion"] = json!(format!("{}/v1beta1", core(CapiTypes::Private)));
        }
        assert!(*converted == expected, "{count} objects differ");
    }
}

/// Check C02.
#[tokio::test]
async fn a_failed_conversion_names_the_object() {
    for (count, bad) in [
        (1, 0),
        (2, 0),
        (2, 1),
        (3, 1),
        (100, 0),
        (100, 57),
        (100, 99),
    ] {
        let mut objects: Vec<Value> = (0..count)
            .map(|index| object(index, "v1beta2", &json!({})))
            .collect();
        objects[bad]["spec"]["bad"] = json!(true);
        let converter = converter(Fault::None);
        let response = converter.respond(&question(&objects)).await.unwrap();
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let result = &body["response"]["result"];
        assert_eq!(result["status"], "Failed");
        assert_eq!(
            result["message"],
            format!("Machine clusters/m-{bad}: cannot unmarshal")
        );
        assert!(body["response"]["convertedObjects"].is_null());
        let requested = converter.ask.requested.lock().unwrap().len();
        assert!(requested <= 9, "{requested} questions for {count} objects");
    }
}

/// Check C02.
#[tokio::test]
async fn a_failed_conversion_names_the_first_invalid_object() {
    let mut objects: Vec<Value> = (0..10)
        .map(|index| object(index, "v1beta2", &json!({})))
        .collect();
    for bad in [3, 4, 9] {
        objects[bad]["spec"]["bad"] = json!(true);
    }
    let (response, _) = ask(Fault::NoReason, &objects).await;
    let expected = "Machine clusters/m-3: the backend gave no reason";
    assert_eq!(response["result"]["message"], expected);
}

/// Check C02.
#[tokio::test]
async fn a_failed_conversion_names_malformed_objects() {
    for (bad, expected) in [
        (
            json!(1),
            "object 1 of the review: object without a name: not a JSON object",
        ),
        (
            json!({"kind": "K"}),
            "object 1 of the review: K without a name: metadata is not an object",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
            "Secret s: its group is not the one of cluster.hypershift.openshift.io/v1beta1",
        ),
    ] {
        let objects = [object(0, "v1beta2", &json!({})), bad];
        let (response, result) = ask(Fault::None, &objects).await;
        assert_eq!(response["result"]["message"], expected);
        assert!(matches!(result, Err(Failure::Object(_))), "{result:?}");
    }
}

#[tokio::test]
async fn invalid_backend_responses_fail_the_review() {
    for (fault, expected) in [
        (
            Fault::Uid,
            "invalid response of the backend: uid of another review",
        ),
        (
            Fault::Count,
            "invalid response of the backend: 1 objects instead of 2",
        ),
        (
            Fault::Order,
            "Machine clusters/m-0: the backend changed metadata.name",
        ),
        (
            Fault::Version,
            "Machine clusters/m-0: the backend returned version \"x/v1\" instead of \
             \"cluster.hypershift.openshift.io/v1beta1\"",
        ),
        (
            Fault::NoJson,
            "invalid response of the backend: invalid JSON of a ConversionReview at line 1 column 8",
        ),
        (
            Fault::Away,
            "the conversion backend at backend-0 cannot be reached",
        ),
        // Both convert alone, so neither is blamed.
        (Fault::Once, "not yet"),
    ] {
        let objects = [0, 1].map(|index| object(index, "v1beta2", &json!({})));
        let (response, result) = ask(fault, &objects).await;
        assert_eq!(response["result"]["status"], "Failed");
        let message = response["result"]["message"].as_str().unwrap();
        assert_eq!(message, expected, "{fault:?}");
        assert!(result.is_err());
    }
}

#[tokio::test]
async fn kinds_without_a_backend_are_named() {
    let mut converter = converter(Fault::None);
    converter.routes = Routes::default();
    let requested = question(&[object(0, "v1beta2", &json!({}))]);
    let response = converter.respond(&requested).await.unwrap();
    let message = response.result.unwrap_err().to_string();
    assert!(message.starts_with("Machine clusters/m-0: no backend converts kind Machine of "));
}

#[tokio::test]
async fn invalid_reviews_are_rejected_without_quoting_them() {
    for (body, expected) in [
        ("", "invalid JSON of a ConversionReview at line 1 column 0"),
        (
            "hunter2",
            "invalid JSON of a ConversionReview at line 1 column 1",
        ),
        ("{}", "not a ConversionReview of apiextensions.k8s.io/v1"),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#,
            "the review has no request",
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"d"}}"#,
            "not a ConversionReview of apiextensions.k8s.io/v1",
        ),
    ] {
        let error: InvalidReview = converter(Fault::None)
            .respond(body.as_bytes())
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

/// Check C04.
#[tokio::test]
async fn conversion_keeps_user_values() {
    let private = core(CapiTypes::Private);
    let value = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "apiGroup": private});
    let spec = json!({"topology": {"variables": [{"name": "v", "value": value}]}});
    let mut cluster = object(0, "v1beta2", &spec);
    cluster["kind"] = json!("Cluster");
    let mut converter = converter(Fault::None);
    let pair = GroupPair::new("own.example.com", "own.private.example.com").unwrap();
    converter.rules = Rules::new(Rules::default().table().clone().with(pair).unwrap());
    let mut swapped = Vec::new();
    super::swap::object(
        &converter.rules,
        "Cluster",
        &cluster.to_string(),
        &mut swapped,
    )
    .unwrap();
    let swapped: Value = serde_json::from_slice(&swapped).unwrap();
    assert_eq!(swapped["spec"], spec);
    assert_eq!(
        swapped["metadata"]["annotations"],
        cluster["metadata"]["annotations"]
    );
    assert_eq!(swapped["apiVersion"], "cluster.x-k8s.io/v1beta2");
}

/// Any JSON, with names of groups in it at all sorts of places.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\\\\\"é]{0,6}".prop_map(Value::from),
        Just(json!("cluster.x-k8s.io/v1beta2")),
        Just(json!("infrastructure.cluster.hypershift.openshift.io")),
    ];
    let key = prop_oneof![
        Just("apiVersion".to_owned()),
        Just("apiGroup".to_owned()),
        Just("labels".to_owned()),
        Just("variables".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Check C01.
    #[test]
    fn an_identity_conversion_keeps_all_bytes(
        specs in prop::collection::vec(value(), 0..6),
    ) {
        let objects: Vec<Value> = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| object(index, "v1beta2", &json!({"of": spec})))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (response, result) = runtime.block_on(ask(Fault::None, &objects));
        prop_assert_eq!(result, Ok(Converted(objects.len())));
        let mut expected = objects;
        for object in &mut expected {
            object["apiVersion"] = json!(format!("{}/v1beta1", core(CapiTypes::Private)));
        }
        prop_assert_eq!(response["convertedObjects"].to_string(), Value::from(expected).to_string());
    }

    /// Check C02.
    #[test]
    fn reading_arbitrary_reviews_never_panics(body in prop::collection::vec(any::<u8>(), 0..200), cut in 0..2000_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(converter(Fault::None).respond(&body));
        let whole = question(&machines(2));
        let cut = cut.min(whole.len() - 1);
        prop_assert!(runtime.block_on(converter(Fault::None).respond(&whole[..cut])).is_err());
    }

    /// Check C02.
    #[test]
    fn reading_arbitrary_objects_never_panics(bad in value()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let objects = [object(0, "v1beta2", &json!({})), bad];
        let (response, _) = runtime.block_on(ask(Fault::None, &objects));
        prop_assert!(response["result"]["status"].is_string());
    }
}
