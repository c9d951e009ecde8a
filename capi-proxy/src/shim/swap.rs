//! Translates the names in one object. Pure.

use capi_translate::json::{Documents, Json};
use capi_translate::place::{Node, Shape};
use capi_translate::{Direction, Refusal, Rules};

/// Kinds with user data in `variables`.
const TOPOLOGY: [&str; 2] = ["Cluster", "ClusterClass"];

/// Appends the translation of an object of this kind to `out`.
pub(crate) fn object(
    rules: &Rules,
    kind: &str,
    bytes: &str,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    if !rules.mentions_group(bytes.as_bytes()) {
        out.extend_from_slice(bytes.as_bytes());
        return Ok(());
    }
    let shape = if TOPOLOGY.contains(&kind) {
        Shape::Topology
    } else {
        Shape::Plain
    };
    // Not as a response: text in an object is not a message of the server.
    let mut json = Json::new(
        rules,
        Direction::Request,
        Documents::One,
        Node::Object(shape),
    );
    json.push(bytes.as_bytes(), out)?;
    json.finish(out)
}

/// The translation of an API version.
pub(crate) fn api_version(rules: &Rules, text: &str) -> String {
    match text.split_once('/') {
        Some((group, version)) => match rules.table().swap(group.as_bytes()) {
            Some(swapped) => format!("{swapped}/{version}"),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}
