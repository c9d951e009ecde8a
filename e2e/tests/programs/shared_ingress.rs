//! `sharedingress-config-generator` on a real API server with exactly the documented permissions, and a real haproxy that
//! serves two tenants with what it writes. HostedClusters are of a kind that takes any object, so that the generator also
//! gets what the API would refuse.

mod haproxy;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::cargo::Program;
use testbed::client::ApiClient;
use testbed::crds;
use testbed::fixtures;
use testbed::node::packages;
use testbed::process::Launch;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::running::{Running, WITHIN, fails};
use haproxy::{Haproxy, exchange, hello, proxied};

const HYPERSHIFT: &str = "hypershift.openshift.io";
const USER: &str = "sharedingress-config-generator";
const DOCUMENTATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operator.md");
const ONE: &str = "11111111-0000-0000-0000-000000000001";
const TWO: &str = "22222222-0000-0000-0000-000000000002";
const PRIVATE: &str = "33333333-0000-0000-0000-000000000003";
/// An address of a client that cluster one allows, and one that it does not.
const ALLOWED: [u8; 4] = [192, 0, 2, 7];
const OTHER: [u8; 4] = [198, 51, 100, 7];

struct Scene<'a> {
    admin: &'a ApiClient,
    program: PathBuf,
    directory: PathBuf,
    /// Addresses of Services, and of servers that stand for their pods.
    services: Vec<(String, SocketAddr)>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_share_an_ingress_that_haproxy_serves() -> Result<()> {
    let testbed = Testbed::start("shared-ingress", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let progress = Progress::detect();
    let installed = packages::program("haproxy", "haproxy", &progress).await?;
    let program = Program::dev("hypershift-operator", "hypershift-operator");
    let mut scene = Scene {
        admin: &testbed.admin,
        program: program.build(&progress).await?,
        directory: testbed.path().join("haproxy"),
        services: Vec::new(),
    };
    std::fs::create_dir(&scene.directory)?;
    scene.rejects_bad_input().await?;
    scene.create_tenants().await?;
    let haproxy = Haproxy::new(installed, testbed.work_dir(), scene.services.clone()).await?;
    let socket = testbed.path().join("haproxy.sock");
    let file = scene.directory.join("haproxy.cfg");
    let master = haproxy.serve(&socket, &file)?;
    let launch = Launch::new("generator", &scene.program)
        .arg(USER)
        .path_flag("config-path", &scene.directory)
        .path_flag("haproxy-socket-path", &socket)
        .path_flag("kubeconfig", &testbed.kubeconfig_of(USER, None)?);
    let mut running = Running::start(&launch, testbed.work_dir())?;
    scene.needs_all_permissions(&mut running, &file).await?;
    running.logs("Reloaded haproxy").await?;
    serves_nodes(&haproxy).await?;
    serves_clients(&haproxy).await?;
    // What is broken is named, and takes nothing else out.
    for reason in [
        "spec.kubeAPIServerDNSName: its host is not a DNS name",
        "belongs to HostedCluster",
    ] {
        running.logs(reason).await?;
    }
    let text = std::fs::read_to_string(&file)?;
    for absent in [
        "always_true",
        "tenant-b-private",
        PRIVATE,
        "private.example.com",
    ] {
        ensure!(!text.contains(absent), "{absent} in\n{text}");
    }
    scene.follows_changes(&haproxy).await?;
    running.terminates().await?;
    master.abort();
    Ok(())
}

fn azure(id: &str, topology: &str) -> Value {
    json!({
        "clusterID": id, "platform": { "type": "Azure", "azure": { "topology": topology } },
    })
}

impl Scene<'_> {
    async fn create_tenants(&mut self) -> Result<()> {
        let kind = crds::of_any_object(
            HYPERSHIFT,
            "v1beta1",
            "HostedCluster",
            "hostedclusters",
            "Namespaced",
        );
        crds::install(self.admin, &[kind]).await?;
        crds::install(self.admin, &fixtures::render("node/routes", &[])?).await?;
        for tenant in ["tenant-a", "tenant-b"] {
            let namespace = json!({ "metadata": { "name": tenant } });
            self.admin.create("/api/v1/namespaces", &namespace).await?;
        }
        let mut one = azure(ONE, "Public");
        one["networking"] = json!({ "apiServer": { "allowedCIDRBlocks": ["192.0.2.0/24"] } });
        one["kubeAPIServerDNSName"] = json!("custom.one.example.com");
        self.cluster("tenant-a", "one", one).await?;
        self.route("tenant-a-one", "kube-apiserver", "api.one.example.com")
            .await?;
        let mut two = azure(TWO, "");
        two["kubeAPIServerDNSName"] = json!("api.two.example.com");
        self.cluster("tenant-b", "two", two).await?;
        self.route("tenant-b-two", "oauth-openshift", "oauth.two.example.com")
            .await?;
        let mut private = azure(PRIVATE, "Private");
        private["kubeAPIServerDNSName"] = json!("private.example.com");
        self.cluster("tenant-b", "private", private).await?;
        self.route(
            "tenant-b-private",
            "oauth-openshift",
            "oauth.private.example.com",
        )
        .await?;
        // It takes hosts and the ID of another tenant, and injects configuration.
        let mut broken = azure(ONE, "Public");
        broken["kubeAPIServerDNSName"] =
            json!("a.example.com }\n  use_backend tenant-a-one_kube-apiserver if { always_true");
        self.cluster("tenant-b", "broken", broken.clone()).await?;
        self.is_younger("tenant-b", "broken", &broken).await?;
        self.route("tenant-b-broken", "oauth-openshift", "api.one.example.com")
            .await
    }

    /// Creates a HostedCluster, its control plane namespace and its Services.
    async fn cluster(&mut self, tenant: &str, name: &str, spec: Value) -> Result<()> {
        let namespace = format!("{tenant}-{name}");
        let owner = json!({ "hypershift.openshift.io/cluster": format!("{tenant}/{name}") });
        let metadata = json!({ "name": namespace, "annotations": owner });
        let object = json!({ "metadata": metadata });
        self.admin.create("/api/v1/namespaces", &object).await?;
        for service in ["kube-apiserver", "oauth-openshift"] {
            let object = json!({
                "metadata": { "name": service }, "spec": { "ports": [{ "port": 6443 }] },
            });
            let path = format!("/api/v1/namespaces/{namespace}/services");
            let created = self.admin.create(&path, &object).await?;
            let ip = created["spec"]["clusterIP"].as_str();
            let ip = ip.context("no cluster IP")?;
            let server = answering(format!("{name} {service}")).await?;
            self.services.push((format!("{ip}:6443"), server));
        }
        self.hosted_cluster(tenant, name, &spec).await
    }

    /// Creates a cluster again until its time of creation, in seconds, is later than that of cluster one.
    async fn is_younger(&self, tenant: &str, name: &str, spec: &Value) -> Result<()> {
        let path = |tenant: &str, name: &str| {
            format!("/apis/{HYPERSHIFT}/v1beta1/namespaces/{tenant}/hostedclusters/{name}")
        };
        let created = async |path: &str| {
            let found = self.admin.get(path).await?;
            let time = found["metadata"]["creationTimestamp"].as_str();
            time.map(str::to_owned).context("no creationTimestamp")
        };
        let first = created(&path("tenant-a", "one")).await?;
        wait::until("a younger cluster", WITHIN, async || {
            if created(&path(tenant, name)).await? > first {
                return Ok(());
            }
            self.admin.delete(&path(tenant, name)).await?;
            self.hosted_cluster(tenant, name, spec).await?;
            wait::not_yet("it is as old")
        })
        .await
    }

    async fn hosted_cluster(&self, tenant: &str, name: &str, spec: &Value) -> Result<()> {
        let path = format!("/apis/{HYPERSHIFT}/v1beta1/namespaces/{tenant}/hostedclusters");
        let object = json!({
            "apiVersion": format!("{HYPERSHIFT}/v1beta1"), "kind": "HostedCluster",
            "metadata": { "name": name }, "spec": spec,
        });
        self.admin.create(&path, &object).await.map(drop)
    }

    async fn route(&self, namespace: &str, service: &str, host: &str) -> Result<()> {
        let labels = json!({ "hypershift.openshift.io/hosted-control-plane": namespace });
        let path = format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes");
        let object = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": { "name": host, "labels": labels },
            "spec": { "host": host, "to": { "kind": "Service", "name": service } },
        });
        self.admin.create(&path, &object).await.map(drop)
    }

    /// Without one of the documented permissions no file is written, and the log names what is missing.
    async fn needs_all_permissions(&self, running: &mut Running, file: &Path) -> Result<()> {
        let role = documented_role()?;
        let mut less = role.clone();
        let rules = less["rules"].as_array_mut().context("no rules")?;
        for rule in rules {
            let resources = rule["resources"].as_array_mut().context("no resources")?;
            resources.retain(|resource| resource != "namespaces");
        }
        self.grant(&less).await?;
        running.logs("Missing permission").await?;
        running
            .logs("get, list, watch namespaces in all namespaces")
            .await?;
        ensure!(!file.exists(), "a file without knowing whose is what");
        self.grant(&role).await?;
        wait::until("the file", WITHIN, async || {
            ensure!(file.exists(), "no file");
            Ok(())
        })
        .await
    }

    async fn grant(&self, role: &Value) -> Result<()> {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": USER },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": role["metadata"]["name"],
            },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER }],
        });
        self.admin.apply(&[role.clone(), binding]).await
    }

    /// A new Route is served after the next reload.
    async fn follows_changes(&self, haproxy: &Haproxy) -> Result<()> {
        let host = "api.two.apps.example.com";
        ensure!(
            exchange(haproxy.ports.clients, &hello(host)?)
                .await?
                .is_empty()
        );
        self.route("tenant-b-two", "kube-apiserver", host).await?;
        let client = haproxy.ports.clients;
        reaches(client, &hello(host)?, "two kube-apiserver").await
    }

    async fn rejects_bad_input(&self) -> Result<()> {
        let args = |flag: &str| [USER.to_owned(), flag.to_owned()];
        let missing = args("--config-path=/does/not/exist/haproxy.cfg");
        let expected = "--config-path /does/not/exist/haproxy.cfg: the directory does not exist";
        fails(&self.program, &missing, &[], 64, expected).await?;
        let unknown = args("--leader-elect");
        fails(&self.program, &unknown, &[], 64, "--leader-elect").await?;
        let directory = format!("--config-path={}", self.directory.display());
        let kubeconfig = "--kubeconfig=/does/not/exist.kubeconfig".to_owned();
        let args = [USER.to_owned(), directory, kubeconfig];
        fails(&self.program, &args, &[], 1, "/does/not/exist.kubeconfig").await?;
        let files = std::fs::read_dir(&self.directory)?.count();
        ensure!(files == 0, "it has written {files} files");
        Ok(())
    }
}

