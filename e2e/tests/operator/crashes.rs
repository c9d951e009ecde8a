//! Check O03: the leader is killed at each of its writes, once before the API server receives the write and once after.
//!
//! A relay between the replicas and the API server holds the write while the process is killed. The next leader starts
//! from the state in etcd alone, so a crash at each write, before and after it, covers all crashes. Concurrent writes of
//! the leader are held, too.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use http::request::Parts;
use ownership::{Decision, ObservedGroups, Owner, Scope, decide};
use testbed::client::ApiClient;
use testbed::operator::{self, Identity, Lease, Operator, Replica, SOON, Server, Times};
use testbed::relay::{Disposition, Moment, Relay};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::operator::fleet::{self, Member};
use crate::operator::race::{self, Tally};

/// More crashes than there are writes: the limit for leaders that make no progress.
const MOST: usize = 60;
/// How long there must be no write to conclude that the operators are idle.
const QUIESCENCE_PERIOD: Duration = Duration::from_secs(3);

/// When a leader is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// The API server has not seen the write.
    Before,
    /// The API server has stored the write, and the leader has no response.
    After,
}

/// A crash: the write, and when.
type Crash = (String, Point);

/// What the relays and the test share.
#[derive(Debug, Default)]
struct FaultPoints {
    /// The crashes so far.
    crashes: BTreeSet<Crash>,
    /// The relay of the process to kill; it holds all other writes.
    target: Option<usize>,
    /// The crash that it holds the write for.
    held: Option<(usize, Crash)>,
}

/// What all replicas share.
struct Fixture<'a> {
    testbed: &'a Testbed,
    identity: Identity,
    fault_points: Arc<Mutex<FaultPoints>>,
}

/// A replica and its relay to the API server. Both are stopped when it is dropped.
struct Candidate {
    _replica: Replica,
    _relay: Relay,
}

pub(crate) async fn scenario(testbed: &Testbed) -> Result<()> {
    let program = operator::build(&testbed.progress).await?;
    ensure_namespace(&testbed.admin, fleet::NAMESPACE).await?;
    let members = [
        Member::new("newcomer", "", ObservedGroups::None),
        Member::new("of-old", "", ObservedGroups::Standard),
        Member::new("at-odds", "lp", ObservedGroups::Private),
    ];
    for member in &members {
        member.create(&testbed.admin).await?;
    }
    let fixture = Fixture {
        testbed,
        identity: Identity::create(testbed, Operator::Private, &program).await?,
        fault_points: Arc::default(),
    };
    let mark = testbed.control_plane.audit.mark()?;
    let step = testbed
        .progress
        .step("the leader is killed at each write, before and after it");
    let (crashes, tally) = crashes(&fixture, &members).await?;
    step.done_with(&tally.to_string());
    let both = [Point::Before, Point::After];
    // The Lease is created once: the other replica may have created it before its creator can be killed.
    let made = [Point::Before];
    for (kind, points) in [
        ("/leases", made.as_slice()),
        ("/newcomer", &both),
        ("/of-old", &both),
        ("/status", &both),
        ("/events", &both),
    ] {
        for &point in points {
            ensure!(
                crashes
                    .iter()
                    .any(|(write, at)| write.ends_with(kind) && *at == point),
                "no leader was killed {point:?} a write to {kind}: {crashes:?}"
            );
        }
    }
    for member in &members {
        is_finished(&testbed.admin, member).await?;
    }
    let written = race::writes(&testbed.control_plane.audit.since(mark)?)?;
    let epochs = race::epochs(&written.iter().collect::<Vec<_>>())?;
    ensure!(epochs > 2, "only {epochs} epochs have written");
    Ok(())
}

/// The HostedCluster has its annotations and its condition.
async fn is_finished(admin: &ApiClient, member: &Member) -> Result<()> {
    let mut expected = member.annotations.clone();
    let evaluation = member.evaluation();
    if let Decision::Annotate(annotation) = decide(Scope::Private, &evaluation) {
        let (key, value) = annotation.key_value();
        expected.insert(key.to_owned(), value.to_owned());
    }
    let found = member.annotations(admin).await?;
    ensure!(
        found == expected,
        "{}: {found:?}, not {expected:?}",
        member.name
    );
    // The other operator, which does not run here, writes the conditions of its HostedClusters.
    if evaluation.owner == Owner::New {
        let (found, expected) = (member.condition(admin).await?, member.expected_condition());
        ensure!(
            found == expected,
            "{}: {found:?}, not {expected:?}",
            member.name
        );
    }
    Ok(())
}

