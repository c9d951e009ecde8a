//! The processes of a machine, seen from outside of it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

/// Programs that run from a machine's first boot to its end. Each is started again when it ends.
const LASTING: [&str; 2] = ["containerd", "kubelet"];
/// Where `/proc/<pid>/stat` has the parent and the start, counted after the name.
const PARENT: usize = 1;
const STARTED: usize = 19;

/// A process.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// In clock ticks since boot. An id can be another process's later.
    started: u64,
}

/// Which processes those programs are on the machine whose first process has this id, and since when. Fails if one does
/// not run.
pub(crate) fn lasting(first: u32) -> Result<String> {
    let all = all()?;
    let mut found = Vec::new();
    for name in LASTING {
        let (pid, process) = find(&all, first, name)
            .with_context(|| format!("the machine of process {first} runs no {name}"))?;
        found.push(format!("{name} {pid} since {}", process.started));
    }
    Ok(found.join(", "))
}

/// All processes that there are.
fn all() -> Result<BTreeMap<u32, Process>> {
    let entries = fs::read_dir("/proc").context("cannot read /proc")?;
    let processes = entries.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // It may have ended meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((pid, Process::read(&stat)?))
    });
    Ok(processes.collect())
}

/// The oldest process of a name below another one.
fn find<'a>(
    all: &'a BTreeMap<u32, Process>,
    first: u32,
    name: &str,
) -> Option<(&'a u32, &'a Process)> {
    let named = all.iter().filter(|(_, process)| process.name == name);
    let below = named.filter(|(_, process)| is_below(all, process, first));
    below.min_by_key(|(_, process)| process.started)
}

fn is_below(all: &BTreeMap<u32, Process>, process: &Process, first: u32) -> bool {
    let mut parent = process.parent;
    while parent != first {
        match all.get(&parent) {
            Some(next) => parent = next.parent,
            None => return false,
        }
    }
    true
}

// === impl Process ===

impl Process {
    /// Reads the text of its `stat`. The name is in parentheses, and may have some in it.
    fn read(stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<_> = after.split_whitespace().collect();
        Some(Self {
            name: name.to_owned(),
            parent: fields.get(PARENT)?.parse().ok()?,
            started: fields.get(STARTED)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, parent: u32, started: u64) -> Process {
        let zeros = "0 ".repeat(STARTED - PARENT - 1);
        let stat = format!("7 ({name}) S {parent} {zeros}{started} 0\n");
        Process::read(&stat).unwrap()
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        for name in ["kubelet", "a (b) c"] {
            let expected = Process {
                name: name.to_owned(),
                parent: 3,
                started: 4711,
            };
            assert_eq!(process(name, 3, 4711), expected);
        }
        assert_eq!(Process::read("7 (kubelet) S 3"), None);
    }

    #[test]
    fn only_processes_of_the_machine_are_found() {
        let all = BTreeMap::from([
            (1, process("systemd", 0, 1)),
            (10, process("unshare", 1, 2)),
            (11, process("bash", 10, 3)),
            (12, process("kubelet", 11, 4)),
            (13, process("kubelet", 12, 9)),
            (20, process("unshare", 1, 2)),
            (21, process("kubelet", 20, 1)),
        ]);
        for (first, name, expected) in [
            (10, "kubelet", Some(12)),
            (20, "kubelet", Some(21)),
            (10, "containerd", None),
            (99, "kubelet", None),
        ] {
            let found = find(&all, first, name).map(|(pid, _)| *pid);
            assert_eq!(found, expected, "{name} of {first}");
        }
    }
}
