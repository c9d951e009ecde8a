//! Triggers controllers that have no objects of their own: each pass looks at everything.

use futures::{Stream, StreamExt as _, stream};
use tokio::sync::watch;

use super::ObjectKey;

/// Triggers controllers after a change.
#[derive(Debug, Clone)]
pub struct Wake(watch::Sender<()>);

// === impl Wake ===

impl Wake {
    /// A trigger of no controller yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Triggers the controllers.
    pub fn wake(&self) {
        self.0.send_replace(());
    }

    /// The requests of a controller of this name: one at first, and one for each batch of changes.
    pub fn requests(&self, name: &str) -> impl Stream<Item = ObjectKey> + use<> {
        let key = ObjectKey::new("", name);
        let first = stream::iter([key.clone()]);
        let changes = (key, self.0.subscribe());
        first.chain(stream::unfold(changes, |(key, mut changes)| async {
            changes.changed().await.ok()?;
            Some((key.clone(), (key, changes)))
        }))
    }
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}
