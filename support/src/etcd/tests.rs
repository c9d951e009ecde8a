//! Tests of the etcd client, with a mock gateway.

use std::sync::{Arc, Mutex};

use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::testing::{Answer, Expect, Scenario};

/// Timeout of requests.
const TIMEOUT: Duration = Duration::from_secs(3);

fn connection(client: kube::Client) -> Connection {
    Connection {
        client,
        request_timeout: TIMEOUT,
    }
}

fn at(scenario: &Scenario) -> Connection {
    connection(scenario.client())
}

#[tokio::test]
async fn etcd_responses_are_parsed() {
    let status = json!({
        "header": { "cluster_id": "1", "member_id": "18446744073709551615", "raft_term": "2" },
        "version": "3.6.5", "dbSize": "209715200", "leader": "18446744073709551615",
        "dbSizeInUse": "1048576", "raftIndex": "9",
    });
    let list = json!({ "members": [{
        "ID": "7", "name": "etcd-0", "peerURLs": ["https://a:2380"], "clientURLs": ["https://a:2379"],
    }]});
    let scenario = Scenario::new([
        Expect::post("/v3/cluster/member/list").answer(Answer::ok(&list)),
        Expect::post("/v3/maintenance/status").answer(Answer::ok(&status)),
        Expect::post("/v3/maintenance/defragment").answer(Answer::error(503, "Unavailable")),
    ]);
    let connection = at(&scenario);
    let members = connection.members().await.unwrap();
    assert_eq!(members[0].client_urls, ["https://a:2379"]);
    assert_eq!(members[0].peer_urls, ["https://a:2380"]);
    let expected = Status {
        size: 209_715_200,
        in_use: 1_048_576,
        is_leader: true,
        is_learner: false,
        problem: None,
    };
    assert_eq!(connection.status().await.unwrap(), expected);
    assert!(connection.defragment().await.is_err());
    scenario.finish();
}

#[tokio::test]
async fn health_needs_an_answer_and_no_alarm() {
    let range = "/v3/kv/range";
    let alarm = "/v3/maintenance/alarm";
    let none = || Answer::ok(&json!({}));
    let full = || Answer::ok(&json!({ "alarms": [{ "memberID": "7", "alarm": "NOSPACE" }] }));
    let forbidden = || Answer::error(403, "Forbidden");
    for (name, read, alarms, expected) in [
        ("healthy", none(), Some(none()), None),
        ("may not read", forbidden(), Some(none()), None),
        (
            "full",
            none(),
            Some(full()),
            Some("etcd reports the alarm NOSPACE"),
        ),
        (
            "no quorum",
            Answer::error(503, "Unavailable"),
            None,
            Some("etcd refused to return a key: 503 Service Unavailable"),
        ),
    ] {
        let mut expected_calls = vec![Expect::post(range).answer(read)];
        expected_calls.extend(alarms.map(|answer| Expect::post(alarm).answer(answer)));
        let scenario = Scenario::new(expected_calls);
        let health = at(&scenario).check_health(TIMEOUT).await;
        let found = health.err().map(|error| error.to_string());
        let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
        let agrees = found.starts_with(expected) && found.is_empty() == expected.is_empty();
        assert!(agrees, "{name}: {found}");
        scenario.finish();
    }
}

/// A member that answers a read of keys with a status and text, and everything else with nothing.
fn gateway(status: StatusCode, text: &'static str) -> Connection {
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_read = request.uri().path() == "/v3/kv/range";
        let (status, text) = if is_read {
            (status, text)
        } else {
            (StatusCode::OK, "{}")
        };
        let body = Body::from(text.as_bytes().to_vec());
        let mut response = Response::new(body);
        *response.status_mut() = status;
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    });
    connection(kube::Client::new(service, "default"))
}

#[tokio::test]
async fn refusals_are_those_of_etcd() {
    // As etcd's gateway writes them: the code is that of gRPC.
    let denied = r#"{"error":"etcdserver: permission denied","code":7,"message":"etcdserver: permission denied"}"#;
    let connection = gateway(StatusCode::FORBIDDEN, denied);
    connection.check_health(TIMEOUT).await.unwrap();
    let no_leader =
        r#"{"error":"etcdserver: no leader","code":14,"message":"etcdserver: no leader"}"#;
    let connection = gateway(StatusCode::SERVICE_UNAVAILABLE, no_leader);
    let error = connection.check_health(TIMEOUT).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("503") && said.contains("no leader"), "{said}");
}

