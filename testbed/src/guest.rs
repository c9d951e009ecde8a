//! A machine of the fake cloud, or of none: Linux namespaces of its own, in which its user data is carried out.
//!
//! It has its own network, or that of a pod, its own mounts, processes and host name, a container runtime of its own, and
//! nothing that makes it a worker: that is in the user data, which `ignite` (of `pod-tools`) carries out as Ignition would.
//! What a worker finds on a machine of OpenShift's operating system it finds here too: the kubelet at /usr/bin/kubelet,
//! the runtime's socket at /var/run/crio/crio.sock, and what the cloud's metadata say in /run/metadata/afterburn. What a
//! machine without systemd and with control groups of version 1 needs of its kubelet is handed to it as a drop-in
//! configuration.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::certs::write;
use crate::namespaces::{self, Entry};
use crate::node::NodeTestbed;
use crate::process::{Launch, Process};
use crate::registry;
use crate::work_dir::WorkDir;

/// The machine's first process.
const INIT: &str = include_str!("guest/init.sh");
/// The runtime's configuration, in which the pods' network is the machine's own.
const CONTAINERD: &str = include_str!("node/containerd.toml");
/// Pods of guests have addresses that only machines know, below this one.
const PODS: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
/// Port of the runtime's metrics.
const METRICS: u16 = 1338;
/// The last parts of addresses that machines may have, whatever their network is: that of the testbed, of a cluster that made
/// its own, or of pods.
const HOSTS: RangeInclusive<u8> = 2..=254;

/// What a machine is to be.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The name that it is known by, which is the cloud's if it is in one.
    pub instance: String,
    /// Where the cloud has it.
    pub zone: Option<String>,
    /// Its host name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its user data, for its first boot.
    pub user_data: Vec<u8>,
}

/// What initializes the nodes that machines of a cloud become: sets their labels and addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initialization {
    /// The kubelet, whatever its unit says: no cloud controller manager runs that would.
    Kubelet,
    /// A cloud controller manager, where the kubelet's unit says so: until then, nodes have a taint.
    CloudController,
}

/// What machines depend on.
#[derive(Debug, Clone)]
pub struct Fixture {
    work_dir: Arc<WorkDir>,
    entry: Entry,
    programs: Programs,
    registry: SocketAddr,
    pause: String,
    gateway: Ipv4Addr,
    name_service: Ipv4Addr,
    initialization: Initialization,
    /// The testbed's control group, and how one is made in it.
    cgroups: namespaces::Groups,
}

/// Programs on a machine.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) containerd: PathBuf,
    pub(crate) shim: PathBuf,
    pub(crate) kubelet: PathBuf,
    pub(crate) kube_proxy: PathBuf,
    pub(crate) ignite: PathBuf,
    pub(crate) runc: PathBuf,
    pub(crate) cni: PathBuf,
}

/// A machine that runs. Dropped, it is gone, with all that ran on it.
#[derive(Debug)]
pub struct Guest {
    machine: Machine,
    directory: PathBuf,
    process: Option<Process>,
    network: Network,
    entry: Entry,
}

/// The network of a machine.
#[derive(Debug)]
enum Network {
    /// Its own, with this name; it ends with the machine.
    Own(String),
    /// One that was there before, as this file.
    Given(String),
}

// === impl Network ===

impl Network {
    /// The file by which it is entered.
    fn file(&self) -> String {
        match self {
            Self::Own(name) => format!("/run/netns/{name}"),
            Self::Given(file) => file.clone(),
        }
    }
}

// === impl Fixture ===

impl Fixture {
    /// The fixture of a testbed's machines.
    pub async fn new(testbed: &NodeTestbed) -> Result<Self> {
        let subnets = testbed.namespaces().subnets();
        Ok(Self {
            work_dir: Arc::clone(testbed.work_dir()),
            entry: testbed.namespaces().bare(),
            programs: testbed.machine_programs().await?,
            registry: testbed.registry.address(),
            pause: testbed.pause_image(),
            gateway: subnets.node(1),
            name_service: subnets.name_service(),
            initialization: Initialization::Kubelet,
            cgroups: testbed.namespaces().groups(),
        })
    }

