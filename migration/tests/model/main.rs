//! The whole machine on an API server in memory: forward, undone at every point, killed at every point, with faults, with
//! others writing; what must hold at every instant is checked after every step.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::struct_excessive_bools,
    reason = "a test's tools"
)]

mod fake_cluster;
mod fixtures;
mod server;

mod crashes;
mod figures;
mod kinds;
mod others;
mod platforms;
mod preflight;
mod properties;
mod round_trips;

use migration::groups::Direction;

use fake_cluster::FakeCluster;
use fixtures::{Build, resources};
use server::Server;

fn build(fill: impl FnOnce(&mut Build<'_>)) -> FakeCluster {
    let mut server = Server::new(&resources());
    fill(&mut Build {
        server: &mut server,
        aging: true,
    });
    FakeCluster::new(server, Direction::Forward)
}

fn tiny() -> FakeCluster {
    build(|build| {
        build.tiny();
    })
}

fn full() -> FakeCluster {
    build(|build| build.full(3, 3))
}
