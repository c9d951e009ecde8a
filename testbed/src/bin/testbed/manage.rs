//! `cargo xtask testbed`: a testbed to work with by hand.
//!
//! There are two levels: `control-plane` runs stock Cluster API on private types, `node` runs pods on real nodes.
//! The testbed belongs to one process, which ends it when it ends itself. `up` starts that process in the background,
//! unless a flag says so.

mod background;
pub(crate) mod nodes;
mod state;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use testbed::binaries::{Binaries, Binary};
use testbed::cluster_api::Plan;
use testbed::images::Image;
use testbed::namespaces::MOST_NODES;
use testbed::node::{self, supported};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{fixtures, proxy, signals, wait, work_dir};

use crate::show;
pub(crate) use state::{Offer, State};

/// Namespace of the hosted clusters.
pub(crate) const NAMESPACE: &str = "clusters-demo";
/// How long a testbed may take to end.
const END_WITHIN: Duration = Duration::from_secs(30);

/// What to do with testbeds.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Start a testbed.
    Up {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        shape: Shape,
        /// Keep it in this process until Ctrl-C.
        #[arg(long)]
        foreground: bool,
    },
    /// End a testbed and remove what it left, also when it was killed.
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

/// What is in a testbed.
#[derive(Debug, clap::Args)]
pub(crate) struct Shape {
    /// What runs in it.
    #[arg(long, value_enum, default_value_t = Level::ControlPlane)]
    level: Level,
    /// How many nodes it has (level node).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_NODES)))]
    nodes: u8,
}

/// How much of a cluster a testbed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Level {
    /// Control plane, private CRDs, the four stock managers behind their proxies. Needs no root.
    ControlPlane,
    /// Control plane, nodes that run pods, a registry with the images of this tree. Needs Linux and root.
    Node,
}

// === impl Shape ===

impl Shape {
    /// The arguments that say the same.
    fn args(&self) -> [String; 4] {
        let level = match self.level {
            Level::ControlPlane => "control-plane",
            Level::Node => "node",
        };
        ["--level", level, "--nodes", &self.nodes.to_string()].map(str::to_owned)
    }
}

/// Runs the command.
pub(crate) async fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Up {
            name,
            shape,
            foreground: true,
        } => foreground(&name.name, shape).await,
        Command::Up {
            name,
            shape,
            foreground: false,
        } => {
            let state = background::start(&name.name, shape).await?;
            println!("{}", show::instructions(&state));
            println!("  cargo xtask testbed down --name {}\n", name.name);
            Ok(ExitCode::SUCCESS)
        }
        Command::Down(name) => down(&name.name).await,
        Command::Status => status(),
    }
}

async fn foreground(name: &str, shape: &Shape) -> Result<ExitCode> {
    let progress = Progress::detect();
    match shape.level {
        Level::ControlPlane => hold(bring_up(name, &progress), &progress).await,
        Level::Node => {
            // Before anything is built for it.
            supported()?;
            let coming_up = Box::pin(nodes::bring_up(name, shape.nodes, &Image::ALL, &progress));
            hold(coming_up, &progress).await
        }
    }
}

/// Keeps a testbed until a signal ends this process.
async fn hold<T>(
    coming_up: impl Future<Output = Result<(T, State)>>,
    progress: &Progress,
) -> Result<ExitCode> {
    let mut started = None;
    tokio::select! {
        result = coming_up => started = Some(result?),
        result = signals::terminated() => result?,
    }
    let Some((testbed, state)) = started else {
        return Ok(ExitCode::FAILURE);
    };
    println!("{}", show::instructions(&state));
    println!("  Ctrl-C ends it.\n");
    signals::terminated().await?;
    let step = progress.step("ending the testbed");
    drop(testbed);
    step.done();
    Ok(ExitCode::SUCCESS)
}

/// Starts what a person needs who works with Cluster API, and writes down how to use it.
pub(crate) async fn bring_up(name: &str, progress: &Progress) -> Result<(Testbed, State)> {
    let tools = Binaries::ensure(&Binary::LEVEL_CONTROL_PLANE, progress).await?;
    let proxy = proxy::build(progress).await?;
    let mut testbed = Testbed::start(name, progress.clone()).await?;
    testbed.use_proxy(proxy);
    let plan = Plan::hosted(NAMESPACE);
    testbed.install_crds(plan.capi_types()).await?;
    testbed.start_controller_manager().await?;
    testbed.add(&plan).await?;
    let standard = testbed.standard_kubeconfig().await?;
    let state = State {
        name: name.to_owned(),
        pid: std::process::id(),
        directory: testbed.path().to_owned(),
        kubectl: tools.path(Binary::Kubectl)?.to_owned(),
        offer: Offer::ControlPlane {
            direct: testbed.control_plane.admin_kubeconfig().to_owned(),
            standard,
            example: example(&testbed)?,
            clusterctl: tools.path(Binary::Clusterctl)?.to_owned(),
        },
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
    if !work_dir::is_running(name)? {
        return clean_up(name);
    }
    let owner = work_dir::owner(name)?;
    let pid = i32::try_from(owner).ok().and_then(Pid::from_raw);
    let pid = pid.with_context(|| format!("{owner} is not a process id"))?;
    rustix::process::kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot end the testbed's process {owner}"))?;
    wait::until(&format!("testbed {name} to end"), END_WITHIN, async || {
        if work_dir::is_running(name)? {
            return wait::not_yet(format!("process {owner} still holds it"));
        }
        Ok(())
    })
    .await?;
    background::forget(name);
    println!("testbed {name} has ended");
    Ok(ExitCode::SUCCESS)
}

/// Removes what a killed testbed left.
fn clean_up(name: &str) -> Result<ExitCode> {
    let left = match supported() {
        Ok(()) => node::clean_up(name)?,
        // Without root there was never more than a directory, which the next start removes.
        Err(_) => Vec::new(),
    };
    if left.is_empty() {
        bail!("no testbed called {name} is running: cargo xtask testbed status lists them");
    }
    for path in left {
        println!(
            "removed {}, left by a testbed that was killed",
            path.display()
        );
    }
    background::forget(name);
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
