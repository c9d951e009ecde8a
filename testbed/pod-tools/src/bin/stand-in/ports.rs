//! Which ports a program serves, by its command line and its name.

use std::collections::BTreeSet;

/// Flags whose value is a port, or ends with one.
const FLAGS: [&str; 11] = [
    "health-addr",
    "health-port",
    "health-probe-bind-address",
    "listen",
    "listen-addr",
    "listen-port",
    "metrics-addr",
    "metrics-bind-address",
    "metrics-port",
    "port",
    "secure-port",
];

/// Ports of programs whose command line does not name them.
const BY_NAME: [(&str, &[u16]); 20] = [
    ("aws-cloud-controller-manager", &[10258]),
    ("azure-cloud-controller-manager", &[10258]),
    ("cluster-image-registry-operator", &[60000]),
    ("cluster-network-operator", &[9104]),
    ("cluster-node-tuning-operator", &[60000]),
    ("cluster-policy-controller", &[10357]),
    ("cluster-storage-operator", &[8443]),
    ("cluster-version-operator", &[8443]),
    ("control-plane-pki-operator", &[8443]),
    ("csi-snapshot-controller-operator", &[8443]),
    ("dns-operator", &[60000]),
    ("gcp-cloud-controller-manager", &[10258]),
    ("ibm-cloud-controller-manager", &[10258]),
    ("ingress-operator", &[60000]),
    ("kubevirt-cloud-controller-manager", &[10258]),
    ("machine-approver", &[9191]),
    ("oauth-server", &[6443]),
    ("openshift-controller-manager", &[8443]),
    ("openstack-cloud-controller-manager", &[10258]),
    ("route-controller-manager", &[8443]),
];

/// The ports of the program `name` with these arguments.
pub(crate) fn of(name: &str, args: &[String]) -> BTreeSet<u16> {
    let mut named = from_flags(args);
    if named.is_empty() {
        let table = BY_NAME.iter().find(|(program, _)| *program == name);
        named.extend(table.into_iter().flat_map(|(_, ports)| ports.iter()));
    }
    // Port 0 switches something off.
    named.remove(&0);
    named
}

fn from_flags(args: &[String]) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    for (at, arg) in args.iter().enumerate() {
        let long = arg.trim_start_matches('-');
        if long.len() == arg.len() {
            continue;
        }
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, args.get(at + 1).map(String::as_str)),
        };
        if FLAGS.contains(&name) {
            ports.extend(value.and_then(port));
        }
    }
    ports
}

/// `8443`, `:8443`, `0.0.0.0:8443`. What listens on loopback only is not probed.
fn port(value: &str) -> Option<u16> {
    let (host, port) = value.rsplit_once(':').unwrap_or(("", value));
    if ["127.0.0.1", "localhost", "[::1]"].contains(&host) {
        return None;
    }
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_come_from_flags_else_from_the_table() {
        for (name, line, expected) in [
            (
                "cluster-version-operator",
                "start --listen=0.0.0.0:8443 --metrics-port 9102 --mode=x",
                &[8443_u16, 9102][..],
            ),
            ("machine-approver", "-v=3 --logtostderr", &[9191]),
            (
                "agent",
                "--health-probe-bind-address=:8081 --metrics-bind-address=127.0.0.1:8080",
                &[8081],
            ),
            (
                "etcd-grpc-proxy",
                "grpc-proxy start --listen-addr=127.0.0.1:2383 --metrics-addr=https://0.0.0.0:2381",
                &[2381],
            ),
            ("nothing-known", "run", &[]),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let expected = expected.iter().copied().collect();
            assert_eq!(of(name, &args), expected, "{name}");
        }
    }
}
