//! Certificates over time: issue, renewal, and rotation of an authority.

use std::collections::BTreeMap;
use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::facts::Infra;
use control_plane_component::settings::Settings;
use control_plane_component::{Objects, Predicates, Release};
use serde_json::json;

use super::*;
use crate::components;

const DAY: Duration = Duration::from_hours(24);

/// A control plane and its objects.
struct Fixture {
    hcp: api::hypershift::v1beta1::HostedControlPlane,
    objects: Objects,
}

fn fixture() -> Fixture {
    let text =
        include_str!("../../../control-plane-component/tests/data/base/hosted-control-plane.yaml");
    Fixture {
        hcp: serde_saphyr::from_str(text).unwrap(),
        objects: Objects::default(),
    }
}

impl Fixture {
    /// Reconciles, and returns the names of the written Secrets.
    fn reconcile(&mut self, now: Timestamp) -> Vec<String> {
        self.reconcile_set(CertificateSet::All, now)
    }

    fn reconcile_set(&mut self, set: CertificateSet, now: Timestamp) -> Vec<String> {
        let release = Release::default();
        let settings = Settings::new("own");
        let context = Context {
            hcp: &self.hcp,
            release: &release,
            user_release: &release,
            infra: &Infra::default(),
            objects: &self.objects,
            settings: &settings,
            predicates: Predicates::Evaluated,
        };
        let written = objects(components::declared(), &context, set, now).unwrap();
        let names = written.iter().filter(|object| object["kind"] == "Secret");
        let mut names: Vec<_> = names
            .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        for object in written {
            self.objects.insert(object);
        }
        names
    }

    fn pem(&self, secret: &str, key: &str) -> Vec<u8> {
        self.objects.secret_value(secret, key).unwrap()
    }

    fn until(&self, secret: &str, key: &str) -> Timestamp {
        read::certificate(&self.pem(secret, key)).unwrap().until
    }

    /// Whether a certificate is signed by an authority of a bundle.
    fn is_trusted(&self, leaf: &str, bundle: &str) -> bool {
        let bundle = self.objects.config_value(bundle, "ca.crt").unwrap();
        let leaf = self.pem(leaf, "tls.crt");
        let leaf = x509_parser::pem::Pem::iter_from_buffer(&leaf)
            .next()
            .unwrap()
            .unwrap();
        let leaf = leaf.parse_x509().unwrap();
        x509_parser::pem::Pem::iter_from_buffer(bundle.as_bytes()).any(|pem| {
            let pem = pem.unwrap();
            let authority = pem.parse_x509().unwrap();
            leaf.issuer() == authority.subject() && key_id(&leaf, true) == key_id(&authority, false)
        })
    }
}

/// Returns the authority key identifier, or the subject key identifier.
fn key_id(certificate: &x509_parser::certificate::X509Certificate<'_>, of_signer: bool) -> Vec<u8> {
    use x509_parser::extensions::ParsedExtension;
    let mut extensions = certificate.extensions().iter();
    extensions
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) if of_signer => {
                id.key_identifier.as_ref().map(|id| id.0.to_vec())
            }
            ParsedExtension::SubjectKeyIdentifier(id) if !of_signer => Some(id.0.to_vec()),
            _ => None,
        })
        .unwrap()
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn certificates_are_renewed_a_month_before_expiry() {
    let mut fixture = fixture();
    let now = start();
    let made = fixture.reconcile(now);
    for name in [
        "root-ca",
        "etcd-server-tls",
        "kas-server-crt",
        "sa-signing-key",
        "hcco-client",
    ] {
        assert!(made.contains(&name.to_owned()), "{name} is not in {made:?}");
    }
    assert_eq!(fixture.reconcile(now + DAY), Vec::<String>::new());
    assert_eq!(fixture.reconcile(now + 334 * DAY), Vec::<String>::new());
    let renewed = fixture.reconcile(now + 336 * DAY);
    assert!(
        renewed.contains(&"kas-server-crt".to_owned()),
        "{renewed:?}"
    );
    assert!(!renewed.contains(&"root-ca".to_owned()), "{renewed:?}");
    assert!(
        !renewed.contains(&"sa-signing-key".to_owned()),
        "{renewed:?}"
    );
    let hcco = read::certificate(&fixture.pem("hcco-client", "tls.crt")).unwrap();
    assert_eq!(hcco.organizations.len(), 2, "{hcco:?}");
    assert!(fixture.is_trusted("kas-server-crt", "root-ca"));
}

