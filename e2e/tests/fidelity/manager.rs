//! A stock manager continues after its proxy is killed (F02).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::json;
use testbed::client::ApiClient;
use testbed::cluster::{CLUSTERS, CORE};
use testbed::cluster_api::{Plan, RunningManager};
use testbed::managers::Manager;
use testbed::wait;

use crate::fidelity::fixture::Fixture;

const HOSTED: &str = "hosted";
/// Informers wait for up to half a minute before they try again.
const WITHIN: Duration = Duration::from_mins(2);
/// What the manager puts on every Cluster that it sees.
const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// Kills the proxy of the core manager, and looks whether it still does its work.
pub(crate) async fn goes_on(fixture: &mut Fixture) -> Result<()> {
    let testbed = &mut fixture.testbed;
    testbed.add(&Plan::hosted(HOSTED)).await?;
    let view = testbed.standard_view().await?;
    create(&view, "before").await?;
    is_seen(&view, "before").await?;

    let core = testbed
        .cluster_api(CapiTypes::Private)?
        .manager_mut(Manager::Core)?;
    let pid = core.service.pid();
    proxy(core)?.kill();
    create(&view, "meanwhile").await?;
    proxy(core)?.start().await?;
    create(&view, "after").await?;
    is_seen(&view, "meanwhile").await?;
    is_seen(&view, "after").await?;

    core.service.check()?;
    ensure!(core.service.pid() == pid, "the manager was restarted");
    testbed.end(CapiTypes::Private);
    Ok(())
}

fn proxy(manager: &mut RunningManager) -> Result<&mut testbed::service::Service> {
    let proxy = manager.proxy.as_mut().context("the manager has no proxy")?;
    Ok(&mut proxy.service)
}

async fn create(view: &ApiClient, name: &str) -> Result<()> {
    let cluster = json!({
        "apiVersion": CORE,
        "kind": "Cluster",
        "metadata": { "namespace": HOSTED, "name": name },
        "spec": {
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "DevCluster",
                "name": name,
            },
        },
    });
    view.create(&CLUSTERS.within(HOSTED), &cluster).await?;
    Ok(())
}

async fn is_seen(view: &ApiClient, name: &str) -> Result<()> {
    wait::until(&format!("the manager to see {name}"), WITHIN, async || {
        let cluster = view.get(&CLUSTERS.named(HOSTED, name)).await?;
        let finalizers = &cluster["metadata"]["finalizers"];
        let seen = finalizers
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == FINALIZER));
        ensure!(seen, "finalizers are {finalizers}");
        Ok(())
    })
    .await
}
