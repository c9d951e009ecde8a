//! Cloud APIs that are reached from the management cluster instead of through the tunnel. Pure.

use std::collections::BTreeSet;

use super::target::Host;

/// Domains of cloud APIs.
const SUFFIXES: [&str; 7] = [
    ".amazonaws.com",
    ".azure.com",
    ".c2s.ic.gov",
    ".cloud.ibm.com",
    ".hci.ic.gov",
    ".microsoftonline.com",
    ".sc2s.sgov.gov",
];

/// How cloud APIs are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudApis {
    /// Through the tunnel, like all other hosts.
    Tunnel,
    /// From the management cluster.
    Direct {
        /// Hosts that look like cloud APIs and are not: the proxies of the hosted cluster.
        except: BTreeSet<String>,
    },
}

// === impl CloudApis ===

impl CloudApis {
    /// Cloud APIs are reached from the management cluster, except for these hosts.
    pub(crate) fn direct<'a>(except: impl IntoIterator<Item = &'a Host>) -> Self {
        let names = except.into_iter().filter_map(Host::name);
        Self::Direct {
            except: names.map(str::to_owned).collect(),
        }
    }

    /// Whether the host is a cloud API that is reached from the management cluster.
    pub(crate) fn contains(&self, host: &Host) -> bool {
        let (Self::Direct { except }, Some(name)) = (self, host.name()) else {
            return false;
        };
        !except.contains(name) && SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn cloud_apis_are_recognized_by_suffix() {
        let proxy = host("Proxy.eu-west-1.amazonaws.com");
        let direct = CloudApis::direct([&proxy]);
        for (name, expected) in [
            ("sts.us-east-1.amazonaws.com", true),
            ("STS.Amazonaws.com.", true),
            ("ec2.us-iso-east-1.c2s.ic.gov", true),
            ("ec2.hci.ic.gov", true),
            ("ec2.us-isob-east-1.sc2s.sgov.gov", true),
            ("login.microsoftonline.com", true),
            ("management.azure.com", true),
            ("iam.cloud.ibm.com", true),
            ("proxy.eu-west-1.amazonaws.com", false),
            ("amazonaws.com", false),
            ("notamazonaws.com", false),
            ("sts.amazonaws.com.example.com", false),
            ("cloud.ibm.com", false),
            ("quay.io", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(direct.contains(&host(name)), expected, "{name}");
            assert!(!CloudApis::Tunnel.contains(&host(name)), "{name}");
        }
    }
}
