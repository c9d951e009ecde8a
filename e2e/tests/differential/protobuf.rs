//! Objects in the protobuf encoding in which typed Kubernetes clients send built-in kinds.

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What every protobuf body of Kubernetes begins with.
const MAGIC: &[u8] = b"k8s\0";
/// What the envelope says instead of the object.
const TYPE: [&str; 2] = ["apiVersion", "kind"];

/// How a field is encoded.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    TextMap,
    /// A map to base64 text, as JSON has it.
    BytesMap,
    Texts,
    Message(Fields),
    Messages(Fields),
}

type Fields = &'static [(&'static str, u32, Kind)];

const OWNER: Fields = &[
    ("kind", 1, Kind::Text),
    ("name", 3, Kind::Text),
    ("uid", 4, Kind::Text),
    ("apiVersion", 5, Kind::Text),
    ("controller", 6, Kind::Number),
    ("blockOwnerDeletion", 7, Kind::Number),
];
const METADATA: Fields = &[
    ("name", 1, Kind::Text),
    ("generateName", 2, Kind::Text),
    ("namespace", 3, Kind::Text),
    ("labels", 11, Kind::TextMap),
    ("annotations", 12, Kind::TextMap),
    ("ownerReferences", 13, Kind::Messages(OWNER)),
    ("finalizers", 14, Kind::Texts),
];
const REFERENCE: Fields = &[
    ("kind", 1, Kind::Text),
    ("namespace", 2, Kind::Text),
    ("name", 3, Kind::Text),
    ("uid", 4, Kind::Text),
    ("apiVersion", 5, Kind::Text),
];
const ATTRIBUTES: Fields = &[
    ("namespace", 1, Kind::Text),
    ("verb", 2, Kind::Text),
    ("group", 3, Kind::Text),
    ("resource", 5, Kind::Text),
    ("name", 7, Kind::Text),
];

fn fields_of(kind: &str) -> Result<Fields> {
    Ok(match kind {
        "Secret" => &[
            ("metadata", 1, Kind::Message(METADATA)),
            ("data", 2, Kind::BytesMap),
            ("type", 3, Kind::Text),
        ],
        "ConfigMap" => &[
            ("metadata", 1, Kind::Message(METADATA)),
            ("data", 2, Kind::TextMap),
        ],
        "Event" => &[
            ("metadata", 1, Kind::Message(METADATA)),
            ("involvedObject", 2, Kind::Message(REFERENCE)),
            ("reason", 3, Kind::Text),
            ("message", 4, Kind::Text),
            ("source", 5, Kind::Message(&[("component", 1, Kind::Text)])),
            ("count", 8, Kind::Number),
            ("type", 9, Kind::Text),
            ("related", 13, Kind::Message(REFERENCE)),
        ],
        "Lease" => &[
            ("metadata", 1, Kind::Message(METADATA)),
            (
                "spec",
                2,
                Kind::Message(&[
                    ("holderIdentity", 1, Kind::Text),
                    ("leaseDurationSeconds", 2, Kind::Number),
                ]),
            ),
        ],
        "SelfSubjectAccessReview" => &[(
            "spec",
            2,
            Kind::Message(&[("resourceAttributes", 1, Kind::Message(ATTRIBUTES))]),
        )],
        "DeleteOptions" => &[
            ("preconditions", 2, Kind::Message(&[("uid", 1, Kind::Text)])),
            ("propagationPolicy", 4, Kind::Text),
        ],
        other => bail!("{other} is not known here: add its fields"),
    })
}

/// The protobuf form of an object that is given as JSON.
pub(crate) fn encode(json: &str) -> Result<Vec<u8>> {
    let object: Value = serde_json::from_str(json).context("the body is not JSON")?;
    let text = |field: &str| {
        object[field]
            .as_str()
            .with_context(|| format!("no {field}"))
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let mut type_meta = Vec::new();
    length_delimited(1, api_version.as_bytes(), &mut type_meta);
    length_delimited(2, kind.as_bytes(), &mut type_meta);
    let mut out = MAGIC.to_vec();
    length_delimited(1, &type_meta, &mut out);
    length_delimited(2, &message(fields_of(kind)?, &object)?, &mut out);
    Ok(out)
}

fn message(fields: Fields, object: &Value) -> Result<Vec<u8>> {
    let object = object.as_object().context("not an object")?;
    let known = |name: &String| {
        fields.iter().any(|(known, ..)| known == name) || TYPE.contains(&name.as_str())
    };
    if let Some(name) = object.keys().find(|name| !known(name)) {
        bail!("the field {name} is not known here");
    }
    let mut out = Vec::new();
    for &(name, number, kind) in fields {
        if let Some(value) = object.get(name) {
            field(number, kind, value, &mut out)
                .with_context(|| format!("cannot encode {name}"))?;
        }
    }
    Ok(out)
}

fn field(number: u32, kind: Kind, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match kind {
        Kind::Text => length_delimited(number, text(value)?.as_bytes(), out),
        Kind::Number => {
            varint(u64::from(number << 3), out);
            let flag = value.as_bool().map(u64::from);
            varint(flag.or(value.as_u64()).context("not a number")?, out);
        }
        Kind::Message(fields) => length_delimited(number, &message(fields, value)?, out),
        Kind::Messages(fields) => {
            for item in value.as_array().context("not an array")? {
                length_delimited(number, &message(fields, item)?, out);
            }
        }
        Kind::Texts => {
            for item in value.as_array().context("not an array")? {
                length_delimited(number, text(item)?.as_bytes(), out);
            }
        }
        Kind::TextMap | Kind::BytesMap => {
            for (key, item) in value.as_object().context("not an object")? {
                let bytes = match kind {
                    Kind::BytesMap => STANDARD.decode(text(item)?).context("not base64")?,
                    _ => text(item)?.as_bytes().to_vec(),
                };
                let mut entry = Vec::new();
                length_delimited(1, key.as_bytes(), &mut entry);
                length_delimited(2, &bytes, &mut entry);
                length_delimited(number, &entry, out);
            }
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("not a string")
}

fn length_delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | 2), out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_envelope_and_nested_messages() {
        let json =
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"YWI="}}"#;
        let expected = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x0e\x0a\x03\x0a\x01s\x12\x07\x0a\x01k\x12\x02ab";
        assert_eq!(encode(json).unwrap(), expected);
    }

    #[test]
    fn unsupported_fields_are_rejected() {
        for json in [
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            r#"{"apiVersion":"v1","kind":"Secret","immutable":true}"#,
            r#"{"apiVersion":"v1","kind":"Secret","type":1}"#,
        ] {
            assert!(encode(json).is_err(), "{json}");
        }
    }
}
