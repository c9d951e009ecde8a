//! The steps of the request path, one a file: each looks at one thing, and refuses or changes it.

pub(crate) mod authorization;
pub(crate) mod connection;
pub(crate) mod headers;
pub(crate) mod host;
pub(crate) mod impersonation;
pub(crate) mod path;
pub(crate) mod request_body;
pub(crate) mod response_body;
pub(crate) mod response_headers;

use http::Method;

use capi_translate::Rules;
use capi_translate::target::Target;

/// What a body belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) target: &'a Target,
    pub(crate) method: &'a Method,
}
