//! A server, hooks and a journal; a process that migrates and can be killed after each of its writes.

use migration::failure::Reason;
use migration::groups::{Direction, Groups};
use migration::inventory::target_key;
use migration::journal::{Course, Failure, Journal};
use migration::machine::{self, Observation, Purpose, SiteState, Step, Task, Write};
use migration::object::ObjectKey;
use migration::phase::Phase;
use migration::snapshot::Snapshot;
use migration::verify;

use crate::server::{Refusal, Server, observe};

/// More steps than any migration here takes: past them it does not converge.
const MOST_STEPS: usize = 5_000;

/// What happens when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    /// The process is killed right after its nth step: a write, an entry in the journal, a task of the site.
    pub(crate) killed_after: Vec<usize>,
    /// The nth write is refused for good.
    pub(crate) refused_at: Option<usize>,
    /// A task of the site fails.
    pub(crate) failing: Option<Task>,
    /// One of so many writes fails, or its response is lost.
    pub(crate) faults: Option<u64>,
    /// The garbage collector runs after each step.
    pub(crate) collecting: bool,
    /// Another client acts after the nth step.
    pub(crate) foreign: Option<(usize, Foreign)>,
    /// What the controllers of the target types do once they run.
    pub(crate) target: Option<Foreign>,
}

/// What others do to the server.
pub(crate) type Foreign = fn(&mut Server);

/// How a migration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    RolledBack(Reason),
    Blocked(String),
}

#[derive(Debug, Clone)]
pub(crate) struct FakeCluster {
    pub(crate) server: Server,
    pub(crate) groups: Groups,
    journal: Option<Journal>,
    /// The step with which the originals began to go.
    pub(crate) retiring_from: usize,
    source_runs: bool,
    target_runs: bool,
    pub(crate) locked: bool,
    pub(crate) committed: bool,
    /// Steps so far.
    pub(crate) steps: usize,
    /// Writes to objects so far, by purpose.
    pub(crate) writes: Vec<Purpose>,
    noise: u64,
    /// Objects that the garbage collector deleted.
    pub(crate) collected: Vec<ObjectKey>,
    script: Script,
    target_acted: bool,
    /// Why it was undone.
    pub(crate) failure: String,
}

/// The process was killed, or has ended.
enum Life {
    Goes,
    Dead,
    Ends(End),
}

impl FakeCluster {
    pub(crate) fn new(server: Server, direction: Direction) -> Self {
        Self {
            server,
            groups: Groups::new(api::group::GroupTable::default(), direction),
            journal: None,
            retiring_from: usize::MAX,
            source_runs: true,
            target_runs: false,
            locked: false,
            committed: false,
            steps: 0,
            writes: Vec::new(),
            noise: 0x9e37_79b9_7f4a_7c15,
            collected: Vec::new(),
            script: Script::default(),
            target_acted: false,
            failure: String::new(),
        }
    }

