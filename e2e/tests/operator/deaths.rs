//! O03: the leader dies at each of its writes, once before the API server knows of the write and once after.
//!
//! A relay between the replicas and the API server holds the write, and the process is killed meanwhile. The next leader
//! finds in etcd what the dead one left, and nothing else; so one death at each write, in each of the two states that the
//! write can leave, is every death that there is. What a leader would write beside it is held, too.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use http::request::Parts;
use ownership::{Decision, ObservedGroups, Owner, Scope, decide};
use testbed::client::ApiClient;
use testbed::operator::{self, Identity, Lease, Operator, Replica, SOON, Server, Times};
use testbed::relay::{Moment, Relay, Verdict};
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::operator::fleet::{self, Member};
use crate::operator::race::{self, Tally};

/// More deaths than there are writes, so that a leader that never gets on is found.
const MOST: usize = 60;
/// How long no operator may be held to believe that nothing more is written.
const CALM: Duration = Duration::from_secs(3);

/// When a leader dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// The API server has not seen the write.
    Before,
    /// The API server has done the write, and the leader does not know it.
    After,
}

/// A death: at which write, and when.
type Death = (String, Point);

/// What the relays and the test share.
#[derive(Debug, Default)]
struct FaultPoints {
    /// The deaths that have been died.
    died: BTreeSet<Death>,
    /// The relay of the process that is to die, and passes no other write on.
    doomed: Option<usize>,
    /// The death that it is held for.
    held: Option<(usize, Death)>,
}

/// What every replica is started with.
struct Fixture<'a> {
    testbed: &'a Testbed,
    identity: Identity,
    fault_points: Arc<Mutex<FaultPoints>>,
}

/// A replica with its own way to the API server. Both end with it.
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
    let (died, tally) = deaths(&fixture).await?;
    step.done_with(&tally.to_string());
    let both = [Point::Before, Point::After];
    // The Lease is made once: the other replica may have made it by the time that its maker would die of it.
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
                died.iter()
                    .any(|(write, at)| write.ends_with(kind) && *at == point),
                "no leader was killed {point:?} a write to {kind}: {died:?}"
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

/// Whatever was due to a cluster has been done.
async fn is_finished(admin: &ApiClient, member: &Member) -> Result<()> {
    let mut expected = member.annotations.clone();
    let verdict = member.verdict();
    if let Decision::Annotate(mark) = decide(Scope::Private, &verdict) {
        let (key, value) = mark.key_value();
        expected.insert(key.to_owned(), value.to_owned());
    }
    let found = member.marks(admin).await?;
    ensure!(
        found == expected,
        "{}: {found:?}, not {expected:?}",
        member.name
    );
    // The conditions of the others' clusters are for the others, which do not run.
    if verdict.owner == Owner::New {
        let (found, wanted) = (member.condition(admin).await?, member.wanted());
        ensure!(
            found == wanted,
            "{}: {found:?}, not {wanted:?}",
            member.name
        );
    }
    Ok(())
}

/// Kills one leader after the other, until a leader has nothing left to write. Gives the deaths.
async fn deaths(fixture: &Fixture<'_>) -> Result<(BTreeSet<Death>, Tally)> {
    let mut tally = Tally::default();
    let admin = &fixture.testbed.admin;
    let mut candidates = Vec::new();
    for number in 0..2 {
        candidates.push(Some(Candidate::start(fixture, number).await?));
    }
    let mut last: Option<Lease> = None;
    while let Some((who, death)) = next_death(admin, &fixture.fault_points).await? {
        let now = Operator::Private.holder(admin).await?;
        tally.waits.extend(waited(last.as_ref(), now.as_ref()));
        last = now.or(last);
        tally.killed += 1;
        tally.changes += usize::from(death.1 == Point::After);
        // With all that it has under way.
        candidates[who] = None;
        lock(&fixture.fault_points).buries(death);
        candidates[who] = Some(Candidate::start(fixture, who).await?);
        ensure!(
            tally.killed < MOST,
            "{MOST} leaders have died: {:?}",
            lock(&fixture.fault_points).died
        );
    }
    Ok((lock(&fixture.fault_points).died.clone(), tally))
}

/// How long after the end of one leader's lease the next one took it.
fn waited(last: Option<&Lease>, now: Option<&Lease>) -> Option<f64> {
    let (last, now) = (last?, now?);
    let wait = now.acquired.duration_since(last.expires);
    (now.epoch > last.epoch).then(|| wait.as_secs_f64())
}

/// The next crash that an operator is held for; nothing if there is a leader that has nothing to write.
async fn next_death(
    admin: &ApiClient,
    fault_points: &Mutex<FaultPoints>,
) -> Result<Option<(usize, Death)>> {
    let holder = async || {
        let lease = Operator::Private.holder(admin).await?;
        lease.context("there is no leader")
    };
    wait::until("a leader to write", SOON, async || {
        if let Some(held) = lock(fault_points).held.clone() {
            return Ok(Some(held));
        }
        let before = holder().await?;
        wait::throughout("calm", CALM, async || {
            ensure!(lock(fault_points).held.is_none(), "a write is held");
            Ok(())
        })
        .await?;
        let after = holder().await?;
        // The lease of a dead leader is not renewed.
        ensure!(
            after.epoch == before.epoch && after.expires > before.expires,
            "{after:?} comes after {before:?}"
        );
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
        let judge =
            move |request: &Parts, moment| lock(&fault_points).judge(number, request, moment);
        let endpoint = fixture.testbed.control_plane.endpoint();
        let relay = Relay::before(&endpoint, judge).await?;
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
    fn judge(&mut self, relay: usize, request: &Parts, moment: Moment) -> Verdict {
        let Some(write) = named(request) else {
            return Verdict::Pass;
        };
        let due = |fault_points: &Self, point| !fault_points.died.contains(&(write.clone(), point));
        match (moment, self.doomed) {
            (Moment::Arrived, Some(doomed)) if doomed == relay => Verdict::Hold,
            (Moment::Arrived, None) if due(self, Point::Before) => {
                self.holds(relay, write, Point::Before)
            }
            (Moment::Arrived, None) if due(self, Point::After) => {
                self.doomed = Some(relay);
                Verdict::Pass
            }
            (Moment::Answered(status), Some(doomed)) if doomed == relay => {
                if self.held.is_none() && due(self, Point::After) && status.is_success() {
                    return self.holds(relay, write, Point::After);
                }
                // It was refused: another client had written. It is for another to die of it.
                self.doomed = self.held.as_ref().map(|(held, _)| *held);
                Verdict::Pass
            }
            _ => Verdict::Pass,
        }
    }

    fn holds(&mut self, relay: usize, write: String, point: Point) -> Verdict {
        self.doomed = Some(relay);
        self.held = Some((relay, (write, point)));
        Verdict::Hold
    }

    fn buries(&mut self, death: Death) {
        self.died.insert(death);
        (self.doomed, self.held) = (None, None);
    }
}

/// A write that is work: of a hosted cluster, of a Deployment, an Event, the lease where there is none yet. Renewals go on
/// for ever and are no work.
fn named(request: &Parts) -> Option<String> {
    let path = request.uri.path();
    let is_of = |part: &str| request.method != Method::GET && path.contains(part);
    let is_new = request.method == Method::POST
        && ["/leases", "/events"].iter().any(|end| path.ends_with(end));
    let is_work = is_of("/hostedclusters/") || is_of("/deployments/") || is_new;
    is_work.then(|| format!("{} {path}", request.method))
}