    /// The same for machines whose nodes are initialized in another way.
    #[must_use]
    pub(crate) fn initialized_by(mut self, initialization: Initialization) -> Self {
        self.initialization = initialization;
        self
    }

    /// The same for machines that pull their images from another address.
    #[must_use]
    pub(crate) fn pulling_from(mut self, registry: SocketAddr) -> Self {
        self.registry = registry;
        self
    }

    /// Starts a machine.
    pub fn start(&self, machine: Machine) -> Result<Guest> {
        let name = machine.instance.clone();
        // Interfaces have names of at most 15 characters.
        let short = &name[name.len().saturating_sub(10)..];
        let link = format!("m-{short}");
        let guest = self.prepare(machine, Network::Own(link.clone()));
        self.network(&guest, &link)
            .with_context(|| format!("cannot connect the machine {name}"))?;
        self.boot(guest)
            .with_context(|| format!("cannot start the machine {name}"))
    }

    /// Starts a machine in a network that is there, which has the machine's address: that of a pod. `network` is its file,
    /// as processes of the testbed see it. If the machine was started before, it has its disk of then.
    pub fn start_in(&self, machine: Machine, network: &str) -> Result<Guest> {
        let name = machine.instance.clone();
        let guest = self.prepare(machine, Network::Given(network.to_owned()));
        self.route_pods(&guest)
            .with_context(|| format!("cannot connect the machine {name}"))?;
        self.boot(guest)
            .with_context(|| format!("cannot start the machine {name}"))
    }

    fn prepare(&self, machine: Machine, network: Network) -> Guest {
        Guest {
            directory: self.work_dir.join("machines").join(&machine.instance),
            machine,
            process: None,
            network,
            entry: self.entry.clone(),
        }
    }

    fn network(&self, guest: &Guest, link: &str) -> Result<()> {
        let address = guest.machine.address.to_string();
        let own = format!("{address}/24");
        let gateway = self.gateway.to_string();
        // What a machine of that name left, if it was killed.
        drop(self.entry.run("ip", ["netns", "del", link]));
        for line in [
            ["netns", "add", link].as_slice(),
            &[
                "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", link,
            ],
            &["link", "set", link, "master", "nodes", "up"],
            &["-n", link, "addr", "add", &own, "dev", "eth0"],
            &["-n", link, "link", "set", "lo", "up"],
            &["-n", link, "link", "set", "eth0", "up"],
            // The gateway may have an address of another network: clusters that are created from nothing have their own.
            &[
                "-n", link, "route", "add", "default", "via", &gateway, "dev", "eth0", "onlink",
            ],
            &["route", "replace", &address, "dev", "nodes"],
        ] {
            self.entry.run("ip", line)?;
        }
        self.route_pods(guest)
    }

    /// Has a machine reach the pods of all others, as the network of a cluster would. The rest of the testbed cannot.
    fn route_pods(&self, guest: &Guest) -> Result<()> {
        let path = guest.directory.join("routes");
        std::fs::create_dir_all(&guest.directory)
            .with_context(|| format!("cannot create {}", guest.directory.display()))?;
        write(&path, &pod_routes(guest.machine.address))?;
        let network = format!("--net={}", guest.network.file());
        let batch = path.display().to_string();
        let line = [network.as_str(), "--", "ip", "-batch", &batch];
        self.entry.run("nsenter", line).map(drop)
    }

    fn boot(&self, mut guest: Guest) -> Result<Guest> {
        let (machine, directory) = (&guest.machine, &guest.directory);
        self.write(directory, machine)?;
        let mut entry: Vec<OsString> = self.entry.line().to_vec();
        entry.extend(
            [
                "nsenter".to_owned(),
                format!("--net={}", guest.network.file()),
                "--".to_owned(),
            ]
            .map(OsString::from),
        );
        let launch = Launch::new(machine.instance.clone(), Path::new("unshare"))
            .arg("--mount")
            .arg("--uts")
            .arg("--pid")
            .arg("--fork")
            .arg("--kill-child=KILL")
            .arg("--mount-proc")
            .arg("bash")
            .arg("-c")
            .arg(INIT)
            .arg("machine-init")
            .arg(directory)
            .arg(&machine.name)
            .arg(&self.programs.ignite)
            .through(&entry);
        guest.process = Some(launch.spawn(&self.work_dir)?);
        Ok(guest)
    }

