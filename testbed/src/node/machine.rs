//! One node: container runtime, kubelet, kube-proxy.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::config::{Files, KUBELET_PORT, KubeletSettings, PROXY_PORT, RUNTIME_PORT};
use super::loss::Cut;
use super::packages::Tools;
use super::patience::Patience;
use crate::binaries::{Binaries, Binary};
use crate::certs::Authority;
use crate::control_plane::Endpoint;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::namespaces::{self, Namespaces};
use crate::process::Launch;
use crate::service::{Service, plain_health_at};
use crate::work_dir::WorkDir;

/// The label of a node's zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// A node of the cluster, in a zone of its own.
#[derive(Debug)]
pub struct Node {
    /// Its name in the cluster.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The container runtime.
    pub runtime: Service,
    /// What runs the pods.
    pub kubelet: Service,
    /// What makes Services reachable.
    pub proxy: Service,
    pub(super) cut: Cut,
    entry: Vec<OsString>,
}

/// What nodes depend on.
#[derive(Debug)]
pub(super) struct Fixture<'a> {
    pub(super) work_dir: &'a Arc<WorkDir>,
    pub(super) namespaces: &'a Namespaces,
    pub(super) binaries: &'a Binaries,
    pub(super) tools: &'a Tools,
    pub(super) authority: &'a Authority,
    pub(super) endpoint: &'a Endpoint,
    pub(super) registry: SocketAddr,
    /// The image of the process that holds a pod's network.
    pub(super) pause: &'a str,
    pub(super) patience: Option<Patience>,
}

// === impl Node ===

impl Node {
    /// Prepares a node, counted from 1. Nothing runs yet.
    pub(super) fn new(number: u8, fixture: &Fixture<'_>) -> Result<Self> {
        let name = format!("node-{number}");
        let subnets = fixture.namespaces.subnets();
        let address = subnets.node(number);
        let entry = if number == 1 {
            // It shares its network with the control plane, so that what is from outside finds Services.
            fixture.namespaces.entry()
        } else {
            let pods = subnets.pods_of(number);
            fixture.namespaces.add_node(&name, address, &pods)?;
            fixture.namespaces.entry_of(&name)
        };
        let files = Files::create(fixture.work_dir.path(), &name)?;
        let service = |launch: Launch, port: u16, path| {
            let health = plain_health_at((address, port).into(), path)?;
            anyhow::Ok(Service::new(
                launch.through(&entry),
                fixture.work_dir,
                health,
            ))
        };
        let runtime = runtime(&name, number, &files, fixture)?;
        let kubelet = kubelet(&name, number, &files, fixture)?;
        let proxy = proxy(&name, address, &files, fixture)?;
        Ok(Self {
            runtime: service(runtime, RUNTIME_PORT, "/v1/metrics")?,
            kubelet: service(kubelet, KUBELET_PORT, "/healthz")?,
            proxy: service(proxy, PROXY_PORT, "/healthz")?,
            cut: Cut {
                entry: fixture
                    .namespaces
                    .plain_entry_of((number > 1).then_some(name.as_str())),
                interface: if number == 1 { "cni0" } else { "eth0" },
                file: files.path("lost.nft"),
                groups: fixture.namespaces.groups(),
            },
            name,
            address,
            entry,
        })
    }

    /// Whether its network is the control plane's, too.
    pub(super) fn is_first(&self) -> bool {
        self.cut.interface == "cni0"
    }

    /// Whether a TCP port accepts connections from this node.
    pub fn reaches(&self, address: SocketAddr) -> Result<()> {
        let connect = format!("exec 3<>/dev/tcp/{}/{}", address.ip(), address.port());
        namespaces::run_through(&self.entry, "timeout", ["1", "bash", "-c", &connect])
            .with_context(|| format!("{} does not reach {address}", self.name))?;
        Ok(())
    }
}

fn runtime(name: &str, number: u8, files: &Files, fixture: &Fixture<'_>) -> Result<Launch> {
    let config = files.containerd(number, fixture)?;
    let shim = fixture.binaries.path(Binary::ContainerdShim)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let directory = shim.parent().unwrap_or(shim).display();
    Ok(Launch::new(
        format!("{name}-containerd"),
        fixture.binaries.path(Binary::Containerd)?,
    )
    .path_flag("config", &config)
    .flag("log-level", "warn")
    // containerd looks for its shim in PATH.
    .environment("PATH", format!("{directory}:{path}")))
}

fn kubelet(name: &str, number: u8, files: &Files, fixture: &Fixture<'_>) -> Result<Launch> {
    let subnets = fixture.namespaces.subnets();
    let address = subnets.node(number);
    let hosts = [name.to_owned(), address.to_string()];
    let serving = fixture
        .authority
        .server_at(&format!("{name}-serving"), &hosts)?;
    let kubeconfig = kubeconfig(
        &format!("{name}-kubelet"),
        &format!("system:node:{name}"),
        Some("system:nodes"),
        files,
        fixture,
    )?;
    let authority = &fixture.endpoint.authority;
    let cgroup = fixture.namespaces.cgroup(name)?;
    let settings = KubeletSettings {
        number,
        serving: &serving,
        authority,
        cgroup: &cgroup,
        patience: fixture.patience,
    };
    let config = files.kubelet(subnets, &settings)?;
    Ok(Launch::new(
        format!("{name}-kubelet"),
        fixture.binaries.path(Binary::Kubelet)?,
    )
    .path_flag("config", &config)
    .path_flag("kubeconfig", &kubeconfig)
    .path_flag("root-dir", &files.path("kubelet"))
    .path_flag("cert-dir", &files.path("kubelet/pki"))
    .flag("hostname-override", name)
    // Each fails by itself.
    .flag("node-labels", format!("{ZONE}=zone-{number}"))
    .flag("node-ip", address))
}

fn proxy(name: &str, address: Ipv4Addr, files: &Files, fixture: &Fixture<'_>) -> Result<Launch> {
    let kubeconfig = kubeconfig(
        &format!("{name}-kube-proxy"),
        "system:kube-proxy",
        None,
        files,
        fixture,
    )?;
    Ok(Launch::new(
        format!("{name}-kube-proxy"),
        fixture.binaries.path(Binary::KubeProxy)?,
    )
    .path_flag("kubeconfig", &kubeconfig)
    .flag("hostname-override", name)
    .flag("proxy-mode", "iptables")
    .flag("cluster-cidr", fixture.namespaces.subnets().pods())
    .flag("healthz-bind-address", format!("{address}:{PROXY_PORT}"))
    .flag("metrics-bind-address", format!("{address}:10249"))
    // These are the machine's, not the namespace's.
    .flag("conntrack-max-per-core", 0)
    .flag("conntrack-tcp-timeout-established", 0)
    .flag("conntrack-tcp-timeout-close-wait", 0))
}

fn kubeconfig(
    name: &str,
    user: &str,
    group: Option<&str>,
    files: &Files,
    fixture: &Fixture<'_>,
) -> Result<PathBuf> {
    let path = files.path(&format!("{name}.kubeconfig"));
    let certificate = fixture.authority.client(name, user, group)?;
    write_kubeconfig(
        &path,
        &fixture.endpoint.server,
        Some(&fixture.endpoint.authority),
        Credentials::Certificate(&certificate),
    )?;
    Ok(path)
}
