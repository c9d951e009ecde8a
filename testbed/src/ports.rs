//! Free TCP ports on loopback.
//!
//! They are taken below the kernel's ephemeral range, so that the source port of an outgoing connection never
//! sits on the port of a component that is being restarted, and above the range of the in-memory provider. For the
//! same reason each process takes them from blocks of its own: the port of a component that is down for a moment
//! looks free to every other process.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::lock::Lock;

const FIRST: u16 = 24_100;
/// Ports in a block.
const BLOCK: u16 = 100;
const BLOCKS: u16 = 80;

/// The blocks of this process. They are released when it ends.
static OURS: Mutex<Option<Blocks>> = Mutex::new(None);

/// A port of 127.0.0.1 that no process listens on, and that no other caller gets while this process lives.
pub fn allocate() -> Result<u16> {
    OURS.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_with(|| Blocks::new(locks()))
        .next()
}

/// Where the locks are: the same place for all testbeds of a machine, wherever their directories are.
fn locks() -> PathBuf {
    std::env::temp_dir().join("hypershift-testbed-ports")
}

#[derive(Debug)]
struct Blocks {
    directory: PathBuf,
    held: Vec<Lock>,
    /// What is left of the newest block.
    left: Range<u16>,
}

// === impl Blocks ===

impl Blocks {
    fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            held: Vec::new(),
            left: 0..0,
        }
    }

    fn next(&mut self) -> Result<u16> {
        loop {
            let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
            if let Some(port) = self.left.by_ref().find(free) {
                return Ok(port);
            }
            self.take_block()?;
        }
    }

    fn take_block(&mut self) -> Result<()> {
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        for number in 0..BLOCKS {
            if let Some(lock) = Lock::try_take(&path(&self.directory, number))? {
                let first = FIRST + number * BLOCK;
                self.left = first..first + BLOCK;
                self.held.push(lock);
                return Ok(());
            }
        }
        bail!(
            "no free TCP port between {FIRST} and {}: other testbeds have all of them; end one (cargo xtask testbed \
             status lists them)",
            FIRST + BLOCKS * BLOCK
        )
    }
}

fn path(directory: &Path, number: u16) -> PathBuf {
    directory.join(format!("{number}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ports-test-{test}-{}", std::process::id()))
    }

    #[test]
    fn a_port_is_allocated_once_and_can_be_bound() {
        let (one, two) = (allocate().unwrap(), allocate().unwrap());
        assert_ne!(one, two);
        TcpListener::bind((Ipv4Addr::LOCALHOST, one)).unwrap();
    }

    #[test]
    fn a_port_stays_allocated_while_no_component_listens_on_it() {
        let directory = directory("blocks");
        let mut one = Blocks::new(directory.clone());
        let mut other = Blocks::new(directory.clone());
        let of = |blocks: &mut Blocks| -> Vec<u16> {
            (0..=BLOCK).map(|_| blocks.next().unwrap()).collect()
        };
        let (ours, theirs) = (of(&mut one), of(&mut other));
        assert!(ours.iter().all(|port| !theirs.contains(port)));
        drop(one);
        assert_eq!(
            Blocks::new(directory.clone()).next().unwrap() / BLOCK,
            FIRST / BLOCK
        );
        drop(other);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn blocks_end() {
        let directory = directory("ends");
        let mut all = Blocks::new(directory.clone());
        for _ in 0..BLOCKS {
            all.take_block().unwrap();
        }
        let error = all.take_block().unwrap_err().to_string();
        assert!(error.contains("end one"), "{error}");
        drop(all);
        fs::remove_dir_all(directory).unwrap();
    }
}
