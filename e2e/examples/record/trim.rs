//! Shortens large documents: removes what repeats for other groups.

use anyhow::{Context, Result};
use serde_json::Value;

/// Without the parts of a large document that say the same again.
pub(crate) fn trimmed(name: &str, body: &str) -> Result<String> {
    match name {
        "discovery-aggregated" => without_other_groups(body),
        "openapi-group" => Ok(without_descriptions(body)),
        _ => Ok(body.to_owned()),
    }
}

/// Descriptions are most of an `OpenAPI` document: each is truncated.
fn without_descriptions(body: &str) -> String {
    const DESCRIPTION: &str = "\"description\":\"";
    const KEPT: usize = 24;
    let mut parts = body.split(DESCRIPTION);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut escaped = false;
        let is_end = |c: char| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        };
        let length = part.find(is_end).unwrap_or(part.len());
        let words = part[..length].split_inclusive(' ');
        let mut kept = String::new();
        for word in words.take_while(|word| !word.contains('\\')) {
            if kept.len() + word.len() > KEPT {
                break;
            }
            kept.push_str(word);
        }
        out.push_str(DESCRIPTION);
        out.push_str(kept.trim_end());
        out.push_str(&part[length..]);
    }
    out
}

fn without_other_groups(body: &str) -> Result<String> {
    const ITEMS: &str = "\"items\":[";
    const KEPT: [&str; 4] = [
        "apps",
        "autoscaling",
        "cluster.x-k8s.io",
        "cluster.hypershift.openshift.io",
    ];
    let start = body.find(ITEMS).context("no items")? + ITEMS.len();
    let (mut kept, mut end) = (Vec::new(), start);
    while !body[end..].starts_with(']') {
        let mut items = serde_json::Deserializer::from_str(&body[end..]).into_iter::<Value>();
        let item = items.next().context("the list has no end")??;
        let text = &body[end..end + items.byte_offset()];
        end += text.len();
        end += usize::from(body[end..].starts_with(','));
        let group = item["metadata"]["name"].as_str().unwrap_or_default();
        if KEPT.iter().any(|kept| group.ends_with(kept)) {
            kept.push(text);
        }
    }
    Ok(format!(
        "{}{}{}",
        &body[..start],
        kept.join(","),
        &body[end..]
    ))
}
