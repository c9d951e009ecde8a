//! Regions of Power VS, and those of other services that are near. No service lists them. Pure.

/// Regions of Power VS, of VPCs, and of Cloud Object Storage.
const REGIONS: [[&str; 3]; 13] = [
    ["dal", "us-south", "us-south"],
    ["eu-de", "eu-de", "eu-de"],
    ["lon", "eu-gb", "eu-gb"],
    // Without Cloud Object Storage.
    ["mad", "eu-es", "eu-de"],
    ["mon", "ca-tor", "ca-tor"],
    ["osa", "jp-osa", "jp-osa"],
    ["sao", "br-sao", "br-sao"],
    ["syd", "au-syd", "au-syd"],
    ["tok", "jp-tok", "jp-tok"],
    ["tor", "ca-tor", "ca-tor"],
    ["us-east", "us-east", "us-east"],
    ["us-south", "us-south", "us-south"],
    ["wdc", "us-east", "us-east"],
];

/// Zones where this cannot be created.
const UNSUPPORTED_ZONES: [&str; 1] = ["wdc06"];

/// The region of Cloud Object Storage for a region of Power VS.
pub(super) fn storage_region(region: &str) -> Option<&'static str> {
    let mut regions = REGIONS.iter();
    let [_, _, storage] = *regions.find(|[power, ..]| *power == region)?;
    Some(storage)
}

/// Whether a gateway has to route between locations: the region of the VPC is not the one of the region of Power VS.
pub(super) fn needs_global_routing(region: &str, vpc_region: &str) -> bool {
    !REGIONS
        .iter()
        .any(|[power, vpc, _]| *power == region && *vpc == vpc_region)
}

/// Whether infrastructure can be created in a zone.
pub(super) fn is_supported(zone: &str) -> bool {
    !UNSUPPORTED_ZONES.contains(&zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_global_if_the_vpc_is_far_away() {
        for (region, vpc_region, expected) in [
            ("us-south", "us-south", false),
            ("dal", "us-south", false),
            ("dal", "us-east", true),
            ("lon", "eu-gb", false),
            ("unknown", "us-south", true),
        ] {
            let found = needs_global_routing(region, vpc_region);
            assert_eq!(found, expected, "{region} {vpc_region}");
        }
    }

    #[test]
    fn buckets_are_near() {
        assert_eq!(storage_region("wdc"), Some("us-east"));
        assert_eq!(storage_region("mad"), Some("eu-de"));
        assert_eq!(storage_region("unknown"), None);
    }
}
