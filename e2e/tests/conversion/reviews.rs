//! Reviews as the API server sends them, and the responses.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::{Value, json};
use testbed::raw::RawClient;

const STANDARD: &str = "cluster.x-k8s.io";
const PRIVATE: &str = "cluster.hypershift.openshift.io";
/// What may precede it in a group's name.
const PREFIXES: [&str; 7] = [
    "",
    "infrastructure.",
    "controlplane.",
    "bootstrap.",
    "addons.",
    "ipam.",
    "runtime.",
];

/// A webhook.
#[derive(Debug)]
pub(crate) struct Webhook(RawClient);

/// A webhook's response.
#[derive(Debug)]
pub(crate) struct ReviewResponse {
    text: String,
    pub(crate) response: Value,
}

// === impl Webhook ===

impl Webhook {
    pub(crate) fn new(server: &str, authority: &Path) -> Result<Self> {
        RawClient::new(server, Some(authority)).map(Self)
    }

    pub(crate) async fn ask(&self, review: String) -> Result<ReviewResponse> {
        let request = Request::post("/convert")
            .header("content-type", "application/json")
            .body(review.into_bytes())?;
        let review = self.0.send(request).await?;
        let status = review.status;
        let text = String::from_utf8(review.bytes().await?)?;
        ensure!(status == 200, "{status}: {text:.300}");
        let mut review: Value = serde_json::from_str(&text).context("the response is not JSON")?;
        let response = review["response"].take();
        Ok(ReviewResponse { text, response })
    }

    /// Converts objects that are written in this API version; fails with what the webhook says.
    pub(crate) async fn convert(&self, objects: &[Value], desired: &str) -> Result<ReviewResponse> {
        let review = self.ask(review(objects, desired)).await?;
        ensure!(
            review.response["uid"] == "the-uid",
            "the uid is {}",
            review.response["uid"]
        );
        let result = &review.response["result"];
        ensure!(result["status"] == "Success", "{}", result["message"]);
        Ok(review)
    }
}

// === impl ReviewResponse ===

impl ReviewResponse {
    pub(crate) fn objects(&self) -> Vec<Value> {
        let objects = self.response["convertedObjects"].as_array();
        objects.cloned().unwrap_or_default()
    }

    /// The very bytes of the objects.
    pub(crate) fn bytes(&self) -> &str {
        const BEGIN: &str = "\"convertedObjects\":";
        let begin = self.text.find(BEGIN).map_or(0, |at| at + BEGIN.len());
        let end = self.text.rfind(",\"result\":").unwrap_or(self.text.len());
        &self.text[begin..end]
    }
}

pub(crate) fn review(objects: &[Value], desired: &str) -> String {
    let request = json!({"uid": "the-uid", "desiredAPIVersion": desired, "objects": objects});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": request,
    })
    .to_string()
}

/// The private names for the standard ones wherever a string is one, or an API version of one: what the shim should do,
/// done in another way. Strings within strings have escaped quotes and are left alone.
pub(crate) fn to_private(text: &str) -> String {
    let mut text = text.to_owned();
    for prefix in PREFIXES {
        for end in ['/', '"'] {
            let standard = format!(":\"{prefix}{STANDARD}{end}");
            // Values of annotations begin like this, and are none.
            text = text.replace(&standard, &format!(":\"{prefix}{PRIVATE}{end}"));
        }
    }
    text
}

/// The same of an object.
pub(crate) fn private(object: &Value) -> Value {
    serde_json::from_str(&to_private(&object.to_string())).unwrap_or_default()
}
