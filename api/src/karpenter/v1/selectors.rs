//! What finds resources of AWS: terms, of which one has to fit.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::schema::{rule, with};

/// Subnets, by their tags or by an ID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = with("minProperties", 1))]
pub struct SubnetSelectorTerm {
    /// Tags that a subnet must have. The value `*` fits any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = tags)]
    pub tags: BTreeMap<String, String>,
    /// ID of a subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        transform = rule(
            "self.matches('^subnet-[0-9a-z]+$')",
            "id must be the ID of a subnet, such as subnet-0a1b2c3d"
        ),
    )]
    pub id: Option<String>,
}

/// Security groups, by their tags, by an ID or by a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = with("minProperties", 1))]
pub struct SecurityGroupSelectorTerm {
    /// Tags that a security group must have. The value `*` fits any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = tags)]
    pub tags: BTreeMap<String, String>,
    /// ID of a security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        transform = rule(
            "self.matches('^sg-[0-9a-z]+$')",
            "id must be the ID of a security group, such as sg-0a1b2c3d"
        ),
    )]
    pub id: Option<String>,
    /// Name of a security group, which is not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
}

/// Reservations of capacity, by their tags, owner and kind, or by an ID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct CapacityReservationSelectorTerm {
    /// Tags that a reservation must have. The value `*` fits any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = tags)]
    pub tags: BTreeMap<String, String>,
    /// ID of a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        transform = rule(
            "self.matches('^cr-[0-9a-z]+$')",
            "id must be the ID of a capacity reservation, such as cr-0a1b2c3d"
        ),
    )]
    pub id: Option<String>,
    /// Account that the reservation belongs to.
    #[serde(rename = "ownerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 12),
        transform = rule(
            "self.size() == 12 && !self.matches('[^0-9]')",
            "ownerID must be the ID of an account: 12 digits"
        ),
    )]
    pub owner_id: Option<String>,
    /// Which machines a reservation accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}

/// Which machines a reservation of capacity accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InstanceMatchCriteria {
    /// All that fit it.
    Open,
    /// Those that name it.
    Targeted,
}

pub(super) fn subnets(schema: &mut Schema) {
    rule("self.size() > 0", "a term is required: add one")(schema);
    rule(
        "self.all(it, [has(it.tags), has(it.id)].exists(given, given))",
        "each term needs tags or id: set one of them",
    )(schema);
    rule(
        "!self.all(it, has(it.tags) && has(it.id))",
        "id and tags exclude each other: remove one of them, or use two terms",
    )(schema);
}

pub(super) fn security_groups(schema: &mut Schema) {
    rule("self.size() > 0", "a term is required: add one")(schema);
    rule(
        "self.all(it, [has(it.tags), has(it.id), has(it.name)].exists(given, given))",
        "each term needs tags, id or name: set one of them",
    )(schema);
    rule(
        "!self.all(it, has(it.id) && (has(it.tags) || has(it.name)))",
        "id excludes tags and name: remove them, or use two terms",
    )(schema);
    rule(
        "!self.all(it, has(it.name) && (has(it.tags) || has(it.id)))",
        "name excludes tags and id: remove them, or use two terms",
    )(schema);
}

pub(super) fn capacity_reservations(schema: &mut Schema) {
    rule(
        "self.all(it, [has(it.tags), has(it.id), has(it.ownerID), \
         has(it.instanceMatchCriteria)].exists(given, given))",
        "each term needs tags, id, ownerID or instanceMatchCriteria: set one of them",
    )(schema);
    rule(
        "!self.all(it, has(it.id) && (has(it.tags) || has(it.ownerID) || \
         has(it.instanceMatchCriteria)))",
        "id excludes tags, ownerID and instanceMatchCriteria: remove them, or use two terms",
    )(schema);
}

fn tags(schema: &mut Schema) {
    with("minProperties", 1)(schema);
    with("maxProperties", 20)(schema);
    rule(
        "self.all(key, key != '' && self[key] != '')",
        "a tag needs a key and a value: fill them in; the value * fits any",
    )(schema);
}
