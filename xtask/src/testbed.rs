//! `cargo xtask testbed`: a testbed to work with by hand.
//!
//! The testbed belongs to one process, which ends it when it ends itself. `up` starts that process in the background,
//! unless told to be it.

mod background;
mod state;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use e2e::binaries::{Binaries, Binary};
use e2e::cluster_api::Plan;
use e2e::progress::Progress;
use e2e::testbed::Testbed;
use e2e::{fixtures, home, proxy, wait};
use rustix::process::{Pid, Signal};

use crate::{show, signals};
pub(crate) use state::State;

/// Namespace of the hosted clusters.
pub(crate) const NAMESPACE: &str = "clusters-demo";
/// How long a testbed may take to end.
const END_WITHIN: Duration = Duration::from_secs(30);

/// What to do with testbeds.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Start a testbed: control plane, private CRDs, the four stock managers behind their proxies.
    Up {
        #[command(flatten)]
        name: Name,
        /// Keep it in this process until Ctrl-C.
        #[arg(long)]
        foreground: bool,
    },
    /// End a testbed and remove what it left.
    Down(Name),
    /// Show which testbeds run, and how to use them.
    Status,
}

/// Which testbed.
#[derive(Debug, clap::Args)]
pub(crate) struct Name {
    /// The testbed's name; several run side by side, but only one with the development provider at a time.
    #[arg(long, default_value = "default")]
    name: String,
}

/// Runs the command.
pub(crate) async fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Up {
            name,
            foreground: true,
        } => foreground(&name.name).await,
        Command::Up {
            name,
            foreground: false,
        } => {
            let state = background::start(&name.name).await?;
            println!("{}", show::instructions(&state));
            println!("  cargo xtask testbed down --name {}\n", name.name);
            Ok(ExitCode::SUCCESS)
        }
        Command::Down(name) => down(&name.name).await,
        Command::Status => status(),
    }
}

async fn foreground(name: &str) -> Result<ExitCode> {
    let progress = Progress::detect();
    let mut started = None;
    tokio::select! {
        result = bring_up(name, &progress) => started = Some(result?),
        result = signals::told_to_end() => result?,
    }
    let Some((testbed, state)) = started else {
        return Ok(ExitCode::FAILURE);
    };
    println!("{}", show::instructions(&state));
    println!("  Ctrl-C ends it.\n");
    signals::told_to_end().await?;
    let step = progress.step("ending the testbed");
    drop(testbed);
    step.done();
    Ok(ExitCode::SUCCESS)
}

/// Starts everything that a person needs, and writes down how to use it.
pub(crate) async fn bring_up(name: &str, progress: &Progress) -> Result<(Testbed, State)> {
    let tools = Binaries::ensure(&Binary::ALL, progress).await?;
    let proxy = proxy::build(progress).await?;
    let mut testbed = Testbed::start(name, progress.clone()).await?;
    testbed.use_proxy(proxy);
    let plan = Plan::hosted(NAMESPACE);
    testbed.install_crds(plan.side()).await?;
    testbed.start_controller_manager().await?;
    testbed.add(&plan).await?;
    let standard = testbed.standard_kubeconfig().await?;
    let state = State {
        name: name.to_owned(),
        pid: std::process::id(),
        directory: testbed.path().to_owned(),
        direct: testbed.control_plane.admin_kubeconfig().to_owned(),
        standard,
        example: example(&testbed)?,
        kubectl: tools.path(Binary::Kubectl)?.to_owned(),
        clusterctl: tools.path(Binary::Clusterctl)?.to_owned(),
    };
    state.write()?;
    Ok((testbed, state))
}

/// A cluster to apply, as one file.
fn example(testbed: &Testbed) -> Result<PathBuf> {
    let values = [("NAMESPACE", NAMESPACE), ("NAME", "demo"), ("WORKERS", "3")];
    let objects = fixtures::render("cluster", &values)?;
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let path = testbed.path().join("cluster.json");
    std::fs::write(&path, format!("{list:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

async fn down(name: &str) -> Result<ExitCode> {
    if !home::is_running(name)? {
        bail!("no testbed called {name} is running: cargo xtask testbed status lists them");
    }
    let owner = home::owner(name)?;
    let pid = i32::try_from(owner).ok().and_then(Pid::from_raw);
    let pid = pid.with_context(|| format!("{owner} is not a process id"))?;
    rustix::process::kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot end the testbed's process {owner}"))?;
    wait::until(&format!("testbed {name} to end"), END_WITHIN, async || {
        if home::is_running(name)? {
            return wait::not_yet(format!("process {owner} still holds it"));
        }
        Ok(())
    })
    .await?;
    background::forget(name);
    println!("testbed {name} has ended");
    Ok(ExitCode::SUCCESS)
}

fn status() -> Result<ExitCode> {
    let running = state::running()?;
    if running.is_empty() {
        println!("no testbed is running; start one: cargo xtask testbed up");
    }
    for name in running {
        match State::read(&name) {
            Ok(state) => println!("{}", show::instructions(&state)),
            Err(_) => println!("testbed {name} runs, for a test or not yet complete\n"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
