//! The project's own kinds on a real API server: it takes their definitions, fills in their defaults, and accepts and
//! refuses what the table of rules says that it does.

#[path = "../../../api/tests/rules/cases.rs"]
mod cases;
mod kinds;
mod old_objects;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{crds, wait};

use cases::{Case, Verdict};
use kinds::Kind;

/// Where the definitions are, as they are committed.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/crds");
const SERVED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn crds_enforce_their_validation_rules() -> Result<()> {
    let testbed = Testbed::start("api-types", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let admin = &testbed.admin;
    let definitions = definitions()?;
    let step = testbed.progress.step("installing the project's own CRDs");
    crds::install(admin, &definitions).await?;
    let kinds: Vec<_> = definitions.iter().map(Kind::of).collect::<Result<_>>()?;
    for kind in &kinds {
        served(admin, kind).await?;
        kind.is_as_defined(admin).await?;
    }
    step.done_with(&format!("{} CRDs", kinds.len()));

    let step = testbed.progress.step("filling in defaults");
    for kind in &kinds {
        has_namespace(admin, &cases::base(&kind.name)).await?;
    }
    for kind in &kinds {
        let object = cases::base(&kind.name);
        let stored = admin.create(&kind.path_for(&object), &object).await?;
        kind.has_its_defaults(&stored)?;
        admin.delete(&kind.path_of(&object)).await?;
    }
    step.done();

    let cases = cases::all();
    let step = testbed.progress.step("trying the table of rules");
    let mut complaints = Vec::new();
    for case in &cases {
        let kind = kinds.iter().find(|kind| kind.name == case.crd);
        let kind = kind.with_context(|| format!("{} is about no kind", case.name))?;
        if let Err(complaint) = try_case(admin, kind, case).await {
            complaints.push(format!("{} ({}): {complaint:#}", case.name, case.crd));
        }
    }
    ensure!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    step.done_with(&format!("{} cases", cases.len()));

    old_objects::keep_working(testbed, &definitions).await
}

/// The definitions as they are committed.
fn definitions() -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for file in fs::read_dir(MANIFESTS).context("run `cargo xtask codegen` first")? {
        let path = file?.path();
        let text = fs::read_to_string(&path)?;
        let definition =
            serde_saphyr::from_str(&text).with_context(|| format!("{}", path.display()))?;
        definitions.push(definition);
    }
    ensure!(!definitions.is_empty(), "{MANIFESTS} is empty");
    Ok(definitions)
}

async fn served(admin: &ApiClient, kind: &Kind) -> Result<()> {
    let what = format!("{} to be served", kind.name);
    wait::until(&what, SERVED_WITHIN, async || {
        admin.get(&kind.collection()).await.map(drop)
    })
    .await
}

async fn has_namespace(admin: &ApiClient, object: &Value) -> Result<()> {
    let Some(name) = object["metadata"]["namespace"].as_str() else {
        return Ok(());
    };
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name },
    });
    admin.apply(&[namespace]).await
}

/// Sends a case's object and compares what becomes of it with what should.
async fn try_case(admin: &ApiClient, kind: &Kind, case: &Case) -> Result<()> {
    let outcome = send(admin, kind, case).await;
    admin.delete(&kind.path_of(&case.object)).await?;
    let outcome = outcome?;
    match (&case.verdict, outcome) {
        (Verdict::Accepted, Ok(_)) => Ok(()),
        (Verdict::Accepted, Err(error)) => Err(error.context("should be accepted, and is refused")),
        (Verdict::Refused(_) | Verdict::Invalid(_), Ok(_)) => {
            bail!("should be refused, and is accepted")
        }
        (Verdict::Refused(words) | Verdict::Invalid(words), Err(error)) => {
            let said = format!("{error:#}");
            ensure!(
                said.contains(words),
                "should be refused for {words:?}, and is: {said}"
            );
            Ok(())
        }
    }
}

/// The outer result is about what has to work in any case.
async fn send(admin: &ApiClient, kind: &Kind, case: &Case) -> Result<Result<Value>> {
    let Some(old) = &case.old else {
        return Ok(kind.create(admin, &case.object).await);
    };
    let stored = kind
        .create(admin, old)
        .await
        .context("the object before the change is refused")?;
    Ok(kind.update(admin, &stored, &case.object).await)
}
