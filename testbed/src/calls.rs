//! Calls of a program to a cloud: they are counted, and held from one on, so that the program can be killed at it.

use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::watch;

/// How long a program may take to the call at which it is killed.
const WITHIN: Duration = Duration::from_mins(5);

/// From which call on calls are held. Calls are counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// From this call on: the cloud does not receive it.
    Before(usize),
    /// From the response to this call on: the cloud has answered, and the client knows nothing of it.
    After(usize),
    /// The same, with only those calls counted that write.
    AfterWrite(usize),
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The action, or method and path, for messages.
    pub name: String,
    /// Whether it may change something.
    pub writes: bool,
}

/// What every call passes, on its way to the cloud and back.
#[derive(Debug)]
pub struct CallGate {
    state: Mutex<State>,
    is_held: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<Call>,
    hold: Option<Hold>,
    is_held: bool,
}

// === impl CallGate ===

impl CallGate {
    /// One that holds nothing.
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            is_held: watch::Sender::new(false),
        }
    }

    /// Forgets all calls, and holds those that follow from one on, if that is given. Calls that are held stay so: their client
    /// was killed.
    pub fn restart(&self, hold: Option<Hold>) {
        *self.state() = State {
            hold,
            ..State::default()
        };
        self.is_held.send_replace(false);
    }

    /// Runs a program until one of its calls is held, and kills it then (SIGKILL). Gives the calls that the cloud has received.
    /// It is an error if the program ends before. Afterwards nothing is held.
    pub async fn kill_at(&self, command: &mut Command, hold: Hold) -> Result<Vec<Call>> {
        self.restart(Some(hold));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the program")?;
        let mut stderr = child.stderr.take().context("there is no standard error")?;
        let mut said = Vec::new();
        let ends = async { tokio::try_join!(stderr.read_to_end(&mut said), child.wait()) };
        tokio::select! {
            ended = ends => {
                let (_, status) = ended?;
                let said = String::from_utf8_lossy(&said);
                bail!("it ended before the call, {hold:?} ({status}): {said}");
            }
            reached = self.held() => reached?,
            () = tokio::time::sleep(WITHIN) => bail!("it did not come to the call, {hold:?}"),
        }
        child.kill().await.context("cannot kill the program")?;
        let calls = self.calls();
        self.restart(None);
        Ok(calls)
    }

    async fn held(&self) -> Result<()> {
        let mut held = self.is_held.subscribe();
        held.wait_for(|held| *held).await?;
        Ok(())
    }

    /// The calls that the cloud has received since the last restart.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// A call arrives: its number, or `None` if it is held.
    pub fn arrives(&self, call: Call) -> Option<usize> {
        let mut state = self.state();
        let number = state.calls.len() + 1;
        if state.hold == Some(Hold::Before(number)) {
            self.hold(&mut state);
        }
        if state.is_held {
            return None;
        }
        state.calls.push(call);
        Some(number)
    }

    /// The response to a call arrives: whether the client gets it.
    pub fn responds(&self, number: usize) -> bool {
        let mut state = self.state();
        let calls = state.calls.get(..number).unwrap_or_default();
        let is_it = match state.hold {
            Some(Hold::After(at)) => at == number,
            Some(Hold::AfterWrite(at)) => {
                let writes = calls.iter().filter(|call| call.writes).count();
                writes == at && calls.last().is_some_and(|call| call.writes)
            }
            Some(Hold::Before(_)) | None => false,
        };
        if is_it {
            self.hold(&mut state);
        }
        !state.is_held
    }

    fn hold(&self, state: &mut State) {
        state.is_held = true;
        self.is_held.send_replace(true);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CallGate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends calls one after another until one is held; `w` writes and `r` reads. Gives how many the cloud has received, and
    /// how many responses the client.
    fn passes(hold: Option<Hold>, calls: &str) -> (usize, usize) {
        let gate = CallGate::new();
        gate.restart(hold);
        let mut responses = 0;
        for kind in calls.chars() {
            let call = Call {
                name: kind.to_string(),
                writes: kind == 'w',
            };
            let Some(number) = gate.arrives(call) else {
                break;
            };
            if !gate.responds(number) {
                break;
            }
            responses += 1;
        }
        (gate.calls().len(), responses)
    }

    #[test]
    fn calls_are_held_before_the_cloud_or_before_the_client() {
        for (hold, received, responses) in [
            (None, 5, 5),
            (Some(Hold::Before(1)), 0, 0),
            (Some(Hold::Before(3)), 2, 2),
            (Some(Hold::After(1)), 1, 0),
            (Some(Hold::After(3)), 3, 2),
            (Some(Hold::AfterWrite(1)), 2, 1),
            (Some(Hold::AfterWrite(2)), 4, 3),
            (Some(Hold::After(6)), 5, 5),
        ] {
            assert_eq!(passes(hold, "rwrwr"), (received, responses), "{hold:?}");
        }
    }

    #[tokio::test]
    async fn all_calls_are_held_until_a_restart() {
        let gate = CallGate::new();
        let call = || Call {
            name: "PUT /a".to_owned(),
            writes: true,
        };
        gate.restart(Some(Hold::Before(2)));
        assert_eq!(gate.arrives(call()), Some(1));
        assert_eq!(gate.arrives(call()), None);
        gate.held().await.unwrap();
        assert_eq!(gate.arrives(call()), None);
        assert!(!gate.responds(1));
        gate.restart(None);
        assert!(gate.calls().is_empty());
        assert_eq!(gate.arrives(call()), Some(1));
        assert!(gate.responds(1));
    }

    #[tokio::test]
    async fn a_program_that_ends_before_the_call_is_an_error_with_its_output() {
        let gate = CallGate::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo denied >&2; exit 3"]);
        let result = gate.kill_at(&mut command, Hold::Before(1)).await;
        let error = result.unwrap_err().to_string();
        for part in ["Before(1)", "exit status: 3", "denied"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
