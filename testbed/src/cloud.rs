//! A fake EC2: moto, which serves AWS's API, and a watcher that makes of each running instance a machine of the testbed.

mod account;
mod client;
mod contents;
mod load_balancers;
mod relay;
mod server;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinHandle;

use crate::guest::{Fixture, Guest, Initialization, Machine};
use crate::node::NodeTestbed;
use crate::payload::REGION;
use crate::progress::Progress;
use crate::service::Service;
use crate::switchable_proxy::SwitchableProxy;
use crate::work_dir::WorkDir;

pub use client::{Cloud, EC2, Instance};
pub use load_balancers::LoadBalancer;
pub use relay::CloudRelay;

/// How often instances are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Where instances are.
pub const ZONE: &str = "us-east-1a";

/// A fake cloud that runs.
#[derive(Debug)]
pub struct FakeCloud {
    /// A client for it.
    pub client: Cloud,
    /// What clusters in it are made with.
    pub network: Network,
    watcher: JoinHandle<()>,
    guests: Arc<Mutex<HashMap<String, Guest>>>,
    loopback: SwitchableProxy,
    _service: Service,
}

/// What there is in the cloud before any cluster.
#[derive(Debug, Clone)]
pub struct Network {
    /// The network.
    pub vpc: String,
    /// Its part in which instances are.
    pub subnet: String,
    /// What lets everything through.
    pub security_group: String,
    /// Which addresses the network has.
    pub cidr: String,
}

/// A fake EC2 on loopback: its instances are entries, of which no machines are made.
#[derive(Debug)]
pub struct FakeInstances {
    /// A client for it.
    pub client: Cloud,
    /// What clusters in it are made with.
    pub network: Network,
    _store: FakeStore,
}

/// The object stores of a fake cloud that has no machines, on loopback.
#[derive(Debug)]
pub struct FakeStore {
    address: SocketAddr,
    _service: Service,
}

// === impl FakeStore ===

impl FakeStore {
    /// Starts it.
    pub async fn start(work_dir: &Arc<WorkDir>, progress: &Progress) -> Result<Self> {
        let (mut service, address) = server::on_loopback(work_dir, progress).await?;
        service.start().await?;
        Ok(Self {
            address,
            _service: service,
        })
    }

    /// The URL of its API.
    pub fn url(&self) -> String {
        url(self.address)
    }
}

// === impl FakeInstances ===

impl FakeInstances {
    /// Starts it, and makes a network.
    pub async fn start(work_dir: &Arc<WorkDir>, progress: &Progress) -> Result<Self> {
        let store = FakeStore::start(work_dir, progress).await?;
        let client = Cloud::new(&store.url(), REGION)?;
        let network = client
            .create_network("10.0.0.0/16", "10.0.0.0/24", ZONE)
            .await
            .context("cannot make a network in the fake cloud")?;
        Ok(Self {
            client,
            network,
            _store: store,
        })
    }
}

// === impl FakeCloud ===

impl FakeCloud {
    /// Starts the cloud and the watcher, and makes a network.
    pub async fn start(testbed: &NodeTestbed) -> Result<Self> {
        Self::start_with(testbed, Initialization::Kubelet).await
    }

    /// The same with another initialization of the nodes that its machines become.
    pub async fn start_with(testbed: &NodeTestbed, initialization: Initialization) -> Result<Self> {
        let mut service = server::service(testbed).await?;
        service.start().await?;
        let client = Cloud::new(&url(server::address(testbed)), REGION)?;
        let subnets = testbed.namespaces().subnets();
        let network = client
            .create_network(&subnets.all(), &subnets.machines(), ZONE)
            .await
            .context("cannot make a network in the fake cloud")?;
        let fixture = Fixture::new(testbed).await?.initialized_by(initialization);
        let guests = Arc::default();
        let watcher = tokio::spawn(watch(client.clone(), fixture, Arc::clone(&guests)));
        let loopback = SwitchableProxy::open().await?;
        loopback.lead_to(Some(server::address(testbed)));
        Ok(Self {
            client,
            network,
            watcher,
            guests,
            loopback,
            _service: service,
        })
    }

