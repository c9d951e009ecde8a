//! Writes what a pool goes on with while its specification is refused.

use super::Writer;
use crate::control_plane_namespace::{ControlPlaneNamespace, Namespace};
use crate::node_pool::error::Error;
use crate::node_pool::facts::Facts;
use crate::node_pool::held::Held;

// === impl Writer ===

impl Writer {
    /// Goes on with what the pool has.
    pub(crate) async fn hold(
        &self,
        namespace: &ControlPlaneNamespace,
        facts: &Facts,
        held: &Held,
    ) -> Result<(), Error> {
        let Held {
            user_data,
            outdated_tokens,
            machines,
        } = held;
        if let Some(user_data) = user_data {
            self.applier.ensure(user_data).await?;
        }
        let namespace = &Namespace::Owned(namespace.clone());
        if let Some(machines) = machines {
            self.running(namespace, facts, machines).await?;
        }
        self.expire(namespace, &facts.pool, outdated_tokens).await
    }
}
