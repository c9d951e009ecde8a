//! Rejection injection: tests end a migration at any write, as if its process had been killed.
//!
//! The trait and its types exist only with the feature `fault-injection`; without it, [`FaultPoints`] is empty.

use migration::machine::Write;
use migration::phase::Phase;

use crate::{Error, Options};

/// A write of a migration.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// Of an object.
    Write(&'a Write),
    /// Of the journal, which then records this phase.
    Record(Phase),
}

/// The position relative to an [`Operation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Nothing has been sent.
    Before,
    /// The API server has responded; the migration has not recorded it.
    After,
}

/// Ends the migration: nothing more is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abort;

/// Decides where a migration ends.
#[cfg(feature = "fault-injection")]
pub trait FaultInjector: std::fmt::Debug + Send + Sync {
    /// Called before and after every write.
    fn inject(&self, operation: Operation<'_>, position: Position) -> Result<(), Abort>;
}

/// The places at which faults can be injected.
#[derive(Debug, Clone)]
pub(crate) struct FaultPoints {
    #[cfg(feature = "fault-injection")]
    injector: Option<std::sync::Arc<dyn FaultInjector>>,
}

// === impl FaultPoints ===

#[cfg(feature = "fault-injection")]
impl FaultPoints {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            injector: options.fault_injector.clone(),
        }
    }

    /// Fails if the migration ends here.
    pub(crate) fn pass(&self, operation: Operation<'_>, position: Position) -> Result<(), Error> {
        let injector = self.injector.as_ref();
        let passed = injector.map_or(Ok(()), |it| it.inject(operation, position));
        passed.map_err(|Abort| Error::Aborted)
    }
}

#[cfg(not(feature = "fault-injection"))]
impl FaultPoints {
    pub(crate) fn new(_: &Options) -> Self {
        Self {}
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the form that it has with the feature"
    )]
    pub(crate) fn pass(&self, _: Operation<'_>, _: Position) -> Result<(), Error> {
        Ok(())
    }
}
