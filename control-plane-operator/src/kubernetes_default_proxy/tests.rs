//! Connections through a proxy on loopback.

use std::net::SocketAddr;

use clap::Parser as _;
use support::shutdown::{self, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::args::{Cli, Command};
use crate::konnectivity::testing::{Behavior, ConnectServer, Log, echo};

const API_SERVER: &str = "api.example.com:443";

fn parse(more: &[&str]) -> Result<Args, clap::Error> {
    let line = ["control-plane-operator", "kubernetes-default-proxy"];
    match Cli::try_parse_from(line.iter().chain(more))?.command {
        Command::KubernetesDefaultProxy(args) => Ok(*args),
        other => panic!("{other:?}"),
    }
}

/// Starts the program in front of a proxy. It runs until the signal begins.
async fn started(proxy: SocketAddr) -> (SocketAddr, Signal) {
    let proxy = format!("--proxy-addr={proxy}");
    let flags = [
        "--listen-addr=127.0.0.1:0",
        &proxy,
        "--apiserver-addr",
        API_SERVER,
    ];
    let args = parse(&flags).unwrap();
    let listener = listen(args.listen_addr).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (signal, drain) = shutdown::channel();
    tokio::spawn(serve(
        listener,
        args.proxy_addr.0,
        args.apiserver_addr.0,
        drain,
    ));
    (address, signal)
}

/// Sends a text, and returns what comes back: as much, or less if the connection is closed.
async fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A refused connection may be closed before everything is sent.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut received = Vec::new();
    let mut stream = stream.take(text.len() as u64);
    let _ = stream.read_to_end(&mut received).await;
    String::from_utf8(received).unwrap()
}

/// A server that accepts one connection, and the proxy's end of it once a client has sent a byte.
async fn connected() -> (TcpStream, TcpStream, Signal) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Behavior::Connect(server.local_addr().unwrap());
    let proxy = ConnectServer::start(None, &[(API_SERVER, target)]).await;
    let (address, signal) = started(proxy.address).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"a").await.unwrap();
    let (mut server, _) = server.accept().await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'a');
    (client, server, signal)
}

#[tokio::test]
async fn both_sides_are_closed_when_one_ends() {
    let (mut client, mut server, _signal) = connected().await;
    server.write_all(b"last").await.unwrap();
    server.shutdown().await.unwrap();
    let mut received = String::new();
    client.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "last");
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0, "the client's side");

    let (mut client, mut server, _signal) = connected().await;
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    received.clear();
    server.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "last");
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the server's side");
}

#[tokio::test]
async fn connections_reach_the_api_server_through_the_proxy() {
    let api_server = Behavior::Connect(echo().await);
    let proxy = ConnectServer::start(None, &[(API_SERVER, api_server)]).await;
    let (address, _signal) = started(proxy.address).await;
    let both = tokio::join!(exchange(address, "first"), exchange(address, "second"));
    assert_eq!(both, ("first".to_owned(), "second".to_owned()));
    let head = format!("CONNECT {API_SERVER} HTTP/1.1\r\nHost: {API_SERVER}\r\n\r\n");
    assert_eq!(proxy.requests(), [head.clone(), head]);
}

#[tokio::test]
async fn a_refused_connection_is_closed_and_others_are_served() {
    let (log, _guard) = Log::collect();
    let refusing = ConnectServer::start(None, &[]).await;
    let (address, _signal) = started(refusing.address).await;
    for _ in 0..2 {
        assert_eq!(exchange(address, "hello").await, "");
    }
    assert_eq!(refusing.requests().len(), 2);
    let text = log.text();
    let expected = format!(
        "failed to connect to API server {API_SERVER} through proxy {}: it responded with status 502: no such target",
        refusing.address
    );
    assert!(text.contains(&expected), "{text}");
}

#[tokio::test]
async fn an_unreachable_proxy_is_named() {
    let proxy = Target::new("127.0.0.1".parse().unwrap(), 1);
    let error = dial(&proxy, &proxy).await.unwrap_err();
    let expected = "failed to connect to proxy 127.0.0.1:1: check the Proxy of the hosted cluster";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn open_connections_outlive_the_listener() {
    let api_server = Behavior::Connect(echo().await);
    let proxy = ConnectServer::start(None, &[(API_SERVER, api_server)]).await;
    let (address, signal) = started(proxy.address).await;
    let mut open = TcpStream::connect(address).await.unwrap();
    open.write_all(b"a").await.unwrap();
    assert_eq!(open.read_u8().await.unwrap(), b'a');
    signal.begin();
    open.write_all(b"b").await.unwrap();
    assert_eq!(open.read_u8().await.unwrap(), b'b');
    drop(open);
    signal.all_ended().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = listen(Address::One(address)).await.unwrap_err();
    let expected = format!("failed to listen on {address}: assign it");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn flags_are_required_and_have_ports() {
    let listen = "--listen-addr=172.20.0.1:6443";
    let proxy = "--proxy-addr=proxy.example.com:3128";
    let server = "--apiserver-addr=[fd00::1]:443";
    let args = parse(&[listen, proxy, server]).unwrap();
    assert_eq!(args.apiserver_addr.0.to_string(), "[fd00::1]:443");
    for flags in [
        vec![],
        vec![listen, proxy],
        vec![listen, server],
        vec![proxy, server],
        vec!["--listen-addr=172.20.0.1", proxy, server],
        vec![listen, "--proxy-addr=proxy.example.com", server],
        vec![listen, "--proxy-addr=http://proxy.example.com:3128", server],
        vec![listen, "--proxy-addr=fd00::1:3128", server],
        vec![listen, "--proxy-addr=proxy:0", server],
        vec![listen, proxy, "--apiserver-addr=a b:443"],
    ] {
        assert!(parse(&flags).is_err(), "{flags:?}");
    }
    for (text, expected) in [
        ("http://proxy.example.com:3128", "expected HOST:PORT"),
        ("http://proxy.example.com", "expected HOST:PORT"),
        ("fd00::1:3128", "write an IPv6 address as [ADDRESS]:PORT"),
    ] {
        let error = target(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
