//! Bodies of a real API server: what it says of private types, translated, is what it says of standard ones.
//!
//! Each exchange in `data` was had twice, with standard types and with private ones; `cargo run -p e2e --example record`
//! does it again. The standard one is what a client sends and expects, the private one what the proxy has to send and
//! gets.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests, and their helpers fail as they do"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capi_translate::body::{self, Plan};
use capi_translate::target::Target;
use capi_translate::{Counts, Refusal, Rules, accept, cache, text};
use http::{Method, StatusCode};

/// One exchange, as its file has it.
struct Exchange {
    method: Method,
    path: String,
    request: BTreeMap<String, String>,
    request_body: String,
    status: StatusCode,
    response: BTreeMap<String, String>,
    response_body: String,
}

/// One exchange with both types.
struct Pair {
    name: String,
    standard: Exchange,
    private: Exchange,
}

// === impl Exchange ===

impl Exchange {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parts: Vec<_> = text.splitn(4, "\n\n").collect();
        let [request, request_body, response, response_body] = parts[..] else {
            panic!("{} does not have four parts", path.display());
        };
        let (line, request) = head(request);
        let (method, path) = line.split_once(' ').unwrap();
        let (status, response) = head(response);
        Self {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            request,
            request_body: request_body.to_owned(),
            status: status.parse().unwrap(),
            response,
            response_body: response_body.to_owned(),
        }
    }
}

fn head(text: &str) -> (&str, BTreeMap<String, String>) {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let header = |line: &str| {
        line.split_once(": ")
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    (first, lines.filter_map(header).collect())
}

fn pairs() -> Vec<Pair> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let mut names: Vec<_> = data
        .join("standard")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    let pair = |name: &std::ffi::OsString| Pair {
        name: name.to_string_lossy().into_owned(),
        standard: Exchange::read(&data.join("standard").join(name)),
        private: Exchange::read(&data.join("private").join(name)),
    };
    names.iter().map(pair).collect()
}

// === translation ===

/// Runs a body through its plan, in pieces of `piece` bytes.
fn run(plan: Result<Plan, Refusal>, body: &str, piece: usize) -> (String, Counts) {
    let Plan::Translate(mut translator) = plan.unwrap() else {
        return (body.to_owned(), Counts::default());
    };
    let mut out = Vec::new();
    for piece in body.as_bytes().chunks(piece) {
        translator.push(piece, &mut out).unwrap();
    }
    translator.finish(&mut out).unwrap();
    (String::from_utf8(out).unwrap(), translator.counts())
}

fn target(rules: &Rules, exchange: &Exchange) -> Target {
    Target::parse(rules, &exchange.path).unwrap()
}

fn translated_request(rules: &Rules, from: &Exchange, piece: usize) -> (String, Counts) {
    let content_type = from.request.get("content-type").map(String::as_str);
    run(
        body::request(rules, &target(rules, from), &from.method, content_type),
        &from.request_body,
        piece,
    )
}

/// The response of `from`, as a client sees it who sent the request of `client`.
fn translated_response(
    rules: &Rules,
    client: &Exchange,
    from: &Exchange,
    piece: usize,
) -> (String, Counts) {
    let content_type = from.response.get("content-type").map(String::as_str);
    let plan = body::response(rules, &target(rules, client), from.status, content_type);
    run(plan, &from.response_body, piece)
}

/// The recorded standard response as a client of the proxy sees it.
fn expected(rules: &Rules, standard: &Exchange) -> String {
    let salted = cache::hash_down(rules, "HASH");
    standard
        .response_body
        .replace("?hash=HASH", &format!("?hash={salted}"))
}

/// `fieldsV1` is never translated, and a quota's has the quota's names in it: the one spot where the sides differ.
fn without_quota_fields(body: &str) -> String {
    body.replace(
        "\"f:count/machines.cluster.hypershift.openshift.io\"",
        "\"f:count/machines.cluster.x-k8s.io\"",
    )
}

/// Checks R01, R13, R14, R18, R20, R21.
#[test]
fn recorded_responses_are_translated_to_standard_names() {
    let rules = Rules::default();
    for Pair {
        name,
        standard,
        private,
    } in pairs()
    {
        for piece in [1, 7, 4096, usize::MAX] {
            let (response, counts) = translated_response(&rules, &standard, &private, piece);
            assert_eq!(
                without_quota_fields(&response),
                expected(&rules, &standard),
                "{name}, in pieces of {piece}"
            );
            assert_eq!(
                counts.to_private, 0,
                "{name}: no standard name is stored here"
            );
        }
        assert_eq!(private.status, standard.status, "{name}");
        assert_eq!(
            private.response.get("content-type"),
            standard.response.get("content-type"),
            "{name}"
        );
        let warning = private
            .response
            .get("warning")
            .map(|warning| text::swap(&rules, warning));
        assert_eq!(
            warning.as_deref(),
            standard.response.get("warning").map(String::as_str),
            "{name}"
        );
    }
}

