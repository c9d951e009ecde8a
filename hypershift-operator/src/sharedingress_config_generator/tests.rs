//! From objects to the file. In the end-to-end tests, haproxy itself checks and runs the configuration.

mod exposure;

use std::sync::Arc;

use clap::Parser as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

use super::clusters::{Skipped, evaluate};
use super::objects::Objects;
use super::*;
use crate::args::{Cli, Command};

const ID: &str = "11111111-2222-3333-4444-555555555555";

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Objects of the management cluster.
#[derive(Default)]
struct Management(Objects);

impl Management {
    /// Adds a HostedCluster `clusters/NAME` with its namespace and Services, created at this hour.
    #[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
    fn cluster(mut self, name: &str, hour: u8, spec: Value) -> Self {
        let created = format!("2026-01-01T{hour:02}:00:00Z");
        let namespace = format!("clusters-{name}");
        self.0.clusters.push(parse(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
            "metadata": {
                "namespace": "clusters", "name": name, "uid": name, "creationTimestamp": created,
            },
            "spec": spec,
        })));
        let owner = json!({ "hypershift.openshift.io/cluster": format!("clusters/{name}") });
        let metadata: Arc<PartialObjectMeta<Namespace>> = parse(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": namespace, "annotations": owner },
        }));
        self.0.namespaces.insert(namespace.clone(), metadata);
        for (index, service) in ["kube-apiserver", "ignition-server", "oauth-openshift"]
            .into_iter()
            .enumerate()
        {
            let ip = format!("10.{hour}.0.{}", index + 1);
            self = self.service(&namespace, service, &ip);
        }
        self
    }

    fn service(mut self, namespace: &str, name: &str, ip: &str) -> Self {
        let id = (namespace.to_owned(), name.to_owned());
        let spec = json!({ "clusterIP": ip, "ports": [{ "port": 6443 }] });
        let service = json!({ "metadata": { "namespace": namespace, "name": name }, "spec": spec });
        self.0.services.insert(id, parse(service));
        self
    }

    /// Adds a Route that is younger than those before it.
    fn route(mut self, namespace: &str, service: &str, host: &str, more: &Value) -> Self {
        let mut labels = json!({ "hypershift.openshift.io/hosted-control-plane": namespace });
        if let Some(more) = more.as_object() {
            labels.as_object_mut().unwrap().extend(more.clone());
        }
        let number = self.0.routes.len();
        let name = format!("route-{number}");
        let created = format!("2030-01-01T00:00:{number:02}Z");
        self.0.routes.push(parse(json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": {
                "namespace": namespace, "name": name, "labels": labels, "creationTimestamp": created,
            },
            "spec": { "host": host, "to": { "kind": "Service", "name": service } },
        })));
        self
    }

    /// Sets the annotation of attached control planes on all clusters.
    fn annotated(mut self, instance: Option<&str>) -> Self {
        let Some(instance) = instance else {
            return self;
        };
        for cluster in &mut self.0.clusters {
            let annotations = Arc::make_mut(cluster).annotations_mut();
            let key = "hypershift.openshift.io/swift-pod-network-instance";
            annotations.insert(key.to_owned(), instance.to_owned());
        }
        self
    }

    /// The text, and what is skipped.
    fn rendered(&self) -> (String, Vec<String>) {
        let (clusters, skipped) = evaluate(&self.0);
        let line = |Skipped { cluster, reason }| format!("{cluster}: {reason}");
        (
            config::render(&clusters),
            skipped.into_iter().map(line).collect(),
        )
    }
}

fn spec(id: &str) -> Value {
    json!({ "clusterID": id, "platform": { "type": "Azure" } })
}

/// Two clusters: one with all that a cluster may have, and one whose nodes use its own network.
fn two() -> Management {
    let many: Vec<_> = (0..100).map(|at| format!("10.0.{at}.0/24")).collect();
    let mut first = spec(ID);
    first["kubeAPIServerDNSName"] = json!("api.custom.example.com");
    first["networking"] = json!({ "apiServer": { "allowedCIDRBlocks": many } });
    let mut private = spec("99999999-2222-3333-4444-555555555555");
    private["platform"]["azure"] = json!({ "topology": "PublicAndPrivate" });
    Management::default()
        .cluster("b", 2, private)
        .cluster("a", 1, first)
        .service("clusters-a", "konnectivity-server", "fd00::7")
        .route(
            "clusters-a",
            "kube-apiserver",
            "API.a.example.com",
            &json!({}),
        )
        .route(
            "clusters-a",
            "konnectivity-server",
            "k.a.example.com",
            &json!({}),
        )
        .route(
            "clusters-a",
            "oauth-openshift",
            "oauth.a.example.com",
            &json!({}),
        )
        .route(
            "clusters-a",
            "kube-apiserver",
            "internal.example.com",
            &json!({ "hypershift.openshift.io/internal-route": "true" }),
        )
        .route(
            "clusters-b",
            "ignition-server",
            "ignition.b.example.com",
            &json!({}),
        )
}

