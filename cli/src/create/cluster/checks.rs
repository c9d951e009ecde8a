//! What flags cannot check one by one; the rest is the API server's business.

use k8s_openapi::jiff::Timestamp;

use super::args::{CommonArgs, RunArgs};
use super::values::{Capability, NetworkType};
use crate::Usage;
use crate::create::text;

/// Longest name of a cluster, so that names made of it stay labels.
const LONGEST_NAME: usize = 63;
/// Longest host name of DNS.
const LONGEST_HOST: usize = 253;

/// Checks the flags of all platforms.
pub(super) fn check(args: &CommonArgs) -> Result<(), Usage> {
    check_name("--name", &args.name)?;
    check_name("--namespace", &args.namespace)?;
    check_networks(args)?;
    check_capabilities(args)?;
    if let Some(name) = &args.network.kas_dns_name {
        check_host("--kas-dns-name", name)?;
    }
    if let Some(domain) = &args.external_dns_domain {
        check_host("--external-dns-domain", domain)?;
    }
    args.paused_until.as_deref().map_or(Ok(()), check_pause)
}

/// Checks that no flag is given that does nothing.
pub(super) fn check_run(args: &RunArgs) -> Result<(), Usage> {
    let render = args.renders();
    for (flag, given) in [
        ("--wait", args.wait),
        ("--version-check", args.version_check),
        ("--dry-run", args.dry_run),
    ] {
        if render && given {
            return Err(Usage::new(&format!(
                "{flag} needs a cluster to be created: leave it out, or leave out --render and --render-into"
            )));
        }
    }
    if args.dry_run && args.wait {
        return Err(Usage::new(
            &"--wait needs a cluster to be created: leave it out, or leave out --dry-run",
        ));
    }
    if args.render_sensitive && !render {
        return Err(Usage::new(
            &"--render-sensitive needs --render or --render-into",
        ));
    }
    Ok(())
}

/// A name that Kubernetes takes for a label.
pub(super) fn check_name(flag: &str, name: &str) -> Result<(), Usage> {
    if is_label(name) {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "{flag} {name:?}: use lower-case letters, digits and dashes, at most {LONGEST_NAME}, with no dash at either end"
    )))
}

fn is_label(name: &str) -> bool {
    text::is_name(name) && name.len() <= LONGEST_NAME
}

/// A host name of DNS.
fn check_host(flag: &str, name: &str) -> Result<(), Usage> {
    if name.len() <= LONGEST_HOST && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "{flag} {name:?}: use a DNS name in lower case, for example api.example.com"
    )))
}

fn check_networks(args: &CommonArgs) -> Result<(), Usage> {
    let network = &args.network;
    let other = network.network_type == NetworkType::Other;
    for (flag, given) in [
        ("--allocate-node-cidrs", network.allocate_node_cidrs),
        ("--disable-multi-network", network.disable_multi_network),
    ] {
        if given && !other {
            return Err(Usage::new(&format!("{flag} needs --network-type=Other")));
        }
    }
    if network.ovn_kubernetes_mtu.is_some() && network.network_type != NetworkType::OvnKubernetes {
        return Err(Usage::new(
            &"--ovn-kubernetes-mtu needs --network-type=OVNKubernetes",
        ));
    }
    Ok(())
}

fn check_capabilities(args: &CommonArgs) -> Result<(), Usage> {
    let enabled = &args.control_plane.enable_cluster_capabilities;
    let disabled = &args.control_plane.disable_cluster_capabilities;
    if let Some(both) = disabled.iter().find(|one| enabled.contains(one)) {
        return Err(Usage::new(&format!(
            "{} is named by --enable-cluster-capabilities and by --disable-cluster-capabilities: name it once",
            super::args::name_of(*both)
        )));
    }
    if disabled.contains(&Capability::Ingress) && !disabled.contains(&Capability::Console) {
        return Err(Usage::new(
            &"--disable-cluster-capabilities: the console needs ingress, so disable Console as well, or keep Ingress",
        ));
    }
    Ok(())
}

fn check_pause(until: &str) -> Result<(), Usage> {
    if until == "true" || until.parse::<Timestamp>().is_ok() {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "--pausedUntil {until:?}: write a time such as 2030-01-31T12:00:00Z, or true for no limit"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        for name in ["a", "a-1", &"x".repeat(63)] {
            check_name("--name", name).unwrap();
        }
        for name in ["", "A", "a.b", "-a", "a-", "ä", &"x".repeat(64)] {
            check_name("--name", name).unwrap_err();
        }
    }

    #[test]
    fn host_names_are_labels_with_dots() {
        for name in ["a", "api.example.com", "1.example.com"] {
            check_host("--kas-dns-name", name).unwrap();
        }
        for name in ["", "a..b", "https://a", "A.example.com", "a.example.com."] {
            check_host("--kas-dns-name", name).unwrap_err();
        }
    }

    #[test]
    fn a_pause_has_an_end_or_none() {
        for until in ["true", "2030-01-31T12:00:00Z", "2030-01-31T12:00:00+02:00"] {
            check_pause(until).unwrap();
        }
        for until in ["", "false", "tomorrow", "2030-01-31"] {
            check_pause(until).unwrap_err();
        }
    }
}
