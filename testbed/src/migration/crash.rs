//! Migrations that are killed after any write, and before it is known to have been done, again and again.
//!
//! Each run migrates a cluster to the other types, is killed at one instant, continues or is undone, and has to end with
//! all objects in one set of types and everything equal. The next run starts from there. The instants are taken in turn, so that
//! enough runs see them all; what else varies is from a seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use http::request::Parts;
use http::{Method, StatusCode};
use migration::groups::Direction;
use migration_executor::{Abort, FaultInjector, Operation, Position};

use super::object_snapshot::{ObjectSnapshot, holds};
use super::{End, Manner, client, executor, migrate, raised};
use crate::relay::{self, Relay};
use crate::service::Service;
use crate::testbed::Testbed;
use crate::wait;

/// Until the namespace has what every namespace is given.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);
/// How long kube-controller-manager runs before it is killed again.
const RESTART_EVERY: Duration = Duration::from_secs(20);
/// From one run's instant to the next one's: a prime, so that all come, and few runs see early and late ones.
const STRIDE: u64 = 7919;
/// One request of so many fails, if faults are enabled.
const FAULTS: u64 = 10;

/// What to do.
#[derive(Debug, Clone)]
pub struct Soak {
    /// How many runs.
    pub runs: u64,
    /// What varies is computed from this.
    pub seed: u64,
    /// How many clusters are migrated in parallel.
    pub lanes: u64,
    /// How many machines each has.
    pub machines: usize,
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Migrations that were begun.
    pub runs: u64,
    /// Times that one was killed.
    pub kills: u64,
    /// Migrations that ended with the other types.
    pub moved: u64,
    /// Migrations that ended where they began.
    pub undone: u64,
    /// Runs in which one request of ten failed.
    pub faulty: u64,
    /// Instants at which one can be killed: forward, back.
    pub instants: [u64; 2],
    /// Instants at which one was killed.
    pub killed_at: [BTreeSet<u64>; 2],
    /// How often kube-controller-manager was killed.
    pub restarts: u64,
    /// How long it took.
    pub time: Duration,
}

/// Ends a migration at one instant.
#[derive(Debug)]
pub struct Killer {
    at: u64,
    seen: AtomicU64,
}

/// One cluster that is moved to and fro.
struct Lane<'a> {
    soak: &'a Soak,
    direct: &'a kube::Client,
    faulty: &'a kube::Client,
    namespace: String,
    before: ObjectSnapshot,
    instants: [u64; 2],
    turns: &'a [AtomicU64; 2],
    tally: Tally,
}

// === impl Killer ===

impl Killer {
    /// At the instant with this number: each write has one before it and one after it.
    pub fn at(at: u64) -> Arc<Self> {
        Arc::new(Self {
            at,
            seen: AtomicU64::new(0),
        })
    }
}

impl FaultInjector for Killer {
    fn inject(&self, _: Operation<'_>, _: Position) -> Result<(), Abort> {
        // Requests in progress at that instant are killed, too.
        if self.seen.fetch_add(1, Ordering::Relaxed) >= self.at {
            Err(Abort)
        } else {
            Ok(())
        }
    }
}

// === impl Tally ===

impl Tally {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.kills += other.kills;
        self.moved += other.moved;
        self.undone += other.undone;
        self.faulty += other.faulty;
        for way in [0, 1] {
            self.instants[way] = self.instants[way].max(other.instants[way]);
            self.killed_at[way].extend(&other.killed_at[way]);
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minutes = self.time.as_secs_f64() / 60.0;
        let seen = |way: usize| format!("{} of {}", self.killed_at[way].len(), self.instants[way]);
        let rate = f64::from(u32::try_from(self.runs).unwrap_or(u32::MAX)) / minutes;
        write!(
            f,
            "{} runs, {} kills, {} moved, {} undone, {} with faults, killed at {} instants forward and {} back, \
             kube-controller-manager killed {} times, {rate:.1} runs a minute",
            self.runs,
            self.kills,
            self.moved,
            self.undone,
            self.faulty,
            seen(0),
            seen(1),
            self.restarts,
        )
    }
}

