//! The command line of the real servers, as far as it says who may connect.

use std::io::{Error, Result};
use std::path::PathBuf;

use serde_json::Value;

const DEFAULT_PORT: u16 = 8443;

/// What the server is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) port: u16,
    /// The serving certificate and its key.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Authorities of clients that connect directly.
    pub(crate) client_authority: PathBuf,
    pub(crate) front_proxy: FrontProxy,
}

/// How the API server proves that it has authenticated a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontProxy {
    /// Authorities of its client certificate.
    pub(crate) authority: PathBuf,
    /// Common names that its certificate may have; any if there are none.
    pub(crate) names: Vec<String>,
    pub(crate) user_headers: Vec<String>,
    pub(crate) group_headers: Vec<String>,
}

/// Flags of the form `--name=value`.
struct Flags(Vec<(String, String)>);

// === impl Options ===

impl Options {
    /// Reads a command line, and with `read` the configuration file that it names. Flags take precedence.
    pub(crate) fn parse(
        args: Vec<String>,
        read: impl FnOnce(&str) -> Result<String>,
    ) -> Result<Self> {
        if args.first().map(String::as_str) != Some("start") {
            return Err(Error::other("the first argument is not start"));
        }
        let flags = Flags::parse(args);
        let config = match flags.last("config") {
            None => Value::Null,
            Some(path) => {
                let text = read(path)?;
                serde_saphyr::from_str(&text)
                    .map_err(|error| Error::other(format!("{path}: {error}")))?
            }
        };
        let serving = &config["servingInfo"];
        let path = |flag: &str, field: &str| {
            let value = flags.last(flag).or_else(|| serving[field].as_str());
            let value = value.filter(|value| !value.is_empty());
            let missing = || Error::other(format!("--{flag} (or {field} of --config) is missing"));
            value.map(PathBuf::from).ok_or_else(missing)
        };
        Ok(Self {
            port: port(&flags, serving)?,
            certificate: path("tls-cert-file", "certFile")?,
            key: path("tls-private-key-file", "keyFile")?,
            client_authority: path("client-ca-file", "clientCA")?,
            front_proxy: FrontProxy {
                authority: path("requestheader-client-ca-file", "")?,
                names: flags.list("requestheader-allowed-names"),
                user_headers: flags.list("requestheader-username-headers"),
                group_headers: flags.list("requestheader-group-headers"),
            },
        })
    }
}

fn port(flags: &Flags, serving: &Value) -> Result<u16> {
    let address = serving["bindAddress"].as_str();
    let configured = address.and_then(|address| Some(address.rsplit_once(':')?.1));
    match flags.last("secure-port").or(configured) {
        None => Ok(DEFAULT_PORT),
        Some(port) => port
            .parse()
            .map_err(|_| Error::other(format!("--secure-port: {port} is not a port"))),
    }
}

// === impl Flags ===

impl Flags {
    fn parse(args: Vec<String>) -> Self {
        let flags = args.into_iter().filter_map(|arg| {
            let (name, value) = arg.strip_prefix("--")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self(flags.collect())
    }

    fn last(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rfind(|(flag, _)| flag == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The values of a list, of all its flags.
    fn list(&self, name: &str) -> Vec<String> {
        let flags = self.0.iter().filter(|(flag, _)| flag == name);
        let values = flags.flat_map(|(_, value)| value.split(','));
        let values = values.map(|value| value.trim().to_owned());
        values.filter(|value| !value.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: [&str; 4] = [
        "--requestheader-client-ca-file=/r/ca.crt",
        "--requestheader-allowed-names=a,b",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
    ];

    fn parse(first: &str, flags: &[&str], config: &str) -> Result<Options> {
        let args = [first].into_iter().chain(flags.iter().copied());
        let args = args.chain(PROXY).map(str::to_owned).collect();
        Options::parse(args, |_| Ok(config.to_owned()))
    }

    #[test]
    fn both_servers_are_configured_alike() {
        let config =
            "servingInfo: { certFile: /c, keyFile: /k, clientCA: /ca, bindAddress: 0.0.0.0:8444 }";
        let by_file = parse("start", &["--config=f"], config).unwrap();
        let by_flags = [
            "--secure-port=8444",
            "--tls-cert-file=/c",
            "--tls-private-key-file=/k",
            "--client-ca-file=/ca",
        ];
        let by_flags = parse("start", &by_flags, "").unwrap();
        assert_eq!(by_file, by_flags);
        assert_eq!(by_flags.port, 8444);
        assert_eq!(by_flags.front_proxy.names, ["a", "b"]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let complete = "servingInfo: { certFile: /c, keyFile: /k, clientCA: /ca }";
        for (first, flags, config, expected) in [
            ("stop", &["--config=f"][..], complete, "start"),
            ("start", &[], "", "--tls-cert-file"),
            (
                "start",
                &["--config=f", "--secure-port=x"],
                complete,
                "--secure-port",
            ),
            ("start", &["--config=f"], "servingInfo: [", "f: "),
        ] {
            let error = parse(first, flags, config).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(
            parse("start", &["--config=f"], complete).unwrap().port,
            8443
        );
    }
}
