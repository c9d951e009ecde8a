//! A pod in the namespace of one control plane reaches what it must and nothing inside of another one.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::fixtures;
use testbed::hosted::{Cluster, Fixture, PODS};
use testbed::node::condition;

/// The pod that tries.
const NAME: &str = "intruder";
/// The published port.
const API: u16 = 6443;
/// Where etcd serves its clients.
const ETCD: u16 = 2379;

/// An address and a port.
type Door = (String, u16);

/// Tries both directions. Only ports that respond to a pod in the same namespace can be shown to be closed to others.
pub(crate) async fn no_pod_reaches_into(
    fixture: &Fixture,
    one: &Cluster<'_>,
    other: &Cluster<'_>,
) -> Result<()> {
    let (one, other) = tokio::try_join!(Intruder::start(one), Intruder::start(other))?;
    let (ones, others) = (
        one.in_its_namespace(fixture).await?,
        other.in_its_namespace(fixture).await?,
    );
    one.stays_out_of(fixture, other.own, &others).await?;
    other.stays_out_of(fixture, one.own, &ones).await?;
    for intruder in [one, other] {
        let path = PODS.named(&intruder.own.namespace(), NAME);
        fixture.testbed.admin.delete(&path).await?;
    }
    Ok(())
}

struct Intruder<'a> {
    own: &'a Cluster<'a>,
}

// === impl Intruder ===

impl<'a> Intruder<'a> {
    /// Starts a pod with a shell in the namespace of a control plane, with the label that its pods have.
    async fn start(own: &'a Cluster<'a>) -> Result<Self> {
        let fixture = own.fixture();
        let namespace = own.namespace();
        let values = [
            ("NAMESPACE", namespace.as_str()),
            ("NAME", NAME),
            ("IMAGE", &fixture.pushed.components["etcd"]),
        ];
        let pod = fixtures::render("hosted_cluster/intruder", &values)?;
        let admin = &fixture.testbed.admin;
        admin.apply(&pod).await?;
        let what = format!("{}: a pod for trying its network runs", own.name());
        fixture
            .stage(&what, async || {
                condition(&admin.get(&PODS.named(&namespace, NAME)).await?, "Ready")
            })
            .await?;
        Ok(Self { own })
    }

    /// The ports that respond in its own namespace: its API and its etcd among others.
    async fn in_its_namespace(&self, fixture: &Fixture) -> Result<Vec<Door>> {
        let what = format!("{}: its pods reach each other", self.own.name());
        // Rules follow a pod after some moments.
        fixture
            .stage(&what, async || {
                let doors = doors(fixture, self.own).await?;
                let open = self.open(fixture, &doors).await?;
                for port in [API, ETCD] {
                    ensure!(
                        open.iter().any(|door| door.1 == port),
                        "there is no response on port {port}; on others: {open:?}"
                    );
                }
                Ok(open)
            })
            .await
    }

    /// It reaches the published API of another control plane and nothing else of it; and not the management cluster's
    /// API, which is for those pods only that say that they need it.
    async fn stays_out_of(
        &self,
        fixture: &Fixture,
        other: &Cluster<'_>,
        doors: &[Door],
    ) -> Result<()> {
        let name = self.own.name();
        let (public, inner): (Vec<_>, Vec<_>) =
            doors.iter().cloned().partition(|door| door.1 == API);
        let what = format!("{name}: its pods reach no port inside of {}", other.name());
        let step = fixture.testbed.progress.step(what);
        let open = self.open(fixture, &public).await?;
        ensure!(open == public, "{name} cannot reach the API at {public:?}");
        let open = self.open(fixture, &inner).await?;
        ensure!(
            open.is_empty(),
            "{name} reaches {open:?} of {}",
            other.name()
        );
        let open = self.open(fixture, &[management(fixture)?]).await?;
        ensure!(
            open.is_empty(),
            "the management cluster's API is open to {name}"
        );
        step.done_with(&format!("{} ports", inner.len()));
        Ok(())
    }

    /// Those that respond to it.
    async fn open(&self, fixture: &Fixture, doors: &[Door]) -> Result<Vec<Door>> {
        let namespace = self.own.namespace();
        let each = doors.iter().enumerate().map(|(number, (address, port))| {
            // Once connected, it has no more to say.
            format!("nc -w 2 {address} {port} -e /bin/true 2>/dev/null && echo {number} &")
        });
        let script = format!("{} wait", each.collect::<Vec<_>>().join(" "));
        let words = [
            "-n", &namespace, "exec", NAME, "--", "/bin/sh", "-c", &script,
        ];
        let said = fixture.testbed.kubectl_says(words).await?;
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
}

/// Where programs of a control plane may listen: what its pods say of themselves.
async fn doors(fixture: &Fixture, of: &Cluster<'_>) -> Result<Vec<Door>> {
    let pods = fixture
        .testbed
        .admin
        .list(&PODS.within(&of.namespace()))
        .await?;
    let mut doors = Vec::new();
    for pod in pods.iter().filter(|pod| condition(pod, "Ready").is_ok()) {
        let address = pod["status"]["podIP"].as_str().unwrap_or_default();
        doors.extend(ports(pod).map(|port| (address.to_owned(), port)));
    }
    Ok(doors)
}

/// The ports that the containers of a pod name.
fn ports(pod: &Value) -> impl Iterator<Item = u16> {
    let containers = pod["spec"]["containers"].as_array();
    let declared = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["ports"].as_array())
        .flatten();
    declared.filter_map(|port| u16::try_from(port["containerPort"].as_u64()?).ok())
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
