//! A cluster on Agent behind an HTTP proxy (Debian's tinyproxy), with two pools that select different hosts.
//!
//! Everything is published on ports of the management cluster's nodes, so that the proxy needs no names. The nodes have the
//! proxy from their first boot on, and the agents of konnectivity on them, by which the API server reaches kubelets, connect
//! through it. They follow the status of the hosted cluster's Proxy; the network operator, which computes it, is not
//! available here, so its kind and its status are the test's.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::agents::{self, AGENTS, AgentService};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::hosted::{Cluster, Fixture, Guest, NAMESPACE, NODE_POOLS, PODS, Platform, SECRETS};
use testbed::node::{NodeTestbed, packages};
use testbed::process::{self, Launch, Process};
use testbed::{crds, wait};
use tokio::net::TcpStream;

use crate::platforms::agent::AGENT_MACHINES;

const NAME: &str = "proxied";
/// The port of the proxy.
const PORT: u16 = 3128;
/// What the user exempts.
const EXEMPT: &str = ".example.com";
/// What the network operator would exempt for this cluster, which has no network for machines.
const STATUS_EXEMPT: &str =
    ".cluster.local,.example.com,.local,.svc,10.132.0.0/14,127.0.0.1,172.31.0.0/16,localhost";
/// Label of Agents with the architecture of their hosts, and of the nodes of the second pool.
const ARCH: &str = "example.com/arch";
/// The hosts, and what their Agents' owner says of them. The first one is small.
const ARCHITECTURES: [(&str, &str); 3] = [
    ("host-1", "arm64"),
    ("host-2", "amd64"),
    ("host-3", "ppc64le"),
];
/// The file of a node with the proxy.
const FILE: &str = "etc/upper/mco/proxy.env";
/// The static pod by which its pods reach the API server.
const FORWARDER: &str = "etc/upper/kubernetes/manifests/kube-apiserver-proxy.yaml";
const PROXIES: Resource<'_> = Resource::new("config.openshift.io/v1", "proxies");
const DAEMON_SETS: Resource<'_> = Resource::new("apps/v1", "daemonsets");
const AGENT: &str = "konnectivity-agent";
const WITHIN: Duration = Duration::from_mins(2);

/// The proxy. Dropped, it ends.
struct Proxy {
    url: String,
    process: Process,
}

/// Its life: two pools of one worker each, behind the proxy, and the end.
pub(crate) async fn run_lifecycle(fixture: &Fixture, service: &AgentService) -> Result<()> {
    let testbed = &fixture.testbed;
    let step = testbed.progress.step("an HTTP proxy");
    let node = testbed.namespaces().subnets().node(1);
    let proxy = Proxy::start(testbed, node).await?;
    step.done();
    for (host, arch) in ARCHITECTURES {
        let labels = json!({ "metadata": { "labels": { ARCH: arch } } });
        let path = AGENTS.named(agents::NAMESPACE, host);
        testbed.admin.patch(&path, Patch::Merge, &labels).await?;
    }
    let platform = Platform::Agent(service);
    let cluster = Cluster::on(fixture, NAME, CapiTypes::Private, platform);
    let address = format!("--api-server-address={node}");
    cluster.create(&[&address]).await?;
    let configured = json!({ "spec": { "configuration": { "proxy": {
        "httpProxy": proxy.url,
        "httpsProxy": proxy.url,
        "noProxy": EXEMPT,
    } } } });
    testbed
        .admin
        .patch(&cluster.path(), Patch::Merge, &configured)
        .await?;
    let guest = cluster.comes_up().await?;
    add_pool(&cluster).await?;
    cluster.scale(1).await?;
    cluster.has_workers(&guest, 2).await?;
    guest.runs_a_workload(fixture).await?;
    nodes_are_of_their_pools(&cluster, &guest).await?;
    agents_name_their_machines(&cluster).await?;
    machines_have_the_proxy(&cluster, &guest, &proxy).await?;
    the_tunnel_goes_through(fixture, &guest, &proxy).await?;
    cluster.destroy().await?;
    service.is_idle(&testbed.admin, WITHIN).await
}

/// The name of the second pool.
fn second() -> String {
    format!("{NAME}-arm64")
}

