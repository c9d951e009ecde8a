//! Carries out steps: the thin layer between them and the system.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command as Process};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::secrets::Secrets;
use super::served;
use super::steps::{Command, Image, Step};

/// How much of an output is kept: more than is shown, so that secrets are found before it is cut.
const KEPT: usize = 64 << 10;
/// How long a program may take to end after it was killed.
const KILLED: Duration = Duration::from_secs(10);
/// How long output is read after a program has ended: a process that it has left behind may keep it open.
const OUTPUT: Duration = Duration::from_secs(1);
/// How often a program is started that is still open for writing.
const STARTS: u32 = 20;
/// The pause between these.
const BUSY: Duration = Duration::from_millis(50);

/// What steps need that is not in them.
pub(super) trait Surroundings: Sync {
    /// The paths of the files that an image has below a directory.
    fn below(&self, image: Image, directory: &str) -> Vec<String>;

    /// Copies a file of an image to a path that does not exist; false if the image does not have the file.
    fn take(
        &self,
        image: Image,
        path: &str,
        to: PathBuf,
    ) -> impl Future<Output = Result<bool, String>> + Send;

    /// Reports which images the release does not have.
    fn report(&self) -> impl Future<Output = ()> + Send;
}

/// A run.
struct Run<'a, S> {
    directory: PathBuf,
    surroundings: &'a S,
    secrets: &'a Secrets,
}

/// A step failed. The message names it, and has no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// A file or directory cannot be made.
    #[error("failed to write {path}: {problem}")]
    File { path: String, problem: String },
    /// An image does not have a file.
    #[error(
        "the image of {tag} has no file {path}: check that the release is complete and that its mirrors are not outdated"
    )]
    Absent { tag: &'static str, path: String },
    /// A program failed.
    #[error("{program} {problem}: {output}")]
    Program {
        program: String,
        problem: String,
        output: String,
    },
    /// A program was not started, or did not end by itself.
    #[error("{program} {problem}: {output}")]
    Interrupted {
        program: String,
        problem: String,
        output: String,
    },
}

/// A program that runs.
struct Started {
    process: Child,
    output: Arc<Mutex<VecDeque<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

/// Why a program has no result.
struct Problem {
    text: String,
    /// Whether it is the program's own: it ends in the same way with the same inputs.
    is_own: bool,
}

/// A directory that is removed with all files when it is dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

/// Makes the directory of a run, carries out the steps, and returns the payload. The directory is removed.
pub(super) async fn execute<S: Surroundings>(
    steps: &[Step],
    directory: &Path,
    surroundings: &S,
    secrets: &Secrets,
) -> Result<Vec<u8>, Error> {
    // A process that was killed may have left one.
    remove(directory).map_err(file(directory))?;
    let temporary = Temporary(directory.to_owned());
    let run = Run {
        directory: directory.to_owned(),
        surroundings,
        secrets,
    };
    let payload = run.steps(steps).await;
    // Programs are large. If this is abandoned, they are removed all the same.
    let _ = tokio::task::spawn_blocking(move || drop(temporary)).await;
    payload
}

// === impl Error ===

impl Error {
    /// Whether there is no payload for these inputs: with the same ones it fails again.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Absent { .. } | Self::Program { .. } => true,
            Self::File { .. } | Self::Interrupted { .. } => false,
        }
    }
}

// === impl Run ===

