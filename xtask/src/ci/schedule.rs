//! Which test is started next: pure. The longest first, as many at once as the machine bears.

/// What a test needs while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Its share of the machine.
    pub(super) units: u32,
    /// Whether it needs the development provider, which only one test can have.
    pub(super) provider: bool,
}

/// Something to run.
#[derive(Debug, Clone)]
pub(super) struct Job<T> {
    pub(super) what: T,
    pub(super) cost: Cost,
    /// How long it takes, in seconds, as far as that is known.
    pub(super) estimate: u64,
}

/// What is waiting, and what is free.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    /// The longest last.
    waiting: Vec<Job<T>>,
    units: u32,
    free: u32,
    provider_is_free: bool,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Next<T> {
    /// Run this.
    Run(Job<T>),
    /// Wait until something has ended.
    Wait,
    /// Nothing is left to start.
    Done,
}

// === impl Schedule ===

impl<T> Schedule<T> {
    /// A schedule for a machine that bears so many units at once.
    pub(super) fn new(mut jobs: Vec<Job<T>>, units: u32) -> Self {
        jobs.sort_by_key(|job| job.estimate);
        for job in &mut jobs {
            job.cost.units = job.cost.units.min(units);
        }
        Self {
            waiting: jobs,
            units,
            free: units,
            provider_is_free: true,
        }
    }

    /// Takes the longest job that can run beside those that do.
    pub(super) fn take(&mut self) -> Next<T> {
        if self.waiting.is_empty() {
            return Next::Done;
        }
        let fits = |job: &Job<T>| {
            job.cost.units <= self.free && (self.provider_is_free || !job.cost.provider)
        };
        let Some(index) = self.waiting.iter().rposition(fits) else {
            return Next::Wait;
        };
        let job = self.waiting.remove(index);
        self.free -= job.cost.units;
        self.provider_is_free &= !job.cost.provider;
        Next::Run(job)
    }

    /// Frees what an ended job had.
    pub(super) fn release(&mut self, cost: Cost) {
        self.free = (self.free + cost.units).min(self.units);
        self.provider_is_free |= cost.provider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(what: &'static str, units: u32, provider: bool, estimate: u64) -> Job<&'static str> {
        Job {
            what,
            cost: Cost { units, provider },
            estimate,
        }
    }

    fn taken(schedule: &mut Schedule<&'static str>) -> Option<Job<&'static str>> {
        match schedule.take() {
            Next::Run(job) => Some(job),
            Next::Wait | Next::Done => None,
        }
    }

    #[test]
    fn the_longest_that_fits_is_next() {
        let jobs = vec![
            job("short", 1, false, 1),
            job("longest", 2, false, 90),
            job("long", 2, false, 60),
        ];
        let mut schedule = Schedule::new(jobs, 3);
        let first = taken(&mut schedule).unwrap();
        assert_eq!(first.what, "longest");
        assert_eq!(taken(&mut schedule).unwrap().what, "short");
        assert!(matches!(schedule.take(), Next::Wait));
        schedule.release(first.cost);
        assert_eq!(taken(&mut schedule).unwrap().what, "long");
        assert!(matches!(schedule.take(), Next::Done));
    }

    #[test]
    fn one_test_at_a_time_has_the_provider() {
        let jobs = vec![
            job("one", 1, true, 9),
            job("two", 1, true, 8),
            job("other", 1, false, 1),
        ];
        let mut schedule = Schedule::new(jobs, 4);
        let first = taken(&mut schedule).unwrap();
        assert_eq!(taken(&mut schedule).unwrap().what, "other");
        assert!(matches!(schedule.take(), Next::Wait));
        schedule.release(first.cost);
        assert_eq!(taken(&mut schedule).unwrap().what, "two");
    }

    #[test]
    fn a_job_larger_than_the_machine_runs_exclusively() {
        let mut schedule = Schedule::new(vec![job("huge", 8, false, 1)], 2);
        assert_eq!(taken(&mut schedule).unwrap().cost.units, 2);
    }
}
