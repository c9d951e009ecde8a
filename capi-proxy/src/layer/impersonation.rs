//! `Impersonate-*` headers: with the token of the proxy, a client could act as any user that the proxy can impersonate.

use http::{HeaderMap, StatusCode};

use crate::failure::Failure;

/// Whether clients may impersonate with the permissions of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Impersonation {
    #[default]
    Refused,
    Allowed,
}

/// Rejects impersonation unless it is allowed.
pub(crate) fn check(policy: Impersonation, headers: &HeaderMap) -> Result<(), Failure> {
    let impersonates = || {
        headers
            .keys()
            .any(|name| name.as_str().starts_with("impersonate-"))
    };
    if policy == Impersonation::Refused && impersonates() {
        return Err(Failure::client(
            StatusCode::FORBIDDEN,
            "impersonation is not allowed: it would use the permissions of the proxy (see --allow-impersonation)",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// Check S06.
    #[test]
    fn impersonation_headers_are_rejected_by_default() {
        for name in [
            "impersonate-user",
            "impersonate-group",
            "impersonate-uid",
            "impersonate-extra-scopes",
        ] {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static("a"),
            )]);
            assert_eq!(
                check(Impersonation::Refused, &headers).unwrap_err().code,
                403,
                "{name}"
            );
            assert!(check(Impersonation::Allowed, &headers).is_ok(), "{name}");
        }
        assert!(check(Impersonation::Refused, &HeaderMap::new()).is_ok());
    }
}