    /// Writes what the machine is given.
    fn write(&self, directory: &Path, machine: &Machine) -> Result<()> {
        for part in ["cni", "registries", "kubelet.d", "bin"] {
            let path = directory.join(part);
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        let file = |name: &str, text: &str| write(&directory.join(name), text);
        file("user-data", &String::from_utf8_lossy(&machine.user_data))?;
        file("afterburn", &metadata(machine))?;
        file("kubelet-env", &environment(machine, self.initialization))?;
        file(
            "kubelet.d/90-machine.conf",
            &kubelet_drop_in(&self.cgroups.create(&machine.instance)?).to_string(),
        )?;
        file(
            "resolv.conf",
            &format!("nameserver {}\n", self.name_service),
        )?;
        file("cni/10-testbed.conflist", &pod_network(machine.address))?;
        file("containerd.toml", &self.runtime(directory, machine.address))?;
        let hosts = directory.join("registries").join(registry::NAME);
        std::fs::create_dir_all(&hosts)
            .with_context(|| format!("cannot create {}", hosts.display()))?;
        write(&hosts.join("hosts.toml"), &registry_hosts(self.registry))?;
        for (name, program) in [
            ("containerd", &self.programs.containerd),
            ("containerd-shim-runc-v2", &self.programs.shim),
            ("kubelet", &self.programs.kubelet),
            ("kube-proxy", &self.programs.kube_proxy),
            ("runc", &self.programs.runc),
        ] {
            let link = directory.join("bin").join(name);
            drop(std::fs::remove_file(&link));
            std::os::unix::fs::symlink(program, &link)
                .with_context(|| format!("cannot create {}", link.display()))?;
        }
        Ok(())
    }

    fn runtime(&self, directory: &Path, address: Ipv4Addr) -> String {
        let path = |name: &str| directory.join(name).display().to_string();
        let values = [
            ("ROOT", path("containerd")),
            ("STATE", "/run/containerd".to_owned()),
            ("METRICS", format!("{address}:{METRICS}")),
            ("PAUSE", self.pause.clone()),
            ("REGISTRIES", path("registries")),
            ("CNI_PROGRAMS", self.programs.cni.display().to_string()),
            ("CNI_CONFIG", path("cni")),
            ("RUNC", self.programs.runc.display().to_string()),
        ];
        values
            .iter()
            .fold(CONTAINERD.to_owned(), |text, (name, value)| {
                text.replace(&format!("${{{name}}}"), value)
            })
    }
}

// === impl Guest ===

impl Guest {
    /// What it is.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What a file below /etc holds that was written on it.
    pub fn file(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix("/etc/")?;
        std::fs::read_to_string(self.directory.join("etc/upper").join(below)).ok()
    }

    /// Its first process, by the id that this machine knows it by. None once it was killed.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The last lines of what it has said.
    pub fn said(&self) -> String {
        self.process.as_ref().map(Process::tail).unwrap_or_default()
    }
}

impl Guest {
    /// Ends all that runs on it, and leaves it there.
    pub(crate) fn kill(&mut self) {
        drop(self.process.take());
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its first process takes all others with it.
        drop(self.process.take());
        if let Network::Own(link) = &self.network {
            // When the testbed has ended, this is gone already.
            drop(self.entry.run("ip", ["netns", "del", link]));
        }
    }
}

/// What the cloud's metadata service would say, in the form of the program that requests it. Without a cloud there is none.
fn metadata(machine: &Machine) -> String {
    let Machine {
        instance,
        zone,
        name,
        address,
        user_data: _,
    } = machine;
    let Some(zone) = zone else {
        return String::new();
    };
    let region = zone.trim_end_matches(char::is_alphabetic);
    format!(
        "AFTERBURN_AWS_INSTANCE_ID={instance}\nAFTERBURN_AWS_AVAILABILITY_ZONE={zone}\nAFTERBURN_AWS_REGION={region}\n\
         AFTERBURN_AWS_HOSTNAME={name}\nAFTERBURN_AWS_IPV4_LOCAL={address}\n"
    )
}

/// For kubelets of units that request it.
fn environment(machine: &Machine, initialization: Initialization) -> String {
    let Machine { name, address, .. } = machine;
    let provider = match initialization {
        Initialization::Kubelet => "KUBELET_CLOUD_PROVIDER=\n",
        Initialization::CloudController => "",
    };
    format!("KUBELET_NODE_NAME={name}\nKUBELET_NODE_IP={address}\n{provider}")
}

/// Control groups are of version 1 and only the testbed's, there is no systemd, and the kernel's settings and the
/// disk are not the machine's.
fn kubelet_drop_in(cgroup: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "protectKernelDefaults": false,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
    })
}

