//! The sources of credentials: a kubeconfig or the service account of a pod. Only the kubeconfig is read here.

use std::env;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::{Authority, Scheme};

use super::{Error, kubeconfig};

/// Where the service account is mounted.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where credentials come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A kubeconfig, and the context to use in place of its current one.
    Kubeconfig {
        path: PathBuf,
        context: Option<String>,
    },
    /// A pod's service account, mounted at `directory`.
    InCluster {
        server: Endpoint,
        directory: PathBuf,
    },
}

/// The API server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) scheme: Scheme,
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    /// Prefix of every path, without a trailing slash.
    pub(crate) prefix: String,
}

/// The sources of all credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) endpoint: Endpoint,
    /// The name in the server's certificate, where it is not the endpoint's host.
    pub(super) server_name: Option<String>,
    pub(super) authority: Option<Data>,
    pub(super) certificate: Option<(Data, Data)>,
    pub(super) token: Option<Data>,
}

/// Inline bytes or a file. `Debug` does not print the bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Data {
    Inline(Vec<u8>),
    File(PathBuf),
}

// === impl Source ===

impl Source {
    /// The kubeconfig of the flags, of the environment, or the pod's service account, in this order.
    pub(crate) fn choose(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
    ) -> Result<Self, Error> {
        let from_environment = || env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        if let Some(path) = kubeconfig {
            return Ok(Self::Kubeconfig { path, context });
        }
        if let Some(value) = from_environment() {
            let mut paths = env::split_paths(&value).filter(|path| !path.as_os_str().is_empty());
            return match (paths.next(), paths.next()) {
                (Some(path), None) => Ok(Self::Kubeconfig { path, context }),
                _ => Err(Error::SeveralFiles),
            };
        }
        let host = env::var("KUBERNETES_SERVICE_HOST").map_err(|_| Error::NoSource)?;
        let port = env::var("KUBERNETES_SERVICE_PORT").unwrap_or_else(|_| "443".to_owned());
        let bracketed = if host.contains(':') {
            format!("[{host}]")
        } else {
            host
        };
        let server = Endpoint::parse(&format!("https://{bracketed}:{port}"))?;
        Ok(Self::InCluster {
            server,
            directory: PathBuf::from(SERVICE_ACCOUNT),
        })
    }

    /// What to read.
    pub(super) fn plan(&self) -> Result<Plan, Error> {
        match self {
            Self::Kubeconfig { path, context } => kubeconfig::read(path, context.as_deref()),
            Self::InCluster { server, directory } => Ok(Plan {
                endpoint: server.clone(),
                server_name: None,
                authority: Some(Data::File(directory.join("ca.crt"))),
                certificate: None,
                token: Some(Data::File(directory.join("token"))),
            }),
        }
    }

    /// The kubeconfig's path.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Kubeconfig { path, .. } => Some(path),
            Self::InCluster { .. } => None,
        }
    }

    /// Fails where waiting would not help, and only there.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.plan() {
            Err(error) if error.is_permanent() => Err(error),
            _ => Ok(()),
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// Reads `http[s]://host[:port][/prefix]`.
    pub(super) fn parse(server: &str) -> Result<Self, Error> {
        let fail = |message| Error::Server {
            server: server.to_owned(),
            message,
        };
        let uri: Uri = server
            .parse()
            .map_err(|_| fail("write https://HOST:PORT"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(fail("write https://HOST:PORT"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(fail("the scheme is neither https nor http"));
        }
        if authority.as_str().contains('@') {
            return Err(fail(
                "it holds a user's name: put credentials into the kubeconfig's user",
            ));
        }
        let path = parts
            .path_and_query
            .as_ref()
            .map_or("", |path| path.as_str());
        if path.contains('?') {
            return Err(fail("it holds a query"));
        }
        Ok(Self {
            host: authority
                .host()
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if scheme == Scheme::HTTPS { 443 } else { 80 }),
            prefix: path.trim_end_matches('/').to_owned(),
            scheme,
            authority,
        })
    }

    /// Uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Nothing that is sent there leaves the machine.
    pub(super) fn is_local(&self) -> bool {
        self.host == "localhost"
            || self
                .host
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

// === impl Plan ===

impl Plan {
    /// The files that are to be watched.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let certificate = self
            .certificate
            .iter()
            .flat_map(|(certificate, key)| [certificate, key]);
        self.authority
            .iter()
            .chain(certificate)
            .chain(&self.token)
            .filter_map(Data::path)
    }
}

// === impl Data ===

impl Data {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Inline(_) => None,
            Self::File(path) => Some(path),
        }
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Inline(bytes) => Ok(bytes.clone()),
            Self::File(path) => std::fs::read(path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_from_urls() {
        let read = |server: &str| {
            Endpoint::parse(server).map(|endpoint| (endpoint.host, endpoint.port, endpoint.prefix))
        };
        let cases = [
            ("https://api.example:6443", ("api.example", 6443, "")),
            ("https://10.0.0.1", ("10.0.0.1", 443, "")),
            ("http://[::1]:80/", ("::1", 80, "")),
            (
                "https://rancher.example/k8s/clusters/c1/",
                ("rancher.example", 443, "/k8s/clusters/c1"),
            ),
        ];
        for (server, (host, port, prefix)) in cases {
            assert_eq!(
                read(server).unwrap(),
                (host.to_owned(), port, prefix.to_owned()),
                "{server}"
            );
        }
        for server in [
            "api.example:6443",
            "ftp://a",
            "https://u:p@a",
            "https://a/?b",
            "",
        ] {
            let error = read(server).unwrap_err();
            assert!(error.is_permanent(), "{server}");
        }
    }
}
