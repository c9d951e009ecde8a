//! One set of Linux namespaces for each testbed: mounts, network, processes.
//!
//! What runs in it has fixed ports and may mount, route and filter as it likes; nothing of that is seen outside. A link
//! to the rest of the machine, and one route over it, let tests and users reach everything in it: the API server, Services,
//! pods. It ends as a whole, however its owner ends: its first process waits for the end of a pipe, then kills the others
//! and removes the link and the control groups.

mod cgroups;
mod command;
mod slot;
mod subnets;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

pub use cgroups::Cgroups as Groups;
pub(crate) use command::run;
pub use slot::sweep;
pub use subnets::{MOST_NODES, Subnets};

use crate::process;
use crate::work_dir::{WorkDir, kill_group};
use slot::Slot;

/// The first process's program.
const INIT: &str = include_str!("namespaces/init.sh");
/// Name of the inner end of the link.
const INNER_LINK: &str = "outside";
/// How long the first process may take to end everything, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(10);
/// How often its end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of its log an error shows.
const TAIL_LINES: usize = 10;

/// A testbed's namespaces. Dropped, everything in them ends.
#[derive(Debug)]
pub struct Namespaces {
    outer: Child,
    init: u32,
    slot: Slot,
    work_dir: Arc<WorkDir>,
}

/// The way into a testbed's namespaces, for what outlives a borrow of them.
#[derive(Debug, Clone)]
pub struct Entry {
    line: Vec<OsString>,
}

// === impl Entry ===

impl Entry {
    /// The beginning of a command line that runs in them.
    pub fn line(&self) -> &[OsString] {
        &self.line
    }

    /// Runs a short command in them.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        run_through(&self.line, program, args)
    }
}

// === impl Namespaces ===

impl Namespaces {
    /// Creates them, and links them to the rest of the machine.
    pub fn start(work_dir: &Arc<WorkDir>) -> Result<Self> {
        let slot = Slot::take()?;
        let mut outer = unshare(work_dir, &slot)?;
        let init = match first_process(&mut outer) {
            Ok(init) => init,
            Err(error) => {
                drop(outer.wait());
                let said = process::tail(&work_dir.log("namespaces"), TAIL_LINES);
                return Err(error.context(format!("cannot prepare Linux namespaces: {said}")));
            }
        };
        let namespaces = Self {
            outer,
            init,
            slot,
            work_dir: Arc::clone(work_dir),
        };
        namespaces
            .link()
            .context("cannot link the namespaces to the rest of the machine")?;
        Ok(namespaces)
    }

    /// The addresses in them.
    pub fn subnets(&self) -> Subnets {
        self.slot.subnets()
    }

    /// The process on whose life everything in them hangs, besides their owner's.
    pub fn pid(&self) -> u32 {
        self.outer.id()
    }

    /// What there is of the testbed outside of its namespaces and its directory: link and control groups.
    pub fn traces(&self) -> Result<Vec<PathBuf>> {
        self.slot.left()
    }

    /// Creates a control group; returns its path in the form of the kubelet.
    pub fn cgroup(&self, name: &str) -> Result<String> {
        self.slot.cgroups().create(name)
    }

    /// The way into them, as the first node's. Unlike [`Self::entry`], it keeps no signal away.
    pub fn bare(&self) -> Entry {
        Entry {
            line: self.bare_entry(),
        }
    }

    /// Their control groups.
    pub fn groups(&self) -> Groups {
        self.slot.cgroups().clone()
    }

    /// The beginning of a command line that runs in them, as the first node does.
    pub fn entry(&self) -> Vec<OsString> {
        with_signals(self.bare_entry())
    }

    /// The beginning of a command line that runs as another node does.
    pub fn entry_of(&self, node: &str) -> Vec<OsString> {
        with_signals(self.plain_entry_of(Some(node)))
    }

    /// The beginning of a short command's line, in the network of a node that has its own, or in the first one's.
    pub(crate) fn plain_entry_of(&self, node: Option<&str>) -> Vec<OsString> {
        let mut line = self.bare_entry();
        if let Some(node) = node {
            line.push("nsenter".into());
            line.push(format!("--net=/run/netns/{node}").into());
            line.push("--".into());
        }
        line
    }

