//! Which translator a body needs, by its URL, method, status and content type.
//!
//! A body that should be translated and cannot be is refused here, before a byte of it is read.

use http::{Method, StatusCode};

use super::json::{Documents, Json};
use super::place::Node;
use super::target::Target;
use super::{Counts, Direction, Refusal, Rules, accept, json_patch, protobuf, text, yaml};

/// What is to be done with a body.
#[derive(Debug)]
pub enum Plan {
    /// It holds nothing of ours: bytes pass as they are.
    Pass,
    /// Its bytes go through this.
    Translate(Box<Translator>),
}

/// Translates one body.
#[derive(Debug)]
pub struct Translator {
    rules: Rules,
    format: Format,
    counts: Counts,
}

#[derive(Debug)]
enum Format {
    Json(Json),
    /// Read whole, translated at the end.
    Buffered {
        format: Whole,
        buffer: Vec<u8>,
    },
}

#[derive(Debug)]
enum Whole {
    JsonPatch(Node),
    /// Server-side apply: JSON from most clients, YAML from some, under one content type.
    Apply(Node),
    Yaml(Node),
    Protobuf {
        group: String,
        resource: String,
    },
    /// The `OpenAPI` v2 document.
    OpenApiProtobuf,
    /// An error that is not from the API machinery.
    Text,
}

/// The plan for a request's body.
pub fn request(
    rules: &Rules,
    target: &Target,
    method: &Method,
    content_type: Option<&str>,
) -> Result<Plan, Refusal> {
    if !target.is_translated() || !matches!(method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE") {
        return Ok(Plan::Pass);
    }
    if target.is_webhook_configuration() && method != Method::DELETE {
        return Err(Refusal::forbidden(
            "webhook configurations are not written through the proxy: the API server would call their server with \
             private types, which it cannot decode. Write them to the API server directly",
        ));
    }
    let root = target.request_root();
    let whole = match (media_type(content_type).as_str(), method.as_str()) {
        // The API server reads a body without a content type as JSON, but no patch.
        ("" | "application/json", "POST" | "PUT" | "DELETE")
        | ("application/merge-patch+json" | "application/strategic-merge-patch+json", "PATCH") => {
            return Ok(json(rules, Direction::Request, Documents::One, root));
        }
        ("application/json-patch+json", "PATCH") => Whole::JsonPatch(root),
        ("application/apply-patch+yaml", "PATCH") => Whole::Apply(root),
        ("application/yaml", "POST" | "PUT" | "DELETE") => Whole::Yaml(root),
        ("application/vnd.kubernetes.protobuf", "POST" | "PUT" | "DELETE") => protobuf(target)?,
        (other, verb) => {
            return Err(Refusal::unsupported_media_type(format!(
                "{verb} with the content type {other:?} cannot be translated: send JSON, or a JSON, merge, strategic \
                 merge or apply patch"
            )));
        }
    };
    Ok(buffered(rules, whole))
}

/// The plan for a response's body.
pub fn response(
    rules: &Rules,
    target: &Target,
    status: StatusCode,
    content_type: Option<&str>,
) -> Result<Plan, Refusal> {
    let empty = matches!(status.as_u16(), 100..=199 | 204 | 304);
    if !target.is_translated() || empty {
        return Ok(Plan::Pass);
    }
    let documents = if target.is_watch() && status.is_success() {
        Documents::Many
    } else {
        Documents::One
    };
    match media_type(content_type).as_str() {
        "application/json" => Ok(json(
            rules,
            Direction::Response,
            documents,
            target.response_root_for(status),
        )),
        "text/plain" if target.is_openapi_index() && status.is_success() => Ok(json(
            rules,
            Direction::Response,
            Documents::One,
            target.response_root(),
        )),
        _ if !status.is_success() => Ok(buffered(rules, Whole::Text)),
        other if target.is_openapi_v2() && accept::is_openapi_protobuf(other) => {
            Ok(buffered(rules, Whole::OpenApiProtobuf))
        }
        other => Err(Refusal::unsupported_media_type(format!(
            "the API server responded with the content type {other:?}, which cannot be translated"
        ))),
    }
}