#[test]
fn clusters_are_served_by_id_and_by_host() {
    let (text, skipped) = two().rendered();
    assert_eq!(skipped, Vec::<String>::new());
    for line in [
        "  maxconn 20000\n",
        "  bind :::6443 v4v6 accept-proxy\n",
        "  monitor-uri /haproxy_ready\n",
        &format!(
            "  use_backend clusters-a_kube-apiserver if {{ fc_pp_tlv(0x20) -m str {ID} }} clusters-a_allowed\n"
        ),
        "  use_backend clusters-a_apiserver if { req.ssl_sni -m str -i -- api.a.example.com } clusters-a_allowed\n",
        "  use_backend clusters-a_apiserver-custom if { req.ssl_sni -m str -i -- api.custom.example.com } clusters-a_allowed\n",
        "  use_backend clusters-b_ignition if { req.ssl_sni -m str -i -- ignition.b.example.com }\n",
        "\nbackend clusters-a_kube-apiserver\n  server kube-apiserver 10.1.0.1:6443\n",
        "\nbackend clusters-a_konnectivity\n  server konnectivity [fd00::7]:8091\n",
        "\nbackend clusters-b_ignition\n  server ignition 10.2.0.2:443\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // Its nodes use its own network, and internal Routes have another router.
    for text_absent in [
        "clusters-b_kube-apiserver",
        "internal.example.com",
        "99999999",
    ] {
        assert!(!text.contains(text_absent), "{text_absent}");
    }
    // A line of haproxy has at most 64 words, and each address is on two frontends.
    let longest = text
        .lines()
        .map(|line| line.split_whitespace().count())
        .max();
    assert!(longest <= Some(64), "{longest:?}");
    assert_eq!(text.matches("/24").count(), 200);
}

#[test]
fn tenants_do_not_take_from_others() {
    let host = "api.shared.example.com";
    let older = spec(ID);
    let mut newer = spec(ID);
    newer["kubeAPIServerDNSName"] = json!(host);
    let management = Management::default()
        .cluster("a", 5, newer)
        .cluster("z", 1, older)
        .route("clusters-z", "kube-apiserver", host, &json!({}))
        .route(
            "clusters-a",
            "oauth-openshift",
            "API.Shared.example.com",
            &json!({}),
        )
        // A Route that names the namespace of another cluster.
        .route(
            "clusters-a",
            "ignition-server",
            "b.example.com",
            &json!({
                "hypershift.openshift.io/hosted-control-plane": "clusters-z",
            }),
        );
    let (text, skipped) = management.rendered();
    let owner = format!("host {host} belongs to HostedCluster clusters/z, which claimed it first");
    assert_eq!(
        skipped,
        [
            format!("clusters/a: Route clusters-a/route-1: {owner}"),
            format!(
                "clusters/a: access of nodes to the API server: spec.clusterID {ID} belongs to HostedCluster clusters/z, which is older"
            ),
            format!("clusters/a: spec.kubeAPIServerDNSName: {owner}"),
        ]
    );
    assert!(text.contains("use_backend clusters-z_apiserver"), "{text}");
    assert!(
        !text.contains("clusters-a_") && !text.contains("b.example.com"),
        "{text}"
    );
}

/// Authors can change the name at any time, also to one that a Route of a younger cluster has.
#[test]
fn custom_names_never_take_a_host_from_a_route() {
    let host = "oauth.victim.example.com";
    for (victim, attacker) in [(5, 1), (1, 5)] {
        let mut other = spec("22222222-2222-3333-4444-555555555555");
        other["kubeAPIServerDNSName"] = json!(host);
        let management = Management::default()
            .cluster("attacker", attacker, other)
            .cluster("victim", victim, spec(ID))
            .route("clusters-victim", "oauth-openshift", host, &json!({}));
        let (text, skipped) = management.rendered();
        let reason = format!(
            "clusters/attacker: spec.kubeAPIServerDNSName: host {host} belongs to HostedCluster clusters/victim, which claimed it first"
        );
        assert_eq!(skipped, [reason], "ages {victim} and {attacker}");
        assert!(
            text.contains("use_backend clusters-victim_oauth if"),
            "{text}"
        );
        assert!(
            !text.contains("clusters-attacker_apiserver-custom"),
            "{text}"
        );
    }
}

#[test]
fn unusable_clusters_leave_the_others_served() {
    let evil = "a.example.com } \n  use_backend clusters-b_apiserver if { always_true";
    let with = |field: &str, value: Value| {
        let mut spec = spec("22222222-2222-3333-4444-555555555555");
        spec[field] = value;
        spec
    };
    let ranges = json!({ "apiServer": { "allowedCIDRBlocks": ["10.0.0.0/8 0.0.0.0/0"] } });
    for (name, spec, expected) in [
        (
            "a host that injects configuration",
            with("kubeAPIServerDNSName", json!(evil)),
            "spec.kubeAPIServerDNSName: its host is not a DNS name",
        ),
        (
            "a host that is an option of haproxy",
            with("kubeAPIServerDNSName", json!("-f.example.com")),
            "spec.kubeAPIServerDNSName: its host is not a DNS name",
        ),
        (
            "a host that ends its options",
            with("kubeAPIServerDNSName", json!("--")),
            "spec.kubeAPIServerDNSName: its host is not a DNS name",
        ),
        (
            "a label that ends with a hyphen",
            with("kubeAPIServerDNSName", json!("a-.example.com")),
            "spec.kubeAPIServerDNSName: its host is not a DNS name",
        ),
        (
            "an ID that does",
            with("clusterID", json!("1 }\n")),
            "spec.clusterID is not a UUID",
        ),
        (
            "a range that does",
            with("networking", ranges),
            "is not a valid CIDR",
        ),
    ] {
        let management = two().cluster("evil", 9, spec);
        let (text, skipped) = management.rendered();
        assert!(skipped[0].contains(expected), "{name}: {skipped:?}");
        assert!(!text.contains("always_true"), "{name}");
        assert!(text.contains("clusters-a_kube-apiserver if"), "{name}");
    }
    let mut management = two().cluster("c", 9, spec(ID));
    management.0.namespaces.remove("clusters-c");
    let (_, skipped) = management.rendered();
    assert_eq!(
        skipped,
        ["clusters/c: waiting for control plane namespace clusters-c"]
    );
    let foreign = json!({ "hypershift.openshift.io/cluster": "clusters-c/d" });
    let foreign = json!({ "metadata": { "name": "clusters-c", "annotations": foreign } });
    management
        .0
        .namespaces
        .insert("clusters-c".to_owned(), parse(foreign));
    let (_, skipped) = management.rendered();
    assert!(
        skipped[0].contains("belongs to HostedCluster clusters-c/d"),
        "{skipped:?}"
    );
}

#[test]
fn a_file_is_replaced_only_if_it_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(directory.path());
    assert_eq!(path, directory.path().join("haproxy.cfg"));
    assert!(file::write(&path, "a").unwrap());
    assert!(!file::write(&path, "a").unwrap());
    assert!(file::write(&path, "b").unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let error = file::write(Path::new("/does/not/exist/a.cfg"), "a")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/does/not/exist/a.cfg: it keeps its previous content"),
        "{error}"
    );
}

