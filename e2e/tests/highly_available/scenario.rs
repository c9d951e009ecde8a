//! A hosted cluster, its client, and what is done to it.

use std::time::{Duration, Instant};

use anyhow::Result;
use api::group::CapiTypes;
use testbed::client::ApiClient;
use testbed::hosted::{Cluster, Fixture, Guest};
use testbed::node::NodeTestbed;
use testbed::wait;

use crate::highly_available::client::{self, Client};
use crate::highly_available::control_plane;
use crate::highly_available::pods::{self, Pod};
use crate::highly_available::report::{Report, Row};

/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(10);

/// All of it.
#[derive(Debug)]
pub(crate) struct Scenario<'a> {
    pub(crate) fixture: &'a mut Fixture,
    pub(crate) client: Client,
    pub(crate) guest: Guest,
    pub(crate) namespace: String,
    name: String,
    report: &'a mut Report,
}

/// A failure that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    failure: &'static str,
    at: Duration,
}

// === impl Scenario ===

impl<'a> Scenario<'a> {
    /// Waits for a hosted cluster that has been created, and begins to use it.
    pub(crate) async fn of(
        fixture: &'a mut Fixture,
        report: &'a mut Report,
        name: &str,
    ) -> Result<Self> {
        let cluster = Cluster::new(fixture, name, CapiTypes::Private);
        let guest = cluster.comes_up().await?;
        let client = Client::start(&guest.kubeconfig).await?;
        let scenario = Self {
            namespace: cluster.namespace(),
            name: name.to_owned(),
            client,
            guest,
            report,
            fixture,
        };
        scenario.is_whole().await?;
        Ok(scenario)
    }

    pub(crate) fn testbed(&self) -> &NodeTestbed {
        &self.fixture.testbed
    }

    pub(crate) fn testbed_mut(&mut self) -> &mut NodeTestbed {
        &mut self.fixture.testbed
    }

    pub(crate) fn admin(&self) -> &ApiClient {
        &self.testbed().admin
    }

    pub(crate) fn cluster(&self) -> Cluster<'_> {
        Cluster::new(self.fixture, &self.name, CapiTypes::Private)
    }

    /// The pods of a component.
    pub(crate) async fn pods_of(&self, component: &str) -> Result<Vec<Pod>> {
        pods::of(self.admin(), &self.namespace, component).await
    }

    /// Waits until every replica serves.
    pub(crate) async fn is_whole(&self) -> Result<()> {
        self.is_whole_on(self.testbed().nodes.len()).await
    }

    /// Waits until every replica serves that can on so many nodes.
    pub(crate) async fn is_whole_on(&self, nodes: usize) -> Result<()> {
        wait::until("all replicas to serve", WITHIN, async || {
            control_plane::is_whole(self.admin(), &self.namespace, nodes).await
        })
        .await
    }

    /// Waits until replicas are apart from each other, and budgets know them.
    pub(crate) async fn is_spread(&self) -> Result<()> {
        wait::until("replicas to be apart", WITHIN, async || {
            control_plane::is_spread(self.admin(), &self.namespace).await
        })
        .await
    }

    /// Begins a failure.
    pub(crate) fn begin(&self, failure: &'static str) -> Begun {
        self.testbed().progress.note(&format!("--- {failure}"));
        let at = self.client.now();
        Begun { failure, at }
    }

    /// Ends a failure that has been repaired, or that repairs itself: waits until everything is as it was, and notes what
    /// the client has seen.
    pub(crate) async fn end(&mut self, begun: Begun, responses: bool) -> Result<()> {
        let repaired = Instant::now();
        self.is_whole().await?;
        let whole_after = repaired.elapsed();
        self.client.is_available().await?;
        self.client.has_lost_nothing()?;
        let row = Row {
            failure: begun.failure,
            responses,
            seen: self.client.seen(begun.at),
            whole_after,
        };
        self.testbed().progress.note(&format!("{row:?}"));
        self.report.add(row);
        Ok(())
    }

    /// The newest count that the client has written, as it is stored.
    pub(crate) async fn stored(&self) -> Result<u64> {
        client::stored(&self.guest.client).await
    }
}