    pub(crate) fn with(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    pub(crate) fn seeded(mut self, seed: u64) -> Self {
        self.noise ^= seed.wrapping_mul(0xff51_afd7_ed55_8ccd) | 1;
        self
    }

    /// The same server, to be migrated back.
    pub(crate) fn turned(self) -> Self {
        let direction = self.groups.direction().inverse();
        Self::new(self.server, direction)
    }

    pub(crate) fn journal(&self) -> Journal {
        self.journal.clone().expect("a journal")
    }

    /// Migrates, in as many processes as it takes.
    pub(crate) fn run(&mut self) -> End {
        self.target_acted = false;
        for _ in 0..1_000 {
            if let Some(end) = self.process() {
                return end;
            }
        }
        panic!("no process ends");
    }

    /// One process, from its start to its death or to the end.
    fn process(&mut self) -> Option<End> {
        if self.journal.is_none() {
            let journal = Journal::begin("one", self.groups.direction(), 1, 0);
            self.record(&journal);
            if self.stepped() {
                return None;
            }
        }
        let mut snapshot = self.server.store.clone();
        let mut site = SiteState::NotAsked;
        for _ in 0..MOST_STEPS {
            let journal = self.journal();
            let observation = Observation {
                snapshot: &snapshot,
                site: site.clone(),
                now: 0,
            };
            let step = machine::next(&self.groups, &journal, &observation);
            match self.execute(step, &journal, &mut snapshot, &mut site) {
                Life::Goes => {}
                Life::Dead => return None,
                Life::Ends(end) => return Some(end),
            }
        }
        panic!("too many steps in {:?}", self.journal());
    }

    fn execute(
        &mut self,
        step: Step,
        journal: &Journal,
        snapshot: &mut Snapshot,
        site: &mut SiteState,
    ) -> Life {
        match step {
            Step::Write(wave) => {
                self.server.clock += wave.wait_first.as_secs();
                for write in wave.writes {
                    if let Some(life) = self.send(&write, journal, snapshot) {
                        return life;
                    }
                }
            }
            Step::Site(task) => {
                *site = self.perform(task);
                return self.alive();
            }
            Step::Enter(journal) => {
                self.record(&journal);
                *site = SiteState::NotAsked;
                *snapshot = self.server.store.clone();
                return self.alive();
            }
            Step::Wait(_) => {
                self.collect();
                *site = SiteState::NotAsked;
                *snapshot = self.server.store.clone();
            }
            Step::Blocked(why) => return Life::Ends(End::Blocked(why)),
            Step::Done => return Life::Ends(End::Done),
            Step::RolledBack(failure) => {
                self.failure = failure.message;
                return Life::Ends(End::RolledBack(failure.reason));
            }
        }
        Life::Goes
    }

    /// One write, and what is learnt from its response.
    fn send(&mut self, write: &Write, journal: &Journal, snapshot: &mut Snapshot) -> Option<Life> {
        let number = self.writes.len();
        self.writes.push(write.purpose);
        if self.script.refused_at == Some(number) && journal.phase < Phase::Commit {
            let failure =
                Failure::new(Reason::AdmissionDenied, format!("{} is refused", write.key));
            self.record(
                &journal
                    .fail(failure, 0)
                    .expect("a phase that can be undone"),
            );
            *snapshot = self.server.store.clone();
            return Some(self.alive());
        }
        let fault = self.fault();
        let response = match fault {
            // Never arrives, or is refused for a reason of the moment.
            Some(true) => Err(Refusal::Conflict),
            // Arrives, and the response does not.
            Some(false) => self.server.write(write).and(Err(Refusal::Conflict)),
            None => self.server.write(write),
        };
        assert_ne!(response, Err(Refusal::Invalid), "{write:?}");
        match response {
            Ok(Some(object)) => snapshot.put(object),
            Ok(None) => snapshot.remove(&write.key),
            Err(_) => match self.server.get(&write.key) {
                Some(object) => snapshot.put(object.clone()),
                None => snapshot.remove(&write.key),
            },
        }
        match self.alive() {
            Life::Goes => None,
            life => Some(life),
        }
    }

    fn fault(&mut self) -> Option<bool> {
        let every = self.script.faults?;
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        self.noise
            .is_multiple_of(every)
            .then_some((self.noise >> 32).is_multiple_of(2))
    }

    fn perform(&mut self, task: Task) -> SiteState {
        if self.script.failing == Some(task) {
            return SiteState::Failed(Failure::new(Reason::HealthCheckTimeout, "it does not work"));
        }
        match task {
            Task::Lock => self.locked = true,
            Task::Unlock | Task::Finish => self.locked = false,
            Task::Quiesce => self.source_runs = false,
            Task::ScaleBack => self.source_runs = true,
            Task::Deploy => self.target_runs = true,
            Task::QuiesceAgain | Task::RestoreTemplates => self.target_runs = false,
            Task::Commit => self.committed = true,
            Task::Health => {}
        }
        SiteState::Done
    }

    fn record(&mut self, journal: &Journal) {
        let text = journal.to_json();
        self.journal = Some(Journal::parse(&text).expect("a journal that can be read"));
        if journal.phase == Phase::Retire {
            self.retiring_from = self.steps + 1;
        }
    }

    fn alive(&mut self) -> Life {
        if self.stepped() {
            Life::Dead
        } else {
            Life::Goes
        }
    }

    /// Counts a step, lets others act, and checks what holds at every instant; whether the process is killed.
    fn stepped(&mut self) -> bool {
        self.steps += 1;
        self.check();
        if let Some((at, foreign)) = self.script.foreign
            && at == self.steps
        {
            foreign(&mut self.server);
        }
        if self.target_runs {
            self.reconcile();
        }
        if self.script.collecting {
            self.collect();
        }
        self.script.killed_after.contains(&self.steps)
    }

    fn collect(&mut self) {
        let deleted = self.server.collect();
        self.collected.extend(deleted);
    }

    /// What controllers do all the time: they look at what has changed; and what the script says, once.
    fn reconcile(&mut self) {
        let keys: Vec<_> = self
            .server
            .store
            .objects()
            .map(|object| object.key().clone())
            .collect();
        for key in keys.iter().filter(|key| self.groups.is_target(&key.group)) {
            let generation = self
                .server
                .get(key)
                .map_or(0, migration::object::Object::generation);
            self.server
                .change(key, |body| observe(body, Some(generation)));
        }
        if let Some(act) = self.script.target.filter(|_| !self.target_acted) {
            self.target_acted = true;
            act(&mut self.server);
        }
    }

    /// The invariants of every instant.
    fn check(&self) {
        let store = &self.server.store;
        assert!(!(self.source_runs && self.target_runs), "both types run");
        let none: Vec<verify::Violation> = Vec::new();
        if self.script.target.is_none() && self.script.foreign.is_none() {
            assert_eq!(verify::no_missing_owners(store), none);
        }
        assert_eq!(verify::one_controller(store), none);
        if !self.source_runs && self.script.target.is_none() && self.script.foreign.is_none() {
            assert_eq!(verify::no_finalizer_is_run(&self.groups, store), none);
        }
        if let Some(journal) = &self.journal {
            if journal.phase < Phase::Copy && journal.course == Course::Forward {
                self.nothing_is_made();
            }
        } else {
            self.nothing_is_made();
        }
    }

    /// M20c: the journal knows of a copy before its first object is there.
    fn nothing_is_made(&self) {
        let made = self.server.store.objects().find(|object| {
            self.groups.is_target(&object.key().group) && !object.key().namespace.is_empty()
        });
        assert_eq!(made.map(|object| object.key().clone()), None);
    }

    /// Whether no object in namespaces is of the source's groups.
    pub(crate) fn is_new(&self) -> bool {
        !self
            .server
            .store
            .objects()
            .any(|o| migration::inventory::is_original(&self.groups, o))
    }

    pub(crate) fn target(&self, key: &ObjectKey) -> Option<ObjectKey> {
        target_key(&self.groups, key)
    }
}
