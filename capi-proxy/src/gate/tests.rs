//! Heads and bodies that must pass, and those that must not, at any split.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const LIMITS: Limits = Limits {
    head: Duration::from_secs(10),
    idle: Duration::from_mins(10),
    body: Duration::from_mins(1),
};

/// Feeds `input` in pieces of `size` bytes; the output, and why the gate closed, if it did.
fn feed(input: &[u8], size: usize) -> (Vec<u8>, Option<Violation>) {
    let mut gate = Gate::default();
    let (mut out, mut pending) = (Vec::new(), Vec::new());
    for piece in input.chunks(size) {
        pending.extend_from_slice(piece);
        loop {
            match gate.step(&pending) {
                Step::More => break,
                Step::Release(count) => out.extend(pending.drain(..count)),
                Step::Refuse(violation) => return (out, Some(violation)),
            }
        }
    }
    (out, None)
}

struct Refused {
    name: &'static str,
    input: &'static [u8],
    status: u16,
    /// How much of the input is an earlier, valid request.
    passed: usize,
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

const REFUSED: &[Refused] = &[
    Refused {
        name: "bare line feed in the request line",
        input: b"GET / HTTP/1.1\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "bare line feed in a header",
        input: b"GET / HTTP/1.1\r\nhost: a\nx: b\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "bare line feed at the end",
        input: b"GET / HTTP/1.1\r\nhost: a\r\n\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "bare carriage return",
        input: b"GET / HTTP/1.1\r\nhost: a\rx: b\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "folded line",
        input: b"GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "folded first line",
        input: b"GET / HTTP/1.1\r\n host: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "space before the colon",
        input: b"GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "no colon",
        input: b"GET / HTTP/1.1\r\nhost\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "empty name",
        input: b"GET / HTTP/1.1\r\n: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "NUL in a value",
        input: b"GET / HTTP/1.1\r\nhost: a\0\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "NUL in the target",
        input: b"GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "two Content-Lengths",
        input: b"POST / HTTP/1.1\r\ncontent-length: 1\r\nContent-Length: 1\r\n\r\nx",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "list Content-Length",
        input: b"POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\nx",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "signed Content-Length",
        input: b"POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\nx",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "empty Content-Length",
        input: b"POST / HTTP/1.1\r\ncontent-length:\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "huge Content-Length",
        input: b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "length and encoding",
        input:
            b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "identity, chunked",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "two encodings",
        input:
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "other encoding",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "vertical tab behind chunked",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\x0b\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "two hosts",
        input: b"GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "absolute form",
        input: b"GET http://169.254.169.254/ HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "authority form",
        input: b"GET a:80 HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "asterisk form",
        input: b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "connect",
        input: b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 405,
        passed: 0,
    },
    Refused {
        name: "fragment",
        input: b"GET /a#b HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "two spaces",
        input: b"GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "leading empty line",
        input: b"\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "HTTP/1.0",
        input: b"GET / HTTP/1.0\r\nhost: a\r\n\r\n",
        status: 505,
        passed: 0,
    },
    Refused {
        name: "HTTP/2 preface",
        input: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        status: 505,
        passed: 0,
    },
    Refused {
        name: "TLS",
        input: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "other expectation",
        input: b"POST / HTTP/1.1\r\nexpect: tea\r\ncontent-length: 1\r\n\r\nx",
        status: 417,
        passed: 0,
    },
    Refused {
        name: "upgrade with a body",
        input: b"POST / HTTP/1.1\r\nupgrade: a\r\ncontent-length: 1\r\n\r\nx",
        status: 400,
        passed: 0,
    },
    Refused {
        name: "second request",
        input: b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\nhost: a\n\n",
        status: 400,
        passed: GET.len(),
    },
    Refused {
        name: "chunk extension",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "signed chunk size",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "prefixed chunk size",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "bare line feed behind a chunk size",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "empty chunk size",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\r\nx\r\n0\r\n\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "huge chunk size",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1000000000000000\r\n",
        status: 400,
        passed: 47,
    },
    Refused {
        name: "long chunk",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        status: 400,
        passed: 51,
    },
    Refused {
        name: "folded trailer",
        input: b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\r\n c\r\n\r\n",
        status: 400,
        passed: 50,
    },
];

/// Check S08.
#[test]
fn ambiguous_requests_are_rejected() {
    for case in REFUSED {
        for size in [1, 2, 3, case.input.len()] {
            let (passed, violation) = feed(case.input, size);
            let violation =
                violation.unwrap_or_else(|| panic!("{}: passed in pieces of {size}", case.name));
            assert_eq!(
                violation.status.as_u16(),
                case.status,
                "{}: {}",
                case.name,
                violation.message
            );
            assert_eq!(passed, &case.input[..case.passed], "{}", case.name);
        }
    }
}

const PASSED: &[(&str, &[u8])] = &[
    ("plain", GET),
    ("optional white space", b"GET /a?b=%2F&c=d+e HTTP/1.1\r\nhost:\ta \t\r\nx:\r\n\r\n"),
    ("body", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
    ("no body", b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("tab behind chunked", b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\t\r\n\r\n0\r\n\r\n"),
    ("chunked", b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0A\r\n0123456789\r\n0\r\na: b\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("body that looks like a head", b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\n\n\n\n\nGET / HTTP/1.1\r\n\r\n"),
    ("upgrade", b"GET / HTTP/1.1\r\nupgrade: SPDY/3.1\r\n\r\n\n\0whatever comes\n"),
    ("expectation", b"POST / HTTP/1.1\r\nexpect: 100-Continue\r\ncontent-length: 1\r\n\r\nx"),
    ("bytes past ASCII in a value", b"GET / HTTP/1.1\r\nx: \xc3\xa4\r\n\r\n"),
];

#[test]
fn valid_requests_pass_unchanged_in_any_chunks() {
    for (name, input) in PASSED {
        for size in 1..=input.len() {
            assert_eq!(
                feed(input, size),
                (input.to_vec(), None),
                "{name}, pieces of {size}"
            );
        }
    }
}

#[test]
fn large_heads_are_rejected_before_they_are_complete() {
    let endless = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'a'; MAX_HEAD]].concat();
    let many = [
        b"GET / HTTP/1.1\r\n".as_slice(),
        &b"a: b\r\n".repeat(MAX_HEADERS + 1),
        b"\r\n",
    ]
    .concat();
    for (name, input) in [("endless", endless), ("many", many)] {
        let (passed, violation) = feed(&input, 1000);
        assert_eq!(
            violation.map(|violation| violation.status.as_u16()),
            Some(431),
            "{name}"
        );
        assert!(passed.is_empty(), "{name}");
    }
}

#[test]
fn a_head_is_held_until_it_is_complete() {
    for length in 1..GET.len() {
        assert_eq!(
            feed(&GET[..length], length),
            (Vec::new(), None),
            "{length} bytes"
        );
    }
}

proptest! {
    #[test]
    fn decisions_do_not_depend_on_chunks(
        input in proptest::collection::vec(prop::sample::select(vec![
            "GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n", "\r\n", "\n", "host: a\r\n", "content-length: 3\r\n",
            "transfer-encoding: chunked\r\n", "3\r\n", "abc", "0\r\n", ":", " ", "x: y\r\n", "upgrade: a\r\n",
        ]), 0..24),
        size in 1_usize..40,
    ) {
        let input = input.concat();
        let whole = feed(input.as_bytes(), input.len().max(1));
        prop_assert_eq!(feed(input.as_bytes(), size), whole);
    }

    #[test]
    fn the_gate_never_panics_and_keeps_the_order(input in proptest::collection::vec(any::<u8>(), 0..400), size in 1_usize..50) {
        let (passed, _) = feed(&input, size);
        prop_assert!(input.starts_with(&passed));
    }
}

/// A gated end and the client's end of one connection.
fn pair() -> (
    GateIo<tokio::io::DuplexStream>,
    tokio::io::DuplexStream,
    Arc<Connection>,
) {
    let (client, server) = duplex(1 << 20);
    let connection = Arc::new(Connection::default());
    (
        GateIo::new(server, Arc::clone(&connection), LIMITS),
        client,
        connection,
    )
}

async fn read_some(gate: &mut GateIo<tokio::io::DuplexStream>) -> Vec<u8> {
    let mut buffer = vec![0; 256];
    let count = gate.read(&mut buffer).await.unwrap();
    buffer.truncate(count);
    buffer
}

/// Check S08.
#[tokio::test]
async fn an_invalid_pipelined_request_is_rejected_in_turn() {
    let (mut gate, mut client, connection) = pair();
    client.write_all(GET).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\nhost: a\n\n")
        .await
        .unwrap();
    assert_eq!(read_some(&mut gate).await, GET);
    let busy = connection.busy();
    tokio::select! {
        biased;
        bytes = read_some(&mut gate) => panic!("read {bytes:?} while a request was in progress"),
        () = tokio::task::yield_now() => {}
    }
    drop(busy);
    let stand_in = read_some(&mut gate).await;
    assert!(stand_in.starts_with(b"GATE-REFUSED / HTTP/1.1\r\n"));
    tokio::select! {
        biased;
        bytes = read_some(&mut gate) => panic!("read {bytes:?} before the response to the invalid request"),
        () = tokio::task::yield_now() => {}
    }
    drop(connection.busy());
    assert_eq!(
        read_some(&mut gate).await,
        b"",
        "nothing follows the refused request"
    );
    let method = http::Method::from_bytes(b"GATE-REFUSED").unwrap();
    assert_eq!(
        connection
            .refusal(&method)
            .map(|violation| violation.status.as_u16()),
        Some(400)
    );
    assert_eq!(connection.refusal(&http::Method::GET), None);
}

#[tokio::test]
async fn releasing_the_connection_wakes_the_reader_of_a_held_head() {
    let (mut gate, mut client, connection) = pair();
    client.write_all(&[GET, GET].concat()).await.unwrap();
    assert_eq!(read_some(&mut gate).await, GET);
    let busy = connection.busy();
    let reader = tokio::spawn(async move { read_some(&mut gate).await });
    tokio::task::yield_now().await;
    drop(busy);
    assert_eq!(reader.await.unwrap(), GET);
}

#[tokio::test]
async fn a_disconnect_is_noticed_while_the_next_head_is_held() {
    let (mut gate, mut client, connection) = pair();
    client.write_all(&[GET, GET].concat()).await.unwrap();
    assert_eq!(read_some(&mut gate).await, GET);
    let _busy = connection.busy();
    drop(client);
    assert_eq!(read_some(&mut gate).await, b"");
}

#[tokio::test]
async fn invalid_framing_within_a_body_fails_the_body() {
    let (mut gate, mut client, connection) = pair();
    let head = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    client
        .write_all(&[head.as_slice(), b"1\r\nx\r\nnonsense"].concat())
        .await
        .unwrap();
    assert_eq!(
        read_some(&mut gate).await,
        [head.as_slice(), b"1\r\nx\r\n"].concat()
    );
    let error = gate.read(&mut [0; 16]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(connection.violation().is_some());
}

/// Check S19.
#[tokio::test(start_paused = true)]
async fn a_trickled_head_times_out() {
    let (mut gate, mut client, connection) = pair();
    let dripping = tokio::spawn(async move {
        for byte in b"GET / HTTP/1.1\r\nhost: a\r\n" {
            client.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        client
    });
    let started = tokio::time::Instant::now();
    assert!(read_some(&mut gate).await.starts_with(b"GATE-REFUSED"));
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(
        connection
            .violation()
            .map(|violation| violation.status.as_u16()),
        Some(408)
    );
    dripping.abort();
}

/// Check S19.
#[tokio::test(start_paused = true)]
async fn a_stalled_body_times_out() {
    let (mut gate, mut client, connection) = pair();
    client
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nab")
        .await
        .unwrap();
    assert!(read_some(&mut gate).await.ends_with(b"ab"));
    let error = gate.read(&mut [0; 16]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(
        connection
            .violation()
            .map(|violation| violation.status.as_u16()),
        Some(408)
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let (mut gate, mut client, connection) = pair();
    client.write_all(GET).await.unwrap();
    assert_eq!(read_some(&mut gate).await, GET);
    let busy = connection.busy();
    let waited = tokio::time::timeout(LIMITS.idle * 2, read_some(&mut gate)).await;
    assert!(waited.is_err(), "a response has no time limit");
    drop(busy);
    assert_eq!(read_some(&mut gate).await, b"");
    assert!(connection.violation().is_none());
}
