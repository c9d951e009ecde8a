//! The machines behind the instances, each in the network of its pod.
//!
//! They pull their images from a server of their own, which has what the testbed's registry has: that one is at the address
//! of the management cluster's API server, which machines may not reach.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use anyhow::{Context, Result};
use serde_json::json;

use super::plan::Wanted;
use crate::binaries::{Binaries, Binary};
use crate::certs::write;
use crate::client::{ApiClient, Resource};
use crate::guest::{Fixture, Guest, Machine};
use crate::namespaces::Groups;
use crate::node::NodeTestbed;
use crate::process::Launch;
use crate::service::{Service, plain_health_at};
use crate::site::Site;

const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
/// The key of the Secret that has a machine's user data.
const USER_DATA: &str = "userdata";
/// The port of the registry.
const PORT: u16 = 5000;
/// How much of a UID makes the name of a disk unique.
const SHORT: usize = 8;

/// All machines. Dropped, they are gone.
#[derive(Debug)]
pub(super) struct Machines {
    fixture: Fixture,
    groups: Groups,
    /// Where machines have their disks.
    disks: PathBuf,
    running: Mutex<BTreeMap<String, Running>>,
    _registry: Service,
}

/// A machine that runs.
#[derive(Debug)]
struct Running {
    wanted: Wanted,
    guest: Guest,
}

// === impl Wanted ===

impl Wanted {
    /// The name of its disk, and of all that is its machine's own. The next instance of the same machine has it, too.
    fn disk(&self) -> String {
        let owner: String = self.owner.chars().take(SHORT).collect();
        format!("{}.{owner}", self.name)
    }
}

// === impl Machines ===

impl Machines {
    /// None yet.
    pub(super) async fn new(testbed: &NodeTestbed) -> Result<Self> {
        let mut registry = registry(testbed).await?;
        registry.start().await?;
        let fixture = Fixture::new(testbed).await?;
        Ok(Self {
            fixture: fixture.pulling_from(address(testbed)),
            groups: testbed.namespaces().groups(),
            disks: testbed.work_dir().join("machines"),
            running: Mutex::default(),
            _registry: registry,
        })
    }

    /// Ends all but the wanted ones. The disks of those whose owner is gone are deleted.
    pub(super) fn end_others(&self, wanted: &[Wanted], is_owner: impl Fn(&str) -> bool) {
        let mut running = self.all();
        let others = running
            .iter()
            .filter(|(_, one)| !wanted.contains(&one.wanted));
        let others: Vec<String> = others.map(|(disk, _)| disk.clone()).collect();
        let ended: Vec<Running> = others
            .iter()
            .filter_map(|disk| running.remove(disk))
            .collect();
        drop(running);
        for Running { wanted, guest } in ended {
            // It waits for the end of its processes.
            drop(guest);
            if !is_owner(&wanted.owner) {
                let disk = self.disks.join(wanted.disk());
                // What is left of it goes with the testbed.
                drop(std::fs::remove_dir_all(disk));
            }
        }
    }

    /// Starts one, unless it runs.
    pub(super) async fn start(&self, admin: &ApiClient, wanted: &Wanted) -> Result<()> {
        if self.runs(wanted) {
            return Ok(());
        }
        let Wanted {
            namespace, name, ..
        } = wanted;
        let start = async {
            let user_data = match &wanted.user_data {
                Some(secret) => {
                    let path = SECRETS.named(namespace, secret);
                    admin.secret_value(&path, USER_DATA).await?
                }
                None => Vec::new(),
            };
            let machine = Machine {
                instance: wanted.disk(),
                zone: None,
                name: name.clone(),
                address: wanted.address,
                user_data,
            };
            self.fixture.start_in(machine, &self.network(wanted)?)
        };
        let guest = start.await;
        let guest = guest.with_context(|| format!("the machine {namespace}/{name}"))?;
        let wanted = wanted.clone();
        self.all().insert(wanted.disk(), Running { wanted, guest });
        Ok(())
    }

    fn runs(&self, wanted: &Wanted) -> bool {
        self.all().contains_key(&wanted.disk())
    }

    /// The names of those that run for instances of a namespace.
    pub(super) fn running(&self, namespace: &str) -> Vec<String> {
        let all = self.all();
        let own = all.values().filter(|one| one.wanted.namespace == namespace);
        own.map(|one| one.wanted.name.clone()).collect()
    }

    /// Kills all that runs on a machine; its instance does not notice.
    pub(super) fn kill(&self, namespace: &str, name: &str) {
        let mut all = self.all();
        let found = all
            .values_mut()
            .find(|one| one.wanted.namespace == namespace && one.wanted.name == name);
        if let Some(one) = found {
            one.guest.kill();
        }
    }

    /// What they have said.
    pub(super) fn said(&self) -> String {
        let all = self.all();
        let each = all
            .iter()
            .map(|(name, one)| format!("--- {name}\n{}", one.guest.said()));
        each.collect::<Vec<_>>().join("\n")
    }

    /// The network of a pod, as processes of the testbed see it.
    fn network(&self, wanted: &Wanted) -> Result<String> {
        let processes = self.groups.processes(&wanted.group)?;
        let inside = processes.iter().find_map(|process| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            inside(&status)
        });
        let process =
            inside.with_context(|| format!("nothing runs in the group {}", wanted.group))?;
        Ok(format!("/proc/{process}/ns/net"))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running
            .lock()
            .expect("invariant: no thread panics while holding it")
    }
}

fn address(testbed: &NodeTestbed) -> SocketAddr {
    (testbed.namespaces().subnets().images(), PORT).into()
}

/// A second server of the registry's images, from which they can only be read.
async fn registry(testbed: &NodeTestbed) -> Result<Service> {
    let binaries = Binaries::ensure(&[Binary::Registry], &testbed.progress).await?;
    let address = address(testbed);
    let own = format!("{}/32", address.ip());
    testbed
        .namespaces()
        .run("ip", ["addr", "add", &own, "dev", "nodes"])?;
    let work_dir = testbed.work_dir();
    let config = work_dir.join("registry-of-machines.json");
    let settings = json!({
        "version": "0.1",
        "log": { "level": "warn", "accesslog": { "disabled": true } },
        "storage": {
            "filesystem": { "rootdirectory": work_dir.join("registry") },
            "maintenance": { "readonly": { "enabled": true } },
        },
        "http": { "addr": address.to_string() },
    });
    write(&config, &settings.to_string())?;
    let program = binaries.path(Binary::Registry)?;
    let launch = Launch::new("registry-of-machines", program)
        .arg("serve")
        .arg(config)
        .environment("OTEL_TRACES_EXPORTER", "none");
    let launch = Site::Namespaces(testbed.namespaces()).place(launch);
    let health = plain_health_at(address, "/v2/")?;
    Ok(Service::new(launch, work_dir, health))
}

/// The id that a container's process has in the testbed, of the contents of its file `status`: it has one here, one in the
/// testbed, and one in its container.
fn inside(status: &str) -> Option<u32> {
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let ids: Vec<&str> = ids.split_whitespace().collect();
    match ids.as_slice() {
        [_, inside, _, ..] => inside.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_containers_have_an_id_in_the_testbed() {
        for (status, expected) in [
            ("Name:\tpause\nNSpid:\t4242\t17\t1\nNSpgid:\t1\n", Some(17)),
            // What runs a container, before it has namespaces of its own.
            ("Name:\trunc\nNSpid:\t4242\t17\n", None),
            ("Name:\tpause\n", None),
        ] {
            assert_eq!(inside(status), expected, "{status}");
        }
    }
}