#[test]
fn recorded_requests_are_translated_to_private_names() {
    let rules = Rules::default();
    for Pair {
        name,
        standard,
        private,
    } in pairs()
    {
        let target = target(&rules, &standard);
        assert_eq!(target.upstream(), private.path, "{name}");
        for piece in [1, 4096] {
            let (body, _) = translated_request(&rules, &standard, piece);
            assert_eq!(body, private.request_body, "{name}, in pieces of {piece}");
        }
        let requested = standard.request.get("accept").map(String::as_str);
        let upstream = accept::rewrite(&target, requested).unwrap();
        assert_eq!(upstream.as_ref(), private.request.get("accept"), "{name}");
    }
}

/// Check R02.
#[test]
fn recorded_bodies_round_trip() {
    let rules = Rules::default();
    for Pair {
        name,
        standard,
        private,
    } in pairs()
    {
        let (body, counts) = translated_request(&rules, &private, usize::MAX);
        assert_eq!(body, standard.request_body, "{name}");
        assert_eq!(counts.to_private, 0, "{name}");
        // Free text is translated in one direction, and hashes are salted once.
        if standard.status.is_success() && name != "openapi-index.http" {
            let (response, _) = translated_response(&rules, &private, &standard, usize::MAX);
            assert_eq!(
                without_quota_fields(&response),
                without_quota_fields(&private.response_body),
                "{name}"
            );
        }
    }
}

/// Check R03.
#[test]
fn recordings_contain_names_that_must_not_change() {
    let pairs = pairs();
    let find = |name: &str| {
        let pair = pairs
            .iter()
            .find(|pair| pair.name == format!("{name}.http"));
        &pair
            .unwrap_or_else(|| panic!("no recording of {name}"))
            .private
    };
    for (name, stays) in [
        (
            "machine-create",
            "\"cluster.x-k8s.io/cloned-from-groupkind\":\"DevMachineTemplate.infrastructure.cluster.x-k8s.io\"",
        ),
        (
            "machine-create",
            "\"finalizers\":[\"machine.cluster.x-k8s.io\"]",
        ),
        ("machine-create", "\"f:cluster.x-k8s.io/cluster-name\""),
        ("machine-invalid", "cluster.x-k8s.io/b d"),
        ("machine-status", "hook.machine.cluster.x-k8s.io/x"),
        ("crd-get", "\"cluster.x-k8s.io/v1beta2\":\"v1beta2\""),
        ("secret-owned", "\"type\":\"cluster.x-k8s.io/secret\""),
        ("secret-immutable", "cluster.x-k8s.io/other"),
        ("event", "\"message\":\"cluster.x-k8s.io/v1beta2 is text\""),
        ("cluster-role", "cluster.x-k8s.io/aggregate-to-manager"),
        (
            "machine-scale",
            "\"selector\":\"cluster.x-k8s.io/cluster-name=c\"",
        ),
    ] {
        assert!(
            find(name).response_body.contains(stays),
            "{name} does not hold {stays}"
        );
    }
    assert!(find("machine-create").response["warning"].contains("machine.cluster.x-k8s.io"));
    assert!(
        find("deprecated-list").response["warning"]
            .contains("cluster.hypershift.openshift.io/v1beta2")
    );
}

/// Checks W04, W05.
#[test]
fn recordings_contain_a_bookmark_and_an_error_event() {
    let data = pairs();
    let events = |name: &str| {
        let pair = data.iter().find(|pair| pair.name == name).unwrap();
        let events: Vec<serde_json::Value> = pair
            .private
            .response_body
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        events
    };
    let watch = events("machine-watch.http");
    let last = watch.last().unwrap();
    assert_eq!(last["type"], "BOOKMARK");
    assert_eq!(
        last["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert!(watch.len() > 2, "no objects before the bookmark");
    let expired = events("machine-watch-expired.http");
    assert_eq!(expired[0]["type"], "ERROR");
    assert_eq!(expired[0]["object"]["code"], 410);
}
