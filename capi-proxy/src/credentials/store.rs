//! The current credentials, shared by all threads and reloaded when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use super::plan::{Plan, Source};
use super::tls::{Pem, Tls};
use super::token::Token;
use super::{Endpoint, Error};

/// Interval at which files are checked. A changed token is used within a second.
const POLL: Duration = Duration::from_millis(500);

/// The credentials of a request.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) endpoint: Arc<Endpoint>,
    /// `None`: plain HTTP.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) token: Option<Token>,
    /// Counts the changes of endpoint and TLS: connections of an earlier epoch are not used for new requests.
    pub(crate) epoch: u64,
}

/// There are no valid credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no credentials for the API server: {0}")]
pub(crate) struct NotReady(String);

/// The current credentials.
#[derive(Debug)]
pub(crate) struct Store {
    source: Source,
    now: RwLock<Now>,
    reader: Mutex<Reader>,
}

#[derive(Debug)]
struct Now {
    session: Option<Arc<Session>>,
    /// Why the last reload failed.
    problem: Option<String>,
}

/// The last valid contents. A failure keeps them.
#[derive(Default)]
struct Reader {
    fingerprint: Vec<Fingerprint>,
    plan: Option<Plan>,
    pem: Option<Pem>,
    tls: Option<Arc<Tls>>,
    token: Option<Token>,
    epoch: u64,
}

/// Detects changes of a file, following symbolic links.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint {
    path: PathBuf,
    state: Option<(SystemTime, u64, u64)>,
}

// === impl Store ===

impl Store {
    /// Reads the credentials for the first time. A failure is not final: see [`Store::keep_fresh`].
    pub(crate) fn new(source: Source) -> Self {
        let store = Self {
            source,
            now: RwLock::new(Now {
                session: None,
                problem: None,
            }),
            reader: Mutex::new(Reader::default()),
        };
        store.refresh();
        store
    }

    /// The credentials for a request.
    pub(crate) fn session(&self) -> Result<Arc<Session>, NotReady> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        let unusable = |problem: &Option<String>| {
            let expired = || "the token has expired".to_owned();
            NotReady(problem.clone().unwrap_or_else(expired))
        };
        match (&now.session, &now.problem) {
            (Some(session), None) => Ok(Arc::clone(session)),
            // The expiry counts only if the token file cannot be read; otherwise the API server decides.
            (Some(session), Some(_)) if !session.token_has_expired() => Ok(Arc::clone(session)),
            (_, problem) => Err(unusable(problem)),
        }
    }

    /// Reads everything again; the session to try next if its token is another than `refused`'s.
    pub(crate) fn after_refusal(&self, refused: &Session) -> Option<Arc<Session>> {
        self.refresh();
        self.session()
            .ok()
            .filter(|session| session.token != refused.token)
    }

    /// Reloads files when they change, until dropped.
    pub(crate) async fn watch_files(&self) {
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.has_changed() {
                self.refresh();
            }
        }
    }

    fn has_changed(&self) -> bool {
        let failed = self
            .now
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .problem
            .is_some();
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        failed
            || reader
                .fingerprint
                .iter()
                .any(|file| *file != Fingerprint::of(&file.path))
    }

    fn refresh(&self) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = reader.read(&self.source).err().map(|error| error.chain());
        let session = reader.session().map(Arc::new);
        drop(reader);
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        if now.problem != problem {
            if let Some(problem) = &problem {
                tracing::warn!(problem, "Credentials cannot be read");
            } else {
                tracing::info!("Credentials can be read again");
            }
        }
        *now = Now { session, problem };
    }
}

// === impl Session ===

impl Session {
    fn token_has_expired(&self) -> bool {
        self.token
            .as_ref()
            .is_some_and(|token| token.has_expired(SystemTime::now()))
    }
}

// === impl Reader ===

impl Reader {
    /// Reads what can be read; the first failure is reported, and leaves what it concerns as it was.
    fn read(&mut self, source: &Source) -> Result<(), Error> {
        // Taken before the reading: a change between the two is then found by the next look.
        let planned = source.plan();
        let files = source.path().into_iter();
        self.fingerprint = match &planned {
            Ok(plan) => files.chain(plan.files()).map(Fingerprint::of).collect(),
            Err(_) => files.map(Fingerprint::of).collect(),
        };
        let plan = planned?;
        let same_server = self.plan.as_ref().is_some_and(|old| {
            old.endpoint == plan.endpoint && old.server_name == plan.server_name
        });
        if same_server {
            self.update(plan)
        } else {
            self.replace(plan)
        }
    }

    /// Another server: all or nothing, so that no token is sent to another server.
    fn replace(&mut self, plan: Plan) -> Result<(), Error> {
        let token = read_token(&plan)?;
        let pem = Pem::read(&plan)?;
        let tls = pem.as_ref().map(|pem| Tls::new(&plan, pem)).transpose()?;
        self.token = token;
        self.pem = pem;
        self.tls = tls.map(Arc::new);
        self.plan = Some(plan);
        self.epoch += 1;
        Ok(())
    }

    /// The same server: each part that can be read.
    fn update(&mut self, plan: Plan) -> Result<(), Error> {
        let token = read_token(&plan).map(|token| self.token = token);
        let tls = self.update_tls(&plan);
        self.plan = Some(plan);
        token.and(tls)
    }

    fn update_tls(&mut self, plan: &Plan) -> Result<(), Error> {
        let pem = Pem::read(plan)?;
        if pem == self.pem {
            return Ok(());
        }
        let tls = pem.as_ref().map(|pem| Tls::new(plan, pem)).transpose()?;
        self.pem = pem;
        self.tls = tls.map(Arc::new);
        self.epoch += 1;
        Ok(())
    }

    fn session(&self) -> Option<Session> {
        let plan = self.plan.as_ref()?;
        Some(Session {
            endpoint: Arc::new(plan.endpoint.clone()),
            tls: self.tls.clone(),
            token: self.token.clone(),
            epoch: self.epoch,
        })
    }
}

fn read_token(plan: &Plan) -> Result<Option<Token>, Error> {
    let Some(data) = &plan.token else {
        return Ok(None);
    };
    let from = data.path().map_or("the kubeconfig".to_owned(), |path| {
        path.display().to_string()
    });
    Token::parse(&data.read()?, from).map(Some)
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

// === impl Fingerprint ===

impl Fingerprint {
    fn of(path: impl AsRef<Path>) -> Self {
        use std::os::unix::fs::MetadataExt;
        let path = path.as_ref();
        let state = std::fs::metadata(path)
            .ok()
            .and_then(|file| Some((file.modified().ok()?, file.ino(), file.len())));
        Self {
            path: path.to_owned(),
            state,
        }
    }
}

#[cfg(test)]
mod tests;
