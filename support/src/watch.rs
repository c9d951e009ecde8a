//! What a watch that failed means for readiness.

use kube::runtime::watcher;

/// Whether a watch that failed sees nothing. Otherwise it goes on from what it has listed, by itself, and says nothing of
/// its success until something changes: of a program that waits for nodes where there are none, a failure that was told
/// would stay.
pub fn is_blind(error: &watcher::Error) -> bool {
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
    fn a_watch_that_goes_on_by_itself_is_not_blind() {
        let cut = || kube::Error::Service("connection reset by peer".into());
        for (error, expected) in [
            (watcher::Error::InitialListFailed(cut()), true),
            (watcher::Error::InitialListFailed(refused(429)), true),
            (watcher::Error::NoResourceVersion, true),
            (watcher::Error::WatchStartFailed(refused(403)), true),
            // An API server has gone, and there is another one.
            (watcher::Error::WatchStartFailed(cut()), false),
            (watcher::Error::WatchStartFailed(refused(429)), false),
            (watcher::Error::WatchFailed(cut()), false),
            (watcher::Error::WatchFailed(refused(500)), false),
        ] {
            assert_eq!(is_blind(&error), expected, "{error}");
        }
    }
}
