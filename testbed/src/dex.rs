//! dex, an `OpenID` Connect provider: its process, and logins of its users.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header};
use serde_json::{Value, json};

use crate::binaries::{Binaries, Binary};
use crate::certs::{Authority, write};
use crate::node::NodeTestbed;
use crate::process::Launch;
use crate::raw::{RawClient, Response};
use crate::service::{Service, secure_health};
use crate::site::Site;

/// The user who logs in without a password, as `mockCallback` of dex has it.
pub const USER: &str = "kilgore@kilgore.trout";
/// The group of this user.
pub const GROUP: &str = "authors";
/// Where clients are sent after a login. Nothing is there: the code is in the URL.
const REDIRECT: &str = "https://client.example.com/callback";
const CLIENT_SECRET: &str = "client-secret";
/// Redirects of one login.
const MOST_REDIRECTS: usize = 5;

/// What a server is configured with.
#[derive(Debug, Clone, Copy)]
pub struct Config<'a> {
    /// Its name: that of its log.
    pub name: &'a str,
    /// Its port.
    pub port: u16,
    /// The port of the server that it pretends to be, with keys of its own.
    pub issuer_port: u16,
    /// How long tokens are valid, for example `20s`.
    pub tokens_valid_for: &'a str,
    /// The clients that are registered.
    pub clients: &'a [&'a str],
}

/// A server that runs, with an authority of its own.
#[derive(Debug)]
pub struct Dex {
    issuer: String,
    authority: PathBuf,
    client: RawClient,
    _service: Service,
}

// === impl Dex ===

impl Dex {
    /// Starts a server that pods can reach.
    pub async fn start(testbed: &NodeTestbed, config: Config<'_>) -> Result<Self> {
        let binaries = Binaries::ensure(&[Binary::Dex], &testbed.progress).await?;
        let host = testbed.namespaces().subnets().node(1);
        let address: SocketAddr = (host, config.port).into();
        let issuer = format!("https://{host}:{}", config.issuer_port);
        let directory = testbed.work_dir().join(config.name);
        let authority = Authority::create(&directory)?;
        let serving = authority.server_at(config.name, &[host.to_string()])?;
        let clients = config
            .clients
            .iter()
            .map(|id| json!({ "id": id, "secret": CLIENT_SECRET, "redirect": REDIRECT }));
        let file = directory.join("config.json");
        let text = json!({
            "issuer": issuer,
            "address": address.to_string(),
            "certificate": serving.certificate,
            "key": serving.key,
            "tokensValidFor": config.tokens_valid_for,
            "clients": clients.collect::<Vec<_>>(),
        });
        write(&file, &text.to_string())?;
        let launch = Launch::new(config.name, binaries.path(Binary::Dex)?).arg(&file);
        let launch = Site::Namespaces(testbed.namespaces()).place(launch);
        let health = secure_health(address, &authority.certificate(), "/healthz")?;
        let mut service = Service::new(launch, testbed.work_dir(), health);
        service.start().await?;
        let client = RawClient::new(
            &format!("https://{address}"),
            Some(&authority.certificate()),
        )?;
        Ok(Self {
            issuer,
            authority: authority.certificate(),
            client,
            _service: service,
        })
    }

    /// The URL in its tokens.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The file with its authority, PEM.
    pub fn authority(&self) -> &std::path::Path {
        &self.authority
    }

    /// Logs [`USER`] in at a client as a browser does, and returns the ID token.
    pub async fn log_in(&self, client: &str) -> Result<String> {
        let code = self.code(client).await?;
        let form = format!("grant_type=authorization_code&code={code}&redirect_uri={REDIRECT}");
        let credentials = STANDARD.encode(format!("{client}:{CLIENT_SECRET}"));
        let request = Request::post("/token")
            .header(header::AUTHORIZATION, format!("Basic {credentials}"))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.into_bytes())?;
        let response = self.client.send(request).await?;
        let status = response.status;
        let body = response.bytes().await?;
        ensure!(
            status == 200,
            "{status}: {}",
            String::from_utf8_lossy(&body)
        );
        let tokens: Value = serde_json::from_slice(&body)?;
        let token = tokens["id_token"].as_str();
        Ok(token.context("the response has no ID token")?.to_owned())
    }

    /// Follows the redirects of a login up to that to the client, and returns the code in it.
    async fn code(&self, client: &str) -> Result<String> {
        let mut path = format!(
            "/auth/mock?client_id={client}&redirect_uri={REDIRECT}&response_type=code&scope=openid+email+groups&state=s"
        );
        for _ in 0..MOST_REDIRECTS {
            let response = self.client.get(&path).await?;
            let location = location(&response).with_context(|| path.clone())?;
            if let Some(query) = location.strip_prefix(REDIRECT) {
                let mut pairs = query.trim_start_matches('?').split('&');
                let code = pairs.find_map(|pair| pair.strip_prefix("code="));
                return Ok(code.with_context(|| location.to_owned())?.to_owned());
            }
            // Its redirects are to the issuer, which may be another server.
            path = location
                .strip_prefix(&self.issuer)
                .unwrap_or(location)
                .to_owned();
        }
        anyhow::bail!("more than {MOST_REDIRECTS} redirects")
    }
}

fn location(response: &Response) -> Result<&str> {
    let location = response.headers.get(header::LOCATION);
    let location = location.with_context(|| format!("no redirect: {}", response.status))?;
    Ok(location.to_str()?)
}
