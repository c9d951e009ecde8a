use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;
use crate::wire::Spelling;

/// A server that sends `response`, piece by piece, and then closes.
fn server(response: &'static [&'static str]) -> (Target, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        assert!(connection.read(&mut request).unwrap() > 0);
        for piece in response {
            connection.write_all(piece.as_bytes()).unwrap();
        }
    });
    (
        Target {
            address,
            spelling: Spelling::Private,
            credentials: None,
        },
        thread,
    )
}

fn call(response: &'static [&'static str], expected: &'static str) -> Result<()> {
    let (target, thread) = server(response);
    let mut connection = Connection::open(&target, 256)?;
    let outcome = connection.call(b"GET / HTTP/1.1\r\n\r\n", &Pattern::plain(expected));
    thread.join().unwrap();
    outcome
}

#[test]
fn reads_a_body_by_its_length() {
    call(
        &[
            "HTTP/1.1 200 OK\r\ncontent-",
            "length: 5\r\n\r",
            "\nhel",
            "lo",
        ],
        "hello",
    )
    .unwrap();
}

#[test]
fn reads_a_body_in_chunks() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    call(
        &[HEAD, "3\r\nhel\r\n", "2;x=y\r\nlo\r", "\n0\r\n\r\n"],
        "hello",
    )
    .unwrap();
}

#[test]
fn invalid_responses_are_rejected() {
    struct Row {
        name: &'static str,
        response: &'static [&'static str],
        says: &'static str,
    }
    let rows = [
        Row {
            name: "status",
            response: &["HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"],
            says: "502",
        },
        Row {
            name: "cut",
            response: &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"],
            says: "ended in the middle",
        },
        Row {
            name: "body",
            response: &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhallo"],
            says: "byte 1",
        },
        Row {
            name: "no framing",
            response: &["HTTP/1.1 200 OK\r\n\r\nhello"],
            says: "neither",
        },
        Row {
            name: "encoded",
            response: &[
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-encoding: gzip\r\n\r\nhello",
            ],
            says: "gzip",
        },
    ];
    for Row {
        name,
        response,
        says,
    } in rows
    {
        let error = format!("{:#}", call(response, "hello").unwrap_err());
        assert!(error.contains(says), "{name}: {error}");
    }
}
