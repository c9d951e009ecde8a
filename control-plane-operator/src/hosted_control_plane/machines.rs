//! ConfigMaps that machines are configured with.

use super::error::Error;
use super::pass::{Pass, ReconcileScope};
use crate::machine_config::{self, Desired, NAME};

/// A component, or what is written like one, and why it cannot be built.
type Problem = (&'static str, control_plane_component::Error);

/// The step that writes them. No component has this name.
pub(super) const CONFIG_MAPS: &str = "configuration of machines";

// === impl Pass ===

impl Pass<'_> {
    /// Writes what machines are configured with, if something that it is made of has changed. What cannot be built stays as
    /// it is, and is reported with the problems of components in each pass.
    pub(super) async fn machine_config(
        &mut self,
        scope: &mut ReconcileScope,
    ) -> Result<Option<Problem>, Error> {
        if self.settled.is_settled(CONFIG_MAPS, &scope.objects) {
            return Ok(None);
        }
        scope.objects.record();
        let written = self.write_machine_config(scope).await;
        let seen = scope.objects.recorded();
        let is_settled = matches!(written, Ok(None));
        self.settled.ended(CONFIG_MAPS, seen.filter(|_| is_settled));
        written
    }

    async fn write_machine_config(
        &mut self,
        scope: &mut ReconcileScope,
    ) -> Result<Option<Problem>, Error> {
        let Desired {
            objects,
            deletions,
            problem,
        } = machine_config::desired(&scope.context(self.operator));
        for identity in deletions {
            if scope.objects.find(&identity).is_some() {
                self.writer.delete(&identity).await?;
                scope.objects.remove(&identity);
            }
        }
        for object in objects {
            self.writer.apply(&object, &mut scope.objects).await?;
        }
        Ok(problem.map(|problem| (NAME, problem)))
    }
}
