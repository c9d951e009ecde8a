//! A stock provider that runs: directly at the API server on standard types, or behind the proxy on private ones.

use std::path::PathBuf;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::binaries::Binaries;
use testbed::client::ApiClient;
use testbed::kubeconfig::{Credentials, write_kubeconfig};
use testbed::ports;
use testbed::providers::{Provider, Settings};
use testbed::proxy::Proxy;
use testbed::service::{Health, Service};
use testbed::service_account::{Reach, ServiceAccount};
use testbed::testbed::Testbed;

use crate::providers::cloud::Connection;
use crate::providers::versions::Conversion;

/// The name of its service account, as in an installation.
const NAME: &str = "capi-provider";

/// A provider for one namespace.
#[derive(Debug)]
pub(crate) struct Running {
    service: Service,
    proxy: Option<Proxy>,
    account: ServiceAccount,
}

// === impl Running ===

impl Running {
    /// Starts it for types and a namespace, with the permissions that upstream gives it.
    pub(crate) async fn start(
        testbed: &mut Testbed,
        conversion: &Conversion,
        provider: Provider,
        (capi_types, namespace): (CapiTypes, &str),
        connection: &Connection,
    ) -> Result<Self> {
        let binaries = Binaries::ensure(&[provider.binary()], &testbed.progress).await?;
        let account =
            ServiceAccount::create(&testbed.admin, testbed.work_dir(), namespace, NAME).await?;
        let reach = Reach::Namespace(namespace.to_owned());
        let roles = provider.roles(capi_types).await?;
        account.grant(&testbed.admin, &roles, &reach).await?;
        let name = format!("{namespace}-{NAME}");
        let proxy = match capi_types {
            CapiTypes::Standard => None,
            CapiTypes::Private => Some(proxy(testbed, &name, &account).await?),
        };
        let kubeconfig = match &proxy {
            Some(proxy) => proxy.kubeconfig().to_owned(),
            None => direct_kubeconfig(testbed, &name, &account)?,
        };
        let settings = Settings {
            kubeconfig: &kubeconfig,
            namespace,
            certificates: conversion.certificates(),
            health: ports::allocate()?,
            diagnostics: ports::allocate()?,
            webhook: ports::allocate()?,
        };
        let mut launch = provider.launch(&name, &binaries, &settings)?;
        for flag in &connection.flags {
            launch = launch.arg(flag);
        }
        for (variable, value) in &connection.environment {
            launch = launch.environment(variable, value);
        }
        let health = Health {
            client: ApiClient::plain(settings.health)?,
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
