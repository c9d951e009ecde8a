//! What pods of a hosted cluster reach of the management cluster when their node is a virtual machine on it: what nodes
//! need, and nothing else.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::client::ApiClient;
use testbed::fixtures;
use testbed::hosted::{Cluster, Fixture, Guest, PODS};
use testbed::node::condition;
use testbed::process::{Launch, Process};
use tokio::process::Command;

/// The pod in the hosted cluster that tries, and its namespace.
const INTRUDER: (&str, &str) = ("default", "intruder");
/// The pod of another control plane, its namespace, and the port that it serves.
const NEIGHBOUR: (&str, &str) = ("clusters-neighbour", "neighbour");
const SERVED: u16 = 8080;
/// Where clouds serve the credentials of nodes.
const METADATA: (&str, u16) = ("169.254.169.254", 80);
/// What serves that address here.
const SERVER: &str = "import socket
server = socket.create_server(('169.254.169.254', 80))
while True:
    server.accept()[0].close()
";
/// Where routers serve TLS, and etcd its clients.
const HTTPS: u16 = 443;
const ETCD: u16 = 2379;

/// An address and a port.
type Door = (String, u16);

/// A pod with a shell.
struct Shell<'a> {
    fixture: &'a Fixture,
    /// For kubectl in a hosted cluster.
    guest: Option<&'a Guest>,
    namespace: &'static str,
    name: &'static str,
}

/// Where the machines of a cluster are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Beside its control plane.
    Beside,
    /// On another infrastructure cluster, whose networks are the pods of the last node and the Services.
    Elsewhere,
}

/// What machines may not reach: a pod of another control plane, and the metadata of nodes.
pub(crate) struct Surroundings<'a> {
    fixture: &'a Fixture,
    neighbour: Shell<'a>,
    _metadata: Process,
}

// === impl Surroundings ===

impl<'a> Surroundings<'a> {
    /// Starts them. That they respond is seen by the pod of the other control plane, which no policy isolates.
    pub(crate) async fn start(fixture: &'a Fixture) -> Result<Self> {
        let surroundings = Self {
            fixture,
            _metadata: serve_metadata(fixture)?,
            neighbour: Shell::neighbour(fixture).await?,
        };
        let forbidden = surroundings.forbidden(Place::Beside).await?;
        fixture
            .stage(
                "pods beside machines reach what machines may not",
                async || {
                    let open = surroundings.neighbour.open(&forbidden).await?;
                    ensure!(open == forbidden, "open are {open:?} of {forbidden:?}");
                    Ok(())
                },
            )
            .await?;
        Ok(surroundings)
    }

    /// A pod on a node of the cluster reaches its API and the router, but neither the management cluster's API, nor pods of
    /// another control plane or etcd of its own, nor the metadata of nodes.
    pub(crate) async fn are_closed_to(
        &self,
        cluster: &Cluster<'_>,
        guest: &Guest,
        place: Place,
    ) -> Result<()> {
        let (fixture, name) = (self.fixture, cluster.name());
        let intruder = Shell::intruder(fixture, guest).await?;
        let needed = needed(fixture, cluster).await?;
        let what = format!("{name}: pods on machines reach what nodes need");
        fixture
            .stage(&what, async || {
                let open = intruder.open(&needed).await?;
                ensure!(open == needed, "open are {open:?} of {needed:?}");
                Ok(())
            })
            .await?;
        let what = format!("{name}: pods on machines reach nothing else of the management cluster");
        let step = fixture.testbed.progress.step(what);
        let mut closed = self.forbidden(place).await?;
        closed.push(etcd(fixture, cluster).await?);
        let open = intruder.open(&closed).await?;
        ensure!(open.is_empty(), "{open:?} are open to pods of {name}");
        step.done_with(&format!("{} addresses", closed.len()));
        intruder.delete().await
    }

    /// What machines may not reach there, and pods without a policy may.
    async fn forbidden(&self, place: Place) -> Result<Vec<Door>> {
        let (namespace, name) = NEIGHBOUR;
        let neighbour = PODS.named(namespace, name);
        let neighbour = self.fixture.testbed.admin.get(&neighbour).await?;
        let (metadata, port) = METADATA;
        let mut doors = vec![(address(&neighbour)?, SERVED), (metadata.to_owned(), port)];
        if place == Place::Beside {
            let subnets = self.fixture.testbed.namespaces().subnets();
            doors.push(management(self.fixture)?);
            doors.push((subnets.api_service().to_string(), HTTPS));
        }
        Ok(doors)
    }

    /// Ends them.
    pub(crate) async fn end(self) -> Result<()> {
        let namespace = format!("/api/v1/namespaces/{}", NEIGHBOUR.0);
        self.fixture.testbed.admin.delete(&namespace).await
    }
}

