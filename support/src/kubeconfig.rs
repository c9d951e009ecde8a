//! Kubeconfigs of users. They are untrusted: one that would make this process run a program or read a file is rejected.

use http::Uri;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// What is wrong with a kubeconfig that leads to no client.
pub const UNUSABLE: &str = "is not usable: its current context must name a cluster with server and certificate-authority-data, and a user with a token or client-certificate-data";

/// The longest server that is reported: a DNS name with its scheme and port.
const LONGEST_SERVER: usize = 270;

/// The configuration of a client by an untrusted kubeconfig. An error says what is wrong with it, without its content.
pub async fn untrusted(bytes: &[u8]) -> Result<Config, String> {
    let kubeconfig = read(bytes)?;
    let options = KubeConfigOptions::default();
    // The error of the library could quote the content.
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|_| UNUSABLE.to_owned())
}

/// The server of an untrusted kubeconfig, as it may be reported: without a user, a password or a path.
pub fn server(bytes: &[u8]) -> Option<String> {
    let kubeconfig = read(bytes).ok()?;
    let current = kubeconfig.current_context?;
    let mut contexts = kubeconfig.contexts.into_iter();
    let context = contexts.find(|it| it.name == current)?.context?;
    let mut clusters = kubeconfig.clusters.into_iter();
    let cluster = clusters.find(|it| it.name == context.cluster)?.cluster?;
    let url: Uri = cluster.server?.parse().ok()?;
    let (scheme, host) = (url.scheme_str()?, url.host()?);
    let port = url.port_u16().map(|port| format!(":{port}"));
    let server = format!("{scheme}://{host}{}", port.unwrap_or_default());
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