impl<S: Surroundings> Run<'_, S> {
    /// The payload.
    async fn steps(&self, steps: &[Step]) -> Result<Vec<u8>, Error> {
        let mut payload = Vec::new();
        for step in steps {
            if let Some(served) = self.step(step).await? {
                payload = served;
            }
        }
        Ok(payload)
    }

    /// The payload, if this step serves it.
    async fn step(&self, step: &Step) -> Result<Option<Vec<u8>>, Error> {
        match step {
            Step::Directory(path) => self.make(path)?,
            Step::Write { to, content } => self.write(to, content)?,
            Step::Take { image, paths, to } => self.take(*image, paths, to).await?,
            Step::TakeBelow {
                image,
                directory,
                to,
            } => self.take_below(*image, directory, to).await?,
            Step::Run(command) => self.run(command).await?,
            Step::Report => self.surroundings.report().await,
            Step::Copy { from, to } => self.copy(from, to)?,
            Step::CopyAll { from, suffix, to } => self.copy_all(from, suffix, to)?,
            Step::Serve { command, url } => return self.serve(command, url).await.map(Some),
        }
        Ok(None)
    }

    fn make(&self, path: &str) -> Result<(), Error> {
        let mut builder = DirBuilder::new();
        let made = builder
            .recursive(true)
            .mode(0o700)
            .create(self.directory.join(path));
        made.map_err(file(Path::new(path)))
    }

    fn write(&self, to: &str, content: &[u8]) -> Result<(), Error> {
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.directory.join(to));
        let written = opened.and_then(|mut file| file.write_all(content));
        written.map_err(file(Path::new(to)))
    }

    async fn take(&self, image: Image, paths: &[String], to: &str) -> Result<(), Error> {
        for path in paths {
            let to = self.directory.join(to);
            let taken = self.surroundings.take(image, path, to).await;
            let taken = taken.map_err(|problem| Error::File {
                path: path.clone(),
                problem,
            })?;
            if taken {
                return Ok(());
            }
        }
        Err(Error::Absent {
            tag: image.tag(),
            path: paths.last().cloned().unwrap_or_default(),
        })
    }

    async fn take_below(&self, image: Image, directory: &str, to: &str) -> Result<(), Error> {
        let paths = self.surroundings.below(image, directory);
        if paths.is_empty() {
            return Err(Error::Absent {
                tag: image.tag(),
                path: format!("{directory}/*"),
            });
        }
        for path in paths {
            // An image is not trusted to name files of its own only.
            let root = self.directory.join(to);
            let target = payload::extract::below(&root, &path);
            let parent = target.as_deref().and_then(Path::parent);
            let (Some(target), Some(parent)) = (&target, parent) else {
                let problem = "it leads out of the image".to_owned();
                return Err(Error::File { path, problem });
            };
            fs::create_dir_all(parent).map_err(file(Path::new(&path)))?;
            let taken = self.surroundings.take(image, &path, target.clone()).await;
            taken.map_err(|problem| Error::File { path, problem })?;
        }
        Ok(())
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        let copied = fs::copy(self.directory.join(from), self.directory.join(to));
        copied.map(drop).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::File {
                path: to.to_owned(),
                problem: format!("no program has made {from}"),
            },
            _ => file(Path::new(to))(error),
        })
    }

    /// Directories are left out.
    fn copy_all(&self, from: &str, suffix: &str, to: &str) -> Result<(), Error> {
        let mut names = Vec::new();
        let entries = fs::read_dir(self.directory.join(from)).map_err(file(Path::new(from)))?;
        for entry in entries {
            let entry = entry.map_err(file(Path::new(from)))?;
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let name = entry.file_name().into_string();
            names.extend(name.ok().filter(|name| is_file && name.ends_with(suffix)));
        }
        names.sort();
        names
            .iter()
            .try_for_each(|name| self.copy(&format!("{from}/{name}"), &format!("{to}/{name}")))
    }

    async fn run(&self, command: &Command) -> Result<(), Error> {
        let begun = Instant::now();
        let mut started = self.start(command).await?;
        let problem = match timeout(command.limit, started.process.wait()).await {
            Ok(Ok(status)) if status.success() => {
                let seconds = begun.elapsed().as_secs_f64();
                tracing::debug!(program = command.program, seconds, "Ran program");
                return Ok(());
            }
            Ok(Ok(status)) => Problem::of(status, ended(status)),
            Ok(Err(error)) => Problem::other(format!("failed: {error}")),
            Err(_) => {
                started.kill().await;
                let limit = command.limit;
                Problem::other(format!("did not end within {limit:?} and was killed"))
            }
        };
        Err(self.failed(command, problem, started).await)
    }

    async fn serve(&self, command: &Command, url: &str) -> Result<Vec<u8>, Error> {
        let mut started = self.start(command).await?;
        let fetched = tokio::select! {
            fetched = served::fetch(url, command.limit) => fetched.map_err(Problem::own),
            status = started.process.wait() => Err(match status {
                Ok(status) => Problem::of(status, format!("{} before it served the payload", ended(status))),
                Err(error) => Problem::other(format!("failed: {error}")),
            }),
        };
        started.kill().await;
        match fetched {
            Ok(payload) => Ok(payload),
            Err(problem) => Err(self.failed(command, problem, started).await),
        }
    }

    async fn start(&self, command: &Command) -> Result<Started, Error> {
        let mut process = Process::new(self.directory.join(&command.program));
        process
            .args(&command.args)
            .current_dir(self.directory.join(&command.directory))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The run may be abandoned.
            .kill_on_drop(true);
        let mut spawned = process.spawn();
        for _ in 1..STARTS {
            // Another thread that starts a process has inherited the file for a moment.
            let is_busy = |error: &io::Error| error.kind() == ErrorKind::ExecutableFileBusy;
            if !spawned.as_ref().is_err_and(is_busy) {
                break;
            }
            sleep(BUSY).await;
            spawned = process.spawn();
        }
        let mut child = spawned.map_err(|error| Error::Interrupted {
            program: name(command),
            problem: "cannot be started".to_owned(),
            output: error.to_string(),
        })?;
        let output = Arc::default();
        let stdout = child.stdout.take().map(|it| read(it, &output));
        let stderr = child.stderr.take().map(|it| read(it, &output));
        Ok(Started {
            process: child,
            output,
            readers: stdout.into_iter().chain(stderr).collect(),
        })
    }

    async fn failed(&self, command: &Command, problem: Problem, started: Started) -> Error {
        let output = started.output().await;
        let shown = self
            .secrets
            .shown(&output, &self.directory.to_string_lossy());
        let output = if shown.is_empty() {
            "it printed nothing".to_owned()
        } else {
            shown
        };
        let (program, Problem { text, is_own }) = (name(command), problem);
        let problem = text;
        if is_own {
            return Error::Program {
                program,
                problem,
                output,
            };
        }
        Error::Interrupted {
            program,
            problem,
            output,
        }
    }
}

