//! Which client URLs of members are followed: those of the pods of a control plane's etcd. A member can advertise any host,
//! also one that only its client reaches.

use http::Uri;

use super::Member;

/// The pods of etcd. Other shards have other names.
pub const PODS: [&str; 3] = ["etcd-0", "etcd-1", "etcd-2"];

/// A member advertises a URL that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to check member {member:?} of etcd: its client URL {url:?} is not that of a pod of StatefulSet \
     {namespace}/etcd. Correct ETCD_ADVERTISE_CLIENT_URLS of its pod, or run `etcdctl member remove` if it has none"
)]
pub struct ForeignUrl {
    /// Namespace of the control plane.
    pub namespace: String,
    /// Name of the member.
    pub member: String,
    /// The first of its URLs.
    pub url: String,
}

/// The client URLs of one control plane's etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberUrls {
    namespace: String,
    given_host: Option<String>,
}

// === impl MemberUrls ===

impl MemberUrls {
    /// Those of the pods of `StatefulSet` etcd in a namespace, and those at the host of a URL that the user gave: where there
    /// is no DNS of the management cluster.
    pub fn new(namespace: impl Into<String>, given: Option<&Uri>) -> Self {
        Self {
            namespace: namespace.into(),
            given_host: given.and_then(Uri::host).map(str::to_owned),
        }
    }

    /// The URL of a member that is followed; none for one that has not started.
    pub fn of<'a>(&self, member: &'a Member) -> Result<Option<&'a str>, ForeignUrl> {
        let own = self.of_pod(&member.name);
        let is_own = |url: &str| own.as_deref() == Some(url) || self.is_at_given_host(url);
        let mut urls = member.client_urls.iter().map(String::as_str);
        let Some(first) = urls.clone().next() else {
            return Ok(None);
        };
        match urls.find(|url| is_own(url)) {
            Some(url) => Ok(Some(url)),
            None => Err(ForeignUrl {
                namespace: self.namespace.clone(),
                member: member.name.clone(),
                url: first.to_owned(),
            }),
        }
    }

    /// Where clients reach the pod of a member. None for any other name, which could make the URL of another host.
    fn of_pod(&self, member: &str) -> Option<String> {
        let name = PODS.into_iter().find(|name| *name == member)?;
        let namespace = &self.namespace;
        Some(format!(
            "https://{name}.etcd-discovery.{namespace}.svc:2379"
        ))
    }

    fn is_at_given_host(&self, url: &str) -> bool {
        let url = url.parse::<Uri>();
        let host = url.as_ref().ok().and_then(Uri::host);
        host.is_some() && host == self.given_host.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://etcd-1.etcd-discovery.clusters-dev.svc:2379";
    const OTHER: &str = "https://etcd-1.etcd-discovery.clusters-other.svc:2379";
    const GIVEN: &str = "https://127.0.0.1:2000";

    fn of(given: Option<&str>, name: &str, urls: &[&str]) -> Result<Option<String>, ForeignUrl> {
        let given: Option<Uri> = given.map(|url| url.parse().unwrap());
        let member = Member {
            name: name.to_owned(),
            client_urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            ..Member::default()
        };
        let followed = MemberUrls::new("clusters-dev", given.as_ref()).of(&member)?;
        Ok(followed.map(str::to_owned))
    }

    #[test]
    fn urls_of_pods_and_of_the_given_host_are_followed() {
        let here = Some("https://127.0.0.1:1000");
        for (given, urls, expected) in [
            (None, vec![], None),
            (None, vec![OWN], Some(OWN)),
            (None, vec![OTHER, OWN], Some(OWN)),
            (here, vec![OWN], Some(OWN)),
            (here, vec![GIVEN], Some(GIVEN)),
        ] {
            let found = of(given, "etcd-1", &urls);
            assert_eq!(found, Ok(expected.map(str::to_owned)), "{urls:?}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_the_member() {
        for (given, name, url) in [
            // Another control plane, another port, another scheme, another member, and another host.
            (None, "etcd-1", OTHER),
            (
                None,
                "etcd-1",
                "https://etcd-1.etcd-discovery.clusters-dev.svc:443",
            ),
            (
                None,
                "etcd-1",
                "http://etcd-1.etcd-discovery.clusters-dev.svc:2379",
            ),
            (None, "etcd-2", OWN),
            (
                None,
                "etcd-1",
                "https://etcd-1.etcd-discovery.clusters-dev.svc:2379@192.0.2.1",
            ),
            (None, "etcd-1", GIVEN),
            (None, "etcd-1", "not a URL"),
            // A name that makes the URL of another host.
            (
                None,
                "192.0.2.1/",
                "https://192.0.2.1/.etcd-discovery.clusters-dev.svc:2379",
            ),
            (
                Some("https://127.0.0.1:1000"),
                "etcd-1",
                "https://192.0.2.1:1000",
            ),
        ] {
            let error = of(given, name, &[url]).unwrap_err();
            let expected = format!(
                "failed to check member {name:?} of etcd: its client URL {url:?} is not that of a pod of StatefulSet \
                 clusters-dev/etcd. "
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}
