//! Metrics and logs of one request. They contain no object names, bodies or tokens.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;

use crate::body::Cut;
use crate::failure::{Failure, Origin};
use crate::metrics::{CallLabels, Metrics};
use capi_translate::target::Target;
use capi_translate::{Counts, ErrorType};

/// Measures one request, from its head to the end of the response.
pub(crate) struct Exchange {
    metrics: Arc<Metrics>,
    call: CallLabels,
    started: Instant,
    /// Time spent in the proxy itself.
    added: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    Responded { code: u16 },
    Watching { code: u16 },
}

// === impl Exchange ===

impl Exchange {
    /// A request has arrived.
    pub(crate) fn begin(metrics: Arc<Metrics>) -> Self {
        let call = CallLabels {
            method: "other",
            resource: "other",
        };
        Self {
            metrics,
            call,
            started: Instant::now(),
            added: Duration::ZERO,
            state: State::Asked,
        }
    }

    /// The request is validated and about to be sent; the time so far was spent in the proxy.
    pub(crate) fn set_target(&mut self, target: &Target, method: &Method) {
        self.call = CallLabels {
            method: target.verb(method),
            resource: target.resource_label(),
        };
        self.added += self.started.elapsed();
    }

    /// Runs work that counts as time spent in the proxy.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.added += begun.elapsed();
        result
    }

    /// A response was translated.
    pub(crate) fn count_names(&self, counts: Counts) {
        self.metrics.foreign_names(counts.to_private);
        if counts.leaks > 0 {
            let CallLabels { method, resource } = self.call;
            let (error_type, count) = ("leak", counts.leaks);
            tracing::warn!(method, resource, error_type, count, "Translation error");
            self.metrics.leaked_names(count);
        }
    }

    /// The response head is complete.
    pub(crate) fn responded(&mut self, code: u16) {
        self.metrics.responded(self.call, code);
        self.state = State::Responded { code };
    }

    /// The response head of a watch is complete; events follow.
    pub(crate) fn watching(&mut self, code: u16) {
        self.metrics.responded(self.call, code);
        self.metrics.watch_opened();
        self.metrics
            .observe_duration(self.call, self.started.elapsed(), self.added);
        self.state = State::Watching { code };
    }

    /// The proxy responds with an error of its own.
    pub(crate) fn failed(&self, failure: &Failure) {
        let CallLabels { method, resource } = self.call;
        let Failure {
            origin,
            code,
            reason,
            message: detail,
            translation,
            ..
        } = failure;
        let code = code.as_u16();
        if let Some(error_type) = translation {
            self.metrics.translation_error(*error_type);
        }
        match (translation, origin) {
            (Some(ErrorType::Encoding), _) => {
                tracing::warn!(
                    method,
                    resource,
                    code,
                    reason,
                    detail,
                    "Unsupported resource type"
                );
            }
            (Some(error_type), _) => {
                let error_type = error_type.as_str();
                tracing::warn!(
                    method,
                    resource,
                    code,
                    reason,
                    error_type,
                    detail,
                    "Translation error"
                );
            }
            (None, Origin::Upstream) => tracing::warn!(
                method,
                resource,
                code,
                reason,
                detail,
                "Proxy request failed"
            ),
            (None, Origin::Client) => {
                tracing::info!(method, resource, code, reason, detail, "Request refused")
            }
        }
    }

    /// The response was truncated after its first bytes were sent.
    pub(crate) fn cut(&self, cut: &Cut) {
        let CallLabels { method, resource } = self.call;
        match cut {
            Cut::ResponseBody(error) => {
                let error = support::error::chain(error);
                tracing::info!(method, resource, error, "Proxy request failed");
            }
            Cut::Translation(refusal) => {
                self.metrics.translation_error(refusal.error_type);
                let (error_type, detail) = (refusal.error_type.as_str(), &refusal.message);
                tracing::warn!(method, resource, error_type, detail, "Translation error");
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let CallLabels { method, resource } = self.call;
        let (total, added) = (self.started.elapsed(), self.added);
        let code = match self.state {
            State::Asked => None,
            State::Responded { code } => {
                self.metrics.observe_duration(self.call, total, added);
                Some(code)
            }
            State::Watching { code } => {
                self.metrics.watch_closed();
                Some(code)
            }
        };
        tracing::debug!(method, resource, code, ?total, ?added, "Request ended");
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("call", &self.call)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
