//! The fixture of the fidelity tests: a server with private types, and proxies with relays before and after them.

use std::sync::Arc;

use anyhow::{Context, Result};
use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};
use testbed::control_plane::Endpoint;
use testbed::fixtures;
use testbed::progress::Progress;
use testbed::proxy::{Proxy, Upstream};
use testbed::raw::RawClient;
use testbed::service_account::{Reach, ServiceAccount, ensure_namespace};
use testbed::testbed::Testbed;
use testbed::work_dir::WorkDir;

use crate::fidelity::cutter::Cutter;
use crate::fidelity::random::Random;

/// Namespace of the objects.
pub(crate) const NAMESPACE: &str = "fidelity";
/// The standard group of the written objects; they are small, and name a group.
const GROUP: &str = "ipam.cluster.x-k8s.io";
/// How many proxies there are.
pub(crate) const PROXIES: usize = 3;

/// The server and the proxies.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) proxies: Vec<Way>,
    pub(crate) testbed: Testbed,
    account: ServiceAccount,
    work_dir: Arc<WorkDir>,
}

/// A way to the server: client, relay, proxy, relay, server.
#[derive(Debug)]
pub(crate) struct Way {
    /// Between clients and the proxy.
    pub(crate) front: Cutter,
    pub(crate) proxy: Proxy,
    /// Between the proxy and the server.
    back: Cutter,
}

// === impl Fixture ===

impl Fixture {
    pub(crate) async fn start(progress: Progress) -> Result<Self> {
        let mut testbed = Testbed::start("fidelity", progress).await?;
        testbed.install_crds(CapiTypes::Private).await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let upstream = testbed.upstream().await?;
        let work_dir = Arc::new(WorkDir::open("fidelity-proxies")?);
        let account =
            ServiceAccount::create(&testbed.admin, &work_dir, NAMESPACE, "reader").await?;
        let roles = fixtures::load(&fixtures::directory().join("rbac/user.yaml"))?;
        account
            .grant(&testbed.admin, &roles, &Reach::Cluster)
            .await?;
        let mut fixture = Self {
            proxies: Vec::new(),
            testbed,
            account,
            work_dir,
        };
        for number in 0..PROXIES {
            let way = fixture.way(&format!("proxy-{number}"), &upstream).await?;
            fixture.proxies.push(way);
        }
        Ok(fixture)
    }

    async fn way(&self, name: &str, upstream: &Upstream) -> Result<Way> {
        let server: http::Uri = upstream.endpoint.server.parse()?;
        let back = Cutter::start(server.port_u16().context("the server has no port")?).await?;
        let upstream = Upstream {
            program: upstream.program.clone(),
            endpoint: Endpoint {
                server: format!("https://127.0.0.1:{}", back.port()),
                authority: upstream.endpoint.authority.clone(),
            },
        };
        let mut proxy = Proxy::new(name, &upstream, &self.account, &self.work_dir)?;
        proxy.service.start().await?;
        Ok(Way {
            front: Cutter::start(proxy.port()).await?,
            proxy,
            back,
        })
    }

    /// The user name of the proxies in the audit log.
    pub(crate) fn username(&self) -> String {
        self.account.username()
    }

    /// A token of the same user.
    pub(crate) fn token(&self) -> Result<String> {
        let file = self.account.token_file();
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Ends it; keeps the logs if `outcome` is an error.
    pub(crate) fn finish<T>(self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.work_dir.keep();
        }
        self.testbed.finish(outcome)
    }
}

// === impl Way ===

impl Way {
    /// A client that uses this path.
    pub(crate) fn client(&self) -> Result<RawClient> {
        RawClient::new(&format!("http://127.0.0.1:{}", self.front.port()), None)
    }

    /// Cuts one of the proxy's connections to the server.
    pub(crate) fn cut_back(&self, random: &mut Random) -> bool {
        self.back.cut_one(random)
    }

    /// Starts the proxy if it does not run, and waits until it is ready.
    pub(crate) async fn revive(&mut self) -> Result<()> {
        match self.proxy.service.pid() {
            Some(_) => self.proxy.service.ready().await,
            None => self.proxy.service.start().await,
        }
    }

    /// Kills the proxy and starts it again on its port.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.proxy.service.kill();
        self.proxy.service.start().await
    }
}

/// The name of the written group in given types.
pub(crate) fn group(capi_types: CapiTypes) -> String {
    let table = GroupTable::default();
    let pair = table.find(GROUP.as_bytes()).map(|(pair, _)| pair);
    pair.map(|pair| pair.name(capi_types).to_owned())
        .unwrap_or_default()
}

/// The collection of the written objects in given types.
pub(crate) fn collection(capi_types: CapiTypes) -> String {
    format!(
        "/apis/{}/v1beta2/namespaces/{NAMESPACE}/ipaddressclaims",
        group(capi_types)
    )
}

/// A small object with a reference to its own group, and some text.
pub(crate) fn claim(capi_types: CapiTypes, name: &str, text: &str) -> Value {
    let group = group(capi_types);
    json!({
        "apiVersion": format!("{group}/v1beta2"),
        "kind": "IPAddressClaim",
        "metadata": { "name": name, "annotations": { "text": text } },
        "spec": { "clusterName": "c", "poolRef": { "apiGroup": group, "kind": "Pool", "name": "p" } },
    })
}
