//! Whether a failed watch affects readiness.

use kube::runtime::watcher;

/// Whether a failed watch has no objects. Otherwise it resumes from its last list by itself, and has no event until an
/// object changes: if that failed readiness, a program whose objects never change would stay unready.
pub fn watch_failed(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion => true,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 403,
        watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::WatchError(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("", "").with_code(code)))
    }

    #[test]
    fn a_watch_that_resumes_by_itself_has_not_failed() {
        let cut = || kube::Error::Service("connection reset by peer".into());
        for (error, expected) in [
            (watcher::Error::InitialListFailed(cut()), true),
            (watcher::Error::InitialListFailed(refused(429)), true),
            (watcher::Error::NoResourceVersion, true),
            (watcher::Error::WatchStartFailed(refused(403)), true),
            // Another API server takes over.
            (watcher::Error::WatchStartFailed(cut()), false),
            (watcher::Error::WatchStartFailed(refused(429)), false),
            (watcher::Error::WatchFailed(cut()), false),
            (watcher::Error::WatchFailed(refused(500)), false),
        ] {
            assert_eq!(watch_failed(&error), expected, "{error}");
        }
    }
}