/// The network of a machine's pods.
fn pods_of(host: u8) -> String {
    let [first, second, ..] = PODS.octets();
    format!("{first}.{second}.{host}.0/24")
}

/// The routes of a machine to the pods of all others that there may be beside it, for `ip -batch`.
fn pod_routes(address: Ipv4Addr) -> String {
    let [a, b, c, own] = address.octets();
    let others = HOSTS.filter(|&host| host != own);
    // In a network that is given, those of an attempt that failed may be there.
    let each =
        others.map(|host| format!("route replace {} via {a}.{b}.{c}.{host}\n", pods_of(host)));
    each.collect()
}

/// Pods hang on a bridge of the machine, and are hidden behind its address.
fn pod_network(address: Ipv4Addr) -> String {
    let [.., host] = address.octets();
    let network = json!({
        "cniVersion": "1.0.0",
        "name": "guest",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "hairpinMode": true,
            "ipMasq": true,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": pods_of(host) }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
                "dataDir": "/run/addresses",
            },
        }],
    });
    network.to_string()
}

fn registry_hosts(address: SocketAddr) -> String {
    format!(
        "server = \"http://{address}\"\n\n[host.\"http://{address}\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            instance: "i-0123456789abcdef0".to_owned(),
            zone: Some("us-east-1a".to_owned()),
            name: "ip-198-18-4-130.ec2.internal".to_owned(),
            address: Ipv4Addr::new(198, 18, 4, 130),
            user_data: Vec::new(),
        }
    }

    #[test]
    fn metadata_say_where_the_machine_is() {
        let text = metadata(&machine());
        for line in [
            "AFTERBURN_AWS_INSTANCE_ID=i-0123456789abcdef0\n",
            "AFTERBURN_AWS_AVAILABILITY_ZONE=us-east-1a\n",
            "AFTERBURN_AWS_REGION=us-east-1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let in_no_cloud = Machine {
            zone: None,
            ..machine()
        };
        assert_eq!(metadata(&in_no_cloud), "");
    }

    #[test]
    fn kubelets_initialize_nodes_unless_a_cloud_controller_does() {
        let provider = |initialization| {
            let text = environment(&machine(), initialization);
            let mut lines = text.lines().map(str::to_owned);
            lines.find(|line| line.starts_with("KUBELET_CLOUD_PROVIDER="))
        };
        let found = provider(Initialization::Kubelet);
        assert_eq!(found.as_deref(), Some("KUBELET_CLOUD_PROVIDER="));
        assert_eq!(provider(Initialization::CloudController), None);
    }

    #[test]
    fn pods_of_two_machines_have_other_addresses() {
        let one = pod_network(Ipv4Addr::new(198, 18, 4, 130));
        assert!(one.contains("100.64.130.0/24"), "{one}");
        assert_ne!(one, pod_network(Ipv4Addr::new(198, 18, 4, 131)));
        let routes = pod_routes(Ipv4Addr::new(198, 18, 4, 130));
        for other in [4, 129, 131, 254] {
            let expected = format!("route replace 100.64.{other}.0/24 via 198.18.4.{other}\n");
            assert!(routes.contains(&expected), "{routes}");
        }
        assert!(!routes.contains("100.64.130.0/24"), "{routes}");
    }
}
