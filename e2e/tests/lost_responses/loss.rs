//! The loss of one response: of the first successful write to an object.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::Method;
use http::request::Parts;
use testbed::relay::{Disposition, Intercept, Moment};

/// A response that is lost, once.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    /// The end of the path of the write.
    path: String,
    at: Arc<Mutex<Option<Instant>>>,
}

// === impl Loss ===

impl Loss {
    pub(crate) fn of(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            at: Arc::default(),
        }
    }

    /// When it was lost, if it was.
    pub(crate) fn at(&self) -> Option<Instant> {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a relay: holds the response; its client waits on an open connection.
    pub(crate) fn intercept(&self) -> impl Intercept + use<> {
        let loss = self.clone();
        move |request: &Parts, moment: Moment| loss.disposition(request, moment)
    }

    fn disposition(&self, request: &Parts, moment: Moment) -> Disposition {
        let is_write = request.method != Method::GET && request.uri.path().ends_with(&self.path);
        let is_done = matches!(moment, Moment::Responded(status) if status.is_success());
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_write || !is_done || at.is_some() {
            return Disposition::Pass;
        }
        *at = Some(Instant::now());
        Disposition::Hold
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};

    use super::*;

    #[test]
    fn only_the_first_response_to_a_write_is_held() {
        let loss = Loss::of("/deployments/a");
        let request = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(());
            request.unwrap().into_parts().0
        };
        let done = Moment::Responded(StatusCode::OK);
        let write = request(
            Method::PATCH,
            "/apis/apps/v1/namespaces/n/deployments/a?force=true",
        );
        let read = request(Method::GET, "/apis/apps/v1/namespaces/n/deployments/a");
        let other = request(Method::PATCH, "/apis/apps/v1/namespaces/n/deployments/b");
        for (request, moment) in [
            (&read, done),
            (&other, done),
            (&write, Moment::Arrived),
            (&write, Moment::Responded(StatusCode::CONFLICT)),
        ] {
            assert_eq!(
                loss.disposition(request, moment),
                Disposition::Pass,
                "{request:?}"
            );
        }
        assert_eq!(loss.disposition(&write, done), Disposition::Hold);
        assert_eq!(loss.disposition(&write, done), Disposition::Pass);
        assert!(loss.at().is_some());
    }
}
