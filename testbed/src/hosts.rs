//! Machines without a cloud: its user starts it with user data by hand, and ends it.
//!
//! A host that is started again is a new one: nothing of its former life is on its disk.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use anyhow::{Context, Result};

use crate::guest::{Fixture, Guest, Machine};
use crate::namespaces::Subnets;
use crate::node::NodeTestbed;

/// The hosts of a testbed. Dropped, they are gone.
#[derive(Debug)]
pub struct Hosts {
    fixture: Fixture,
    subnets: Subnets,
    /// Where machines have their disks.
    disks: PathBuf,
    running: Mutex<BTreeMap<String, Host>>,
}

/// A host that runs.
#[derive(Debug)]
struct Host {
    /// What it is for.
    purpose: String,
    guest: Guest,
}

// === impl Hosts ===

impl Hosts {
    /// None yet.
    pub async fn new(testbed: &NodeTestbed) -> Result<Self> {
        Ok(Self {
            fixture: Fixture::new(testbed).await?,
            subnets: testbed.namespaces().subnets(),
            disks: testbed.work_dir().join("machines"),
            running: Mutex::default(),
        })
    }

    /// The address of a host, which has a name with a number.
    pub fn address(&self, name: &str) -> Result<Ipv4Addr> {
        let number = name.rsplit('-').next().unwrap_or_default().parse();
        let number = number.with_context(|| format!("{name:?} has no number at its end"))?;
        Ok(self.subnets.host(number))
    }

    /// Starts a host with user data, for some purpose.
    pub fn start(&self, name: &str, purpose: &str, user_data: Vec<u8>) -> Result<()> {
        let disk = self.disks.join(name);
        if disk.exists() {
            std::fs::remove_dir_all(&disk)
                .with_context(|| format!("cannot empty {}", disk.display()))?;
        }
        let guest = self.fixture.start(Machine {
            instance: name.to_owned(),
            zone: None,
            name: name.to_owned(),
            address: self.address(name)?,
            user_data,
        })?;
        let purpose = purpose.to_owned();
        self.all().insert(name.to_owned(), Host { purpose, guest });
        Ok(())
    }

    /// Ends a host.
    pub fn end(&self, name: &str) {
        drop(self.all().remove(name));
    }

    /// Whether a host runs.
    pub fn runs(&self, name: &str) -> bool {
        self.all().contains_key(name)
    }

    /// The hosts that run for a purpose.
    pub fn running(&self, purpose: &str) -> Vec<String> {
        let all = self.all();
        let for_it = all.iter().filter(|(_, host)| host.purpose == purpose);
        for_it.map(|(name, _)| name.clone()).collect()
    }

    /// The first processes of those hosts, by the ids that this machine knows them by.
    pub fn pids(&self, purpose: &str) -> BTreeMap<String, u32> {
        let all = self.all();
        let for_it = all.iter().filter(|(_, host)| host.purpose == purpose);
        let pids = for_it.filter_map(|(name, host)| Some((name.clone(), host.guest.pid()?)));
        pids.collect()
    }

    /// What they have said.
    pub fn said(&self) -> String {
        let all = self.all();
        let each = all
            .iter()
            .map(|(name, host)| format!("--- {name}\n{}", host.guest.said()));
        each.collect::<Vec<_>>().join("\n")
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        self.running
            .lock()
            .expect("invariant: no thread panics while holding it")
    }
}
