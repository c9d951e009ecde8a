//! The canonical URL, which is used for decisions and for the request.

use http::{StatusCode, Uri};

use crate::failure::Failure;
use capi_translate::Rules;
use capi_translate::target::Target;

/// How requests with a private group name are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PrivateNames {
    /// They are translated, and the authorization of the API server applies.
    #[default]
    Swapped,
    /// They are a 404.
    Denied,
}

/// Reads the URL, and swaps the names in it.
pub(crate) fn parse(rules: &Rules, private: PrivateNames, uri: &Uri) -> Result<Target, Failure> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let target = Target::parse(rules, path).map_err(Failure::refused_request)?;
    if private == PrivateNames::Denied && target.names_private() {
        return Err(Failure::client(
            StatusCode::NOT_FOUND,
            "the server could not find the requested resource",
        ));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_names_in_paths_are_translated_or_denied() {
        let uri = Uri::from_static("/apis/cluster.hypershift.openshift.io/v1beta2/clusters");
        let rules = Rules::default();
        let swapped = parse(&rules, PrivateNames::Swapped, &uri).unwrap();
        assert_eq!(
            swapped.upstream(),
            "/apis/cluster.x-k8s.io/v1beta2/clusters"
        );
        assert_eq!(
            parse(&rules, PrivateNames::Denied, &uri).unwrap_err().code,
            404
        );
        let standard = Uri::from_static("/apis/cluster.x-k8s.io/v1beta2/clusters");
        assert!(parse(&rules, PrivateNames::Denied, &standard).is_ok());
    }
}
