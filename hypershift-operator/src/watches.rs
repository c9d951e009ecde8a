//! How kinds are watched of which there are many objects.

use kube::runtime::watcher;

/// Objects in one page of the list that a watch begins with. All watches begin at once, and what managers have written
/// about an object takes many times what is kept of it.
const PAGE: u32 = 100;

/// A watch that begins in small pages.
pub(crate) fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}
