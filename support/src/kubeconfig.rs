//! Kubeconfigs of users. They are untrusted: one that would make this process run a program or read a file is rejected,
//! and so is one that names a proxy. The proxy of this process's own environment is used: `HTTPS_PROXY` and `NO_PROXY`.

use http::Uri;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::client::proxy::{self, Environment};
use crate::deadline::Timeouts;

/// What is wrong with a kubeconfig that leads to no client.
pub const UNUSABLE: &str = "is not usable: its current context must name a cluster with server and certificate-authority-data, and a user with a token or client-certificate-data";

/// What is wrong with a kubeconfig that names a proxy.
const OWN_PROXY: &str =
    "has proxy-url, which is not supported: name a server that is reached without this proxy";

/// The longest server that is reported: a DNS name with its scheme and port.
const LONGEST_SERVER: usize = 270;

/// The configuration of a client by an untrusted kubeconfig. An error says what is wrong with it, without its content.
pub async fn untrusted(bytes: &[u8]) -> Result<Config, String> {
    let kubeconfig = read(bytes)?;
    let options = KubeConfigOptions::default();
    if proxy::has_own(&kubeconfig, &options) {
        return Err(OWN_PROXY.to_owned());
    }
    // The error of the library could quote the content.
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|_| UNUSABLE.to_owned())?;
    // The client library takes HTTPS_PROXY, and ignores NO_PROXY.
    let environment = Environment::read();
    let server = &config.cluster_url;
    config.proxy_url = config.proxy_url.filter(|_| !environment.exempts(server));
    Ok(config)
}

/// A client with the configuration of [`untrusted`]. Through a proxy, a read timeout is that of each request.
pub fn client(config: Config) -> kube::Result<kube::Client> {
    if config.proxy_url.is_none() {
        return kube::Client::try_from(config);
    }
    // The client library is built without proxies.
    let timeouts = match config.read_timeout {
        None => Timeouts::default(),
        Some(limit) => Timeouts {
            write: limit,
            head: limit,
            body: limit,
        },
    };
    crate::client::connect_with(&config, timeouts)
}

/// The server of an untrusted kubeconfig, as it may be reported: without a user, a password or a path.
pub fn server(bytes: &[u8]) -> Option<String> {
    let kubeconfig = read(bytes).ok()?;
    let cluster = proxy::selected_cluster(&kubeconfig, &KubeConfigOptions::default())?;
    let url: Uri = cluster.server.as_ref()?.parse().ok()?;
    let is_complete = url.scheme().is_some() && url.host().is_some();
    let server = is_complete.then(|| proxy::origin(&url))?;
    (server.len() <= LONGEST_SERVER).then_some(server)
}

fn read(bytes: &[u8]) -> Result<Kubeconfig, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    let kubeconfig =
        Kubeconfig::from_yaml(text).map_err(|_| "is not a valid kubeconfig".to_owned())?;
    match outside(&kubeconfig) {
        None => Ok(kubeconfig),
        Some(field) => Err(format!(
            "has {field}, which refers to a file or program: inline the data in base64"
        )),
    }
}

/// A field that makes the reader run a program or read a local file.
fn outside(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let clusters = kubeconfig.clusters.iter();
    let mut clusters = clusters.filter_map(|it| it.cluster.as_ref());
    if clusters.any(|it| it.certificate_authority.is_some()) {
        return Some("certificate-authority");
    }
    let users = kubeconfig.auth_infos.iter();
    users.filter_map(|it| it.auth_info.as_ref()).find_map(|it| {
        let fields = [
            ("exec", it.exec.is_some()),
            ("auth-provider", it.auth_provider.is_some()),
            ("tokenFile", it.token_file.is_some()),
            ("client-certificate", it.client_certificate.is_some()),
            ("client-key", it.client_key.is_some()),
        ];
        let found = fields.into_iter().find(|(_, is_there)| *is_there);
        found.map(|(field, _)| field)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kubeconfig(cluster: &Value, user: &Value) -> Vec<u8> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "x",
        });
        config.to_string().into_bytes()
    }

    #[test]
    fn user_kubeconfigs_cannot_run_programs_or_read_files() {
        let server = json!({ "server": "https://192.0.2.1:6443" });
        let token = json!({ "token": "t" });
        for (cluster, user, expected) in [
            (server.clone(), token.clone(), None),
            (
                json!({ "server": "https://192.0.2.1", "certificate-authority": "/etc/passwd" }),
                token,
                Some("certificate-authority"),
            ),
            (
                server.clone(),
                json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true" } }),
                Some("exec"),
            ),
            (
                server.clone(),
                json!({ "auth-provider": { "name": "oidc", "config": {} } }),
                Some("auth-provider"),
            ),
            (
                server.clone(),
                json!({ "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token" }),
                Some("tokenFile"),
            ),
            (
                server.clone(),
                json!({ "client-certificate": "/a", "client-key": "/b" }),
                Some("client-certificate"),
            ),
            (server, json!({ "client-key": "/b" }), Some("client-key")),
        ] {
            let found = read(&kubeconfig(&cluster, &user));
            match expected {
                None => assert!(found.is_ok(), "{user}"),
                Some(field) => {
                    let message = found.unwrap_err();
                    assert!(message.contains(field), "{message}");
                }
            }
        }
    }

    #[tokio::test]
    async fn user_kubeconfigs_cannot_name_a_proxy() {
        let token = json!({ "token": "t" });
        let server = "http://192.0.2.1:6443";
        let proxied = json!({ "server": server, "proxy-url": "http://a:s3cret@192.0.2.2:3128" });
        let proxied = kubeconfig(&proxied, &token);
        let Err(message) = untrusted(&proxied).await else {
            panic!("the proxy of a user is accepted");
        };
        assert_eq!(message, OWN_PROXY);
        // Its server is still reported.
        assert_eq!(super::server(&proxied).as_deref(), Some(server));
        let none = json!({ "server": server, "proxy-url": "" });
        let config = untrusted(&kubeconfig(&none, &token)).await;
        assert!(config.is_ok_and(|config| config.proxy_url.is_none()));
    }

    #[test]
    fn servers_are_reported_without_credentials() {
        let long = format!("https://{}.example.com", "a".repeat(300));
        for (url, expected) in [
            ("https://192.0.2.1:6443", Some("https://192.0.2.1:6443")),
            ("https://[fd00::1]:6443", Some("https://[fd00::1]:6443")),
            (
                "https://user:s3cret@api.example.com/s3cret?s3cret",
                Some("https://api.example.com"),
            ),
            (long.as_str(), None),
            ("no URL", None),
        ] {
            let found = server(&kubeconfig(&json!({ "server": url }), &json!({})));
            assert_eq!(found.as_deref(), expected, "{url}");
        }
        assert_eq!(server(b"{}"), None);
    }

    #[tokio::test]
    async fn unreadable_kubeconfigs_are_reported_without_content() {
        for bytes in [
            &b"\xff"[..],
            b"s3cret",
            b"clusters: s3cret",
            b"{current-context: s3cret}",
        ] {
            let Err(message) = untrusted(bytes).await else {
                panic!("{bytes:?}");
            };
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