/// The `ClusterRole` of the documentation.
fn documented_role() -> Result<Value> {
    let text = std::fs::read_to_string(DOCUMENTATION)?;
    let mut blocks = text.split("```yaml\n").skip(1);
    let block = blocks.find(|block| block.contains(&format!("name: {USER}\n")));
    let block = block.and_then(|block| block.split("```").next());
    let block = block.context("docs/operator.md has no ClusterRole of the generator")?;
    let role: Value = serde_saphyr::from_str(block)?;
    ensure!(role["kind"] == "ClusterRole", "{role}");
    Ok(role)
}

/// A server that answers the first bytes of each connection with its name, and closes it.
async fn answering(name: String) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(name.as_bytes()).await;
        }
    });
    Ok(address)
}

/// Waits until bytes lead to the server of this name.
async fn reaches(address: SocketAddr, bytes: &[u8], name: &str) -> Result<()> {
    wait::until(name, WITHIN, async || {
        let found = exchange(address, bytes).await?;
        ensure!(found == name, "{found:?}");
        Ok(())
    })
    .await
}

/// Nodes, by the ID of their cluster and their own address.
async fn serves_nodes(haproxy: &Haproxy) -> Result<()> {
    let (address, field) = (haproxy.ports.nodes, haproxy.field());
    let bytes = proxied(OTHER, field, TWO)?;
    reaches(address, &bytes, "two kube-apiserver").await?;
    for (name, source, id, expected) in [
        ("allowed", ALLOWED, ONE, "one kube-apiserver"),
        ("another address", OTHER, ONE, ""),
        ("a private cluster", ALLOWED, PRIVATE, ""),
        (
            "unknown",
            ALLOWED,
            "44444444-0000-0000-0000-000000000004",
            "",
        ),
        ("no ID", ALLOWED, "", ""),
    ] {
        let found = exchange(address, &proxied(source, field, id)?).await?;
        ensure!(found == expected, "{name}: {found:?}");
    }
    // Without the header, which has the client's address, nothing is served.
    let found = exchange(address, &hello("api.two.example.com")?).await?;
    ensure!(found.is_empty(), "{found:?}");
    let probe = "GET /haproxy_ready HTTP/1.0\r\n\r\n";
    let found = exchange(haproxy.ports.health, probe.as_bytes()).await?;
    ensure!(found.starts_with("HTTP/1.0 200") || found.starts_with("HTTP/1.1 200"));
    Ok(())
}

/// Clients, by the host that they want. Their address is 127.0.0.1, which cluster one does not allow.
async fn serves_clients(haproxy: &Haproxy) -> Result<()> {
    for (host, expected) in [
        ("api.two.example.com", "two kube-apiserver"),
        ("oauth.two.example.com", "two oauth-openshift"),
        ("api.one.example.com", ""),
        ("custom.one.example.com", ""),
        ("private.example.com", ""),
        ("oauth.private.example.com", ""),
        ("unknown.example.com", ""),
    ] {
        let found = exchange(haproxy.ports.clients, &hello(host)?).await?;
        ensure!(found == expected, "{host}: {found:?}");
    }
    Ok(())
}
