//! OpenShift's Routes: their kind, and a router that serves them with haproxy.
//!
//! Passthrough Routes are distinguished by the name that TLS begins with, others by the name in the request. A Route without
//! a host gets one below [`DOMAIN`], all names of which lead to the router.

mod config;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Loop;
use crate::certs::write;
use crate::client::{ApiClient, Patch, Resource};
use crate::namespaces::{Entry, Subnets};
use crate::node::{NodeTestbed, condition};
use crate::process::{Launch, Process};
use crate::work_dir::WorkDir;
use crate::{fixtures, wait};

use config::Target;

/// Below it are the names of Routes that do not choose one.
pub const DOMAIN: &str = "apps.testbed";
const ROUTES: Resource<'_> = Resource::new("route.openshift.io/v1", "routes");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/routes.route.openshift.io";
/// How often Routes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const WITHIN: Duration = Duration::from_secs(30);

/// Serves Routes, until it is dropped.
#[derive(Debug)]
pub struct Routes {
    _run: Loop,
}

/// haproxy, with the configuration that it runs with.
#[derive(Debug)]
struct Router {
    work_dir: Arc<WorkDir>,
    entry: Entry,
    subnets: Subnets,
    config: String,
    process: Option<Process>,
}

// === impl Routes ===

impl Routes {
    /// Installs the kind, and begins.
    pub async fn start(testbed: &NodeTestbed) -> Result<Self> {
        let admin = testbed.admin.clone();
        admin.apply(&fixtures::render("node/routes", &[])?).await?;
        wait::until("the kind Route", WITHIN, async || {
            condition(&admin.get(DEFINITION).await?, "Established")
        })
        .await?;
        let mut router = Router {
            work_dir: Arc::clone(testbed.work_dir()),
            entry: testbed.namespaces().bare(),
            subnets: testbed.namespaces().subnets(),
            config: String::new(),
            process: None,
        };
        let own = format!("{}/32", router.subnets.router());
        router
            .entry
            .run("ip", ["addr", "add", &own, "dev", "nodes"])?;
        let run = tokio::spawn(async move {
            loop {
                if let Err(error) = look(&admin, &mut router).await {
                    eprintln!("the router: {error:#}");
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Ok(Self { _run: Loop(run) })
    }
}

async fn look(admin: &ApiClient, router: &mut Router) -> Result<()> {
    let desired = admin.list(&ROUTES.all()).await?;
    let services = admin.list(&SERVICES.all()).await?;
    let mut targets = Vec::new();
    for route in &desired {
        let host = admit(admin, route).await?;
        targets.extend(config::target(route, &host, &services));
    }
    router.serve(&targets)
}

/// The host of a Route, which is written to its status.
async fn admit(admin: &ApiClient, route: &Value) -> Result<String> {
    let text = |at: &str| route.pointer(at).and_then(Value::as_str);
    let (namespace, name) = (
        text("/metadata/namespace").unwrap_or_default(),
        text("/metadata/name").unwrap_or_default(),
    );
    let host = match text("/spec/host").filter(|host| !host.is_empty()) {
        Some(host) => host.to_owned(),
        None => format!("{name}-{namespace}.{DOMAIN}"),
    };
    let path = ROUTES.named(namespace, name);
    if text("/spec/host").unwrap_or_default().is_empty() {
        // OpenShift's API server does that when the Route is created.
        let spec = json!({ "spec": { "host": host } });
        admin.patch(&path, Patch::Merge, &spec).await?;
    }
    if text("/status/ingress/0/host") != Some(&host) {
        let status = json!({ "status": { "ingress": [{
            "host": host,
            "routerName": "default",
            "routerCanonicalHostname": format!("router-default.{DOMAIN}"),
            "wildcardPolicy": "None",
            "conditions": [{ "type": "Admitted", "status": "True" }],
        }] } });
        admin
            .patch(&format!("{path}/status"), Patch::Merge, &status)
            .await
            .with_context(|| format!("the Route {namespace}/{name}"))?;
    }
    Ok(host)
}

// === impl Router ===

impl Router {
    /// Has haproxy lead to these targets: a new one takes the place of the old one.
    fn serve(&mut self, targets: &[Target]) -> Result<()> {
        let config = config::text(self.subnets.router(), targets);
        let runs = match &mut self.process {
            Some(process) => process.exited()?.is_none(),
            None => false,
        };
        if config == self.config && runs {
            return Ok(());
        }
        let path = self.work_dir.join("haproxy.cfg");
        write(&path, &config)?;
        drop(self.process.take());
        let launch = Launch::new("haproxy", std::path::Path::new("haproxy"))
            .arg("-db")
            .arg("-f")
            .arg(&path)
            .through(self.entry.line());
        self.process = Some(launch.spawn(&self.work_dir)?);
        self.config = config;
        Ok(())
    }
}
