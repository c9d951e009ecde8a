//! A program with a health endpoint, that can be stopped, killed and started again.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::client::ApiClient;
use crate::process::{Launch, Process};
use crate::wait;
use crate::work_dir::WorkDir;

/// How long any component may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// How long any component may take to terminate.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// A component of the testbed.
#[derive(Debug)]
pub struct Service {
    launch: Launch,
    work_dir: Arc<WorkDir>,
    health: Health,
    process: Option<Process>,
}

/// The readiness endpoint of a component: any success response counts.
#[derive(Debug, Clone)]
pub struct Health {
    /// Reaches the component.
    pub client: ApiClient,
    /// The path of the endpoint.
    pub path: &'static str,
}

// === impl Service ===

impl Service {
    /// A component that does not run yet.
    pub fn new(launch: Launch, work_dir: &Arc<WorkDir>, health: Health) -> Self {
        Self {
            launch,
            work_dir: Arc::clone(work_dir),
            health,
            process: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.launch.name()
    }

    /// Adds a flag of the form `--name=value`, for the next start.
    pub fn add_flag(&mut self, name: &str, value: impl std::fmt::Display) {
        self.launch = self.launch.clone().flag(name, value);
    }

    /// The id of its process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// The file of its output.
    pub fn log(&self) -> std::path::PathBuf {
        self.work_dir.log(self.launch.name())
    }

    /// Starts the program without waiting for it.
    pub fn spawn(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("{} runs already: stop it first", self.name());
        }
        self.process = Some(self.launch.spawn(&self.work_dir)?);
        Ok(())
    }

    /// Waits until it is ready; fails at once when it has ended.
    pub async fn ready(&mut self) -> Result<()> {
        let name = self.launch.name().to_owned();
        let process = self
            .process
            .as_mut()
            .with_context(|| format!("{name} has not been started"))?;
        let health = &self.health;
        let ended = wait::until(&format!("{name} to be ready"), READY_WITHIN, async || {
            if let Some(status) = process.exited()? {
                return Ok(Some(status));
            }
            health.client.text(health.path).await?;
            Ok(None)
        })
        .await;
        match ended {
            Ok(None) => Ok(()),
            Ok(Some(status)) => bail!(
                "{name} ended before it was ready ({status}); the end of {}:\n{}",
                process.log().display(),
                process.tail()
            ),
            Err(error) => Err(error.context(format!(
                "{name} did not become ready; the end of {}:\n{}",
                process.log().display(),
                process.tail()
            ))),
        }
    }

    /// Starts the program and waits until it is ready.
    pub async fn start(&mut self) -> Result<()> {
        self.spawn()?;
        self.ready().await
    }

    /// Terminates the program and waits for it.
    pub async fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(process) => process.stop(STOP_WITHIN).await,
            None => Ok(()),
        }
    }

    /// Kills the program at once (SIGKILL).
    pub fn kill(&mut self) {
        drop(self.process.take());
    }

    /// Stops and starts it.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Fails when the program has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        let name = self.launch.name().to_owned();
        let Some(process) = self.process.as_mut() else {
            return Ok(());
        };
        if let Some(status) = process.exited()? {
            bail!("{name} has ended ({status}):\n{}", process.tail());
        }
        Ok(())
    }
}

/// The health endpoint of a component on plain HTTP on loopback.
pub fn plain_health(port: u16, path: &'static str) -> Result<Health> {
    plain_health_at((Ipv4Addr::LOCALHOST, port).into(), path)
}

/// The health endpoint of a component on plain HTTP.
pub fn plain_health_at(address: SocketAddr, path: &'static str) -> Result<Health> {
    Ok(Health {
        client: ApiClient::plain_at(address)?,
        path,
    })
}

/// The health endpoint of a component on TLS, with a certificate of the testbed's authority.
pub fn secure_health(address: SocketAddr, authority: &Path, path: &'static str) -> Result<Health> {
    Ok(Health {
        client: ApiClient::anonymous(address, authority)?,
        path,
    })
}