#[test]
fn etcd_certificates_are_issued_first() {
    let mut fixture = fixture();
    let first = fixture.reconcile_set(CertificateSet::Etcd, start());
    let expected = [
        "etcd-client-tls",
        "etcd-metrics-client-tls",
        "etcd-metrics-signer",
        "etcd-peer-tls",
        "etcd-server-tls",
        "etcd-signer",
    ];
    assert_eq!(first, expected);
    for bundle in ["etcd-ca", "etcd-metrics-ca"] {
        assert!(fixture.objects.config_value(bundle, "ca.crt").is_some());
    }
    assert_eq!(fixture.objects.config_value("root-ca", "ca.crt"), None);
    let rest = fixture.reconcile(start());
    assert!(rest.contains(&"root-ca".to_owned()), "{rest:?}");
    assert!(!rest.iter().any(|name| first.contains(name)), "{rest:?}");
}

#[test]
fn changed_names_reissue_only_that_certificate() {
    let mut fixture = fixture();
    fixture.reconcile(start());
    let services = json!([{ "cidr": "172.31.0.0/16" }]);
    let mut networking = json!(fixture.hcp.spec.networking);
    networking["serviceNetwork"] = services;
    fixture.hcp.spec.networking = serde_json::from_value(networking).unwrap();
    assert_eq!(fixture.reconcile(start() + DAY), ["kas-server-crt"]);
}

/// Finding T08: an address that is not in canonical form reissued the certificate in every reconcile.
/// Otherwise it would be issued again whenever the objects of the disabled component are deleted.
#[test]
fn disabled_components_get_no_service_account_certificate() {
    let secret = |component: &str| format!("{component}-service-account-kubeconfig");
    let (aws, kubevirt) = (
        secret("cloud-credential-operator"),
        secret("kubevirt-csi-controller"),
    );
    for (platform, issued, not_issued) in [
        (PlatformType::Aws, &aws, &kubevirt),
        (PlatformType::KubeVirt, &kubevirt, &aws),
    ] {
        let mut fixture = fixture();
        fixture.hcp.spec.platform.type_ = platform;
        let names = fixture.reconcile(start());
        assert!(names.contains(issued), "{platform:?}: {names:?}");
        assert!(!names.contains(not_issued), "{platform:?}: {names:?}");
    }
}

#[test]
fn addresses_in_any_form_do_not_reissue_certificates() {
    let mut fixture = fixture();
    let mut networking = json!(fixture.hcp.spec.networking);
    networking["apiServer"] = json!({ "advertiseAddress": "FD00:0:0::1" });
    networking["serviceNetwork"] = json!([{ "cidr": "FD02::/112" }]);
    fixture.hcp.spec.networking = serde_json::from_value(networking).unwrap();
    fixture.reconcile(start());
    assert_eq!(fixture.reconcile(start() + DAY), [""; 0]);
}

#[test]
fn authority_rotation_trusts_both_authorities() {
    let mut fixture = fixture();
    fixture.reconcile(start());
    let end = fixture.until("root-ca", "ca.crt");
    let old = fixture.pem("root-ca", "ca.crt");
    let bundle = |fixture: &Fixture| fixture.objects.config_value("root-ca", "ca.crt").unwrap();
    let trusts = |fixture: &Fixture, pem: &[u8]| {
        bundle(fixture).contains(std::str::from_utf8(pem).unwrap().trim())
    };
    // Introduced: trusted, but does not sign yet.
    let introduced = end - 390 * DAY;
    fixture.reconcile(introduced);
    let new = fixture.pem("root-ca", "next.crt");
    assert_eq!(fixture.pem("root-ca", "ca.crt"), old);
    assert!(trusts(&fixture, &old) && trusts(&fixture, &new));
    assert!(fixture.is_trusted("kas-server-crt", "root-ca"));
    assert_eq!(
        fixture.reconcile(introduced + DAY / 2),
        Vec::<String>::new()
    );
    // Promoted: signs everything.
    let promoted = fixture.reconcile(introduced + 2 * DAY);
    assert!(
        promoted.contains(&"kas-server-crt".to_owned()),
        "{promoted:?}"
    );
    assert_eq!(fixture.pem("root-ca", "ca.crt"), new);
    assert!(trusts(&fixture, &old) && trusts(&fixture, &new));
    assert!(fixture.is_trusted("kas-server-crt", "root-ca"));
    // Removed after it has expired.
    fixture.reconcile(end + DAY);
    assert!(!trusts(&fixture, &old) && trusts(&fixture, &new));
}

