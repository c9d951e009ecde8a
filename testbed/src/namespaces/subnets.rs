//! The addresses of one testbed: a block of its own, so that several are reached from outside side by side.

use std::net::Ipv4Addr;

/// The first address of all blocks. 198.18.0.0/15 is set aside for tests of networks and is routed nowhere.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// How many addresses a block has: a /20.
const BLOCK: u32 = 4096;
/// How many /24 networks for pods a block has: one for each node.
pub const MOST_NODES: u8 = 8;

/// Parts of a block, in networks of 256 addresses.
const SERVICES: u8 = 0;
const NODES: u8 = 4;
const LINK: u8 = 5;
const PODS: u8 = 8;

/// Parts of the nodes' network, after the nodes themselves.
const ROUTER: u8 = 60;
const IMAGES: u8 = 61;
const FIRST_BALANCER: u8 = 64;

/// The addresses of one testbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnets {
    start: Ipv4Addr,
}

// === impl Subnets ===

impl Subnets {
    /// How many testbeds have room.
    pub const COUNT: u8 = 32;
    /// How many Services of type LoadBalancer have room.
    pub const BALANCERS: u8 = 64;

    /// The addresses of the testbed with this number, below [`Self::COUNT`].
    pub fn new(number: u8) -> Self {
        let offset = u32::from(number % Self::COUNT) * BLOCK;
        Self {
            start: Ipv4Addr::from(u32::from(FIRST) + offset),
        }
    }

    /// All of them.
    pub fn all(self) -> String {
        format!("{}/20", self.start)
    }

    /// Services.
    pub fn services(self) -> String {
        format!("{}/22", self.address(SERVICES, 0))
    }

    /// The API server's Service, which takes the first address.
    pub fn api_service(self) -> Ipv4Addr {
        self.address(SERVICES, 1)
    }

    /// The name service's Service.
    pub fn name_service(self) -> Ipv4Addr {
        self.address(SERVICES, 10)
    }

    /// The network of the nodes.
    pub fn nodes(self) -> String {
        format!("{}/24", self.address(NODES, 0))
    }

    /// A node, counted from 1. The first one also holds the control plane and the registry.
    pub fn node(self, number: u8) -> Ipv4Addr {
        self.address(NODES, number)
    }

    /// Where names of Routes lead.
    pub fn router(self) -> Ipv4Addr {
        self.address(NODES, ROUTER)
    }

    /// Where machines find images that may not reach the nodes' own addresses.
    pub fn images(self) -> Ipv4Addr {
        self.address(NODES, IMAGES)
    }

    /// An address for a Service of type LoadBalancer, counted from 0 up to [`Self::BALANCERS`].
    pub fn balancer(self, number: u8) -> Ipv4Addr {
        self.address(NODES, FIRST_BALANCER + number % Self::BALANCERS)
    }

    /// The part of the nodes' network in which the machines of the fake cloud are.
    pub fn machines(self) -> String {
        format!("{}/25", self.address(NODES, 128))
    }

    /// A machine that is in no cloud, counted from 1. They come from the end of that part, where the cloud gives its
    /// addresses last.
    pub fn host(self, number: u8) -> Ipv4Addr {
        self.address(NODES, u8::MAX - number % 64)
    }

    /// The outer end of the link to the rest of the machine.
    pub fn outside(self) -> Ipv4Addr {
        self.address(LINK, 1)
    }

    /// The inner end of that link.
    pub fn inside(self) -> Ipv4Addr {
        self.address(LINK, 2)
    }

    /// All pods.
    pub fn pods(self) -> String {
        format!("{}/21", self.address(PODS, 0))
    }

    /// The pods of a node, counted from 1 to [`MOST_NODES`].
    pub fn pods_of(self, node: u8) -> String {
        format!("{}/24", self.address(PODS + node - 1, 0))
    }

    fn address(self, network: u8, host: u8) -> Ipv4Addr {
        let offset = u32::from(network) * 256 + u32::from(host);
        Ipv4Addr::from(u32::from(self.start) + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_stay_within_the_test_range() {
        let starts: Vec<_> = (0..Subnets::COUNT)
            .map(|n| u32::from(Subnets::new(n).start))
            .collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == BLOCK));
        let end = starts.last().unwrap() + BLOCK - 1;
        assert_eq!(Ipv4Addr::from(end), Ipv4Addr::new(198, 19, 255, 255));
    }

    #[test]
    fn the_subnets_of_a_block_do_not_overlap() {
        let subnets = Subnets::new(1);
        for (part, expected) in [
            (subnets.all(), "198.18.16.0/20"),
            (subnets.services(), "198.18.16.0/22"),
            (subnets.nodes(), "198.18.20.0/24"),
            (subnets.inside().to_string(), "198.18.21.2"),
            (subnets.router().to_string(), "198.18.20.60"),
            (subnets.images().to_string(), "198.18.20.61"),
            (subnets.balancer(0).to_string(), "198.18.20.64"),
            (
                subnets.balancer(Subnets::BALANCERS - 1).to_string(),
                "198.18.20.127",
            ),
            (subnets.machines(), "198.18.20.128/25"),
            (subnets.pods(), "198.18.24.0/21"),
            (subnets.pods_of(1), "198.18.24.0/24"),
            (subnets.pods_of(MOST_NODES), "198.18.31.0/24"),
        ] {
            assert_eq!(part, expected);
        }
    }
}
