//! Clients behind a proxy on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::client;
use crate::error::chain;
use crate::testing::{Reply, TcpServer};

const SERVER: &str = "http://api.example.com";

/// A proxy with this answer to its first request, which it returns. With a server, it relays to it.
async fn proxy(answer: &'static str, server: Option<String>) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(client.read_u8().await.unwrap());
        }
        client.write_all(answer.as_bytes()).await.unwrap();
        if let Some(server) = server {
            let mut server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
        String::from_utf8(request).unwrap()
    });
    (address, serving)
}

fn config(proxy: &str) -> kube::Config {
    let mut config = kube::Config::new(SERVER.parse().unwrap());
    config.proxy_url = Some(proxy.parse().unwrap());
    config
}

async fn version(config: kube::Config) -> kube::Result<Value> {
    let client = client::connect(&config)?;
    let request = http::Request::get("/version").body(Vec::new());
    client.request(request.unwrap()).await
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::of(|name| {
        let mut variables = variables.iter();
        let found = variables.find(|(it, _)| *it == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[tokio::test]
async fn requests_go_through_the_proxy_with_its_credentials() {
    let object = json!({ "major": "1" });
    let server = TcpServer::start([Reply::Json(object.clone())]).await;
    let address = server.url().trim_start_matches("http://").to_owned();
    let (proxy, request) = proxy("HTTP/1.1 200 OK\r\n\r\n", Some(address)).await;
    let answer = version(config(&format!("http://someone:s3cret@{proxy}"))).await;
    assert_eq!(answer.unwrap(), object);
    let request = request.await.unwrap();
    assert!(
        request.starts_with("CONNECT api.example.com:80 "),
        "{request}"
    );
    // someone:s3cret in base64.
    assert!(
        request.contains("Proxy-Authorization: Basic c29tZW9uZTpzM2NyZXQ="),
        "{request}"
    );
}

#[tokio::test]
async fn errors_name_the_proxy_without_credentials_and_what_to_check() {
    let forbidden = "HTTP/1.1 403 Forbidden\r\n\r\n";
    let (address, _request) = proxy(forbidden, None).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for address in [address, silent.local_addr().unwrap()] {
        let mut config = config(&format!("http://someone:s3cret@{address}"));
        config.connect_timeout = Some(Duration::from_millis(500));
        let error = version(config).await.unwrap_err();
        let message = chain(&error);
        for part in [
            format!("the proxy http://{address}:").as_str(),
            "proxy-url",
            "HTTPS_PROXY",
            "NO_PROXY",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let debug = format!("{error:?}");
        assert!(!message.contains("s3cret"), "{message}");
        assert!(!debug.contains("s3cret"), "{debug}");
    }
}

#[tokio::test]
async fn other_kinds_of_proxies_are_refused() {
    for scheme in ["socks5", "socks5h", "https", "ftp"] {
        let config = config(&format!("{scheme}://someone:s3cret@proxy.example.com:1080"));
        let message = chain(&client::connect(&config).map(drop).unwrap_err());
        let expected = format!("the proxy {scheme}://proxy.example.com:1080 is not supported");
        assert!(message.contains(&expected), "{message}");
        assert!(message.contains("http://HOST:PORT"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
    for url in ["http://proxy.example.com", "proxy.example.com:3128"] {
        assert!(client::connect(&config(url)).is_ok(), "{url}");
    }
}

#[test]
fn the_environment_exempts_servers() {
    let https = || Some(Uri::from_static("http://https-proxy:3128"));
    let exempt = "exempt.example.com,.internal,192.0.2.0/24";
    let variables = environment(&[("NO_PROXY", exempt)]);
    for (server, through) in [
        ("https://api.example.com:6443", true),
        ("https://198.51.100.1:6443", true),
        ("https://exempt.example.com:6443", false),
        ("https://api.internal:6443", false),
        ("https://192.0.2.1:6443", false),
        // On this machine, or without TLS.
        ("https://127.0.0.1:6443", false),
        ("https://[::1]:6443", false),
        ("https://localhost:6443", false),
        ("http://api.example.com", false),
    ] {
        let server = server.parse().unwrap();
        let proxy = variables.proxy(https(), &server);
        assert_eq!(proxy, https().filter(|_| through), "{server}");
        assert_eq!(variables.proxy(None, &server), None, "{server}");
    }
    let server = Uri::from_static("https://api.example.com");
    assert_eq!(environment(&[]).proxy(https(), &server), https());
    let lower = [("NO_PROXY", ""), ("no_proxy", "example.com")];
    assert!(environment(&lower).exempts(&server));
    assert!(environment(&[("NO_PROXY", "*")]).exempts(&server));
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_has_precedence() {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            // Not even exempt where it would be in an environment.
            { "name": "a", "cluster": { "server": "https://127.0.0.1", "proxy-url": "http://own:3128" } },
            { "name": "b", "cluster": { "server": "https://127.0.0.1" } },
        ],
        "users": [],
        "contexts": [
            { "name": "a", "context": { "cluster": "a", "user": "u" } },
            { "name": "b", "context": { "cluster": "b", "user": "u" } },
        ],
        "current-context": "a",
    });
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).unwrap();
    let options = |context: Option<&str>| KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    for (context, expected) in [
        (None, Some("http://own:3128/")),
        (Some("a"), Some("http://own:3128/")),
        (Some("b"), None),
    ] {
        let config = client::from_kubeconfig(kubeconfig.clone(), &options(context)).await;
        let proxy = config.unwrap().proxy_url.map(|proxy| proxy.to_string());
        assert_eq!(proxy.as_deref(), expected, "{context:?}");
    }
}
