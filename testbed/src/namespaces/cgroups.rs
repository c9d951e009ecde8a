//! The control groups of one testbed, in every hierarchy that the machine has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Where the kernel says what is mounted.
const MOUNTS: &str = "/proc/self/mounts";

/// How long processes that have been killed may take to leave their groups.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The control groups of one testbed, or of one that was killed.
#[derive(Debug, Clone)]
pub struct Cgroups {
    /// Of the number that the testbed holds.
    prefix: String,
    name: String,
}

// === impl Cgroups ===

impl Cgroups {
    /// Those of the testbed with this number. Nothing is created.
    ///
    /// The process is in the name because a killed testbed of the same number may still be removing its own.
    pub(super) fn new(number: u8) -> Self {
        let prefix = format!("hypershift-testbed-{number}-");
        Self {
            name: format!("{prefix}{}", std::process::id()),
            prefix,
        }
    }

    /// The name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Creates the group `child` in the testbed's own, everywhere; returns its path in the form of the kubelet.
    pub fn create(&self, child: &str) -> Result<String> {
        for hierarchy in hierarchies()? {
            let own = hierarchy.join(&self.name);
            let path = own.join(child);
            fs::create_dir_all(&path)
                .with_context(|| format!("cannot create the cgroup {}", path.display()))?;
            for parent in [&hierarchy, &own] {
                pass_controllers_on(parent)?;
            }
        }
        Ok(format!("/{}/{child}", self.name))
    }

    /// The processes in the group `child` and in the groups below it.
    pub fn processes(&self, child: &str) -> Result<BTreeSet<i32>> {
        let mut all = BTreeSet::new();
        for hierarchy in hierarchies()? {
            let group = hierarchy.join(&self.name).join(child);
            collect(&group, &mut all)
                .with_context(|| format!("cannot read the cgroup {}", group.display()))?;
        }
        Ok(all)
    }

    /// Removes all groups of the number. The kernel refuses this for a group with a process.
    pub(super) fn remove(&self) -> Result<()> {
        for group in self.left()? {
            remove_tree(&group)
                .with_context(|| format!("cannot remove the cgroup {}", group.display()))?;
        }
        Ok(())
    }

    /// Removes them as soon as their processes, which have been killed, are gone.
    pub(super) fn remove_when_empty(&self) -> Result<()> {
        let start = Instant::now();
        loop {
            match self.remove() {
                Err(_) if start.elapsed() < EMPTY_WITHIN => std::thread::sleep(LOOK_EVERY),
                outcome => return outcome,
            }
        }
    }

    /// The groups that exist.
    pub(super) fn left(&self) -> Result<Vec<PathBuf>> {
        let mut left = Vec::new();
        for hierarchy in hierarchies()? {
            let entries = fs::read_dir(&hierarchy)
                .with_context(|| format!("cannot read {}", hierarchy.display()))?;
            let names = entries.flatten().map(|entry| entry.file_name());
            let ours = names.filter(|name| name.to_string_lossy().starts_with(&self.prefix));
            left.extend(ours.map(|name| hierarchy.join(name)));
        }
        Ok(left)
    }
}

/// The directories at which hierarchies are mounted: one in version 2, one for each controller in version 1.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string(MOUNTS).with_context(|| format!("cannot read {MOUNTS}"))?;
    Ok(mounted(&text))
}

fn mounted(mounts: &str) -> Vec<PathBuf> {
    let each = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (at, kind) = (words.next()?, words.next()?);
        matches!(kind, "cgroup" | "cgroup2").then(|| PathBuf::from(at))
    });
    each.collect()
}

/// Adds the processes of a group and of those below it. A group may go while it is looked at.
fn collect(group: &Path, all: &mut BTreeSet<i32>) -> std::io::Result<()> {
    let entries = match fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    all.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), all)?;
        }
    }
    Ok(())
}

/// In version 2, lets the children of a group use the controllers that it has itself.
fn pass_controllers_on(group: &Path) -> Result<()> {
    let Ok(controllers) = fs::read_to_string(group.join("cgroup.controllers")) else {
        return Ok(());
    };
    for controller in controllers.split_whitespace() {
        let file = group.join("cgroup.subtree_control");
        fs::write(&file, format!("+{controller}"))
            .with_context(|| format!("cannot write +{controller} to {}", file.display()))?;
    }
    Ok(())
}

/// Removes directories from the innermost out. Their files are the kernel's and go with them.
fn remove_tree(directory: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(directory) {
        // The testbed's own first process removes them, too.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_in_both_versions() {
        let mixed = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                     cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = mounted(mixed);
        let expected = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"];
        assert_eq!(found, expected.map(PathBuf::from));
        let unified = mounted("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        assert_eq!(unified, [PathBuf::from("/sys/fs/cgroup")]);
    }

    #[test]
    fn processes_are_those_of_all_groups_below() {
        let root = std::env::temp_dir().join(format!("cgroups-procs-{}", std::process::id()));
        fs::create_dir_all(root.join("kubepods/pod")).unwrap();
        for (group, text) in [("", "1\n"), ("kubepods", ""), ("kubepods/pod", "7\n8\n")] {
            fs::write(root.join(group).join("cgroup.procs"), text).unwrap();
        }
        let mut all = BTreeSet::new();
        collect(&root, &mut all).unwrap();
        collect(&root.join("gone"), &mut all).unwrap();
        assert_eq!(all, [1, 7, 8].into());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_tree_is_removed_from_the_inside_out() {
        let root = std::env::temp_dir().join(format!("cgroups-test-{}", std::process::id()));
        fs::create_dir_all(root.join("node-1/kubepods/pod")).unwrap();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
    }
}
