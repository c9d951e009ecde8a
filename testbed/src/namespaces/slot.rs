//! What a testbed of level node has of the machine itself: a block of addresses, a network link, control groups.
//!
//! All three go by one number, which is held by a lock. The holder of the lock removes what a killed run left under it,
//! so neither the killed run's name nor its directory has to be known.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cgroups::Cgroups;
use super::command::run;
use super::subnets::Subnets;
use crate::lock::Lock;

/// Where the locks are: the same place for all testbeds of a machine, wherever their directories are.
const LOCKS: &str = "/run/hypershift-testbed";

/// A number that no other testbed has.
#[derive(Debug)]
pub(super) struct Slot {
    number: u8,
    cgroups: Cgroups,
    _lock: Lock,
}

// === impl Slot ===

impl Slot {
    /// Removes what killed testbeds left, and takes the first number that is free.
    pub(super) fn take() -> Result<Self> {
        let mut first = None;
        let mut obstacle = None;
        for number in 0..Subnets::COUNT {
            let Some(slot) = Self::try_lock(number)? else {
                continue;
            };
            match slot.clear() {
                Ok(()) => first = first.or(Some(slot)),
                // The processes of a testbed that was killed just now: its number is free again soon.
                Err(error) => obstacle = Some(error),
            }
        }
        if let Some(error) = obstacle.filter(|_| first.is_none()) {
            return Err(error).context("no number for a testbed is free");
        }
        first.with_context(|| {
            format!(
                "{} testbeds of level node are running, and there are no addresses for more: end one (cargo xtask \
                 testbed status lists them)",
                Subnets::COUNT
            )
        })
    }

    fn try_lock(number: u8) -> Result<Option<Self>> {
        fs::create_dir_all(LOCKS).with_context(|| format!("cannot create {LOCKS}"))?;
        let lock = Lock::try_take(&Path::new(LOCKS).join(format!("{number}.lock")))?;
        Ok(lock.map(|lock| Self {
            number,
            cgroups: Cgroups::new(number),
            _lock: lock,
        }))
    }

    /// Its addresses.
    pub(super) fn subnets(&self) -> Subnets {
        Subnets::new(self.number)
    }

    /// The name of the outer end of its link.
    pub(super) fn link(&self) -> String {
        link(self.number)
    }

    /// Its control groups.
    pub(super) fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// Removes the link, with the route over it, and the control groups.
    pub(super) fn clear(&self) -> Result<()> {
        self.unlink()?;
        self.cgroups.remove()
    }

    /// The same, for a testbed whose processes have just been killed.
    pub(super) fn clear_when_empty(&self) -> Result<()> {
        self.unlink()?;
        self.cgroups.remove_when_empty()
    }

    fn unlink(&self) -> Result<()> {
        let link = self.link();
        if !link_exists(&link) {
            return Ok(());
        }
        match run("ip", ["link", "del", &link]) {
            // Its inner end may have gone in the meantime, and this one with it.
            Err(error) if link_exists(&link) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What there is of the link and the control groups.
    pub(super) fn left(&self) -> Result<Vec<PathBuf>> {
        let mut left = self.cgroups.left()?;
        if link_exists(&self.link()) {
            left.push(link_path(&self.link()));
        }
        Ok(left)
    }
}

/// Removes what killed testbeds left of links and control groups; gives what it was.
pub fn sweep() -> Result<Vec<PathBuf>> {
    let mut swept = Vec::new();
    for number in 0..Subnets::COUNT {
        if let Some(slot) = Slot::try_lock(number)? {
            swept.extend(slot.left()?);
            slot.clear_when_empty()?;
        }
    }
    Ok(swept)
}

/// Short, because the kernel allows 15 characters.
fn link(number: u8) -> String {
    format!("hs-testbed{number}")
}

fn link_path(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

fn link_exists(name: &str) -> bool {
    link_path(name).exists()
}