#[tokio::test]
async fn responses_that_are_too_long_are_not_read() {
    let service = tower::service_fn(|_: Request<Body>| {
        let body = Body::from(vec![b' '; LARGEST_RESPONSE + 1]);
        std::future::ready(Ok::<_, std::convert::Infallible>(Response::new(body)))
    });
    let connection = connection(kube::Client::new(service, "default"));
    let error = connection.members().await.unwrap_err();
    assert!(matches!(error, Error::Response { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_member_times_out() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
    });
    let connection = connection(kube::Client::new(service, "default"));
    let begun = tokio::time::Instant::now();
    let error = connection.members().await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(begun.elapsed(), TIMEOUT);
}

#[test]
fn invalid_member_urls_are_rejected() {
    let credentials = Credentials {
        ca: "/none".into(),
        certificate: "/none".into(),
        key: "/none".into(),
    };
    for url in ["", "/", "etcd-0:2379"] {
        let opened = Connection::open(&credentials, url);
        assert!(matches!(opened, Err(Error::Address { .. })), "{url}");
    }
}

/// A database with its checksum.
fn database(pages: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..pages * 512)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// The lines of a snapshot.
fn lines(bytes: &[u8], chunk: usize) -> Vec<u8> {
    let lines = bytes.chunks(chunk).map(|blob| {
        json!({ "result": { "remaining_bytes": "1", "blob": STANDARD.encode(blob) } }).to_string()
            + "\n"
    });
    lines.collect::<String>().into_bytes()
}

/// Takes a snapshot from a gateway that sends these bytes in frames of this size.
async fn taken(sent: Vec<u8>, frame: usize) -> Result<Vec<u8>, Error> {
    let service = tower::service_fn(move |_: Request<Body>| {
        let frames: Vec<_> = sent.chunks(frame).map(<[u8]>::to_vec).collect();
        let frames = frames
            .into_iter()
            .map(|bytes| Ok::<_, std::io::Error>(hyper::body::Frame::data(bytes.into())));
        let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
        let body: http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, _> = body.boxed_unsync();
        async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
    });
    let connection = connection(kube::Client::new(service, "default"));
    let taken = Arc::new(Mutex::new(Vec::new()));
    let size = connection
        .snapshot(|bytes| {
            taken.lock().unwrap().extend_from_slice(bytes);
            Ok(())
        })
        .await?;
    let taken = taken.lock().unwrap().clone();
    assert_eq!(size, taken.len() as u64);
    Ok(taken)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lines and frames may be split anywhere.
    #[test]
    fn snapshots_arrive_whole(pages in 1_usize..6, chunk in 1_usize..2000, frame in 1_usize..3000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bytes = database(pages);
        let found = runtime.block_on(taken(lines(&bytes, chunk), frame)).unwrap();
        prop_assert_eq!(found, bytes);
    }
}

#[tokio::test]
async fn damaged_snapshots_are_rejected() {
    let whole = database(3);
    let mut changed = whole.clone();
    changed[700] ^= 1;
    let error = b"{\"error\":{\"message\":\"etcdserver: stopped\"}}\n".to_vec();
    for (name, sent, expected) in [
        ("changed", lines(&changed, 600), "its checksum differs"),
        ("truncated", lines(&whole[..1000], 600), "it is incomplete"),
        (
            "page missing",
            lines(&whole[512..], 600),
            "its checksum differs",
        ),
        ("empty", Vec::new(), "it is incomplete"),
        (
            "ended",
            [lines(&whole[..512], 600), error].concat(),
            "etcd ended it with an error",
        ),
        ("text", b"not JSON\n".to_vec(), "a line is not JSON"),
    ] {
        let error = taken(sent, 900).await.unwrap_err();
        let expected = format!("the snapshot is damaged: {expected}");
        assert_eq!(error.to_string(), expected, "{name}");
    }
}

#[tokio::test]
async fn a_full_disk_ends_the_snapshot() {
    let scenario = Scenario::new([Expect::post("/v3/maintenance/snapshot").answer(Answer::ok(
        &json!({ "result": { "blob": STANDARD.encode("a") } }),
    ))]);
    let full = |_: &[u8]| Err(std::io::Error::other("no space left on device"));
    let error = at(&scenario).snapshot(full).await.unwrap_err();
    assert_eq!(
        crate::error::chain(&error),
        "failed to write the snapshot: no space left on device"
    );
}