/// Carries it out on a testbed with the CRDs of both types and a running controller manager.
pub async fn run(testbed: &mut Testbed, soak: &Soak) -> Result<Tally> {
    let kubeconfig = testbed.control_plane.admin_kubeconfig().to_owned();
    let direct = client(&kubeconfig).await?;
    let relay = Relay::as_user_of(&kubeconfig, faults(soak.seed)).await?;
    let faulty = plain(&relay)?;
    let turns = [AtomicU64::new(0), AtomicU64::new(0)];
    let begun = AtomicU64::new(0);
    let start = Instant::now();
    let mut lanes = Vec::new();
    for lane in 0..soak.lanes {
        let namespace = format!("soak-{lane}");
        raised::raise(&testbed.admin, &namespace, "one", soak.machines).await?;
        lanes.push(Lane::new(soak, &direct, &faulty, &turns, namespace).await?);
    }
    let over = AtomicBool::new(false);
    let progress = testbed.progress.clone();
    let work = async {
        let runs = lanes.into_iter().map(|lane| lane.work(&begun, &progress));
        let done = futures::future::try_join_all(runs).await;
        over.store(true, Ordering::Relaxed);
        done
    };
    let manager = &mut testbed.control_plane.controller_manager;
    let (tallies, restarts) = tokio::join!(work, restart(manager, &over));
    let mut tally = Tally::default();
    for one in tallies? {
        tally.add(&one);
    }
    tally.restarts = restarts?;
    tally.time = start.elapsed();
    Ok(tally)
}

/// Kills and starts the garbage collector, until the work is over.
async fn restart(manager: &mut Service, over: &AtomicBool) -> Result<u64> {
    let mut restarts = 0;
    let mut since = Instant::now();
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if since.elapsed() >= RESTART_EVERY {
            manager.kill();
            manager.start().await?;
            restarts += 1;
            since = Instant::now();
        }
    }
    Ok(restarts)
}

fn plain(relay: &Relay) -> Result<kube::Client> {
    let mut config = kube::Config::new(relay.server().parse()?);
    config.default_retry = false;
    kube::Client::try_from(config).context("cannot make a client of the relay")
}

