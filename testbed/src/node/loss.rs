//! Nodes that are lost, and return.
//!
//! Simulates a power failure of a node: its network is cut first, so that no client observes the end, and then all that
//! runs on it ends at once. What it has on its disk stays. The first node shares its network with the control plane and
//! with whatever is from outside: there, only its pods are cut off, and the rules of its kube-proxy are kept, because
//! the balancers' addresses lead through them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::machine::Node;
use crate::certs::write;
use crate::namespaces::{self, Groups};
use crate::wait;

/// How long the kernel may take to end what has been killed.
const ENDED_WITHIN: Duration = Duration::from_mins(1);
/// How long a node may take to run pods again.
const BACK_WITHIN: Duration = Duration::from_mins(6);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The table that cuts a network.
const TABLE: &str = "lost";

/// What it takes to cut a node off.
#[derive(Debug)]
pub(super) struct Cut {
    /// The way into the node's network.
    pub(super) entry: Vec<OsString>,
    /// The interface behind which nothing is reached.
    pub(super) interface: &'static str,
    /// Where the rules are written.
    pub(super) file: PathBuf,
    /// The control groups in which the node's pods are.
    pub(super) groups: Groups,
}

// === impl Node ===

impl Node {
    /// Takes the node away, with all that runs on it.
    pub async fn lose(&mut self) -> Result<()> {
        self.cut.apply().context(self.name.clone())?;
        self.kubelet.kill();
        self.runtime.kill();
        if !self.is_first() {
            self.proxy.kill();
        }
        self.cut.end_all(&self.name).await
    }

    /// Gives the node back as it starts after that: with its disk, and without any of its processes.
    pub async fn give_back(&mut self) -> Result<()> {
        self.cut.lift().context(self.name.clone())?;
        self.runtime.start().await?;
        if !self.is_first() {
            self.proxy.start().await?;
        }
        self.start_kubelet().await
    }

    /// The kubelet ends as long as the runtime looks after what ran before. It is started again, as systemd would.
    async fn start_kubelet(&mut self) -> Result<()> {
        let kubelet = &mut self.kubelet;
        wait::until("the kubelet to stay", BACK_WITHIN, async || {
            kubelet.kill();
            kubelet.start().await
        })
        .await
    }
}

// === impl Cut ===

impl Cut {
    fn apply(&self) -> Result<()> {
        write(&self.file, &rules(self.interface))?;
        let file = self.file.as_os_str().to_owned();
        namespaces::run_through(&self.entry, "nft", [OsString::from("-f"), file])?;
        Ok(())
    }

    fn lift(&self) -> Result<()> {
        namespaces::run_through(&self.entry, "nft", ["delete", "table", "inet", TABLE])?;
        Ok(())
    }

    /// Kills all processes of the node's pods, and waits until they are gone.
    async fn end_all(&self, node: &str) -> Result<()> {
        let start = Instant::now();
        loop {
            let left = self.groups.processes(node)?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(
                start.elapsed() < ENDED_WITHIN,
                "{node}: processes {left:?} have not ended"
            );
            kill_all(&left);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn kill_all(processes: &BTreeSet<i32>) {
    for pid in processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Nothing passes an interface, in either direction, and no client learns of it.
fn rules(interface: &str) -> String {
    let chain = |hook: &str, directions: &[&str]| {
        let drops = directions.iter();
        let drops: Vec<_> = drops
            .map(|direction| format!("    {direction} \"{interface}\" drop\n"))
            .collect();
        let drops = drops.concat();
        format!("  chain {hook} {{\n    type filter hook {hook} priority -300;\n{drops}  }}\n")
    };
    let chains = [
        chain("input", &["iifname"]),
        chain("forward", &["iifname", "oifname"]),
        chain("output", &["oifname"]),
    ];
    format!("table inet {TABLE} {{\n{}}}\n", chains.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_node_has_no_traffic_in_either_direction() {
        let text = rules("cni0");
        for rule in ["iifname \"cni0\" drop", "oifname \"cni0\" drop"] {
            assert_eq!(text.matches(rule).count(), 2, "{text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
