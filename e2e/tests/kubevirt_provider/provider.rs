//! The stock provider: directly at the API server on standard types, or behind the proxy on private ones.

use std::path::PathBuf;

use anyhow::{Context, Result};
use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::client::ApiClient;
use testbed::fixtures;
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::modules::Module;
use testbed::ports;
use testbed::process::Launch;
use testbed::proxy::Proxy;
use testbed::service::{Health, Service};
use testbed::service_account::{Reach, ServiceAccount};
use testbed::testbed::Testbed;

use crate::kubevirt_provider::versions::Conversion;

/// The Go module of the provider.
const MODULE: &str = "sigs.k8s.io/cluster-api-provider-kubevirt";
/// The name of its service account.
const NAME: &str = "capk";

/// A provider for one namespace.
#[derive(Debug)]
pub(crate) struct Provider {
    service: Service,
    proxy: Option<Proxy>,
    account: ServiceAccount,
}

// === impl Provider ===

impl Provider {
    /// Starts it for a namespace, with the permissions that upstream gives it.
    pub(crate) async fn start(
        testbed: &mut Testbed,
        conversion: &Conversion,
        capi_types: CapiTypes,
        namespace: &str,
    ) -> Result<Self> {
        let wanted = [Binary::KubevirtProvider];
        let binaries = Binaries::ensure(&wanted, &testbed.progress).await?;
        let account =
            ServiceAccount::create(&testbed.admin, testbed.work_dir(), namespace, NAME).await?;
        let reach = Reach::Namespace(namespace.to_owned());
        account
            .grant(&testbed.admin, &roles(capi_types).await?, &reach)
            .await?;
        let name = format!("{namespace}-{NAME}");
        let proxy = match capi_types {
            CapiTypes::Standard => None,
            CapiTypes::Private => Some(proxy(testbed, &name, &account).await?),
        };
        let kubeconfig = match &proxy {
            Some(proxy) => proxy.kubeconfig().to_owned(),
            None => direct_kubeconfig(testbed, &name, &account)?,
        };
        let (health, webhook) = (ports::allocate()?, ports::allocate()?);
        let diagnostics = ports::allocate()?;
        let launch = Launch::new(name, binaries.path(Binary::KubevirtProvider)?)
            .path_flag("kubeconfig", &kubeconfig)
            .flag("namespace", namespace)
            .flag("health-addr", format!("127.0.0.1:{health}"))
            .flag("diagnostics-address", format!("127.0.0.1:{diagnostics}"))
            .arg("--insecure-diagnostics")
            // Its webhook server cannot be turned off; nothing calls it.
            .flag("webhook-port", webhook)
            .path_flag("webhook-cert-dir", conversion.certificates());
        let health = Health {
            client: ApiClient::plain(health)?,
            path: "/readyz",
        };
        let mut service = Service::new(launch, testbed.work_dir(), health);
        service.start().await?;
        Ok(Self {
            service,
            proxy,
            account,
        })
    }

    /// The user that its requests are of.
    pub(crate) fn username(&self) -> String {
        self.account.username()
    }

    /// Fails when it, or its proxy, has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.service.check()?;
        match &mut self.proxy {
            Some(proxy) => proxy.service.check(),
            None => Ok(()),
        }
    }
}

async fn proxy(testbed: &mut Testbed, name: &str, account: &ServiceAccount) -> Result<Proxy> {
    let upstream = testbed.upstream().await?;
    let name = format!("{name}-proxy");
    let mut proxy = Proxy::new(&name, &upstream, account, testbed.work_dir())?;
    proxy.service.start().await?;
    Ok(proxy)
}

fn direct_kubeconfig(testbed: &Testbed, name: &str, account: &ServiceAccount) -> Result<PathBuf> {
    let path = testbed.work_dir().join(format!("{name}.kubeconfig"));
    let endpoint = testbed.control_plane.endpoint();
    write_kubeconfig(
        &path,
        &endpoint.server,
        Some(&endpoint.authority),
        Credentials::TokenFile(account.token_file()),
    )?;
    Ok(path)
}

/// Upstream's role, on the groups of these types.
async fn roles(capi_types: CapiTypes) -> Result<Vec<Value>> {
    let sources = Module::Kubevirt.sources_of(MODULE).await?;
    let mut roles = fixtures::load(&sources.join("config/rbac/role.yaml"))?;
    let table = GroupTable::default();
    for role in &mut roles {
        role["metadata"]["name"] = json!(format!("{NAME}-{}", capi_types.as_str()));
        if capi_types == CapiTypes::Standard {
            continue;
        }
        let granted = role["rules"].as_array_mut();
        for rule in granted.context("the provider's role has no rules")? {
            let groups = rule["apiGroups"].as_array_mut();
            for group in groups.into_iter().flatten() {
                let name = group.as_str().unwrap_or_default();
                if let Some(private) = table.swap(name.as_bytes()) {
                    *group = json!(private);
                }
            }
        }
    }
    Ok(roles)
}
