//! The whole machine on an API server in memory: forward, undone at every point, killed at every point, with faults, with
//! others writing; what must hold at every instant is checked after every step.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::struct_excessive_bools,
    reason = "a test's tools"
)]

mod fixtures;
mod server;
mod world;

mod crashes;
mod figures;
mod others;
mod preflight;
mod properties;
mod round_trips;

use migration::groups::Direction;

use fixtures::{Build, resources};
use server::Server;
use world::World;

fn build(fill: impl FnOnce(&mut Build<'_>)) -> World {
    let mut server = Server::new(&resources());
    fill(&mut Build {
        server: &mut server,
        aging: true,
    });
    World::new(server, Direction::Forward)
}

fn tiny() -> World {
    build(|build| {
        build.tiny();
    })
}

fn full() -> World {
    build(|build| build.full(3, 3))
}
