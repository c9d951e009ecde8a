//! An installation as a Template of OpenShift, whose parameters are filled in when it is processed. Pure.

use serde_json::{Value, json};

use super::kind::Kind;
use super::object::Object;
use super::parameters::{Parameters, declared};
use super::workload::Operator;

const NAME: &str = "hypershift-operator-template";
const REPLICAS: &str = "OPERATOR_REPLICAS";

/// The Template of objects in which `parameters` stand for values.
pub(super) fn template(objects: Vec<Object>, parameters: &Parameters, replicas: u8) -> Value {
    let objects: Vec<Value> = objects.into_iter().map(with_replicas).collect();
    let mut parameters = parameters.declared();
    let about = "Number of pods of each operator";
    parameters.push(declared(REPLICAS, about, &replicas.to_string()));
    json!({
        "apiVersion": "template.openshift.io/v1",
        "kind": "Template",
        "metadata": { "name": NAME },
        "objects": objects,
        "parameters": parameters,
    })
}

/// Two braces are for a value that is not a string.
fn with_replicas(mut object: Object) -> Value {
    let is_operator = |operator: &Operator| operator.name() == object.id.name;
    if object.id.kind == Kind::Deployment && Operator::ALL.iter().any(is_operator) {
        object.body["spec"]["replicas"] = json!(format!("${{{{{REPLICAS}}}}}"));
    }
    object.body
}
