//! The Accept header: only alternatives for which the API server responds with JSON.
//!
//! Nearly every client accepts JSON if nothing else is offered, so responses need one translator, except for the `OpenAPI`
//! v2 document: `client-go` takes that as protobuf only. The header is split
//! exactly as the API server splits it (at every comma and semicolon, quotes or not), so that what is kept here means
//! the same there.

use super::{Refusal, target::Target};

/// What clients request when any encoding will do.
const JSON: &str = "application/json";
/// The `OpenAPI` v2 document as protobuf: its name, and how older clients and servers spell it.
const OPENAPI_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// The Accept header to send upstream for the one that the client sent; `None` sends none.
///
/// Protobuf alternatives become their JSON form with the same parameters, since clients that request protobuf decode by
/// the response's content type.
pub fn rewrite(target: &Target, accept: Option<&str>) -> Result<Option<String>, Refusal> {
    if !target.is_translated() {
        return Ok(accept.map(str::to_owned));
    }
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Ok(Some(JSON.to_owned()));
    };
    let openapi = || openapi_protobuf(target, accept);
    let narrowed = narrow(accept).or_else(openapi);
    narrowed.map(Some).ok_or_else(|| refusal(target))
}

/// Whether this is the media type of the `OpenAPI` v2 document as protobuf.
pub(super) fn is_openapi_protobuf(media_type: &str) -> bool {
    OPENAPI_PROTOBUF.contains(&media_type)
}

/// The alternatives of `accept` that are the `OpenAPI` v2 document as protobuf, for clients that take it in no other
/// form.
fn openapi_protobuf(target: &Target, accept: &str) -> Option<String> {
    if !target.is_openapi_v2() {
        return None;
    }
    let desired = accept.split(',').map(str::trim).filter(|alternative| {
        let media_type = alternative.split(';').next().unwrap_or_default().trim();
        is_openapi_protobuf(&media_type.to_ascii_lowercase())
    });
    let desired: Vec<&str> = desired.collect();
    (!desired.is_empty()).then(|| desired.join(","))
}

/// The alternatives of `accept` that JSON satisfies, as JSON; `None` when there are none.
fn narrow(accept: &str) -> Option<String> {
    let mut offers = Offers::default();
    for alternative in accept.split(',').filter_map(Alternative::parse) {
        offers.add(&alternative);
    }
    offers.into_header()
}

fn refusal(target: &Target) -> Refusal {
    let document = if target.is_openapi_v2() {
        "the OpenAPI v2 document"
    } else {
        "this resource"
    };
    Refusal::not_acceptable(format!(
        "{document} is not served in any of these forms: request application/json in the Accept header"
    ))
}

/// One alternative of an Accept header.
struct Alternative<'a> {
    kind: Kind,
    /// All parameters but `q`, as they were written.
    parameters: Vec<&'a str>,
    /// `q` as it was written.
    weight: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    /// Protobuf or a wildcard: JSON will do unless the client rules it out.
    Any,
}

/// The alternatives kept so far.
#[derive(Default)]
struct Offers<'a> {
    kept: Vec<Offer<'a>>,
    json_ruled_out: bool,
}

struct Offer<'a> {
    kind: Kind,
    media_type: String,
    weight: Option<&'a str>,
}

// === impl Alternative ===

impl<'a> Alternative<'a> {
    /// `None` for what is no media type, and for those that are never JSON.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = Kind::of(parts.next()?)?;
        let (weights, parameters): (Vec<_>, Vec<_>) = parts
            .filter(|parameter| !parameter.is_empty())
            .partition(|parameter| weight_of(parameter).is_some());
        let weight = weights.last().and_then(|parameter| weight_of(parameter));
        Some(Self {
            kind,
            parameters,
            weight,
        })
    }

    fn media_type(&self) -> String {
        std::iter::once(JSON)
            .chain(self.parameters.iter().copied())
            .collect::<Vec<_>>()
            .join(";")
    }
}

fn weight_of(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
}

/// A weight as a number. One that is none counts as the default, 1.
fn weight_value(weight: Option<&str>) -> f32 {
    weight
        .and_then(|weight| weight.parse().ok())
        .filter(|weight: &f32| weight.is_finite())
        .unwrap_or(1.0)
}

// === impl Kind ===

impl Kind {
    fn of(media_type: &str) -> Option<Self> {
        match media_type.to_ascii_lowercase().as_str() {
            JSON => Some(Self::Json),
            "*" | "*/*" | "application/*" | "application/vnd.kubernetes.protobuf" => {
                Some(Self::Any)
            }
            _ => None,
        }
    }
}

// === impl Offers ===

impl<'a> Offers<'a> {
    fn add(&mut self, alternative: &Alternative<'a>) {
        let weight = weight_value(alternative.weight);
        if weight <= 0.0 {
            self.json_ruled_out |=
                alternative.kind == Kind::Json && alternative.parameters.is_empty();
            return;
        }
        let media_type = alternative.media_type();
        let offer = Offer {
            kind: alternative.kind,
            media_type,
            weight: alternative.weight,
        };
        let Some(same) = self
            .kept
            .iter_mut()
            .find(|kept| kept.media_type == offer.media_type)
        else {
            self.kept.push(offer);
            return;
        };
        // Two encodings of one thing have become one: the weight of the better liked counts.
        if weight > weight_value(same.weight) {
            same.weight = offer.weight;
        }
        if offer.kind == Kind::Json {
            same.kind = Kind::Json;
        }
    }

    fn into_header(self) -> Option<String> {
        let allowed = |offer: &Offer<'_>| offer.kind == Kind::Json || !self.json_ruled_out;
        let offers: Vec<_> = self
            .kept
            .iter()
            .filter(|offer| allowed(offer))
            .map(Offer::text)
            .collect();
        (!offers.is_empty()).then(|| offers.join(","))
    }
}

impl Offer<'_> {
    fn text(&self) -> String {
        match self.weight {
            Some(weight) => format!("{};q={weight}", self.media_type),
            None => self.media_type.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
