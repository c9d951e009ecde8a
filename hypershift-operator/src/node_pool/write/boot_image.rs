//! Writes the object that has the platform import a boot image.

use kube::api::ApiResource;
use serde_json::Value;

use super::{Writer, is_own};
use crate::control_plane_namespace::Namespace;
use crate::node_pool::error::Error;
use crate::node_pool::facts::Facts;

// === impl Writer ===

impl Writer {
    /// Pools of one release share the image: it has the settings of the pool that was the first to need it.
    pub(super) async fn boot_image(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        kind: &ApiResource,
        image: &Value,
    ) -> Result<(), Error> {
        let name = image["metadata"]["name"].as_str().unwrap_or_default();
        let api = self.objects(kind, namespace.name());
        let found = api.get_metadata_opt(name).await;
        let what = format!("{} {}/{name}", kind.kind, namespace.name());
        let found = found.map_err(Error::read(what))?;
        if found.is_none_or(|it| is_own(namespace, &it.metadata, &facts.pool)) {
            self.applier.ensure_value(kind, image.clone()).await?;
        }
        Ok(())
    }
}
