//! Where the components of a control plane run, and how they are reached: on loopback, or in a testbed's namespaces.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;

use crate::namespaces::Namespaces;
use crate::ports;
use crate::process::Launch;

/// The network of Services where nothing serves them.
const UNSERVED: &str = "10.96.0.0/16";

/// Where components run.
#[derive(Debug, Clone, Copy)]
pub enum Site<'a> {
    /// Beside the tests, each with ports of its own.
    Loopback,
    /// In namespaces, on their well-known ports.
    Namespaces(&'a Namespaces),
}

// === impl Site ===

impl Site<'_> {
    /// An address for a component whose well-known port is `port`.
    pub fn address(self, port: u16) -> Result<SocketAddr> {
        Ok(match self {
            Self::Loopback => (Ipv4Addr::LOCALHOST, ports::allocate()?).into(),
            Self::Namespaces(namespaces) => (namespaces.subnets().node(1), port).into(),
        })
    }

    /// Has a program started there.
    pub fn place(self, launch: Launch) -> Launch {
        match self {
            Self::Loopback => launch,
            Self::Namespaces(namespaces) => launch.through(&namespaces.entry()),
        }
    }

    /// The network of Services.
    pub fn services(self) -> String {
        match self {
            Self::Loopback => UNSERVED.to_owned(),
            Self::Namespaces(namespaces) => namespaces.subnets().services(),
        }
    }

    /// Further names and addresses by which the API server is called.
    pub(crate) fn names(self) -> Vec<String> {
        match self {
            Self::Loopback => Vec::new(),
            Self::Namespaces(namespaces) => {
                let subnets = namespaces.subnets();
                let names = [
                    "kubernetes",
                    "kubernetes.default",
                    "kubernetes.default.svc.cluster.local",
                ];
                let addresses = [subnets.node(1), subnets.api_service()];
                names
                    .map(str::to_owned)
                    .into_iter()
                    .chain(addresses.map(|address| address.to_string()))
                    .collect()
            }
        }
    }
}
