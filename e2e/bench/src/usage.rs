//! What processes use, read from `/proc`.

use std::fs;

use anyhow::{Context, Result, bail};

use super::statistics::figure;

/// Fields of `/proc/<pid>/stat` behind the command's name, counted from there.
const GROUP: usize = 2;
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const CHILDREN_USER_TIME: usize = 13;
const CHILDREN_SYSTEM_TIME: usize = 14;
/// Fields of the first line of `/proc/stat` during which a processor does nothing for this machine: idle, iowait.
const IDLE: [usize; 2] = [3, 4];
/// The fields behind these are counted in the others already.
const COUNTED: usize = 8;

/// A peer: the leader of a process group and all that it has started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) u32);

/// Measures how much of the machine is used by processes that have nothing to do with this one.
#[derive(Debug)]
pub(super) struct Share {
    busy: u64,
    total: u64,
    own: u64,
}

// === impl Group ===

impl Group {
    /// Processor time since the start of its members, in seconds.
    pub(super) fn cpu_seconds(self) -> Result<f64> {
        let mut ticks = 0;
        for (_, fields) in self.members()? {
            ticks += number(&fields, USER_TIME)? + number(&fields, SYSTEM_TIME)?;
        }
        Ok(figure(ticks) / figure(rustix::param::clock_ticks_per_second()))
    }

    /// The most memory that its members have had, in KiB: the sum of each one's own peak.
    pub(super) fn peak_kib(self) -> Result<u64> {
        let members = self.members()?;
        // One that has just ended has no memory any more.
        Ok(members
            .into_iter()
            .filter_map(|(pid, _)| status_kib(pid, "VmHWM:").ok())
            .sum())
    }

    /// The memory that its members have now, in KiB.
    pub(super) fn resident_kib(self) -> Result<u64> {
        let members = self.members()?;
        members
            .into_iter()
            .map(|(pid, _)| status_kib(pid, "VmRSS:"))
            .sum()
    }

    /// Its processes and their `stat`.
    fn members(self) -> Result<Vec<(u32, Vec<String>)>> {
        let mut members = Vec::new();
        for entry in fs::read_dir("/proc").context("cannot read /proc")? {
            let name = entry.context("cannot read /proc")?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that ends in between is not counted.
            let Ok(fields) = fields(&format!("/proc/{pid}/stat")) else {
                continue;
            };
            if number(&fields, GROUP)? == u64::from(self.0) {
                members.push((pid, fields));
            }
        }
        if members.is_empty() {
            bail!("the process {} has ended", self.0);
        }
        Ok(members)
    }
}

fn status_kib(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|value| value.parse().ok())
        .with_context(|| format!("{path} has no {field}"))
}

/// The fields of a process's `stat` behind its command's name, which may hold anything.
fn fields(path: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let (_, rest) = text
        .rsplit_once(')')
        .with_context(|| format!("{path} has another form than expected"))?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

fn number(fields: &[String], index: usize) -> Result<u64> {
    fields
        .get(index)
        .and_then(|field| field.parse().ok())
        .context("a field of /proc is not a number")
}

// === impl Share ===

impl Share {
    /// Starts measuring.
    pub(super) fn start() -> Result<Self> {
        let (busy, total) = machine()?;
        Ok(Self {
            busy,
            total,
            own: own()?,
        })
    }

    /// The share of all processors that others have used since the start, from 0 to 1. Children of this process count
    /// as its own once they have been waited for.
    pub(super) fn of_others(&self) -> Result<f64> {
        let (busy, total) = machine()?;
        let others = (busy - self.busy).saturating_sub(own()? - self.own);
        Ok(figure(others) / figure((total - self.total).max(1)))
    }
}

/// Ticks in which the machine's processors were busy, and all ticks.
fn machine() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(COUNTED)
        .map_while(|field| field.parse().ok())
        .collect();
    if ticks.len() < COUNTED {
        bail!("/proc/stat has another form than expected");
    }
    let total: u64 = ticks.iter().sum();
    let idle: u64 = IDLE.iter().map(|&field| ticks[field]).sum();
    Ok((total - idle, total))
}

/// Ticks that this process and its former children have used.
fn own() -> Result<u64> {
    let fields = fields("/proc/self/stat")?;
    [
        USER_TIME,
        SYSTEM_TIME,
        CHILDREN_USER_TIME,
        CHILDREN_SYSTEM_TIME,
    ]
    .into_iter()
    .map(|field| number(&fields, field))
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let group =
            Group(u32::try_from(rustix::process::getpgrp().as_raw_nonzero().get()).unwrap());
        assert!(group.peak_kib().unwrap() > 500);
        let start = group.cpu_seconds().unwrap();
        while group.cpu_seconds().unwrap() - start < 0.02 {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn other_processes_never_use_more_than_the_total() {
        let share = Share::start().unwrap();
        let (_, start) = machine().unwrap();
        while machine().unwrap().1 - start < 3 {
            std::hint::spin_loop();
        }
        assert!((0.0..=1.0).contains(&share.of_others().unwrap()));
    }
}