/// One request of ten fails: refused, or done and the response lost.
fn faults(seed: u64) -> impl relay::Intercept {
    let count = AtomicU64::new(0);
    move |parts: &Parts, moment: relay::Moment| {
        let dice = mix(seed, count.fetch_add(1, Ordering::Relaxed));
        // Each request is looked at twice.
        if !dice.is_multiple_of(FAULTS * 2) {
            return relay::Disposition::Pass;
        }
        let writes = parts.method != Method::GET;
        let status = match (moment, (dice >> 32) % 3) {
            (relay::Moment::Responded(_), _) => StatusCode::GATEWAY_TIMEOUT,
            (relay::Moment::Arrived, 0) if writes => StatusCode::CONFLICT,
            (relay::Moment::Arrived, 1) => StatusCode::TOO_MANY_REQUESTS,
            (relay::Moment::Arrived, _) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        relay::Disposition::Fail(status)
    }
}

/// A number that looks random, of a seed and a place (splitmix64).
fn mix(seed: u64, at: u64) -> u64 {
    let mut z = seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

// === impl Lane ===

impl<'a> Lane<'a> {
    /// Moves the cluster forth and back once, undisturbed, to count the instants.
    async fn new(
        soak: &'a Soak,
        direct: &'a kube::Client,
        faulty: &'a kube::Client,
        turns: &'a [AtomicU64; 2],
        namespace: String,
    ) -> Result<Self> {
        let before = wait::until("the namespace to settle", SETTLED_WITHIN, async || {
            let one = ObjectSnapshot::of(direct, &namespace).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            ensure!(
                one == ObjectSnapshot::of(direct, &namespace).await?,
                "it changes"
            );
            Ok(one)
        })
        .await?;
        let mut lane = Self {
            soak,
            direct,
            faulty,
            namespace,
            before,
            instants: [0; 2],
            turns,
            tally: Tally::default(),
        };
        for direction in [Direction::Forward, Direction::Reverse] {
            let killer = Killer::at(u64::MAX);
            let end = lane
                .migrate(direct, direction, Arc::clone(&killer), 1, false)
                .await?;
            ensure!(
                matches!(end, End::Moved(_)),
                "undisturbed, it ended as {end:?}"
            );
            lane.is_whole(Some(direction.target())).await?;
            lane.instants[way(direction)] = killer.seen.load(Ordering::Relaxed);
        }
        lane.tally.instants = lane.instants;
        Ok(lane)
    }

    async fn work(
        mut self,
        begun: &AtomicU64,
        progress: &crate::progress::Progress,
    ) -> Result<Tally> {
        let mut capi_types = CapiTypes::Standard;
        loop {
            let run = begun.fetch_add(1, Ordering::Relaxed);
            if run >= self.soak.runs {
                return Ok(self.tally);
            }
            capi_types = self.run(run, capi_types).await.with_context(|| {
                format!("run {run} of seed {} in {}", self.soak.seed, self.namespace)
            })?;
            if (run + 1).is_multiple_of(50) {
                progress.note(&format!("{} runs begun", run + 1));
            }
        }
    }

    /// One migration from given types, killed at the next instant; returns the types where it ends.
    async fn run(&mut self, run: u64, capi_types: CapiTypes) -> Result<CapiTypes> {
        let direction = match capi_types {
            CapiTypes::Standard => Direction::Forward,
            CapiTypes::Private => Direction::Reverse,
        };
        let way = way(direction);
        let turn = self.turns[way].fetch_add(1, Ordering::Relaxed);
        let at = turn.wrapping_mul(STRIDE) % self.instants[way];
        let dice = mix(self.soak.seed, run);
        let faulty = dice.is_multiple_of(4);
        let client = if faulty { self.faulty } else { self.direct };
        let parallel = if (dice >> 8).is_multiple_of(4) { 8 } else { 1 };
        self.tally.runs += 1;
        self.tally.faulty += u64::from(faulty);
        let mut end = self
            .migrate(client, direction, Killer::at(at), parallel, false)
            .await?;
        let undo = (dice >> 16).is_multiple_of(3);
        let mut again = (dice >> 24).is_multiple_of(4).then_some((dice >> 32) % 40);
        while end == End::Aborted {
            self.tally.kills += 1;
            self.tally.killed_at[way].insert(at);
            self.holds().await?;
            let killer = Killer::at(again.take().unwrap_or(u64::MAX));
            if !self.is_under_way().await? {
                break;
            }
            end = self
                .migrate(client, direction, killer, parallel, undo)
                .await?;
        }
        let ends = match end {
            End::Moved(_) => direction.target(),
            End::RolledBack(_) => capi_types,
            // Before the first entry in the journal, or after the last one: nothing has happened, or all has.
            End::Aborted => self.capi_types().await?,
        };
        self.is_whole(Some(ends)).await?;
        self.tally.moved += u64::from(ends != capi_types);
        self.tally.undone += u64::from(ends == capi_types);
        Ok(ends)
    }

    async fn migrate(
        &self,
        client: &kube::Client,
        direction: Direction,
        killer: Arc<Killer>,
        parallel: usize,
        undo: bool,
    ) -> Result<End> {
        let manner = Manner {
            parallel,
            fault_injector: Some(killer),
            undo,
        };
        migrate(client, &self.namespace, direction, &manner, holds).await
    }

    async fn is_under_way(&self) -> Result<bool> {
        let executor = executor(self.direct, &self.namespace, &Manner::default()).await?;
        Ok(executor.under_way().is_some())
    }

    /// The types of the cluster, if it is in one set of types only.
    async fn capi_types(&self) -> Result<CapiTypes> {
        let object_snapshot = ObjectSnapshot::of(self.direct, &self.namespace).await?;
        object_snapshot
            .capi_types
            .context("it is in both types, or in none")
    }

    async fn holds(&self) -> Result<()> {
        let mut executor = executor(self.direct, &self.namespace, &Manner::default()).await?;
        executor.survey(Direction::Forward).await?;
        holds(&executor)
    }

    async fn is_whole(&self, capi_types: Option<CapiTypes>) -> Result<()> {
        let after = ObjectSnapshot::of(self.direct, &self.namespace).await?;
        ensure!(
            after.capi_types == capi_types,
            "it is on {:?} and not on {capi_types:?}",
            after.capi_types
        );
        self.before.same_as(&after)
    }
}

fn way(direction: Direction) -> usize {
    match direction {
        Direction::Forward => 0,
        Direction::Reverse => 1,
    }
}
