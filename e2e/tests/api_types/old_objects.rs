//! Objects from before a rule keep working: what does not change is not held against them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::Patch;
use testbed::testbed::Testbed;
use testbed::{crds, wait};

use crate::api_types::cases;
use crate::api_types::kinds::Kind;

pub(crate) const NODE_POOLS: &str = "nodepools.hypershift.openshift.io";
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);
/// The path of the rule that a later version adds.
const IMAGE: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/release/properties/image";
const RULES: &str = "x-kubernetes-validations";

/// Installs a definition without a rule, stores an object that breaks it, and brings the rule back.
pub(crate) async fn keep_working(testbed: &Testbed, definitions: &[Value]) -> Result<()> {
    let admin = &testbed.admin;
    let step = testbed.progress.step("bringing an older object along");
    let definition = definitions
        .iter()
        .find(|definition| definition["metadata"]["name"] == NODE_POOLS)
        .context("no node pools")?;
    let kind = Kind::of(definition)?;
    let pool = pool("older", "a");
    let path = kind.path_of(&pool);

    crds::install(admin, &[without_rule(definition)?]).await?;
    wait::until("the rule to be gone", IN_FORCE_WITHIN, async || {
        kind.create(admin, &pool).await.map(drop)
    })
    .await?;
    crds::install(admin, std::slice::from_ref(definition)).await?;
    let trial = self::pool("newer", "a");
    let dry = format!("{}?dryRun=All", kind.path_for(&trial));
    wait::until("the rule to be in force", IN_FORCE_WITHIN, async || {
        let refused = admin.create(&dry, &trial).await.is_err();
        ensure!(refused, "it is not");
        Ok(())
    })
    .await?;

    let scale = json!({ "spec": { "replicas": 7 } });
    admin
        .patch(&path, Patch::Merge, &scale)
        .await
        .context("a change elsewhere is refused")?;
    let worse = json!({ "spec": { "release": { "image": "b" } } });
    let refused = admin.patch(&path, Patch::Merge, &worse).await;
    ensure!(
        refused.is_err(),
        "a change that breaks the rule again is accepted"
    );
    let better =
        json!({ "spec": { "release": { "image": "images.example.com/example/release:1" } } });
    admin
        .patch(&path, Patch::Merge, &better)
        .await
        .context("a change for the better is refused")?;
    step.done();
    Ok(())
}

fn pool(name: &str, image: &str) -> Value {
    let mut pool = cases::base(NODE_POOLS);
    pool["metadata"]["name"] = json!(name);
    pool["spec"]["release"]["image"] = json!(image);
    pool
}

fn without_rule(definition: &Value) -> Result<Value> {
    let mut definition = definition.clone();
    definition
        .pointer_mut(IMAGE)
        .and_then(Value::as_object_mut)
        .and_then(|image| image.remove(RULES))
        .context("the image has no rule")?;
    Ok(definition)
}