/// A pool like the first one, of other hosts, which it selects by expressions only, with a label on its nodes.
async fn add_pool(cluster: &Cluster<'_>) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let mut spec = admin.get(&cluster.pool_path()).await?["spec"].take();
    spec["replicas"] = json!(1);
    spec["nodeLabels"] = json!({ ARCH: "arm64" });
    spec["platform"]["agent"] = json!({ "agentLabelSelector": { "matchExpressions": [
        { "key": ARCH, "operator": "In", "values": ["arm64", "s390x"] },
        { "key": "size", "operator": "NotIn", "values": ["large"] },
    ] } });
    let pool = json!({
        "apiVersion": NODE_POOLS.api_version,
        "kind": "NodePool",
        "metadata": { "namespace": NAMESPACE, "name": second() },
        "spec": spec,
    });
    admin.apply(&[pool]).await
}

/// The small host is a node of the second pool, with its label, and a large one is a node of the first.
async fn nodes_are_of_their_pools(cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let fixture = cluster.fixture();
    let what = format!("{NAME}: each node is of the pool that selects its host");
    fixture
        .stage(&what, async || {
            let mut pools = Vec::new();
            for node in guest.nodes().await? {
                let labels = &node["metadata"]["labels"];
                let is_small = node["metadata"]["name"] == "host-1";
                let pool = if is_small { second() } else { cluster.pool() };
                ensure!(labels[NODE_POOL.key()] == pool, "{labels}");
                ensure!((labels[ARCH] == "arm64") == is_small, "{labels}");
                pools.push(pool);
            }
            pools.sort();
            ensure!(pools == [cluster.pool(), second()], "{pools:?}");
            Ok(())
        })
        .await
}

/// The label of each Agent that is in use is the UID of the machine that took it.
async fn agents_name_their_machines(cluster: &Cluster<'_>) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let machines = admin
        .list(&AGENT_MACHINES.within(&cluster.namespace()))
        .await?;
    ensure!(machines.len() == 2, "{} AgentMachines", machines.len());
    for machine in machines {
        let name = machine["status"]["agentRef"]["name"].as_str();
        let name = name.context("an AgentMachine has no Agent")?;
        let agent = admin.get(&AGENTS.named(agents::NAMESPACE, name)).await?;
        let labels = &agent["metadata"]["labels"];
        ensure!(
            labels["agentMachineRef"] == machine["metadata"]["uid"],
            "Agent {name}: {labels}"
        );
    }
    Ok(())
}

