//! The webhook: objects with a certain label are refused.

use pod_tools::serve::Response;
use serde_json::{Value, json};

/// The label.
const REFUSED: &str = "refuse";

/// Answers a review.
pub(crate) fn review(body: &[u8]) -> Response {
    let review: Value = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return Response::unavailable(error),
    };
    Response::json(&answer(&review["request"]))
}

fn answer(request: &Value) -> Value {
    let is_refused = !request["object"]["metadata"]["labels"][REFUSED].is_null();
    let mut response = json!({ "uid": request["uid"], "allowed": !is_refused });
    if is_refused {
        response["status"] = json!({ "message": "the webhook in the hosted cluster refuses it" });
    }
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_with_the_label_are_refused() {
        for (labels, is_allowed) in [(json!({ "refuse": "" }), false), (Value::Null, true)] {
            let request = json!({ "uid": "u", "object": { "metadata": { "labels": labels } } });
            let answer = answer(&request);
            assert_eq!(answer["response"]["allowed"], is_allowed);
            assert_eq!(answer["response"]["uid"], "u");
        }
    }
}
