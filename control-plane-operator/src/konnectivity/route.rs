//! Which way a connection goes. Pure.

use std::net::IpAddr;

use super::bypass::CloudApis;
use super::health::State;
use super::target::{Host, Target};

/// Port of DNS servers. Their traffic is never diverted: DNS of the hosted cluster is only there.
const DNS_PORT: u16 = 53;

/// What resolving a host resulted in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The cluster IP of a Service of the hosted cluster.
    Service(IpAddr),
    /// Addresses from DNS, in the order in which to try them.
    Addresses(Vec<IpAddr>),
    /// Nothing: the host is an address already, or the other end of the tunnel resolves it.
    Unresolved,
}

/// The way of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// From the management cluster, through its proxy.
    CloudApi,
    /// From the management cluster, without a proxy.
    Management,
    /// Through the tunnel, to the first of these hosts that accepts the connection.
    Tunnel(Vec<Host>),
}

/// Decides the way of a connection to `target`.
///
/// While DNS of the hosted cluster has failed, targets are reached from the management cluster, which resolved them.
/// Services of the hosted cluster are only there.
pub(crate) fn decide(
    target: &Target,
    cloud_apis: &CloudApis,
    answer: Answer,
    guest_dns: State,
) -> Route {
    if cloud_apis.contains(&target.host) {
        return Route::CloudApi;
    }
    let falls_back = guest_dns == State::Failed && target.port != DNS_PORT;
    match answer {
        Answer::Service(address) => Route::Tunnel(vec![Host::Ip(address)]),
        Answer::Addresses(_) | Answer::Unresolved if falls_back => Route::Management,
        Answer::Addresses(found) => Route::Tunnel(found.into_iter().map(Host::Ip).collect()),
        Answer::Unresolved => Route::Tunnel(vec![target.host.clone()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        name: &'static str,
        target: (&'static str, u16),
        answer: Answer,
        guest_dns: State,
        expected: Route,
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn tunnel(hosts: &[&str]) -> Route {
        Route::Tunnel(hosts.iter().map(|host| host.parse().unwrap()).collect())
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let found = || Answer::Addresses(vec![ip("10.0.0.1"), ip("fd00::1")]);
        let rows = [
            Row {
                name: "cloud API",
                target: ("sts.amazonaws.com", 443),
                answer: Answer::Unresolved,
                guest_dns: State::Healthy,
                expected: Route::CloudApi,
            },
            Row {
                name: "cloud API while guest DNS has failed",
                target: ("sts.amazonaws.com", 443),
                answer: found(),
                guest_dns: State::Failed,
                expected: Route::CloudApi,
            },
            Row {
                name: "resolved name",
                target: ("ldap.example.com", 636),
                answer: found(),
                guest_dns: State::Healthy,
                expected: tunnel(&["10.0.0.1", "fd00::1"]),
            },
            Row {
                name: "name that the agent resolves",
                target: ("ldap.example.com", 636),
                answer: Answer::Unresolved,
                guest_dns: State::Healthy,
                expected: tunnel(&["ldap.example.com"]),
            },
            Row {
                name: "address",
                target: ("192.0.2.7", 636),
                answer: Answer::Unresolved,
                guest_dns: State::Healthy,
                expected: tunnel(&["192.0.2.7"]),
            },
            Row {
                name: "name while guest DNS has failed",
                target: ("ldap.example.com", 636),
                answer: Answer::Unresolved,
                guest_dns: State::Failed,
                expected: Route::Management,
            },
            Row {
                name: "resolved name while guest DNS has failed",
                target: ("ldap.example.com", 636),
                answer: found(),
                guest_dns: State::Failed,
                expected: Route::Management,
            },
            Row {
                name: "address while guest DNS has failed",
                target: ("192.0.2.7", 636),
                answer: Answer::Unresolved,
                guest_dns: State::Failed,
                expected: Route::Management,
            },
            Row {
                name: "DNS while guest DNS has failed",
                target: ("172.31.0.10", 53),
                answer: Answer::Unresolved,
                guest_dns: State::Failed,
                expected: tunnel(&["172.31.0.10"]),
            },
            Row {
                name: "Service while guest DNS has failed",
                target: ("a.b.svc", 443),
                answer: Answer::Service(ip("172.31.0.20")),
                guest_dns: State::Failed,
                expected: tunnel(&["172.31.0.20"]),
            },
        ];
        let cloud_apis = CloudApis::direct([]);
        for row in rows {
            let target = Target::new(row.target.0.parse().unwrap(), row.target.1);
            let route = decide(&target, &cloud_apis, row.answer, row.guest_dns);
            assert_eq!(route, row.expected, "{}", row.name);
        }
    }

    #[test]
    fn cloud_apis_use_the_tunnel_unless_they_are_reached_directly() {
        let target = Target::new("sts.amazonaws.com".parse().unwrap(), 443);
        let route = decide(
            &target,
            &CloudApis::Tunnel,
            Answer::Unresolved,
            State::Healthy,
        );
        assert_eq!(route, tunnel(&["sts.amazonaws.com"]));
    }
}