/// The user data of both pools have the proxy, and the nodes have it as variables of their services. Their pods reach the
/// API server through it.
async fn machines_have_the_proxy(
    cluster: &Cluster<'_>,
    guest: &Guest,
    proxy: &Proxy,
) -> Result<()> {
    let testbed = &cluster.fixture().testbed;
    let namespace = cluster.namespace();
    let mut found = 0;
    for secret in testbed.admin.list(&SECRETS.within(&namespace)).await? {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        if !name.starts_with("user-data-") {
            continue;
        }
        let path = SECRETS.named(&namespace, name);
        let value = testbed.admin.secret_value(&path, "value").await?;
        let document: Value = serde_json::from_slice(&value)?;
        let ignition = &document["ignition"]["proxy"];
        ensure!(ignition["httpsProxy"] == proxy.url, "{name}: {ignition}");
        let exempt = ignition["noProxy"].as_array().context("no exemptions")?;
        for part in [EXEMPT, ".local", "172.31.0.0/16"] {
            ensure!(exempt.contains(&json!(part)), "{name}: {ignition}");
        }
        found += 1;
    }
    ensure!(found >= 2, "{found} Secrets with user data");
    for node in guest.nodes().await? {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let machine = testbed.path().join("machines").join(name);
        let text = read(&machine.join(FILE))?;
        let variable = format!("HTTPS_PROXY={}\n", proxy.url);
        ensure!(text.contains(&variable), "{name}: {text}");
        ensure!(text.contains(EXEMPT), "{name}: {text}");
        let pod = read(&machine.join(FORWARDER))?;
        let target = proxy.url.trim_start_matches("http://");
        for part in [
            "kubernetes-default-proxy",
            &*format!("--proxy-addr={target}"),
        ] {
            ensure!(pod.contains(part), "{name}: {pod}");
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// Agents of konnectivity connect through the proxy as soon as the Proxy has a status, and the API server reaches the
/// kubelets by them.
async fn the_tunnel_goes_through(fixture: &Fixture, guest: &Guest, proxy: &Proxy) -> Result<()> {
    let kind = crds::of_any_object("config.openshift.io", "v1", "Proxy", "proxies", "Cluster");
    crds::install(&guest.client, &[kind]).await?;
    let path = format!("{}/cluster", PROXIES.all());
    fixture
        .stage(&format!("{NAME}: it has a Proxy"), async || {
            let spec = guest.client.get(&path).await?["spec"].take();
            ensure!(spec["httpsProxy"] == proxy.url, "{spec}");
            Ok(())
        })
        .await?;
    let status = json!({ "status": {
        "httpProxy": proxy.url,
        "httpsProxy": proxy.url,
        "noProxy": STATUS_EXEMPT,
    } });
    let status_path = format!("{path}/status");
    guest
        .client
        .patch(&status_path, Patch::Merge, &status)
        .await?;
    let target = agents_have(fixture, guest, proxy).await?;
    fixture
        .stage(&format!("{NAME}: agents connect through it"), async || {
            let log = process::tail(proxy.process.log(), usize::MAX);
            ensure!(log.contains(&format!("CONNECT {target}")), "{log}");
            Ok(())
        })
        .await?;
    let pods = format!("{}?labelSelector=app%3D{AGENT}", PODS.within("kube-system"));
    fixture
        .stage(
            &format!("{NAME}: kubelets are reached by them"),
            async || {
                let pods = guest.client.list(&pods).await?;
                ensure!(pods.len() == 2, "{} agents", pods.len());
                for pod in pods {
                    logs(&guest.client, &pod).await?;
                }
                Ok(())
            },
        )
        .await
}

/// Waits until all agents have the proxy; returns where they connect to.
async fn agents_have(fixture: &Fixture, guest: &Guest, proxy: &Proxy) -> Result<String> {
    let path = DAEMON_SETS.named("kube-system", AGENT);
    fixture
        .stage(
            &format!("{NAME}: agents of konnectivity have the proxy"),
            async || {
                let found = guest.client.get(&path).await?;
                let container = &found["spec"]["template"]["spec"]["containers"][0];
                let desired = json!({ "name": "HTTPS_PROXY", "value": proxy.url });
                let variables = container["env"].as_array().context("no variables")?;
                ensure!(variables.contains(&desired), "{variables:?}");
                let status = &found["status"];
                ensure!(
                    status["observedGeneration"] == found["metadata"]["generation"]
                        && status["updatedNumberScheduled"] == 2
                        && status["numberAvailable"] == 2,
                    "{status}"
                );
                let arg = |name: &str| {
                    let args = container["args"].as_array().into_iter().flatten();
                    let mut args = args.filter_map(Value::as_str);
                    let found = args.find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
                    found.with_context(|| format!("they have no argument {name}"))
                };
                let (host, port) = (arg("--proxy-server-host")?, arg("--proxy-server-port")?);
                Ok(format!("{host}:{port}"))
            },
        )
        .await
}

/// Reads a log, which the API server gets from a kubelet.
async fn logs(client: &ApiClient, pod: &Value) -> Result<()> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{}/log?tailLines=1", PODS.named("kube-system", name));
    client.text(&path).await.map(drop)
}

// === impl Proxy ===

impl Proxy {
    /// Starts it on the first node. Hosts may use it.
    async fn start(testbed: &NodeTestbed, node: Ipv4Addr) -> Result<Self> {
        let program = packages::program("tinyproxy", "tinyproxy", &testbed.progress).await?;
        let clients = testbed.namespaces().subnets().nodes();
        let file = testbed.path().join("tinyproxy.conf");
        let config =
            format!("Listen {node}\nPort {PORT}\nAllow {clients}\nTimeout 600\nLogLevel Connect\n");
        std::fs::write(&file, config)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let launch = Launch::new("tinyproxy", &program)
            .arg("-d")
            .arg("-c")
            .arg(file)
            .through(testbed.namespaces().bare().line());
        let mut process = launch.spawn(testbed.work_dir())?;
        wait::until("tinyproxy to listen", WITHIN, async || {
            ensure!(process.exited()?.is_none(), "{}", process.tail());
            TcpStream::connect((node, PORT)).await?;
            Ok(())
        })
        .await?;
        Ok(Self {
            url: format!("http://{node}:{PORT}"),
            process,
        })
    }
}