/// Kills one leader after the other, until a leader has nothing left to write. Returns the crashes.
async fn crashes(fixture: &Fixture<'_>, members: &[Member]) -> Result<(BTreeSet<Crash>, Tally)> {
    let mut tally = Tally::default();
    let admin = &fixture.testbed.admin;
    let mut candidates = Vec::new();
    for number in 0..2 {
        candidates.push(Some(Candidate::start(fixture, number).await?));
    }
    let mut last: Option<Lease> = None;
    while let Some((who, crash)) = next_crash(admin, &fixture.fault_points, members).await? {
        let now = Operator::Private.holder(admin).await?;
        tally.waits.extend(waited(last.as_ref(), now.as_ref()));
        last = now.or(last);
        tally.killed += 1;
        tally.changes += usize::from(crash.1 == Point::After);
        // Kills the process with all requests in flight.
        candidates[who] = None;
        lock(&fixture.fault_points).record(crash);
        candidates[who] = Some(Candidate::start(fixture, who).await?);
        ensure!(
            tally.killed < MOST,
            "{MOST} leaders were killed: {:?}",
            lock(&fixture.fault_points).crashes
        );
    }
    Ok((lock(&fixture.fault_points).crashes.clone(), tally))
}

/// How long after the end of one leader's lease the next one took it.
fn waited(last: Option<&Lease>, now: Option<&Lease>) -> Option<f64> {
    let (last, now) = (last?, now?);
    let wait = now.acquired.duration_since(last.expires);
    (now.epoch > last.epoch).then(|| wait.as_secs_f64())
}

/// The next crash whose write is held; none if the leader has nothing to write.
async fn next_crash(
    admin: &ApiClient,
    fault_points: &Mutex<FaultPoints>,
    members: &[Member],
) -> Result<Option<(usize, Crash)>> {
    let holder = async || {
        let lease = Operator::Private.holder(admin).await?;
        lease.context("there is no leader")
    };
    wait::until("a leader to write", SOON, async || {
        if let Some(held) = lock(fault_points).held.clone() {
            return Ok(Some(held));
        }
        let before = holder().await?;
        wait::throughout("no write", QUIESCENCE_PERIOD, async || {
            ensure!(lock(fault_points).held.is_none(), "a write is held");
            Ok(())
        })
        .await?;
        let after = holder().await?;
        // The Lease of a killed leader is not renewed.
        ensure!(
            after.epoch == before.epoch && after.expires > before.expires,
            "{after:?} follows {before:?}"
        );
        // On a busy machine, a new leader may take longer than that until its first write.
        for member in members {
            is_finished(admin, member).await?;
        }
        Ok(None)
    })
    .await
}

fn lock(fault_points: &Mutex<FaultPoints>) -> std::sync::MutexGuard<'_, FaultPoints> {
    fault_points
        .lock()
        .expect("invariant: no thread panics while holding it")
}

// === impl Candidate ===

impl Candidate {
    async fn start(fixture: &Fixture<'_>, number: usize) -> Result<Self> {
        let fault_points = Arc::clone(&fixture.fault_points);
        let intercept =
            move |request: &Parts, moment| lock(&fault_points).intercept(number, request, moment);
        let endpoint = fixture.testbed.control_plane.endpoint();
        let relay = Relay::before(&endpoint, intercept).await?;
        let url = relay.server();
        let server = Server {
            url: &url,
            authority: None,
        };
        let pod = format!("operator-{number}");
        let identity = &fixture.identity;
        let mut replica = identity.replica_at(fixture.testbed, &pod, server, Times::SHORTEST)?;
        replica.service.start().await?;
        Ok(Self {
            _replica: replica,
            _relay: relay,
        })
    }
}

// === impl FaultPoints ===

impl FaultPoints {
    fn intercept(&mut self, relay: usize, request: &Parts, moment: Moment) -> Disposition {
        let Some(write) = named(request) else {
            return Disposition::Pass;
        };
        let due =
            |fault_points: &Self, point| !fault_points.crashes.contains(&(write.clone(), point));
        match (moment, self.target) {
            (Moment::Arrived, Some(target)) if target == relay => Disposition::Hold,
            (Moment::Arrived, None) if due(self, Point::Before) => {
                self.hold(relay, write, Point::Before)
            }
            (Moment::Arrived, None) if due(self, Point::After) => {
                self.target = Some(relay);
                Disposition::Pass
            }
            (Moment::Responded(status), Some(target)) if target == relay => {
                if self.held.is_none() && due(self, Point::After) && status.is_success() {
                    return self.hold(relay, write, Point::After);
                }
                // The write had a conflict, so the fault point is another write.
                self.target = self.held.as_ref().map(|(held, _)| *held);
                Disposition::Pass
            }
            _ => Disposition::Pass,
        }
    }

    fn hold(&mut self, relay: usize, write: String, point: Point) -> Disposition {
        self.target = Some(relay);
        self.held = Some((relay, (write, point)));
        Disposition::Hold
    }

    fn record(&mut self, crash: Crash) {
        self.crashes.insert(crash);
        (self.target, self.held) = (None, None);
    }
}

/// A write that is a fault point: of a HostedCluster or a Deployment, or the creation of an Event or the Lease. Renewals
/// of the Lease never end, so they are none.
fn named(request: &Parts) -> Option<String> {
    let path = request.uri.path();
    let is_of = |part: &str| request.method != Method::GET && path.contains(part);
    let is_new = request.method == Method::POST
        && ["/leases", "/events"].iter().any(|end| path.ends_with(end));
    let is_fault_point = is_of("/hostedclusters/") || is_of("/deployments/") || is_new;
    is_fault_point.then(|| format!("{} {path}", request.method))
}