#[test]
fn a_missing_directory_is_a_usage_error() {
    let line = ["hypershift-operator", "sharedingress-config-generator"];
    let parse = |flags: &[&'static str]| {
        let Command::SharedingressConfigGenerator(args) =
            Cli::try_parse_from(line.iter().chain(flags))
                .unwrap()
                .command
        else {
            panic!("another command");
        };
        args
    };
    let args = parse(&[]);
    assert_eq!(
        args.config_path,
        Path::new("/usr/local/etc/haproxy/haproxy.cfg")
    );
    assert_eq!(
        args.haproxy_socket_path,
        Path::new("/var/run/haproxy/admin.sock")
    );
    let error = run(&parse(&["--config-path=/does/not/exist/haproxy.cfg"])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("--config-path /does/not/exist/haproxy.cfg"),
        "{error}"
    );
    let code = format!("{:?}", error.exit_code());
    assert_eq!(code, format!("{:?}", std::process::ExitCode::from(64)));
}

/// The whole program with an API server and a master process.
#[tokio::test]
async fn changes_of_objects_reach_haproxy() {
    let directory = tempfile::tempdir().unwrap();
    let (path, socket) = (
        directory.path().join("haproxy.cfg"),
        directory.path().join("sock"),
    );
    let listener = UnixListener::bind(&socket).unwrap();
    let list = |kind: &str, version: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "resourceVersion": "1" }, "items": [] });
    let lists = [
        (
            "/apis/hypershift.openshift.io/v1beta1/hostedclusters",
            list("HostedClusterList", "hypershift.openshift.io/v1beta1"),
        ),
        (
            "/apis/route.openshift.io/v1/routes",
            list("RouteList", "route.openshift.io/v1"),
        ),
        ("/api/v1/services", list("ServiceList", "v1")),
        (
            "/api/v1/namespaces",
            list("PartialObjectMetadataList", "meta.k8s.io/v1"),
        ),
    ];
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|it| it.contains("watch="));
        let found = lists.iter().find(|(path, _)| request.uri().path() == *path);
        let body = found.map(|(_, list)| list.to_string()).unwrap_or_default();
        async move {
            if is_watch {
                std::future::pending::<()>().await;
            }
            let body = kube::client::Body::from(body.into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        }
    });
    let stores = Stores::watch(&kube::Client::new(service, "default"));
    let master = Master::at(socket);
    let generating = generate(&stores, &path, &master);
    let reloaded = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 7];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(b"Success=1\n").await.unwrap();
        request
    };
    tokio::select! {
        () = generating => unreachable!("it runs for ever"),
        request = reloaded => assert_eq!(&request, b"reload\n"),
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, config::render(&[]));
}