// === impl Problem ===

impl Problem {
    /// What a program does with these inputs.
    fn own(text: String) -> Self {
        Self { text, is_own: true }
    }

    /// What happened to a program.
    fn other(text: String) -> Self {
        Self {
            text,
            is_own: false,
        }
    }

    /// The end of a program. A signal is not of its own: it may use more memory than there is.
    fn of(status: ExitStatus, text: String) -> Self {
        Self {
            text,
            is_own: status.code().is_some(),
        }
    }
}

// === impl Started ===

impl Started {
    async fn kill(&mut self) {
        // It may have ended already.
        let _ = self.process.start_kill();
        if timeout(KILLED, self.process.wait()).await.is_err() {
            tracing::warn!("A killed program has not ended: it waits for the disk");
        }
    }

    /// The end of what it printed.
    async fn output(self) -> Vec<u8> {
        for mut reader in self.readers {
            if timeout(OUTPUT, &mut reader).await.is_err() {
                reader.abort();
            }
        }
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.iter().copied().collect()
    }
}

// === impl Image ===

impl Image {
    /// What it is called in messages.
    fn tag(self) -> &'static str {
        match self {
            Self::Release => "the release",
            Self::Operator => super::steps::OPERATOR,
            Self::FeatureGates => "cluster-config-api",
        }
    }
}

// === impl Temporary ===

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(%error, "Failed to remove the directory of a payload");
        }
    }
}

/// Keeps the end of an output.
fn read(
    mut source: impl AsyncRead + Unpin + Send + 'static,
    output: &Arc<Mutex<VecDeque<u8>>>,
) -> JoinHandle<()> {
    let output = Arc::clone(output);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok(length) = source.read(&mut buffer).await {
            if length == 0 {
                break;
            }
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.extend(&buffer[..length]);
            let excess = output.len().saturating_sub(KEPT);
            output.drain(..excess);
        }
    })
}

/// The name of a program, for messages.
fn name(command: &Command) -> String {
    let name = command.program.rsplit('/').next();
    name.unwrap_or(&command.program).to_owned()
}

fn ended(status: ExitStatus) -> String {
    format!("ended with {status}")
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn file(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::File {
        path: path.clone(),
        problem: error.to_string(),
    }
}
