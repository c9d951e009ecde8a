//! The configuration of haproxy. Pure: all texts of clusters were checked when they were evaluated.
//!
//! Names of backends are `<namespace>_<backend>`: a namespace has no underscore, so that those of two clusters differ.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;

use super::clusters::{Cluster, Server};

/// Global settings, and the frontend of probes.
const HEAD: &str = "\
global
  log stdout format raw local0
  maxconn 20000

defaults
  log global
  mode tcp
  retries 3
  timeout connect 10s
  timeout client 86400s
  timeout server 86400s
  timeout tunnel 86400s
  timeout queue 1m

frontend health
  bind :::9444 v4v6
  mode http
  monitor-uri /haproxy_ready
";
/// Nodes. Their proxies name the cluster in the PROXY protocol, which also has the address of the client.
const DATA_PLANE: &str = "
frontend dataplane-kas-svc
  bind :::6443 v4v6 accept-proxy
";
/// Clients, by the name in the TLS handshake.
const EXTERNAL: &str = "
frontend external-dns
  bind :::8443 v4v6
  tcp-request inspect-delay 5s
  tcp-request content accept if { req_ssl_hello_type 1 }
";
/// The rule of connections that no other rule takes.
const DEFAULT: &str = "  default_backend reject\n";
const REJECT: &str = "
backend reject
  tcp-request content reject
";
/// Field of the PROXY protocol with the cluster's ID.
const CLUSTER_ID: &str = "fc_pp_tlv(0x20)";
/// Backend of the API server for nodes.
const API_SERVER: &str = "kube-apiserver";
/// Address ranges on a line: a line has at most 64 words.
const RANGES: usize = 32;

/// The text of the file.
pub(super) fn render(clusters: &[Cluster]) -> String {
    let mut text = HEAD.to_owned();
    text += DATA_PLANE;
    for cluster in clusters {
        if let Some((id, _)) = &cluster.data_plane {
            access(cluster, &mut text);
            let condition = format!("{{ {CLUSTER_ID} -m str {id} }}");
            rule(cluster, API_SERVER, &condition, &mut text);
        }
    }
    text += DEFAULT;
    text += EXTERNAL;
    for cluster in clusters.iter().filter(|it| !it.backends.is_empty()) {
        access(cluster, &mut text);
        for (name, backend) in &cluster.backends {
            for host in &backend.hosts {
                let condition = format!("{{ req.ssl_sni -m str -i -- {host} }}");
                rule(cluster, name, &condition, &mut text);
            }
        }
    }
    text += DEFAULT;
    for cluster in clusters {
        if let Some((_, server)) = &cluster.data_plane {
            backend(cluster, API_SERVER, *server, &mut text);
        }
        for (name, found) in &cluster.backends {
            backend(cluster, name, found.server, &mut text);
        }
    }
    text += REJECT;
    text
}

/// The addresses that may reach a cluster: the lines of one name are alternatives.
fn access(cluster: &Cluster, text: &mut String) {
    let ranges: BTreeSet<String> = cluster.allowed.iter().map(IpNet::to_string).collect();
    let ranges: Vec<_> = ranges.into_iter().collect();
    for ranges in ranges.chunks(RANGES) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  acl {}_allowed src {}",
            cluster.namespace,
            ranges.join(" ")
        );
    }
}

fn rule(cluster: &Cluster, backend: &str, condition: &str, text: &mut String) {
    let namespace = &cluster.namespace;
    let _ = write!(text, "  use_backend {namespace}_{backend} if {condition}");
    if !cluster.allowed.is_empty() {
        let _ = write!(text, " {namespace}_allowed");
    }
    text.push('\n');
}

fn backend(cluster: &Cluster, name: &str, server: Server, text: &mut String) {
    let (namespace, port) = (&cluster.namespace, server.port);
    let address = match server.ip {
        IpAddr::V4(ip) => format!("{ip}:{port}"),
        IpAddr::V6(ip) => format!("[{ip}]:{port}"),
    };
    let _ = write!(
        text,
        "\nbackend {namespace}_{name}\n  server {name} {address}\n"
    );
}
