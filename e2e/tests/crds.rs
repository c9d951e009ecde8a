//! Private CRDs before a real API server: it takes those of every pinned module, as often as they are applied, and what
//! is derived from its own standard CRDs is the same again.

mod kinds;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use api::group::GroupTable;
use cli::crds::{
    Batch, Derivation, Versions,
    source::{
        cluster::{self, Access},
        module::{self, Module},
    },
};
use serde_json::{Value, json};
use testbed::{crds, progress::Progress, testbed::Testbed};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn private_crds_of_pinned_modules_are_accepted() -> Result<()> {
    let testbed = Testbed::start("crds", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let batches = tokio::task::spawn_blocking(read_modules).await??;
    kinds::are_known(&batches).context("kinds that a migration moves")?;

    let step = testbed
        .progress
        .step("installing the private CRDs of every module");
    let private = storage_only().run(batches.clone())?.crds;
    crds::install(&testbed.admin, &private).await?;
    step.done_with(&format!("{} CRDs", private.len()));
    are_healthy(testbed, &private).await?;

    let before = resource_versions(testbed).await?;
    testbed.admin.apply(&private).await?;
    ensure!(
        before == resource_versions(testbed).await?,
        "applying the same CRDs again writes"
    );

    let step = testbed
        .progress
        .step("deriving again, from the standard CRDs of the live server");
    crds::install(&testbed.admin, &standard(&batches)).await?;
    let derived = from_live(testbed).await?;
    same_but_for_defaults(&private, &derived)?;
    step.done_with(&format!("{} CRDs", derived.len()));

    let step = testbed
        .progress
        .step("serving every version, by a conversion webhook");
    let mut all = Derivation::new(GroupTable::default());
    all.conversion = "webhook=hypershift/capi-conversion-webhook-shim".parse()?;
    crds::install(&testbed.admin, &all.run(batches)?.crds).await?;
    step.done();
    has_several_versions(testbed).await
}

fn read_modules() -> Result<Vec<Batch>> {
    Module::pinned()
        .map(|module| module::read(&module).with_context(|| module.to_string()))
        .collect()
}

fn storage_only() -> Derivation {
    let mut derivation = Derivation::new(GroupTable::default());
    derivation.versions = Some(Versions::Storage);
    derivation
}

/// What the modules themselves install, as far as a server without their conversion webhooks takes it.
fn standard(batches: &[Batch]) -> Vec<Value> {
    let documents = batches.iter().flat_map(|batch| &batch.documents);
    documents
        .filter(|document| document.value["spec"]["group"] != "clusterctl.cluster.x-k8s.io")
        .map(|document| document.value.clone())
        .collect()
}

/// The server found nothing to complain of: the schema is structural, the names are free.
async fn are_healthy(testbed: &Testbed, crds: &[Value]) -> Result<()> {
    for crd in crds {
        let live = testbed.admin.get(&format!("{CRDS}/{}", name(crd))).await?;
        let conditions = live["status"]["conditions"]
            .as_array()
            .context("no conditions")?;
        let state: BTreeMap<_, _> = conditions
            .iter()
            .map(|condition| {
                (
                    condition["type"].to_string(),
                    condition["status"].to_string(),
                )
            })
            .collect();
        let bad = [
            "NonStructuralSchema",
            "KubernetesAPIApprovalPolicyConformant",
            "Terminating",
        ];
        for condition in bad {
            let found = state.get(&format!("\"{condition}\""));
            ensure!(
                found.is_none_or(|status| status == "\"False\""),
                "{}: {state:?}",
                name(crd)
            );
        }
        let accepted = state.get("\"NamesAccepted\"");
        ensure!(
            accepted.is_some_and(|status| status == "\"True\""),
            "{}: {state:?}",
            name(crd)
        );
    }
    Ok(())
}

async fn resource_versions(testbed: &Testbed) -> Result<BTreeMap<String, Value>> {
    let crds = testbed.admin.list(CRDS).await?;
    Ok(crds
        .iter()
        .map(|crd| {
            (
                name(crd).to_owned(),
                crd["metadata"]["resourceVersion"].clone(),
            )
        })
        .collect())
}

async fn from_live(testbed: &Testbed) -> Result<Vec<Value>> {
    let access = Access {
        kubeconfig: Some(testbed.control_plane.admin_kubeconfig().to_owned()),
        context: None,
    };
    let table = GroupTable::default();
    let batch = cluster::read(&access, &table).await?;
    Ok(storage_only().run(vec![batch])?.crds)
}

/// The server's own fields aside, what it returns is what was derived from the module.
fn same_but_for_defaults(from_modules: &[Value], from_live: &[Value]) -> Result<()> {
    ensure!(
        from_modules.len() == from_live.len(),
        "{} CRDs from the modules, {} from the server",
        from_modules.len(),
        from_live.len()
    );
    for (module, live) in from_modules.iter().zip(from_live) {
        ensure!(
            name(module) == name(live),
            "{} instead of {}",
            name(live),
            name(module)
        );
        ensure!(
            module["metadata"]["labels"] == live["metadata"]["labels"],
            "the labels of {} differ",
            name(live)
        );
        for part in ["group", "names", "scope", "versions", "conversion"] {
            ensure!(
                module["spec"][part] == live["spec"][part],
                "spec.{part} of {} differs",
                name(live)
            );
        }
    }
    Ok(())
}

async fn has_several_versions(testbed: &Testbed) -> Result<()> {
    let path = format!("{CRDS}/machines.cluster.hypershift.openshift.io");
    let machines = testbed.admin.get(&path).await?;
    let hook = &machines["spec"]["conversion"]["webhook"];
    let service = json!({
        "namespace": "hypershift",
        "name": "capi-conversion-webhook-shim",
        "path": "/convert",
        "port": 443,
    });
    ensure!(
        hook["clientConfig"]["service"] == service,
        "the stanza is {hook}"
    );
    let versions = machines["spec"]["versions"].as_array().map_or(0, Vec::len);
    ensure!(versions == 2, "machines have {versions} versions");
    Ok(())
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
