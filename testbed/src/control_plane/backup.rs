//! Backups of everything that a management cluster stores, and what follows when one is restored.

use std::path::Path;

use anyhow::{Context, Result};

use super::ControlPlane;

// === impl ControlPlane ===

impl ControlPlane {
    /// Copies etcd's data into a directory, which is made. The API server waits meanwhile.
    pub async fn back_up(&mut self, into: &Path) -> Result<()> {
        self.etcd.service.stop().await?;
        copy(&self.etcd.data, into)?;
        self.etcd.service.start().await?;
        self.api_server.ready().await
    }

    /// Puts a backup in the place of what is stored. Clients that have seen later changes observe older data, so the
    /// API server and the controller manager are restarted.
    pub async fn restore(&mut self, from: &Path) -> Result<()> {
        self.controller_manager.kill();
        self.api_server.kill();
        self.etcd.service.stop().await?;
        let data = &self.etcd.data;
        std::fs::remove_dir_all(data).with_context(|| data.display().to_string())?;
        copy(from, data)?;
        self.start().await?;
        self.controller_manager.start().await
    }
}

/// Copies a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    let entries = std::fs::read_dir(from).with_context(|| from.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&from, &to)?;
        } else {
            std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}