    /// The URL of its API, for us.
    pub fn url(&self) -> String {
        self.client.url()
    }

    /// The URL of its API, for pods.
    pub fn url_for_pods(&self) -> String {
        url(server::LINK_LOCAL)
    }

    /// The URL of its API, for commands, which send no credentials in plain text over a network.
    pub fn url_on_loopback(&self) -> String {
        url((Ipv4Addr::LOCALHOST, self.loopback.port()).into())
    }

    /// The machines that run, by instance.
    pub fn machines(&self) -> Vec<Machine> {
        let guests = self
            .guests
            .lock()
            .expect("invariant: no thread panics while holding it");
        guests
            .values()
            .map(|guest| guest.machine().clone())
            .collect()
    }

    /// The output of machines, for diagnosis.
    pub fn said(&self) -> String {
        let guests = self
            .guests
            .lock()
            .expect("invariant: no thread panics while holding it");
        let each = guests
            .values()
            .map(|guest| format!("--- {}\n{}", guest.machine().instance, guest.said()));
        each.collect::<Vec<_>>().join("\n")
    }

    /// What a file below /etc of an instance's machine holds, if it was written there.
    pub fn file(&self, instance: &str, path: &str) -> Option<String> {
        let guests = self
            .guests
            .lock()
            .expect("invariant: no thread panics while holding it");
        guests.get(instance)?.file(path)
    }

    /// Kills the machine of an instance, without notice to the cloud, like a power failure.
    pub fn kill(&self, instance: &str) {
        let mut guests = self
            .guests
            .lock()
            .expect("invariant: no thread panics while holding it");
        if let Some(guest) = guests.get_mut(instance) {
            guest.kill();
        }
    }
}

impl Drop for FakeCloud {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Makes a machine of each running instance, and ends the machines of others.
async fn watch(client: Cloud, fixture: Fixture, guests: Arc<Mutex<HashMap<String, Guest>>>) {
    loop {
        match client.instances().await {
            Ok(instances) => {
                end_others(&instances, &guests);
                for instance in instances.iter().filter(|instance| instance.runs()) {
                    if let Err(error) = ensure(&client, &fixture, &guests, instance).await {
                        eprintln!("the machine of {}: {error:#}", instance.id);
                    }
                }
            }
            Err(error) => eprintln!("the fake cloud does not respond: {error:#}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn end_others(instances: &[Instance], guests: &Mutex<HashMap<String, Guest>>) {
    let runs = |id: &str| instances.iter().any(|one| one.id == id && one.runs());
    let mut guests = guests
        .lock()
        .expect("invariant: no thread panics while holding it");
    let gone: Vec<String> = guests.keys().filter(|id| !runs(id)).cloned().collect();
    // Dropping one waits for its processes; the others wait for that, which is short.
    let ended: Vec<_> = gone.iter().filter_map(|id| guests.remove(id)).collect();
    drop(ended);
}

async fn ensure(
    client: &Cloud,
    fixture: &Fixture,
    guests: &Mutex<HashMap<String, Guest>>,
    instance: &Instance,
) -> Result<()> {
    if is_known(guests, &instance.id) {
        return Ok(());
    }
    let machine = Machine {
        instance: instance.id.clone(),
        zone: Some(instance.zone.clone()),
        name: instance.name.clone(),
        address: instance
            .address
            .parse::<Ipv4Addr>()
            .with_context(|| format!("{:?} is no address", instance.address))?,
        user_data: client.user_data(&instance.id).await?,
    };
    let guest = fixture.start(machine)?;
    let mut guests = guests
        .lock()
        .expect("invariant: no thread panics while holding it");
    guests.insert(instance.id.clone(), guest);
    Ok(())
}

fn is_known(guests: &Mutex<HashMap<String, Guest>>, instance: &str) -> bool {
    let guests = guests
        .lock()
        .expect("invariant: no thread panics while holding it");
    guests.contains_key(instance)
}
