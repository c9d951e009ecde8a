//! The processes of a run: the fake API server, the load client, and a peer at a time.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use load::wire::{Credentials, Job, Outcome, Spelling, Target};

use super::nginx;
use super::peer::Peer;
use super::programs::Programs;
use super::usage::Group;
use super::worker::Worker;
use testbed::certs::{Authority, write};
use testbed::kubeconfig;
use testbed::ports;
use testbed::process::{Launch, Process};
use testbed::work_dir::WorkDir;

/// The name of the directory; it lets only one bench run at a time.
const NAME: &str = "bench";
/// The token that the fake API server requests.
const TOKEN: &str = "bench-token";
/// When a peer that does not respond is given up.
const ANSWER_WITHIN_MILLIS: u64 = 20_000;
/// When a peer that does not end is killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// All that the measurements work with.
#[derive(Debug)]
pub(super) struct Stage<'p> {
    programs: &'p Programs,
    worker: Worker,
    upstream: Process,
    upstream_port: u16,
    files: Files,
    // Last: the processes end before their directory does.
    home: WorkDir,
}

#[derive(Debug)]
struct Files {
    authority: PathBuf,
    token: PathBuf,
    kubeconfig: PathBuf,
}

/// A peer that runs, or has just been started.
#[derive(Debug)]
pub(super) struct Running {
    /// Who.
    pub(super) peer: Peer,
    /// How to call it.
    pub(super) target: Target,
    process: Option<Process>,
}

// === impl Stage ===

impl<'p> Stage<'p> {
    /// Starts the fake API server and the load client.
    pub(super) async fn open(programs: &'p Programs) -> Result<Self> {
        let home = WorkDir::open(NAME)?;
        let authority = Authority::create(&home.join("certs"))?;
        let server = authority.server("server")?;
        let upstream_port = ports::allocate()?;
        let files = Files {
            authority: authority.certificate(),
            token: home.join("token"),
            kubeconfig: home.join("kubeconfig"),
        };
        write(&files.token, TOKEN)?;
        kubeconfig::write_kubeconfig(
            &files.kubeconfig,
            &format!("https://127.0.0.1:{upstream_port}"),
            Some(&files.authority),
            kubeconfig::Credentials::TokenFile(&files.token),
        )?;
        let upstream = Launch::new("upstream", &programs.load)
            .arg("upstream")
            .flag("listen", local(upstream_port))
            .path_flag("certificate", &server.certificate)
            .path_flag("key", &server.key)
            .path_flag("token", &files.token)
            .spawn(&home)?;
        let worker = Worker::start(&programs.load)?;
        let mut stage = Self {
            programs,
            worker,
            upstream,
            upstream_port,
            files,
            home,
        };
        stage.start(Peer::Direct).await?;
        Ok(stage)
    }

    /// Ends everything.
    pub(super) async fn close(self) -> Result<()> {
        self.worker.close().await?;
        self.upstream.stop(STOP_WITHIN).await
    }

    /// Starts a peer and waits for its first response.
    pub(super) async fn start(&mut self, peer: Peer) -> Result<Running> {
        let running = self.launch(peer)?;
        let job = first_response(&running.target, None);
        self.perform(&running, &job).await?;
        Ok(running)
    }

    /// Starts several peers.
    pub(super) async fn start_all(&mut self, peers: &[Peer]) -> Result<Vec<Running>> {
        let mut running = Vec::new();
        for &peer in peers {
            running.push(self.start(peer).await?);
        }
        Ok(running)
    }

    /// Has the load client do a job with a peer.
    pub(super) async fn perform(&mut self, running: &Running, job: &Job) -> Result<Outcome> {
        self.give(job).await?;
        self.outcome(running).await
    }

    /// Gives the load client a job.
    pub(super) async fn give(&mut self, job: &Job) -> Result<()> {
        self.worker.give(job).await
    }

    /// Waits for the outcome of the job before, which concerns a peer.
    pub(super) async fn outcome(&mut self, running: &Running) -> Result<Outcome> {
        self.worker.outcome().await.with_context(|| {
            let log = running
                .process
                .as_ref()
                .map(Process::tail)
                .unwrap_or_default();
            format!(
                "{} failed; the end of its log:\n{log}\n",
                running.peer.name()
            )
        })
    }

    /// Has the load client do a job that concerns no peer.
    pub(super) async fn perform_alone(&mut self, job: &Job) -> Result<Outcome> {
        self.worker.perform(job).await
    }

    /// Starts a peer without waiting for it.
    pub(super) fn launch(&self, peer: Peer) -> Result<Running> {
        let prepared = self.prepare(peer)?;
        prepared.start(self)
    }

