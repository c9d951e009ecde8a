//! Requests and responses of Resource Access Manager, whose documents are in JSON. Pure.

use http::Method;
use serde_json::{Map, Value, json};
use support::aws::{Element, Rest, encoded};

use super::call::Call;

const JSON: &str = "application/json";
/// The name of an element for an item of a list.
const ITEM: &str = "item";

/// The request of a call.
pub(super) fn request(call: &Call) -> Rest {
    let share = call.get("ResourceShareArn");
    match call.action {
        "CreateResourceShare" => post(
            "/createresourceshare",
            vec![
                ("name", json!(call.get("Name"))),
                ("resourceArns", json!(call.values("ResourceArn"))),
                ("principals", json!(call.values("Principal"))),
                ("tags", tags(call)),
            ],
        ),
        "AssociateResourceShare" => post(
            "/associateresourceshare",
            vec![
                ("resourceShareArn", json!(share)),
                ("resourceArns", json!(call.values("ResourceArn"))),
                ("principals", json!(call.values("Principal"))),
            ],
        ),
        "GetResourceShareAssociations" => post(
            "/getresourceshareassociations",
            vec![
                ("associationType", json!(call.get("AssociationType"))),
                ("resourceShareArns", json!([share])),
                ("nextToken", json!(call.get("NextToken"))),
            ],
        ),
        "DeleteResourceShare" => Rest {
            method: Method::DELETE,
            path: "/deleteresourceshare".to_owned(),
            query: format!("resourceShareArn={}", encoded(share)),
            content_type: None,
            body: String::new(),
        },
        // GetResourceShares.
        _ => post(
            "/getresourceshares",
            vec![
                ("resourceOwner", json!("SELF")),
                ("name", json!(call.get("Name"))),
                ("nextToken", json!(call.get("NextToken"))),
            ],
        ),
    }
}

/// A request with a document, without the fields that are empty.
fn post(path: &str, fields: Vec<(&str, Value)>) -> Rest {
    let is_there = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let fields = fields.into_iter().filter(|(_, value)| is_there(value));
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Rest {
        method: Method::POST,
        path: path.to_owned(),
        query: String::new(),
        content_type: Some(JSON),
        body: Value::Object(fields.collect::<Map<_, _>>()).to_string(),
    }
}

fn tags(call: &Call) -> Value {
    let tags = call.tags_of("Tag");
    let tags = tags.iter();
    let tags = tags.map(|(key, value)| json!({ "key": key, "value": value }));
    Value::Array(tags.collect())
}

/// The root of a response, in the form that other services have: a list has an element for each item. `None` if it is no JSON.
pub(super) fn response(document: &str) -> Option<Element> {
    let value: Value = serde_json::from_str(document).ok()?;
    Some(element("Response", &value))
}

fn element(name: &str, value: &Value) -> Element {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| element(name, value));
            Element::around(name, fields.collect())
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| element(ITEM, item));
            Element::around(name, items.collect())
        }
        Value::String(text) => Element::leaf(name, text),
        Value::Null => Element::leaf(name, ""),
        other => Element::leaf(name, &other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::aws::call::Tags;
    use crate::infra::aws::scope;

    #[test]
    fn requests_have_the_paths_and_fields_of_the_reference() {
        let tag = Tags::from([("a".to_owned(), "b".to_owned())]);
        for (call, method, target, body) in [
            (
                Call::ram("CreateResourceShare")
                    .with("Name", "a-x1-share")
                    .list("ResourceArn", ["arn:1", "arn:2"])
                    .list("Principal", ["111111111111"])
                    .tags("Tag", &tag),
                Method::POST,
                "/createresourceshare?",
                json!({
                    "name": "a-x1-share", "resourceArns": ["arn:1", "arn:2"], "principals": ["111111111111"],
                    "tags": [{ "key": "a", "value": "b" }],
                }),
            ),
            (
                Call::ram("AssociateResourceShare")
                    .with("ResourceShareArn", "arn:s")
                    .list("Principal", ["111111111111"]),
                Method::POST,
                "/associateresourceshare?",
                json!({ "resourceShareArn": "arn:s", "principals": ["111111111111"] }),
            ),
            (
                Call::ram("GetResourceShareAssociations")
                    .with("ResourceShareArn", "arn:s")
                    .with("AssociationType", "RESOURCE"),
                Method::POST,
                "/getresourceshareassociations?",
                json!({ "associationType": "RESOURCE", "resourceShareArns": ["arn:s"] }),
            ),
            (
                Call::ram("GetResourceShares")
                    .with("Name", "a-x1-share")
                    .with("NextToken", "t"),
                Method::POST,
                "/getresourceshares?",
                json!({ "resourceOwner": "SELF", "name": "a-x1-share", "nextToken": "t" }),
            ),
            (
                Call::ram("DeleteResourceShare").with("ResourceShareArn", "arn:s/1"),
                Method::DELETE,
                "/deleteresourceshare?resourceShareArn=arn%3As%2F1",
                Value::Null,
            ),
        ] {
            let found = request(&call);
            assert_eq!(found.method, method, "{call:?}");
            assert_eq!(format!("{}?{}", found.path, found.query), target);
            let found: Value = serde_json::from_str(&found.body).unwrap_or_default();
            assert_eq!(found, body, "{call:?}");
        }
    }

    #[test]
    fn responses_become_trees() {
        let document = r#"{"resourceShares": [{"resourceShareArn": "arn:s", "allowExternalPrincipals": true,
            "tags": [{"key": "a", "value": "b"}]}], "nextToken": null}"#;
        let root = response(document).unwrap();
        let share = &root.items("resourceShares")[0];
        assert_eq!(share.text_at("resourceShareArn"), "arn:s");
        assert_eq!(share.text_at("allowExternalPrincipals"), "true");
        assert_eq!(scope::tags(share.items("tags"))["a"], "b");
        assert_eq!(root.text_at("nextToken"), "");
        assert_eq!(response("<html>"), None);
    }
}