/// The API of the cluster as it is published, and the router of its other services.
async fn needed(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Vec<Door>> {
    let endpoint = cluster.seen().await?["status"]["controlPlaneEndpoint"].take();
    let host = endpoint["host"].as_str().context("the API has no host")?;
    let port = endpoint["port"].as_u64().context("the API has no port")?;
    let router = fixture.testbed.namespaces().subnets().router();
    Ok(vec![
        (host.to_owned(), u16::try_from(port)?),
        (router.to_string(), HTTPS),
    ])
}

/// etcd of the control plane, which runs in the namespace of the machines.
async fn etcd(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Door> {
    let path = PODS.named(&cluster.namespace(), "etcd-0");
    let pod = fixture.testbed.admin.get(&path).await?;
    Ok((address(&pod)?, ETCD))
}

fn address(pod: &Value) -> Result<String> {
    let address = pod["status"]["podIP"].as_str();
    let name = &pod["metadata"]["name"];
    let address = address.with_context(|| format!("pod {name} has no address"))?;
    Ok(address.to_owned())
}

/// Where the management cluster's API is.
fn management(fixture: &Fixture) -> Result<Door> {
    let server = fixture.testbed.control_plane.endpoint().server;
    let (address, port) = server
        .trim_start_matches("https://")
        .rsplit_once(':')
        .context("the API server has no port")?;
    Ok((address.to_owned(), port.parse()?))
}

/// Serves the metadata of nodes, as the node's cloud would, until it is dropped.
fn serve_metadata(fixture: &Fixture) -> Result<Process> {
    let testbed = &fixture.testbed;
    let own = format!("{}/32", METADATA.0);
    testbed
        .namespaces()
        .run("ip", ["addr", "add", &own, "dev", "nodes"])?;
    let launch = Launch::new("metadata", std::path::Path::new("python3"))
        .arg("-c")
        .arg(SERVER)
        .through(testbed.namespaces().bare().line());
    launch.spawn(testbed.work_dir())
}

// === impl Shell ===

impl<'a> Shell<'a> {
    /// Starts a pod of another control plane.
    async fn neighbour(fixture: &'a Fixture) -> Result<Self> {
        let (namespace, name) = NEIGHBOUR;
        let shell = Self {
            fixture,
            guest: None,
            namespace,
            name,
        };
        let port = SERVED.to_string();
        // Where the machines are.
        let node = fixture.testbed.nodes.last();
        let node = node.context("the testbed has no node")?;
        let more = [("PORT", port.as_str()), ("NODE", node.name.as_str())];
        shell.start("kubevirt/neighbour", &more).await
    }

    /// Starts a pod in the hosted cluster.
    async fn intruder(fixture: &'a Fixture, guest: &'a Guest) -> Result<Self> {
        let (namespace, name) = INTRUDER;
        let shell = Self {
            fixture,
            guest: Some(guest),
            namespace,
            name,
        };
        shell.start("hosted_cluster/intruder", &[]).await
    }

    async fn start(self, objects: &str, more: &[(&str, &str)]) -> Result<Self> {
        let image = &self.fixture.pushed.components["etcd"];
        let mut values = vec![
            ("NAMESPACE", self.namespace),
            ("NAME", self.name),
            ("IMAGE", image.as_str()),
        ];
        values.extend(more);
        let objects = fixtures::render(objects, &values)?;
        self.client().apply(&objects).await?;
        let path = PODS.named(self.namespace, self.name);
        let what = format!("the pod {} runs", self.name);
        self.fixture
            .stage(&what, async || {
                condition(&self.client().get(&path).await?, "Ready")
            })
            .await?;
        Ok(self)
    }

    async fn delete(self) -> Result<()> {
        let path = PODS.named(self.namespace, self.name);
        self.client().delete(&path).await
    }

    fn client(&self) -> &ApiClient {
        match self.guest {
            Some(guest) => &guest.client,
            None => &self.fixture.testbed.admin,
        }
    }

    /// Those that respond to it.
    async fn open(&self, doors: &[Door]) -> Result<Vec<Door>> {
        let each = doors.iter().enumerate().map(|(number, (address, port))| {
            // Once connected, it has no more to say.
            format!("nc -w 3 {address} {port} -e /bin/true 2>/dev/null && echo {number} &")
        });
        let script = format!("{} wait", each.collect::<Vec<_>>().join(" "));
        let said = self.run(&script).await?;
        let mut numbers: Vec<usize> = said
            .split_whitespace()
            .map(|word| word.parse().with_context(|| format!("it says {said:?}")))
            .collect::<Result<_>>()?;
        numbers.sort_unstable();
        Ok(numbers
            .into_iter()
            .map(|number| doors[number].clone())
            .collect())
    }

    /// Runs a script in it; gives what it prints.
    async fn run(&self, script: &str) -> Result<String> {
        let testbed = &self.fixture.testbed;
        let kubeconfig = match self.guest {
            Some(guest) => guest.kubeconfig.as_path(),
            None => testbed.kubeconfig(),
        };
        let mut command = Command::new(testbed.kubectl());
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["-n", self.namespace, "exec", self.name, "--"])
            .args(["/bin/sh", "-c", script])
            .kill_on_drop(true);
        let output = command.output().await.context("cannot run kubectl")?;
        ensure!(
            output.status.success(),
            "{command:?} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
