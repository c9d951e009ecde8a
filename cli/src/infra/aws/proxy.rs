//! The proxy of a network that has no NAT gateways: what it is made of, and how its authority is read. Pure.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::scope::Scope;
use crate::create::ssh_key::SshKey;

/// The port of the proxy.
pub(super) const PORT: &str = "3128";
/// The beginning of lines of the console with the certificates of the authority.
const MARK: &str = "proxy-ca:";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Installs Squid. By default, it permits tunnels to port 443 only.
const SQUID: &str = r"
until dnf install -y squid; do sleep 5; done
sed -i 's/^http_access deny CONNECT/#&/' /etc/squid/squid.conf
systemctl enable --now squid
";
/// Installs mitmproxy, which makes an authority when it starts. Its certificate, which is no secret, is written to the console
/// every minute: who reads the console needs no access to the machine.
const MITMPROXY: &str = r#"
install -d -m 0700 /var/lib/mitmproxy
until curl -fsSL https://snapshots.mitmproxy.org/7.0.2/mitmproxy-7.0.2-linux.tar.gz | tar -xz -C /usr/local/bin mitmdump
do sleep 5; done
cat >/etc/systemd/system/proxy.service <<'UNIT'
[Unit]
After=network-online.target
[Service]
ExecStart=/usr/local/bin/mitmdump --listen-port 3128 --set confdir=/var/lib/mitmproxy --quiet
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
cat >/usr/local/bin/show-proxy-ca <<'SCRIPT'
#!/bin/bash
while sleep 10; do
  test -s /var/lib/mitmproxy/mitmproxy-ca-cert.pem || continue
  echo "MARK$(base64 -w0 /var/lib/mitmproxy/mitmproxy-ca-cert.pem)" >/dev/console
  sleep 50
done
SCRIPT
chmod 0755 /usr/local/bin/show-proxy-ca
cat >/etc/systemd/system/show-proxy-ca.service <<'UNIT'
[Unit]
After=proxy.service
[Service]
ExecStart=/usr/local/bin/show-proxy-ca
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now proxy show-proxy-ca
"#;

/// Flags of a proxy.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyArgs {
    /// Create a proxy (Squid) through which the cluster reaches the internet, and no NAT gateways
    #[arg(long, conflicts_with_all = ["enable_secure_proxy", "public_only", "single_nat_gateway"])]
    enable_proxy: bool,

    /// Create a proxy (mitmproxy) that decrypts TLS with certificates of its own authority, and no NAT gateways
    #[arg(long, conflicts_with_all = ["public_only", "single_nat_gateway"])]
    enable_secure_proxy: bool,

    /// VPC endpoint service of a proxy on port 3128 that --enable-proxy uses [default: a proxy is created]
    #[arg(
        long,
        value_name = "NAME",
        requires = "enable_proxy",
        conflicts_with = "enable_secure_proxy"
    )]
    proxy_vpc_endpoint_service_name: Option<String>,
}

/// A proxy.
#[derive(Debug, Clone)]
pub(crate) enum Proxy {
    /// One that exists, by the name of its VPC endpoint service.
    Service(String),
    /// An instance, and the key with which users log in to it.
    Machine { software: Software, key: SshKey },
}

/// What runs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    /// Passes on what it gets.
    Squid,
    /// Decrypts TLS.
    Mitmproxy,
}

/// A private key in PEM, in base64. It is never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PrivateKey(String);

/// What a cluster needs of its proxy; empty what there is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProxyOutput {
    /// URL.
    pub(super) address: String,
    /// URL of one that decrypts TLS.
    pub(super) secure_address: String,
    pub(super) key: PrivateKey,
    /// The certificate of its authority, in PEM.
    pub(super) ca: String,
}

// === impl ProxyArgs ===

impl ProxyArgs {
    /// The flag that is given, for messages.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--enable-proxy", self.enable_proxy),
            ("--enable-secure-proxy", self.enable_secure_proxy),
        ];
        let mut given = flags.into_iter().filter(|(_, given)| *given);
        given.next().map(|(flag, _)| flag)
    }

    /// Whether an instance is created, which has a key.
    pub(crate) fn has_machine(&self) -> bool {
        self.given().is_some() && self.proxy_vpc_endpoint_service_name.is_none()
    }

    /// What flags ask for, if they ask for a proxy. `earlier` is the key of a proxy that may exist.
    pub(crate) fn proxy(&self, earlier: Option<SshKey>) -> anyhow::Result<Option<Proxy>> {
        if let Some(service) = &self.proxy_vpc_endpoint_service_name {
            return Ok(Some(Proxy::Service(service.clone())));
        }
        if self.given().is_none() {
            return Ok(None);
        }
        let software = if self.enable_secure_proxy {
            Software::Mitmproxy
        } else {
            Software::Squid
        };
        let key = match earlier {
            Some(key) => key,
            None => SshKey::generate()?,
        };
        Ok(Some(Proxy::Machine { software, key }))
    }
}

// === impl Software ===