fn json(rules: &Rules, direction: Direction, documents: Documents, root: Node) -> Plan {
    let json = Json::new(rules, direction, documents, root);
    Plan::Translate(Box::new(Translator {
        rules: rules.clone(),
        format: Format::Json(json),
        counts: Counts::default(),
    }))
}

fn buffered(rules: &Rules, format: Whole) -> Plan {
    let format = Format::Buffered {
        format,
        buffer: Vec::new(),
    };
    Plan::Translate(Box::new(Translator {
        rules: rules.clone(),
        format,
        counts: Counts::default(),
    }))
}

fn protobuf(target: &Target) -> Result<Whole, Refusal> {
    match target.group_resource() {
        Some((group, resource)) if !target.is_custom() => Ok(Whole::Protobuf {
            group: group.to_owned(),
            resource: resource.to_owned(),
        }),
        _ => Err(Refusal::unsupported_media_type(
            "the API server reads no protobuf for custom resources: send application/json",
        )),
    }
}

/// The media type without parameters, in lower case.
fn media_type(content_type: Option<&str>) -> String {
    let essence = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

// === impl Translator ===

impl Translator {
    /// Takes the next chunk and appends what is ready to `out`. After an error the translator is of no further use.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        match &mut self.format {
            Format::Json(json) => json.push(input, out),
            Format::Buffered { buffer, .. } => {
                buffer.extend_from_slice(input);
                Ok(())
            }
        }
    }

    /// Ends the body: appends what was held back, and refuses a body that is not complete.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        match &mut self.format {
            Format::Json(json) => json.finish(out),
            Format::Buffered { buffer, .. } if buffer.is_empty() => Ok(()),
            Format::Buffered { format, buffer } => {
                self.counts = whole(&self.rules, format, buffer, out)?;
                Ok(())
            }
        }
    }

    /// Translates a body that is all there; `None` when it stays as it is.
    ///
    /// A body that names no group of the table costs a substring search and is not parsed.
    pub fn whole(&mut self, input: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        if matches!(&self.format, Format::Json(json) if json.may_skip())
            && !self.rules.mentions_group(input)
        {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(input.len() + input.len() / 8);
        self.push(input, &mut out)?;
        self.finish(&mut out)?;
        Ok((out != input).then_some(out))
    }

    /// What has been swapped so far.
    pub fn counts(&self) -> Counts {
        match &self.format {
            Format::Json(json) => json.counts(),
            Format::Buffered { .. } => self.counts,
        }
    }

    /// The body is read completely before there is output.
    pub fn is_buffering(&self) -> bool {
        matches!(self.format, Format::Buffered { .. })
    }
}

fn whole(
    rules: &Rules,
    format: &Whole,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<Counts, Refusal> {
    match format {
        Whole::JsonPatch(root) => json_patch::swap(rules, *root, input, out),
        Whole::Yaml(root) => yaml::swap(rules, *root, input, out),
        Whole::Apply(root) => apply(rules, *root, input, out),
        Whole::Protobuf { group, resource } => protobuf::swap(rules, group, resource, input, out),
        Whole::OpenApiProtobuf => protobuf::swap_openapi(rules, input, out),
        Whole::Text => {
            match std::str::from_utf8(input) {
                Ok(message) => out.extend_from_slice(text::swap(rules, message).as_bytes()),
                Err(_) => out.extend_from_slice(input),
            }
            Ok(Counts::default())
        }
    }
}

/// JSON where it is JSON; else YAML, of which a flow mapping also begins with a brace.
fn apply(rules: &Rules, root: Node, input: &[u8], out: &mut Vec<u8>) -> Result<Counts, Refusal> {
    let start = out.len();
    let mut json = Json::new(rules, Direction::Request, Documents::One, root);
    if json
        .push(input, out)
        .and_then(|()| json.finish(out))
        .is_ok()
    {
        return Ok(json.counts());
    }
    out.truncate(start);
    yaml::swap(rules, root, input, out)
}

#[cfg(test)]
mod tests;
