//! Files that change, vanish and come back.

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

#[test]
fn s13_a_replaced_token_is_used() {
    let pod = Pod::new();
    let store = pod.store();
    assert_eq!(token(&store).unwrap(), "Bearer first");
    assert!(!store.has_changed());
    pod.write("token", "second-token");
    assert!(store.has_changed());
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer second-token");
}

#[test]
fn s13_a_swapped_directory_is_noticed() {
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

#[test]
fn s13_the_last_token_serves_until_it_expires_when_the_file_is_gone() {
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
        "a token that can be read is the API server's to judge"
    );
    pod.write("token", "");
    store.refresh();
    let problem = token(&store).unwrap_err().to_string();
    assert!(problem.contains("holds no token"), "{problem}");
    pod.write("token", "new");
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer new");
}

#[test]
fn s13_a_refused_token_is_read_again_at_once() {
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

#[test]
fn s14_a_rotated_authority_begins_an_epoch_and_a_broken_one_changes_nothing() {
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

#[test]
fn f06_a_token_that_comes_later_is_waited_for() {
    let pod = Pod::new();
    pod.remove("token");
    let store = pod.store();
    assert!(
        token(&store)
            .unwrap_err()
            .to_string()
            .contains("cannot read")
    );
    assert!(store.has_changed());
    pod.write("token", "late");
    store.refresh();
    assert_eq!(token(&store).unwrap(), "Bearer late");
}

#[test]
fn another_server_is_all_or_nothing() {
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