    /// Adds a network namespace for another node.
    pub fn add_node(&self, name: &str, address: Ipv4Addr, pods: &str) -> Result<()> {
        let own = format!("{address}/24");
        let (gateway, address) = (self.subnets().node(1).to_string(), address.to_string());
        for line in [
            ["netns", "add", name].as_slice(),
            &[
                "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name,
            ],
            &["link", "set", name, "master", "nodes", "up"],
            &["-n", name, "addr", "add", &own, "dev", "eth0"],
            &["-n", name, "link", "set", "lo", "up"],
            &["-n", name, "link", "set", "eth0", "up"],
            &["-n", name, "route", "add", "default", "via", &gateway],
            &["route", "add", pods, "via", &address],
        ] {
            self.run("ip", line)?;
        }
        let settings = "echo 1 >/proc/sys/net/ipv4/ip_forward
                        echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables";
        run_through(&self.entry_of(name), "sh", ["-ec", settings])?;
        Ok(())
    }

    /// Runs a short command in them.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        run_through(&self.bare_entry(), program, args)
    }

    fn bare_entry(&self) -> Vec<OsString> {
        let init = self.init.to_string();
        [
            "nsenter", "--target", &init, "--mount", "--net", "--pid", "--",
        ]
        .map(OsString::from)
        .into()
    }

    fn link(&self) -> Result<()> {
        let (link, subnets) = (self.slot.link(), self.subnets());
        let init = self.init.to_string();
        let (outer, inner) = (
            format!("{}/30", subnets.outside()),
            format!("{}/30", subnets.inside()),
        );
        run(
            "ip",
            [
                "link", "add", &link, "type", "veth", "peer", "name", INNER_LINK, "netns", &init,
            ],
        )?;
        self.run("ip", ["addr", "add", &inner, "dev", INNER_LINK])?;
        self.run("ip", ["link", "set", INNER_LINK, "up"])?;
        run("ip", ["addr", "add", &outer, "dev", &link])?;
        run("ip", ["link", "set", &link, "up"])?;
        let via = subnets.inside().to_string();
        run(
            "ip",
            ["route", "add", &subnets.all(), "via", &via, "dev", &link],
        )?;
        Ok(())
    }

    /// Ends everything in them and removes what they had of the machine.
    fn end(&mut self) -> Result<()> {
        // The first process sees the end of its input.
        drop(self.outer.stdin.take());
        let start = Instant::now();
        while self.outer.try_wait()?.is_none() {
            if start.elapsed() > END_WITHIN {
                kill_group(self.outer.id(), Signal::KILL);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.slot.clear_when_empty()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            let report = format!("the end of the testbed's namespaces: {error:#}\n");
            // The next start tries again.
            drop(std::fs::write(self.work_dir.log("namespaces-end"), report));
        }
    }
}

/// `nsenter` waits for what it has started, in another process: only that one is to be ended by SIGTERM, so that there is
/// something to wait for.
fn with_signals(entry: Vec<OsString>) -> Vec<OsString> {
    let outer = ["env", "--ignore-signal=TERM"].map(OsString::from);
    let inner = ["env", "--default-signal=TERM"].map(OsString::from);
    outer.into_iter().chain(entry).chain(inner).collect()
}

/// Runs a short command behind the beginning of a command line.
pub(crate) fn run_through<A: AsRef<OsStr>>(
    entry: &[OsString],
    program: &str,
    args: impl IntoIterator<Item = A>,
) -> Result<String> {
    let mut line = entry.to_vec();
    line.push(program.into());
    line.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
    run(&line[0], &line[1..])
}

fn unshare(work_dir: &WorkDir, slot: &Slot) -> Result<Child> {
    let log = work_dir.log("namespaces");
    let errors = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let subnets = slot.subnets();
    Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child=KILL"])
        .args(["--mount-proc", "bash", "-c", INIT, "testbed-init"])
        .arg(work_dir.path())
        .arg(slot.cgroups().name())
        .arg(format!("{}/24", subnets.node(1)))
        .arg(subnets.services())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        // Its own group: the Ctrl-C that ends the owner must not end it before the owner does.
        .process_group(0)
        .spawn()
        .context("cannot run unshare (package util-linux)")
}

/// Waits until the first process is ready; gives its id, as it is outside.
fn first_process(outer: &mut Child) -> Result<u32> {
    let output = outer
        .stdout
        .take()
        .expect("invariant: standard output is a pipe");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .context("cannot hear the namespaces' first process")?;
    if line.trim() != "ready" {
        bail!("their first process has ended");
    }
    let path = format!("/proc/{0}/task/{0}/children", outer.id());
    let children = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    children
        .trim()
        .parse()
        .with_context(|| format!("{path} does not name one process"))
}
