//! `create oadp-backup`, `create oadp-restore` and `create oadp-schedule`: objects of Velero for hosted clusters.
//!
//! `resources`, `cron`, `names` and `objects` decide without I/O what the objects are, and `checks` whether the management
//! cluster is ready for them. `run` reads, prints and writes.

mod args;
mod checks;
mod cron;
mod names;
mod objects;
mod resources;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use args::{BackupArgs, RestoreArgs, ScheduleArgs};