#[test]
fn unmanaged_etcd_credentials_are_copied_only_when_complete() {
    let mut fixture = fixture();
    fixture.hcp.spec.etcd = serde_json::from_value(json!({
        "managementType": "Unmanaged",
        "unmanaged": {
            "endpoint": "https://etcd.example.com:2379", "tls": { "clientSecret": { "name": "client" } },
        },
    }))
    .unwrap();
    // It is copied although PKI reconciliation is disabled.
    fixture.hcp.metadata.annotations = Some(BTreeMap::from([(
        "hypershift.openshift.io/disable-pki-reconciliation".to_owned(),
        "true".to_owned(),
    )]));
    let client = |data: serde_json::Value| json!({ "kind": "Secret", "metadata": { "name": "client" }, "data": data });
    fixture.objects.insert(client(
        json!({ "etcd-client.crt": "YQ==", "etcd-client.key": "Yg==" }),
    ));
    assert_eq!(fixture.reconcile(start()), [""; 0]);
    fixture.objects.insert(client(
        json!({ "etcd-client.crt": "YQ==", "etcd-client.key": "Yg==", "etcd-client-ca.crt": "Yw==" }),
    ));
    assert_eq!(fixture.reconcile(start()), ["etcd-client-tls"]);
    assert_eq!(fixture.pem("etcd-client-tls", "etcd-client.key"), b"b");
    let authority = fixture.objects.config_value("etcd-ca", "ca.crt");
    assert_eq!(authority.as_deref(), Some("c"));
}

/// Whether a text advises to delete the Secret of a certificate authority.
fn advises_deletion(text: &str) -> bool {
    text.split(['.', '\n', '|']).any(|sentence| {
        let sentence = sentence.to_lowercase();
        let is_about = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
        is_about(&["delet", "remov", "recreat"])
            && sentence.contains("secret")
            && is_about(&[
                "authority",
                "authorities",
                "root-ca",
                "-ca`",
                " ca ",
                "signer",
            ])
            && !is_about(&["do not", "never", "must not"])
    })
}

/// Check T13: deleting an authority breaks trust of all nodes and kubeconfigs, so neither the error nor the
/// documentation advises it.
#[test]
fn documentation_never_advises_deleting_an_authority() {
    let error = Error::Authority {
        secret: "root-ca".to_owned(),
        source: rcgen::KeyPair::from_pem("damaged").unwrap_err(),
    };
    let text = error.to_string();
    assert!(
        text.contains("restore") && text.contains("Do not delete it"),
        "{text}"
    );
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = ["docs", "docs/runbooks"].map(|directory| {
        let entries = std::fs::read_dir(root.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let pages = pages.into_iter().flatten();
    let texts = pages
        .chain([root.join("README.md"), root.join("SECURITY.md")])
        .filter(|path| path.extension().is_some_and(|it| it == "md"));
    let mut count = 0;
    for path in texts {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!advises_deletion(&text), "{}", path.display());
        count += 1;
    }
    assert!(count > 20, "{count} pages");
    for (text, expected) in [
        ("To rotate the authority, delete Secret root-ca.", true),
        (
            "Remove the Secret of the certificate authority and wait.",
            true,
        ),
        ("Do not delete the Secret of the authority.", false),
        ("Delete the Secret of the certificate.", false),
    ] {
        assert_eq!(advises_deletion(text), expected, "{text}");
    }
}
