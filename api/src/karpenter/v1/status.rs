//! What was found for machines that Karpenter makes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selectors::InstanceMatchCriteria;
use crate::schema::{self, atomic_list, list_map, with};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OpenshiftEc2NodeClassStatus {
    /// The subnets of machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), transform = atomic_list)]
    pub subnets: Vec<Subnet>,
    /// The security groups of machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), transform = atomic_list)]
    pub security_groups: Vec<SecurityGroup>,
    /// The reservations of capacity that machines may take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), transform = atomic_list)]
    pub capacity_reservations: Vec<CapacityReservation>,
    /// Whether machines can be made, and what keeps them from being made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(min = 1, max = 100),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
    /// The image of the release that nodes run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub release_image: Option<String>,
    /// The version of that release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub version: Option<String>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subnet {
    /// Its ID.
    #[schemars(length(min = 1, max = 256))]
    pub id: String,
    /// The name of its zone in this account.
    #[schemars(length(min = 1, max = 256))]
    pub zone: String,
    /// The ID of its zone, which is the same in all accounts.
    #[serde(rename = "zoneID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub zone_id: Option<String>,
}

/// A security group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// Its ID.
    #[schemars(length(min = 1, max = 256))]
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
}

/// A reservation of capacity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// Its ID.
    #[schemars(length(min = 1, max = 256))]
    pub id: String,
    /// The zone of its machines.
    #[schemars(length(min = 1, max = 64))]
    pub availability_zone: String,
    /// When it ends. Unset: it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub end_time: Option<Time>,
    /// Which machines it accepts.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// The type of its machines.
    #[schemars(length(min = 1, max = 256))]
    pub instance_type: String,
    /// The account that it belongs to.
    #[serde(rename = "ownerID")]
    #[schemars(length(min = 1, max = 12))]
    pub owner_id: String,
    /// The kind of reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_type: Option<ReservationType>,
    /// Whether it can be used for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ReservationState>,
}

/// A kind of reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReservationType {
    /// Until it is cancelled.
    Default,
    /// For a time that was agreed on in advance.
    CapacityBlock,
}

/// Whether a reservation can be used for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReservationState {
    /// It can.
    Active,
    /// It ends soon.
    Expiring,
}
