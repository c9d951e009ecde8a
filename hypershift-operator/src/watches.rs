//! How kinds are watched of which there are many objects.

use kube::runtime::watcher;

/// Objects in one page of the list that a watch begins with. All watches begin at once, and what managers have written
/// about an object takes many times what is kept of it.
const PAGE: u32 = 100;

/// Objects in one page where they are watched whole: each takes a hundred KiB as long as it is looked at.
const WHOLE: u32 = 25;

/// A watch of whole objects.
pub(crate) fn whole() -> watcher::Config {
    watcher::Config::default().page_size(WHOLE)
}

/// A watch that begins in small pages.
pub(crate) fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}
