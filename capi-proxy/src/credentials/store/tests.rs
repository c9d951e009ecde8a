//! Files that change, vanish and return.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::*;
use crate::credentials::{Alpn, Identity};

struct Pod {
    directory: tempfile::TempDir,
}

impl Pod {
    fn new() -> Self {
        let pod = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        pod.write("ca.crt", &authority());
        pod.write("token", "first");
        pod
    }

    fn write(&self, name: &str, contents: &str) {
        fs::write(self.directory.path().join(name), contents).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.directory.path().join(name)).unwrap();
    }

    fn store(&self) -> Store {
        let server = Endpoint::parse("https://127.0.0.1:6443").unwrap();
        Store::new(Source::InCluster {
            server,
            directory: self.directory.path().to_owned(),
        })
    }
}

fn authority() -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
}

fn token(store: &Store) -> Result<String, NotReady> {
    let session = store.session()?;
    Ok(session
        .token
        .as_ref()
        .unwrap()
        .header()
        .to_str()
        .unwrap()
        .to_owned())
}

fn jwt(expires: i64) -> String {
    use base64::Engine;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let claims = format!("{{\"exp\":{}}}", now.cast_signed() + expires);
    format!(
        "head.{}.signature",
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims)
    )
}

/// Check S13.
#[test]
fn a_replaced_token_file_is_reloaded() {
    let pod = Pod::new();
    let store = pod.store();
    assert_eq!(token(&store).unwrap(), "Bearer first");
    assert!(!store.has_changed());
    pod.write("token", "second-token");
    assert!(store.has_changed());
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer second-token");
}

/// Check S13.
#[test]
fn a_swapped_token_directory_is_reloaded() {
    let pod = Pod::new();
    let root = pod.directory.path();
    for (generation, contents) in [("a", "token-a"), ("b", "token-b")] {
        fs::create_dir(root.join(generation)).unwrap();
        fs::write(root.join(generation).join("token"), contents).unwrap();
    }
    pod.remove("token");
    std::os::unix::fs::symlink("a", root.join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/token", root.join("token")).unwrap();
    let store = pod.store();
    assert_eq!(token(&store).unwrap(), "Bearer token-a");
    std::os::unix::fs::symlink("b", root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    assert!(store.has_changed());
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer token-b");
}

/// Check S13.
#[test]
fn a_removed_token_file_keeps_the_token_until_it_expires() {
    let pod = Pod::new();
    pod.write("token", &jwt(3600));
    let store = pod.store();
    for damage in ["emptied", "gone"] {
        if damage == "emptied" {
            pod.write("token", "")
        } else {
            pod.remove("token")
        }
        store.refresh();
        assert!(token(&store).is_ok(), "{damage}");
        assert!(store.has_changed(), "{damage}: it is looked for");
    }
    pod.write("token", &jwt(-10));
    store.refresh();
    assert!(
        token(&store).is_ok(),
        "the API server validates a readable token"
    );
    pod.write("token", "");
    store.refresh();
    let problem = token(&store).unwrap_err().to_string();
    assert!(problem.contains("holds no token"), "{problem}");
    pod.write("token", "new");
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer new");
}

/// Check S13.
#[test]
fn a_rejected_token_is_reloaded_immediately() {
    let pod = Pod::new();
    let store = pod.store();
    let refused = store.session().unwrap();
    assert!(
        store.after_refusal(&refused).is_none(),
        "the same token is not tried twice"
    );
    pod.write("token", "fresh");
    let next = store.after_refusal(&refused).unwrap();
    assert_eq!(next.token.as_ref().unwrap().header(), "Bearer fresh");
    assert_eq!(next.epoch, refused.epoch, "connections are kept");
}

/// Check S14.
#[test]
fn a_rotated_ca_starts_an_epoch_and_an_invalid_one_is_ignored() {
    let pod = Pod::new();
    let store = pod.store();
    let first = store.session().unwrap();
    for broken in [
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        pod.write("ca.crt", broken);
        pod.write("token", "second");
        store.refresh();
        let session = store.session().unwrap();
        assert_eq!(session.epoch, first.epoch);
        let config = |session: &Session| {
            session
                .tls
                .as_ref()
                .unwrap()
                .config(Identity::Ours, Alpn::Http1)
        };
        assert!(
            Arc::ptr_eq(&config(&session), &config(&first)),
            "the old authority stays"
        );
        assert_eq!(
            token(&store).unwrap(),
            "Bearer second",
            "the token is read for itself"
        );
    }
    pod.write("ca.crt", &authority());
    store.refresh();
    assert_eq!(store.session().unwrap().epoch, first.epoch + 1);
}

/// Check F06.
#[test]
fn a_missing_token_is_picked_up_when_it_appears() {
    let pod = Pod::new();
    pod.remove("token");
    let store = pod.store();
    assert!(
        token(&store)
            .unwrap_err()
            .to_string()
            .contains("failed to read")
    );
    assert!(store.has_changed());
    pod.write("token", "late");
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer late");
}

#[test]
fn a_changed_server_is_used_only_with_valid_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let write = |server: &str, user: &str| {
        let text = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {user}}}]}}"
        );
        fs::write(&path, text).unwrap();
    };
    write("http://127.0.0.1:1", "{token: one}");
    let store = Store::new(Source::Kubeconfig {
        path: path.clone(),
        context: None,
    });
    assert_eq!(token(&store).unwrap(), "Bearer one");
    write("http://127.0.0.1:2", "{tokenFile: absent}");
    store.refresh();
    let session = store.session().unwrap();
    assert_eq!(
        session.endpoint.port, 1,
        "the old token is not sent to the new server"
    );
    write("http://127.0.0.1:2", "{token: two}");
    store.refresh();
    assert_eq!(
        (
            store.session().unwrap().endpoint.port,
            token(&store).unwrap()
        ),
        (2, "Bearer two".to_owned())
    );
}