impl Software {
    pub(super) fn instance_type(self) -> &'static str {
        match self {
            Self::Squid => "t3.micro",
            Self::Mitmproxy => "t3.medium",
        }
    }

    /// The script that installs it, and lets in a user with a key.
    pub(super) fn script(self, key: &SshKey) -> String {
        let install = match self {
            Self::Squid => SQUID.to_owned(),
            Self::Mitmproxy => MITMPROXY.replace("MARK", MARK),
        };
        format!(
            "#!/bin/bash\nset -u\ninstall -d -m 0700 -o ec2-user -g ec2-user /home/ec2-user/.ssh\necho '{}' \
             >>/home/ec2-user/.ssh/authorized_keys\nchown ec2-user:ec2-user /home/ec2-user/.ssh/authorized_keys\nchmod 0600 \
             /home/ec2-user/.ssh/authorized_keys\n{install}",
            key.public.trim_end()
        )
    }

    /// What a cluster needs of a proxy at an address.
    pub(super) fn output(self, address: &str, key: PrivateKey, ca: String) -> ProxyOutput {
        let url = url(address);
        let (address, secure_address) = match self {
            Self::Squid => (url, String::new()),
            Self::Mitmproxy => (String::new(), url),
        };
        ProxyOutput {
            address,
            secure_address,
            key,
            ca,
        }
    }
}

// === impl PrivateKey ===

impl PrivateKey {
    pub(super) fn new(key: &SshKey) -> Self {
        Self(STANDARD.encode(&key.private))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In base64, as `data` of a Secret has it.
    pub(crate) fn in_base64(&self) -> &str {
        &self.0
    }

    /// Both parts of the key, if it is one.
    pub(super) fn key(&self) -> Option<SshKey> {
        let pem = STANDARD.decode(&self.0).ok()?;
        SshKey::parse(&String::from_utf8(pem).ok()?)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_empty() { "none" } else { "hidden" };
        write!(f, "PrivateKey({state})")
    }
}

/// The URL of a proxy.
pub(super) fn url(address: &str) -> String {
    format!("http://{address}:{PORT}")
}

/// The name of the instance or of the endpoint, which upstream uses, too.
pub(super) fn name(scope: &Scope) -> String {
    scope.named("http-proxy")
}

/// The name of the security group, which upstream uses, too.
pub(super) fn group(scope: &Scope) -> String {
    scope.named("proxy-sg")
}

/// The certificate of an authority in the text of a console: the last one that is complete.
pub(super) fn ca_of_console(console: &str) -> Option<String> {
    let lines = console.lines().rev();
    let mut found = lines.filter_map(|line| {
        let (_, encoded) = line.split_once(MARK)?;
        let pem = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
        let text = pem.trim();
        (text.starts_with(BEGIN) && text.ends_with(END)).then(|| format!("{text}\n"))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::infra::aws::VpcArgs;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: VpcArgs,
    }

    fn parse(flags: &[&str]) -> Result<VpcArgs, clap::Error> {
        let words = ["create"].iter().chain(flags);
        Ok(Command::try_parse_from(words)?.args)
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for flags in [
            &["--enable-proxy", "--enable-secure-proxy"][..],
            &["--enable-proxy", "--public-only"],
            &["--enable-secure-proxy", "--public-only"],
            &["--enable-proxy", "--single-nat-gateway"],
            &["--proxy-vpc-endpoint-service-name=a"],
            &[
                "--enable-secure-proxy",
                "--proxy-vpc-endpoint-service-name=a",
            ],
        ] {
            assert!(parse(flags).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn flags_describe_a_proxy() {
        let proxy = |flags: &[&str]| {
            let args = parse(flags).unwrap().proxy;
            (args.given(), args.has_machine())
        };
        assert_eq!(proxy(&[]), (None, false));
        assert_eq!(proxy(&["--enable-proxy"]), (Some("--enable-proxy"), true));
        let service = ["--enable-proxy", "--proxy-vpc-endpoint-service-name=a"];
        assert_eq!(proxy(&service), (Some("--enable-proxy"), false));
        let found = parse(&service).unwrap().proxy.proxy(None).unwrap();
        assert!(matches!(found, Some(Proxy::Service(name)) if name == "a"));
        assert!(parse(&[]).unwrap().proxy.proxy(None).unwrap().is_none());
    }

    #[test]
    fn scripts_have_the_public_key_only() {
        let key = SshKey {
            public: "ssh-rsa AAAA\n".to_owned(),
            private: "PRIVATE".to_owned(),
        };
        for software in [Software::Squid, Software::Mitmproxy] {
            let script = software.script(&key);
            assert!(script.starts_with("#!/bin/bash\n"), "{script}");
            assert!(script.contains("echo 'ssh-rsa AAAA' >>"), "{script}");
            assert!(!script.contains("PRIVATE"), "{script}");
            // The most that EC2 takes.
            assert!(script.len() < 16 * 1024);
        }
        let private = PrivateKey::new(&key);
        assert_eq!(private.in_base64(), "UFJJVkFURQ==");
        assert_eq!(format!("{private:?}"), "PrivateKey(hidden)");
    }

    #[test]
    fn the_last_complete_certificate_of_a_console_is_found() {
        let pem = format!("{BEGIN}\nAAAA\n{END}\n");
        let line = format!("[   12.3] {MARK}{}", STANDARD.encode(&pem));
        let cut = &line[..line.len() - 9];
        let other = format!("{MARK}{}", STANDARD.encode("other"));
        for (console, expected) in [
            (format!("boot\r\n{line}\r\n{cut}\n"), Some(&pem)),
            (format!("{other}\n{line}\n{other}\n"), Some(&pem)),
            (format!("{cut}\n"), None),
            (String::new(), None),
        ] {
            assert_eq!(ca_of_console(&console).as_ref(), expected, "{console}");
        }
    }
}
