//! The default pages: login, choice of an identity provider, and errors. They are Go templates; the server sets the
//! variables.

use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::Secret;

use crate::components::kubeconfig::put;

/// A page with this title, around this content.
macro_rules! page {
    ($title:literal, $content:literal) => {
        concat!(
            include_str!("templates/head.html"),
            "    <title>",
            $title,
            "</title>\n",
            include_str!("templates/style.html"),
            include_str!($content),
            include_str!("templates/end.html"),
        )
    };
}

const ERROR: &str = page!("Login failed", "templates/errors.html");
const LOGIN: &str = page!("Log in", "templates/login.html");
const PROVIDERS: &str = page!("Log in", "templates/providers.html");

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn error(_: &Context<'_>, secret: &mut Secret) -> Result<()> {
    put(secret, "errors.html", ERROR.to_owned());
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn login(_: &Context<'_>, secret: &mut Secret) -> Result<()> {
    put(secret, "login.html", LOGIN.to_owned());
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn provider_selection(_: &Context<'_>, secret: &mut Secret) -> Result<()> {
    put(secret, "providers.html", PROVIDERS.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The OAuth server refuses a template that omits one of these.
    #[test]
    fn pages_have_the_variables_of_the_server() {
        for (page, variables) in [
            (ERROR, &["{{ .Error }}"][..]),
            (
                LOGIN,
                &[
                    "action=\"{{ .Action }}\"",
                    "{{ .Error }}",
                    "name=\"{{ .Names.Then }}\" value=\"{{ .Values.Then }}\"",
                    "name=\"{{ .Names.CSRF }}\" value=\"{{ .Values.CSRF }}\"",
                    "name=\"{{ .Names.Username }}\" value=\"{{ .Values.Username }}\"",
                    "name=\"{{ .Names.Password }}\"",
                ],
            ),
            (
                PROVIDERS,
                &[
                    "{{ range $provider := .Providers }}",
                    "href=\"{{ $provider.URL }}\"",
                    "{{ $provider.Name }}",
                ],
            ),
        ] {
            for variable in variables {
                assert!(page.contains(variable), "{variable}: {page}");
            }
        }
    }

    /// The server answers with a content security policy, and clusters may have no access to the Internet.
    #[test]
    fn pages_load_nothing_and_run_no_scripts() {
        for page in [ERROR, LOGIN, PROVIDERS] {
            for forbidden in [
                "<script", "<link", "<img", "http:", "https:", "url(", "onclick",
            ] {
                let found = page.contains(forbidden);
                assert!(!found, "{forbidden}: {page}");
            }
            assert!(
                page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"),
                "{page}"
            );
            assert!(
                page.contains("<title>") && page.contains("<main>"),
                "{page}"
            );
        }
    }
}
