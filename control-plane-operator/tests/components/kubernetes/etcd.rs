//! How networks change etcd.

use serde_json::json;

use super::{ETCD, MEMBERS, networks};
use crate::openshift_apis::{Row, check};

#[test]
pub(crate) fn members_listen_on_the_family_of_pods() {
    let v6 = networks(&["fd01::/48", "10.1.0.0/16"], &["fd02::/112"]);
    let v4 = networks(&["10.1.0.0/16", "fd01::/48"], &["172.30.0.0/16"]);
    let peers = container!("etcd", "/env/ETCD_LISTEN_PEER_URLS/value");
    let clients = container!("etcd", "/env/ETCD_LISTEN_CLIENT_URLS/value");
    let metrics = container!("etcd", "/env/ETCD_LISTEN_METRICS_URLS/value");
    let proxy = container!("etcd-metrics", "/args/--listen-addr");
    let proxy_metrics = container!("etcd-metrics", "/args/--metrics-addr");
    let rows: [Row<'_>; 10] = [
        (
            "peers, IPv6",
            &v6,
            MEMBERS,
            peers,
            json!("https://[$(POD_IP)]:2380"),
        ),
        (
            "peers, IPv4 first",
            &v4,
            MEMBERS,
            peers,
            json!("https://$(POD_IP):2380"),
        ),
        (
            "clients, IPv6",
            &v6,
            MEMBERS,
            clients,
            json!("https://[$(POD_IP)]:2379,https://localhost:2379"),
        ),
        (
            "clients, IPv4 first",
            &v4,
            MEMBERS,
            clients,
            json!("https://$(POD_IP):2379,https://localhost:2379"),
        ),
        (
            "metrics, IPv6",
            &v6,
            MEMBERS,
            metrics,
            json!("https://[::]:2382"),
        ),
        (
            "metrics, IPv4 first",
            &v4,
            MEMBERS,
            metrics,
            json!("https://0.0.0.0:2382"),
        ),
        (
            "proxy of metrics, IPv6",
            &v6,
            MEMBERS,
            proxy,
            json!("--listen-addr=[::1]:2383"),
        ),
        (
            "proxy of metrics, IPv4 first",
            &v4,
            MEMBERS,
            proxy,
            json!("--listen-addr=127.0.0.1:2383"),
        ),
        (
            "metrics of the proxy, IPv6",
            &v6,
            MEMBERS,
            proxy_metrics,
            json!("--metrics-addr=https://[::]:2381"),
        ),
        (
            "metrics of the proxy, IPv4 first",
            &v4,
            MEMBERS,
            proxy_metrics,
            json!("--metrics-addr=https://0.0.0.0:2381"),
        ),
    ];
    check(ETCD, &rows);
}
