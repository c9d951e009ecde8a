//! Machines on AWS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::common::AwsResourceTag;
use crate::hypershift::v1beta1::platform::aws::AwsFilter;
use crate::schema::rule;

/// Machines on AWS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsNodePoolPlatform {
    /// The EC2 instance type, such as `m5.large`.
    #[schemars(length(max = 255))]
    pub instance_type: String,
    /// The IAM instance profile of the machines. Unset: the one that is created for the hosted cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub instance_profile: Option<String>,
    /// The subnet that the machines are in.
    #[schemars(transform = rule(
        "has(self.id) && self.id.startsWith('subnet-') ? !has(self.filters) : has(self.filters) && size(self.filters) > 0",
        "name the subnet either by an id that begins with subnet- or by filters: give exactly one of the two"
    ))]
    pub subnet: AwsResourceReference,
    /// The image that machines start from. Unset: the one that belongs to the release and the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub ami: Option<String>,
    /// The operating system of the image where the release decides on it. Unset means Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    /// Security groups of the machines, beside the one that every machine of the hosted cluster has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub security_groups: Vec<AwsResourceReference>,
    /// The disk that holds the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<AwsVolume>,
    /// Tags of all resources that are created for these machines. They add to those of the hosted cluster, and take precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 25))]
    pub resource_tags: Vec<AwsResourceTag>,
    /// On what hardware and under what terms the machines run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<AwsPlacement>,
}

/// The operating system of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImageType {
    /// Red Hat Enterprise Linux CoreOS.
    Linux,
    /// Windows Server, on amd64 only.
    Windows,
}

/// Names a resource of AWS, by its id or by what it is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AwsResourceReference {
    /// The resource's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub id: Option<String>,
    /// What the resource is like: every filter has to fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub filters: Vec<AwsFilter>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsVolume {
    /// The size in GiB. Not less than the image's.
    #[schemars(range(min = 8))]
    pub size: i64,
    /// The EBS volume type, such as `gp3`.
    #[serde(rename = "type")]
    #[schemars(length(max = 255))]
    pub type_: String,
    /// Input and output operations a second that are paid for. Only for volume types that take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// Whether the disk is encrypted. Unset: as the image is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The KMS key that encrypts the disk, by id or ARN. Unset: the account's default key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub encryption_key: Option<String>,
}

/// On what hardware and under what terms machines run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!(has(self.capacityReservation) && has(self.tenancy) && self.tenancy == 'host')",
        "dedicated hosts take no capacity reservation: remove capacityReservation, or choose another tenancy"
    ),
    transform = rule(
        "!(has(self.capacityReservation) && has(self.marketType) && self.marketType == 'Spot')",
        "Spot instances take no capacity reservation: remove capacityReservation, or choose another marketType"
    ),
    transform = rule(
        "!has(self.tenancy) || self.tenancy == 'default' || !(has(self.marketType) && self.marketType == 'Spot')",
        "Spot instances run with the default tenancy only: remove tenancy, or choose another marketType"
    ),
    transform = rule(
        "has(self.capacityReservation) || !(has(self.marketType) && self.marketType == 'CapacityBlocks')",
        "Capacity Blocks need a reservation: fill in capacityReservation"
    ),
    transform = rule(
        "!has(self.spot) || has(self.marketType) && self.marketType == 'Spot'",
        "spot applies to Spot instances only: remove spot, or set marketType to Spot"
    ),
)]
pub struct AwsPlacement {
    /// Whether the hardware is shared with others. Unset: as the subnet says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<AwsTenancy>,
    /// Under what terms the machines are bought. Unset: on demand, or as `capacityReservation` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub market_type: Option<AwsMarketType>,
    /// Terms of Spot instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<AwsSpot>,
    /// How reserved capacity is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservation: Option<AwsCapacityReservation>,
}

/// Whether hardware is shared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AwsTenancy {
    /// Shared with other accounts.
    Default,
    /// Shared within the account.
    Dedicated,
    /// A dedicated host.
    Host,
}

/// Under what terms machines are bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsMarketType {
    /// The same as no value.
    #[serde(rename = "")]
    Unset,
    /// At the list price, without a term.
    OnDemand,
    /// Spare capacity, which AWS may take back at any time.
    Spot,
    /// Capacity that was bought for a time, for machine learning.
    CapacityBlocks,
}

/// Terms of Spot instances.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSpot {
    /// The highest price for an hour, in US dollars, such as `0.05`. Unset: the price on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub max_price: Option<String>,
}

/// How reserved capacity is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!(has(self.id) && has(self.preference) && self.preference in ['None', 'Open'])",
        "a reservation named by id is used always: remove preference, or set it to CapacityReservationsOnly"
    ),
    transform = rule(
        "has(self.id) || !(has(self.marketType) && self.marketType == 'CapacityBlocks')",
        "Capacity Blocks are named: set id to that of the reservation"
    ),
)]
pub struct AwsCapacityReservation {
    /// The reservation's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 20),
        transform = rule(
            "self.matches('^cr-[0-9a-f]{17}$')",
            "id must be that of a capacity reservation: cr- and 17 hexadecimal digits"
        ),
    )]
    pub id: Option<String>,
    /// The kind of the reservation. `marketType` of the placement takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub market_type: Option<AwsReservedMarketType>,
    /// Whether machines may, must or must not run on reserved capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<AwsReservationPreference>,
}

/// What kind of reservation it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsReservedMarketType {
    /// Capacity on demand.
    OnDemand,
    /// A Capacity Block.
    CapacityBlocks,
}

/// Whether machines may, must or must not run on reserved capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsReservationPreference {
    /// The same as no value.
    #[serde(rename = "")]
    Unset,
    /// Never.
    None,
    /// Always; without it there is no machine.
    CapacityReservationsOnly,
    /// Where an open reservation fits, and otherwise on demand.
    Open,
}
