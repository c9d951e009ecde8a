//! What private links need of AWS in the account of the management cluster.

use std::collections::BTreeSet;

use support::aws::Error;
use support::ec2::Tags;

/// A network load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadBalancer {
    pub(super) arn: String,
    /// The name under which it is reached.
    pub(super) host: String,
    pub(super) is_active: bool,
}

/// A VPC endpoint service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EndpointService {
    pub(super) id: String,
    pub(super) name: String,
    /// ARNs of its load balancers.
    pub(super) balancers: Vec<String>,
    pub(super) tags: Tags,
}

/// Which endpoint services are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By<'a> {
    Name(&'a str),
    /// Key and value.
    Tag(&'a str, &'a str),
    /// All of the account and region.
    Any,
}

/// An endpoint that is connected to an endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) endpoint: String,
    pub(super) state: String,
}

/// What a deletion came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleted {
    Gone,
    /// Endpoints are connected.
    Connected,
}

/// AWS, or a fake of it.
pub(super) trait Cloud {
    /// The load balancer of this name, if there is one.
    async fn load_balancer(&self, name: &str) -> Result<Option<LoadBalancer>, Error>;

    /// Endpoint services. There may be others among them, which were not looked for.
    async fn services(&self, by: By<'_>) -> Result<Vec<EndpointService>, Error>;

    /// Creates an endpoint service for a load balancer.
    async fn create(&self, balancer: &str, tags: &Tags) -> Result<EndpointService, Error>;

    /// Adds tags to an endpoint service.
    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Error>;

    /// Who may connect to an endpoint service.
    async fn principals(&self, id: &str) -> Result<BTreeSet<String>, Error>;

    /// Changes who may connect.
    async fn permit(&self, id: &str, added: &[String], removed: &[String]) -> Result<(), Error>;

    /// The connections of an endpoint service.
    async fn connections(&self, id: &str) -> Result<Vec<Connection>, Error>;

    /// Rejects connections of endpoints.
    async fn reject(&self, id: &str, endpoints: &[String]) -> Result<(), Error>;

    /// Deletes an endpoint service, unless endpoints are connected.
    async fn delete(&self, id: &str) -> Result<Deleted, Error>;
}
