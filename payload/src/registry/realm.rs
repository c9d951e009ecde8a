//! Which token services belong to a registry, so that they get the credentials for it.
//!
//! The specification lets a registry name any URL as its token service, and clients such as containers/image send
//! credentials to whatever it names. Here the host has to be
//!
//! - the registry's own host (Quay, GHCR, Harbor, Artifactory, `registry.redhat.io`, Azure),
//! - the parent domain of the registry's host, or a host directly in it: `gitlab.example.com` or `example.com` for
//!   `registry.example.com`, `auth.docker.io` for `registry-1.docker.io`,
//! - or one of the services in [`WELL_KNOWN`].
//!
//! Everything else needs an entry with the same credentials in the pull secret: see `Session::is_token_service`.

/// Registries with a token service that the domain rule does not cover: the registry and the service.
const WELL_KNOWN: [(&str, &str); 1] = [("docker.io", "auth.docker.io")];
/// The fewest labels of a domain that belongs to one owner, unlike `com`.
const LABELS: usize = 2;

/// Whether the token service at host `realm` belongs to the registry (`host` or `host:port`).
pub(super) fn belongs(registry: &str, realm: &str) -> bool {
    let (registry, realm) = (host_name(registry), host_name(realm));
    if registry == realm {
        return true;
    }
    if is_address(&registry) || is_address(&realm) {
        return false;
    }
    let known = WELL_KNOWN.contains(&(registry.as_str(), realm.as_str()));
    known || parent(&registry).is_some_and(|domain| is_in(&realm, domain))
}

/// The host without its port, in lower case.
fn host_name(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => authority,
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn is_address(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare.parse::<std::net::IpAddr>().is_ok()
}

/// The domain that a host is in, if it is more than a top-level domain.
fn parent(host: &str) -> Option<&str> {
    let (_, domain) = host.split_once('.')?;
    (domain.split('.').count() >= LABELS).then_some(domain)
}

/// Whether a host is this domain, or directly in it.
fn is_in(host: &str, domain: &str) -> bool {
    host == domain || parent(host) == Some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T20.
    #[test]
    fn token_services_of_real_registries_belong_to_them() {
        for (registry, realm) in [
            ("quay.io", "quay.io"),
            ("registry.redhat.io", "registry.redhat.io"),
            ("registry-1.docker.io", "auth.docker.io"),
            ("index.docker.io", "auth.docker.io"),
            ("docker.io", "auth.docker.io"),
            ("registry.gitlab.com", "gitlab.com"),
            ("registry.example.com:5000", "gitlab.example.com"),
            ("registry.example.com:5000", "registry.example.com:5001"),
            ("registry.digitalocean.com", "api.digitalocean.com"),
            ("127.0.0.1:5000", "127.0.0.1:5001"),
            ("[::1]:5000", "[::1]"),
            ("Registry.Example.com", "registry.example.COM"),
        ] {
            assert!(belongs(registry, realm), "{registry} {realm}");
        }
    }

    /// Check T20.
    #[test]
    fn token_services_on_other_hosts_do_not_belong_to_a_registry() {
        for (registry, realm) in [
            ("quay.io", "evil.io"),
            ("quay.io", "evil.quay.io.example.com"),
            ("registry.example.com", "registry.example.org"),
            ("registry.example.com", "evilexample.com"),
            ("registry.example.com", "a.b.example.com"),
            ("registry.example.com", "com"),
            ("example.com", "other.com"),
            ("127.0.0.1:5000", "127.0.0.2"),
            ("10.0.0.1", "10.0.0.1.example.com"),
            ("1.2.3.4", "5.2.3.4"),
            ("[::1]:5000", "[::2]:5000"),
            ("registry", "auth"),
        ] {
            assert!(!belongs(registry, realm), "{registry} {realm}");
        }
    }
}
