//! Metrics of real servers, etcd and kube-apiserver, on their way through `endpoint-resolver` and `metrics-proxy`. The pods are
//! objects of a real API server without kubelet: their status is written by the test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::cargo::Program;
use testbed::certs::{Authority, Certificate};
use testbed::client::{ApiClient, Patch, status_code};
use testbed::fixtures;
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::ports::allocate;
use testbed::process::Launch;
use testbed::progress::Progress;
use testbed::raw::RawClient;
use testbed::testbed::Testbed;
use testbed::wait;

use super::etcd::{Etcd, Files};
use super::running::{Running, WITHIN, fails};

const NAMESPACE: &str = "clusters-dev";
const PODS: &str = "/api/v1/namespaces/clusters-dev/pods";
/// No process listens here.
const SILENT: &str = "127.0.0.9";
/// The Role of the component.
const ROLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../control-plane-operator/src/components/endpoint_resolver/assets/role.yaml"
);

struct Scene<'a> {
    testbed: &'a Testbed,
    program: PathBuf,
    serving: Certificate,
    etcd: Etcd,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_of_ready_pods_are_forwarded() -> Result<()> {
    let testbed = Testbed::start("metrics", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let progress = Progress::detect();
    let binaries = Binaries::ensure(&[Binary::Etcd, Binary::Etcdctl], &progress).await?;
    let program = Program::dev("control-plane-operator", "control-plane-operator");
    let files = Files::create(&testbed.path().join("etcd-certificates"))?;
    let mut scene = Scene {
        testbed,
        program: program.build(&progress).await?,
        serving: testbed.control_plane.authority.server("serving")?,
        etcd: Etcd::new(testbed.work_dir(), &binaries, &files, 1)?,
    };
    scene.etcd.start().await?;
    scene.create_pods().await?;
    let (resolver, port) = scene.resolves().await?;
    scene.forwards(port).await?;
    resolver.terminates().await?;
    scene.rejects_bad_input().await
}

fn ready(status: &str, ip: &str) -> Value {
    json!({ "status": {
        "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }],
        "conditions": [{ "type": "Ready", "status": status }],
    } })
}

impl Scene<'_> {
    async fn create_pods(&self) -> Result<()> {
        let admin = &self.testbed.admin;
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        admin.create("/api/v1/namespaces", &namespace).await?;
        // No controller runs that would create it, and pods need it.
        let account = json!({ "metadata": { "name": "default" } });
        let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        admin.create(&accounts, &account).await?;
        for (name, app, ip, is_ready) in [
            ("etcd-0", "etcd", "127.0.0.1", "True"),
            ("etcd-1", "etcd", SILENT, "True"),
            ("etcd-2", "etcd", "127.0.0.1", "False"),
            ("kube-apiserver-0", "kube-apiserver", "127.0.0.1", "True"),
            ("down-0", "down", SILENT, "True"),
        ] {
            let pod = json!({
                "metadata": { "name": name, "labels": { "app": app } },
                "spec": { "containers": [{ "name": app, "image": app }] },
            });
            admin.create(PODS, &pod).await?;
            self.set_status(name, &ready(is_ready, ip)).await?;
        }
        Ok(())
    }

    async fn set_status(&self, pod: &str, status: &Value) -> Result<()> {
        let path = format!("{PODS}/{pod}/status");
        let patched = self.testbed.admin.patch(&path, Patch::Merge, status);
        patched.await.map(drop)
    }

    fn ca(&self) -> PathBuf {
        self.testbed.control_plane.authority.certificate()
    }

    /// Flags of both programs.
    fn launch(&self, name: &str, port: u16) -> Launch {
        Launch::new(name, &self.program)
            .arg(name)
            .flag("namespace", NAMESPACE)
            .flag("serving-port", port)
            .path_flag("tls-cert-file", &self.serving.certificate)
            .path_flag("tls-key-file", &self.serving.key)
    }

    /// Starts the endpoint resolver, whose answers follow its permissions and the pods.
    async fn resolves(&self) -> Result<(Running, u16)> {
        let user = self.testbed.kubeconfig_of("endpoint-resolver", None)?;
        let port = allocate()?;
        let launch = self.launch("endpoint-resolver", port);
        let launch = launch.path_flag("kubeconfig", &user);
        let mut running = Running::start(&launch, self.testbed.work_dir())?;
        let client = RawClient::new(&format!("https://127.0.0.1:{port}"), Some(&self.ca()))?;
        let served = wait::until("the resolver", WITHIN, async || {
            client.get("/healthz").await
        });
        ensure!(served.await?.status == StatusCode::OK);

        // Without permissions it does not answer that there are no pods.
        running.logs("Failed to watch pods").await?;
        let etcd = json!({ "selector": { "app": "etcd" } }).to_string();
        let (status, _) = resolve(&client, &etcd).await?;
        ensure!(status == StatusCode::INTERNAL_SERVER_ERROR, "{status}");
        self.grant("endpoint-resolver").await?;
        let pods = json!({ "pods": [
            { "name": "etcd-0", "ip": "127.0.0.1" }, { "name": "etcd-1", "ip": SILENT },
        ] });
        answers(&client, &etcd, StatusCode::OK, &pods).await?;

        self.set_status("etcd-0", &ready("False", "127.0.0.1"))
            .await?;
        let one = json!({ "pods": [{ "name": "etcd-1", "ip": SILENT }] });
        answers(&client, &etcd, StatusCode::OK, &one).await?;
        self.set_status("etcd-0", &ready("True", "127.0.0.1"))
            .await?;
        answers(&client, &etcd, StatusCode::OK, &pods).await?;

        let other = json!({ "selector": { "app": "other" } }).to_string();
        for (body, expected) in [
            (other.as_str(), StatusCode::NOT_FOUND),
            ("{", StatusCode::BAD_REQUEST),
            (r#"{"selector":{}}"#, StatusCode::BAD_REQUEST),
        ] {
            let (status, _) = resolve(&client, body).await?;
            ensure!(status == expected, "{body}: {status}");
        }
        let status = client.get("/resolve").await?.status;
        ensure!(status == StatusCode::METHOD_NOT_ALLOWED, "{status}");
        Ok((running, port))
    }

    /// Grants a user exactly what the component's Role grants.
    async fn grant(&self, user: &str) -> Result<()> {
        let roles = fixtures::load(Path::new(ROLE))?;
        let mut role = roles.into_iter().next().context("no Role")?;
        role["metadata"]["namespace"] = json!(NAMESPACE);
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": user, "namespace": NAMESPACE },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                "name": role["metadata"]["name"],
            },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        self.testbed.admin.apply(&[role, binding]).await
    }

    fn config(&self, resolver: u16) -> Result<Value> {
        let port = |url: &str| -> Result<u16> {
            let port = url.rsplit(':').next().unwrap_or_default();
            port.parse().with_context(|| format!("{url} has no port"))
        };
        let etcd = port(&self.etcd.members[0].url)?;
        let control_plane = &self.testbed.control_plane;
        let api_server = port(&control_plane.endpoint().server)?;
        let client = &control_plane.authority;
        let client = client.client("scraper", "scraper", Some("system:masters"))?;
        let files = &self.etcd.files;
        let component = |name: &str, port: u16| {
            json!({
                "name": name, "selector": { "app": name }, "metricsPort": port,
                "caFile": files.ca, "certFile": files.certificate, "keyFile": files.key,
            })
        };
        Ok(json!({
            "endpointResolver": {
                "url": format!("https://127.0.0.1:{resolver}"), "caFile": self.ca(),
            },
            "components": [
                component("etcd", etcd),
                {
                    "name": "kube-apiserver", "selector": { "app": "kube-apiserver" },
                    "metricsPort": api_server, "caFile": self.ca(), "certFile": client.certificate,
                    "keyFile": client.key, "metricsJob": "apiserver", "metricsNamespace": "default",
                },
                component("down", etcd),
                component("absent", etcd),
            ],
        }))
    }

    /// Scrapes as the guest's Prometheus does, with the metrics set Telemetry.
    async fn forwards(&self, resolver: u16) -> Result<()> {
        let guest = Authority::create(&self.testbed.path().join("guest-pki"))?;
        let port = allocate()?;
        let file = self.testbed.path().join("metrics-proxy.yaml");
        std::fs::write(&file, self.config(resolver)?.to_string())?;
        let launch = self
            .launch("metrics-proxy", port)
            .path_flag("client-ca-file", &guest.certificate())
            .path_flag("config-file", &file)
            .flag("metrics-set", "Telemetry");
        let mut running = Running::start(&launch, self.testbed.work_dir())?;
        let server = format!("https://127.0.0.1:{port}");
        let anonymous = RawClient::new(&server, Some(&self.ca()))?;
        let health = wait::until("the proxy", WITHIN, async || {
            anonymous.get("/healthz").await
        });
        ensure!(health.await?.status == StatusCode::OK);
        let status = anonymous.get("/metrics/etcd").await?.status;
        ensure!(status == StatusCode::UNAUTHORIZED, "{status}");

        let prometheus = self.client("prometheus", &server, &guest).await?;
        self.labels_are_added(&prometheus).await?;
        for (component, expected) in [("down", 502), ("unknown", 404), ("etcd/other", 400)] {
            let error = prometheus.text(&format!("/metrics/{component}")).await;
            let code = error.err().as_ref().and_then(status_code);
            ensure!(code == Some(expected), "{component}: {code:?}");
        }
        let empty = prometheus.text("/metrics/absent").await?;
        ensure!(empty.is_empty(), "{empty}");
        // An authority of the control plane does not authenticate clients of the guest.
        let control_plane = &self.testbed.control_plane.authority;
        let other = self.client("other", &server, control_plane).await?;
        ensure!(other.text("/metrics/etcd").await.is_err());
        running.logs("Failed to scrape").await?;
        running.terminates().await
    }

    async fn client(&self, name: &str, server: &str, issuer: &Authority) -> Result<ApiClient> {
        let path = self.testbed.path().join(format!("{name}.kubeconfig"));
        let certificate = issuer.client(name, name, None)?;
        let credentials = Credentials::Certificate(&certificate);
        write_kubeconfig(&path, server, Some(&self.ca()), credentials)?;
        ApiClient::from_kubeconfig(&path).await
    }

    async fn labels_are_added(&self, prometheus: &ApiClient) -> Result<()> {
        let host = |url: &str| url.replace("https://", "");
        let etcd = host(&self.etcd.members[0].url);
        let api_server = host(&self.testbed.control_plane.endpoint().server);
        let metrics = prometheus.text("/metrics/etcd").await?;
        let leader = format!(
            "etcd_server_leader_changes_seen_total{{pod=\"etcd-0\",namespace=\"{NAMESPACE}\",job=\"etcd\",service=\"etcd\",\
             endpoint=\"metrics\",instance=\"{etcd}\"}} "
        );
        let failed =
            "metrics_aggregator_pod_scrape_errors_total{component=\"etcd\",pod=\"etcd-1\"} 1";
        for sample in [leader.as_str(), failed] {
            ensure!(metrics.contains(sample), "no {sample} in\n{metrics}");
        }
        // Not ready, and not in the metrics set.
        for text in ["etcd-2", "go_goroutines"] {
            ensure!(!metrics.contains(text), "{text} in\n{metrics}");
        }
        let metrics = prometheus.text("/metrics/kube-apiserver").await?;
        let labels = format!(
            "pod=\"kube-apiserver-0\",namespace=\"default\",job=\"apiserver\",service=\"kube-apiserver\",\
             endpoint=\"metrics\",instance=\"{api_server}\"}}"
        );
        let has_labels =
            |line: &str| line.starts_with("apiserver_request_total{") && line.contains(&labels);
        ensure!(metrics.lines().any(has_labels), "{labels}\n{metrics:.2000}");
        ensure!(!metrics.contains("go_goroutines"));
        Ok(())
    }

    async fn rejects_bad_input(&self) -> Result<()> {
        let flag = |name: &str, value: &str| format!("--{name}={value}");
        let namespace = flag("namespace", NAMESPACE);
        let missing = flag("tls-cert-file", "/does/not/exist.crt");
        let args = [
            "endpoint-resolver".to_owned(),
            namespace.clone(),
            missing.clone(),
        ];
        fails(&self.program, &args, &[], 64, "/does/not/exist.crt").await?;
        fails(&self.program, &args[..1], &[], 64, "--namespace").await?;
        let config = flag("config-file", "/does/not/exist.yaml");
        let args = ["metrics-proxy".to_owned(), namespace, config];
        fails(&self.program, &args, &[], 64, "/does/not/exist.yaml").await?;
        fails(&self.program, &args[..2], &[], 64, "--config-file").await
    }
}

async fn resolve(client: &RawClient, body: &str) -> Result<(StatusCode, Value)> {
    let request = Request::post("/resolve").body(body.as_bytes().to_vec())?;
    let response = client.send(request).await?;
    let status = response.status;
    let body = response.bytes().await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Waits until the resolver answers this.
async fn answers(client: &RawClient, body: &str, status: StatusCode, answer: &Value) -> Result<()> {
    let what = format!("the answer {answer}");
    wait::until(&what, WITHIN, async || {
        let found = resolve(client, body).await?;
        ensure!(found == (status, answer.clone()), "{found:?}");
        Ok(())
    })
    .await
}
