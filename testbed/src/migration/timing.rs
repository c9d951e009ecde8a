//! How long a migration takes, and how many writes, by the number of machines.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use migration::groups::Direction;
use migration::object::Object;
use migration::snapshot::Snapshot;
use serde::Serialize;

use super::object_snapshot::ObjectSnapshot;
use super::{End, Manner, client, executor, migrate, raised};
use crate::testbed::Testbed;

/// One migration.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Machines of the cluster.
    pub machines: usize,
    /// Objects that were moved.
    pub objects: usize,
    /// Wall time.
    pub seconds: f64,
    /// Writes that succeeded.
    pub writes: u64,
    /// The fewest with which it can be done.
    pub ideal: u64,
}

/// `seconds = each * machines + start`, by least squares.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fit {
    /// Seconds for each machine.
    pub each: f64,
    /// Seconds for none.
    pub start: f64,
    /// How much of the variance is explained.
    pub r_squared: f64,
}

/// Migrates a cluster at rest with so many machines, made without managers, and compares it before and after.
pub async fn measure(testbed: &Testbed, machines: usize) -> Result<Figures> {
    let namespace = format!("timing-{machines}");
    let step = testbed
        .progress
        .step(format!("making a cluster of {machines} machines"));
    raised::raise(&testbed.admin, &namespace, "one", machines).await?;
    step.done();
    let client = client(testbed.control_plane.admin_kubeconfig()).await?;
    let manner = Manner::default();
    let mut executor = executor(&client, &namespace, &manner).await?;
    let snapshot = executor.survey(Direction::Forward).await?;
    let (before, ideal) = (ObjectSnapshot::from(snapshot)?, ideal(snapshot));
    let step = testbed
        .progress
        .step(format!("moving {} objects", before.moved.len()));
    let start = Instant::now();
    let end = migrate(&client, &namespace, Direction::Forward, &manner, |_| Ok(())).await?;
    let time: Duration = start.elapsed();
    let End::Moved(counts) = end else {
        bail!("it ended as {end:?}");
    };
    step.done_with(&format!("{} writes of at least {ideal}", counts.writes));
    before.same_as(&ObjectSnapshot::of(&client, &namespace).await?)?;
    Ok(Figures {
        machines,
        objects: before.moved.len(),
        seconds: time.as_secs_f64(),
        writes: counts.writes,
        ideal,
    })
}

/// The fewest writes: each object is made, is given its status and its field owners, loses its finalizers and is deleted; each
/// dependent is given an owner and loses one; each Cluster is paused, and its target unpaused.
fn ideal(snapshot: &Snapshot) -> u64 {
    let table = api::group::GroupTable::default();
    let is_moved = |group: &str| table.find(group.as_bytes()).is_some();
    let of = |object: &Object| -> u64 {
        let key = object.key();
        if !is_moved(&key.group) {
            let dependent = object.owners().iter().any(|owner| is_moved(owner.group()));
            return if dependent { 2 } else { 0 };
        }
        let status = object
            .body()
            .get("status")
            .is_some_and(|status| !status.is_null());
        let cluster = key.kind == "Cluster";
        3 + u64::from(status) + u64::from(!object.finalizers().is_empty()) + 2 * u64::from(cluster)
    };
    snapshot.objects().map(of).sum()
}

/// Fits a line.
#[expect(clippy::cast_precision_loss, reason = "counts of machines are small")]
pub fn fit(figures: &[Figures]) -> Fit {
    let count = figures.len() as f64;
    let mean = |of: &dyn Fn(&Figures) -> f64| figures.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|f| f.machines as f64), mean(&|f| f.seconds));
    let spread = mean(&|f| (f.machines as f64 - x).powi(2));
    let common = mean(&|f| (f.machines as f64 - x) * (f.seconds - y));
    let variance = mean(&|f| (f.seconds - y).powi(2));
    let each = common / spread;
    Fit {
        each,
        start: y - each * x,
        r_squared: common * common / (spread * variance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        let figures = [1, 100, 500].map(|machines| Figures {
            machines,
            objects: 0,
            seconds: 2.0 + 0.25 * f64::from(u32::try_from(machines).unwrap()),
            writes: 0,
            ideal: 0,
        });
        let fit = fit(&figures);
        assert!(
            (fit.each - 0.25).abs() < 1e-9 && (fit.start - 2.0).abs() < 1e-9,
            "{fit:?}"
        );
        assert!(fit.r_squared > 0.999, "{fit:?}");
    }
}
