//! What private links need of AWS in the account of the cluster.

use std::collections::BTreeSet;

use support::aws::Error;
use support::ec2::Tags;

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subnet {
    pub(super) id: String,
    /// The availability zone.
    pub(super) zone: String,
}

/// Who may connect to a port, by TCP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub(super) port: u16,
    pub(super) cidr: String,
}

/// A security group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) tags: Tags,
    pub(super) ingress: BTreeSet<Rule>,
}

/// A VPC endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) vpc: String,
    /// The name of the endpoint service.
    pub(super) service: String,
    pub(super) state: String,
    pub(super) subnets: BTreeSet<String>,
    pub(super) groups: BTreeSet<String>,
    pub(super) tags: Tags,
    /// Names under which it is reached.
    pub(super) hosts: Vec<String>,
}

/// A VPC endpoint that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewEndpoint<'a> {
    pub(super) vpc: &'a str,
    pub(super) service: &'a str,
    pub(super) subnets: &'a [String],
    pub(super) group: &'a str,
    pub(super) tags: Tags,
}

/// A change of a VPC endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) added_subnets: Vec<String>,
    pub(super) removed_subnets: Vec<String>,
    pub(super) added_groups: Vec<String>,
}

/// A private zone of DNS names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) id: String,
    /// Its name, without a dot at the end.
    pub(super) name: String,
}

/// What happens to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Upsert,
    Delete,
}

/// A record that leads from a name to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) value: String,
    /// In seconds.
    pub(super) ttl: u32,
}

/// AWS, or a fake of it. Lists may have others in them, which were not looked for.
pub(super) trait Cloud {
    /// Subnets.
    async fn subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, Error>;

    /// The security group of this name in a VPC, if there is one.
    async fn group(&self, name: &str, vpc: &str) -> Result<Option<Group>, Error>;

    /// Creates a security group, and returns its ID.
    async fn create_group(&self, name: &str, vpc: &str, tags: &Tags) -> Result<String, Error>;

    /// Lets connections in.
    async fn allow(&self, group: &str, rules: &[Rule]) -> Result<(), Error>;

    /// Deletes a security group. Returns whether it is gone; otherwise it is in use.
    async fn delete_group(&self, id: &str) -> Result<bool, Error>;

    /// The endpoint with this ID, if there is one.
    async fn endpoint(&self, id: &str) -> Result<Option<Endpoint>, Error>;

    /// Endpoints with these tags in a VPC.
    async fn endpoints(&self, vpc: &str, tags: &Tags) -> Result<Vec<Endpoint>, Error>;

    /// Creates an endpoint.
    async fn create_endpoint(&self, new: &NewEndpoint<'_>) -> Result<Endpoint, Error>;

    /// Changes an endpoint.
    async fn modify_endpoint(&self, id: &str, change: &Change) -> Result<(), Error>;

    /// Deletes an endpoint, which takes a while.
    async fn delete_endpoint(&self, id: &str) -> Result<(), Error>;

    /// The private zones of a VPC.
    async fn zones_of(&self, vpc: &str) -> Result<Vec<Zone>, Error>;

    /// All private zones.
    async fn zones(&self) -> Result<Vec<Zone>, Error>;

    /// The record of this name that leads to another one, if there is one.
    async fn record(&self, zone: &str, name: &str) -> Result<Option<Record>, Error>;

    /// Changes a record.
    async fn change(&self, zone: &str, action: Action, record: &Record) -> Result<(), Error>;
}
