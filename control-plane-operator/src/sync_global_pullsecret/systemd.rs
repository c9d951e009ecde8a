//! Restarts units of systemd through D-Bus.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Restart;
use super::dbus::{self, Call, Connection, Kind, Message};

/// The system bus.
const SOCKET: &str = "/var/run/dbus/system_bus_socket";
/// How long a restart may take: longer than systemd waits for a unit to stop.
const TIMEOUT: Duration = Duration::from_mins(3);
const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
/// The signal with the result of a job.
const JOB_REMOVED: &str = "JobRemoved";
/// A job that conflicts with the new one is replaced.
const MODE: &str = "replace";
/// The only result that means success.
const DONE: &str = "done";

/// A connection to systemd is opened for each restart.
#[derive(Debug, Clone)]
pub(super) struct Systemd {
    socket: PathBuf,
}

/// The unit was not restarted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to connect to D-Bus at {path}: the DaemonSet mounts it from the node")]
    Connect { path: String, source: io::Error },
    #[error("failed to call systemd over D-Bus")]
    Bus(#[from] dbus::Error),
    #[error(
        "systemd ended the restart of {unit} with {result:?}: check the log of the unit on this node"
    )]
    Job { unit: String, result: String },
    #[error("the restart did not end within {TIMEOUT:?}")]
    Timeout,
}

// === impl Systemd ===

impl Systemd {
    /// systemd of this node.
    pub(super) fn of_node() -> Self {
        Self::at(SOCKET.into())
    }

    /// systemd behind this socket of a bus.
    pub(super) fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    async fn restart_unit(&self, unit: &str) -> Result<(), Error> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|source| Error::Connect {
            path: self.socket.display().to_string(),
            source,
        })?;
        let mut bus = Connection::open(stream).await?;
        // Signals are requested first: a quick job has ended before the response of RestartUnit is read.
        let rule = format!(
            "type='signal',sender='{SYSTEMD}',interface='{MANAGER}',member='{JOB_REMOVED}'"
        );
        bus.call(&bus_call("AddMatch", &[&rule])).await?;
        bus.call(&manager_call("Subscribe", &[])).await?;
        let response = bus
            .call(&manager_call("RestartUnit", &[unit, MODE]))
            .await?;
        let job = response.body().string()?;
        let result = loop {
            let signal = bus.signal().await?;
            if let Some(result) = job_result(&signal, &job, &response)? {
                break result;
            }
        };
        if result == DONE {
            return Ok(());
        }
        Err(Error::Job {
            unit: unit.to_owned(),
            result,
        })
    }
}

impl Restart for Systemd {
    async fn restart(&self, unit: &str) -> Result<(), Error> {
        match timeout(TIMEOUT, self.restart_unit(unit)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout),
        }
    }
}

fn bus_call<'a>(member: &'a str, arguments: &'a [&'a str]) -> Call<'a> {
    Call {
        destination: BUS,
        path: BUS_PATH,
        interface: BUS,
        member,
        arguments,
    }
}

fn manager_call<'a>(member: &'a str, arguments: &'a [&'a str]) -> Call<'a> {
    Call {
        destination: SYSTEMD,
        path: MANAGER_PATH,
        interface: MANAGER,
        member,
        arguments,
    }
}

/// The result of the job, if a message reports it and is from the peer that has accepted the job.
fn job_result(signal: &Message, job: &str, accepted: &Message) -> Result<Option<String>, Error> {
    let is_result = signal.kind == Kind::Signal
        && signal.member == JOB_REMOVED
        && signal.sender == accepted.sender
        && signal.signature == "uoss";
    if !is_result {
        return Ok(None);
    }
    let mut body = signal.body();
    body.number()?;
    if body.string()? != job {
        return Ok(None);
    }
    body.string()?;
    Ok(Some(body.string()?))
}