    /// Chooses ports and writes files for a peer.
    pub(super) fn prepare(&self, peer: Peer) -> Result<Prepared> {
        let port = match peer {
            Peer::Direct => self.upstream_port,
            Peer::Relay | Peer::Nginx | Peer::KubectlProxy | Peer::Ours => ports::allocate()?,
        };
        let mut prepared = Prepared {
            peer,
            target: self.target(peer, port),
            admin: None,
            launch: None,
        };
        match peer {
            Peer::Direct => {}
            Peer::Relay => prepared.launch = Some(self.relay(port)),
            Peer::Nginx => prepared.launch = Some(self.nginx(port)?),
            Peer::KubectlProxy => prepared.launch = Some(self.kubectl_proxy(port)),
            Peer::Ours => {
                let admin = local(ports::allocate()?);
                prepared.launch = Some(self.ours(port, admin));
                prepared.admin = Some(admin);
            }
        }
        Ok(prepared)
    }

    /// Clients of the server and of the relay use TLS and send a token; the other peers do that for them.
    fn target(&self, peer: Peer, port: u16) -> Target {
        let credentials = Credentials {
            authority: self.files.authority.clone(),
            token: self.files.token.clone(),
        };
        Target {
            address: local(port),
            spelling: if peer == Peer::Ours {
                Spelling::Standard
            } else {
                Spelling::Private
            },
            credentials: matches!(peer, Peer::Direct | Peer::Relay).then_some(credentials),
        }
    }

    fn relay(&self, port: u16) -> Launch {
        Launch::new(Peer::Relay.log_name(), &self.programs.load)
            .arg("relay")
            .flag("listen", local(port))
            .flag("to", local(self.upstream_port))
    }

    fn nginx(&self, port: u16) -> Result<Launch> {
        let directory = self.home.join("nginx");
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let configuration = directory.join("nginx.conf");
        let settings = nginx::Settings {
            port,
            upstream_port: self.upstream_port,
            authority: &self.files.authority,
            token: TOKEN,
            directory: &directory,
        };
        write(&configuration, &nginx::configuration(&settings))?;
        let launch = Launch::new(Peer::Nginx.log_name(), &self.programs.nginx);
        Ok(launch
            .arg("-p")
            .arg(&directory)
            .arg("-c")
            .arg(&configuration)
            .arg("-e")
            .arg("stderr"))
    }

    fn kubectl_proxy(&self, port: u16) -> Launch {
        Launch::new(Peer::KubectlProxy.log_name(), &self.programs.kubectl)
            .arg("proxy")
            .flag("port", port)
            .path_flag("kubeconfig", &self.files.kubeconfig)
    }

    fn ours(&self, port: u16, admin: SocketAddr) -> Launch {
        Launch::new(Peer::Ours.log_name(), &self.programs.proxy)
            .arg("serve")
            .flag("listen", local(port))
            .flag("admin-listen", admin)
            .path_flag("kubeconfig", &self.files.kubeconfig)
    }
}

/// A job that waits for a peer.
pub(super) fn first_response(target: &Target, path: Option<&str>) -> Job {
    Job::FirstResponse {
        target: target.clone(),
        path: path.map(str::to_owned),
        within_millis: ANSWER_WITHIN_MILLIS,
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A peer with a process that has not been started yet.
#[derive(Debug)]
pub(super) struct Prepared {
    peer: Peer,
    /// How it will be called.
    pub(super) target: Target,
    /// Where it will say that it is ready, if it does.
    pub(super) admin: Option<SocketAddr>,
    launch: Option<Launch>,
}

// === impl Prepared ===

impl Prepared {
    /// Starts the process.
    pub(super) fn start(self, stage: &Stage<'_>) -> Result<Running> {
        let Self {
            peer,
            target,
            admin: _,
            launch,
        } = self;
        let process = launch.map(|launch| launch.spawn(&stage.home)).transpose()?;
        Ok(Running {
            peer,
            target,
            process,
        })
    }
}

// === impl Running ===

impl Running {
    /// Its processes. The fake API server is counted for no peer.
    pub(super) fn group(&self) -> Option<Group> {
        self.process.as_ref().map(|process| Group(process.pid()))
    }

    /// Ends it.
    pub(super) async fn stop(self) -> Result<()> {
        match self.process {
            Some(process) => process.stop(STOP_WITHIN).await,
            None => Ok(()),
        }
    }
}

/// Ends several.
pub(super) async fn stop_all(running: Vec<Running>) -> Result<()> {
    for peer in running {
        peer.stop().await?;
    }
    Ok(())
}

/// The samples of a job, in microseconds.
pub(super) fn samples(outcome: Outcome) -> Result<Vec<f64>> {
    match outcome {
        Outcome::Samples(nanos) => Ok(nanos.into_iter().map(super::statistics::micros).collect()),
        other => anyhow::bail!("the load client returned {other:?} instead of samples"),
    }
}

/// The requests and the seconds of a job.
pub(super) fn rate(outcome: &Outcome) -> Result<(u64, f64)> {
    match outcome {
        Outcome::Rate { requests, seconds } => Ok((*requests, *seconds)),
        other => anyhow::bail!("the load client returned {other:?} instead of a rate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unexpected_outcome_is_an_error() {
        assert!(samples(Outcome::Done).is_err());
        assert!(rate(&Outcome::Samples(vec![1])).is_err());
        assert_eq!(samples(Outcome::Samples(vec![1_500])).unwrap(), [1.5]);
    }
}
