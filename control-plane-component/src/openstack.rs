//! What all programs write alike for hosted clusters on OpenStack: the configuration of its cloud provider.

use crate::error::Result;
use crate::ini::Ini;

/// Directory of the cloud's certificate authorities, where components have them.
pub const AUTHORITIES: &str = "/etc/pki/ca-trust/extracted/pem";
/// Key and file of them.
pub const AUTHORITIES_FILE: &str = "ca-bundle.pem";

/// What the configuration of the cloud provider says.
#[derive(Debug, Clone, Copy)]
pub struct CloudConfig<'a> {
    /// Beginning of the file: further settings of the user for the own cloud.
    pub own: &'a str,
    /// `spec.platform.openstack.identityRef.cloudName`.
    pub cloud: &'a str,
    /// `spec.platform.openstack.externalNetwork.id`.
    pub external_network: Option<&'a str>,
    /// The machine networks, as CIDRs.
    pub machines: &'a [&'a str],
    /// Whether the cloud has certificate authorities of its own.
    pub has_authorities: bool,
}

// === impl CloudConfig ===

impl CloudConfig<'_> {
    /// The file `cloud.conf`. An error if a value has a character that could add a setting.
    pub fn text(&self) -> Result<String> {
        let mut file = Ini::default()
            .section("Global")
            .fixed("use-clouds", "true")
            .fixed("clouds-file", "/etc/openstack/secret/clouds.yaml")
            .set(
                "cloud",
                ("spec.platform.openstack.identityRef.cloudName", self.cloud),
            )?;
        if self.has_authorities {
            file = file.fixed("ca-file", &format!("{AUTHORITIES}/{AUTHORITIES_FILE}"));
        }
        file = file
            .section("LoadBalancer")
            .fixed("max-shared-lb", "1")
            .fixed("manage-security-groups", "true");
        if let Some(id) = self.external_network {
            let field = "spec.platform.openstack.externalNetwork.id";
            file = file.set("floating-network-id", (field, id))?;
        }
        let machines = self.machines.join(",");
        let file = file.section("Networking").set(
            "address-sort-order",
            ("spec.networking.machineNetwork", &machines),
        )?;
        // A last line without an end would run into the next one.
        let end = if self.own.is_empty() || self.own.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Ok(format!("{}{end}{}", self.own, file.text()))
    }
}
