//! The project's own kinds on a real API server: it takes their definitions, fills in their defaults, and accepts and
//! refuses what the table of rules says that it does.

#[path = "../../../api/tests/rules/cases.rs"]
mod cases;
mod kinds;
mod old_objects;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api::features::FeatureSet;
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{crds, wait};

use cases::{Case, Verdict};
use kinds::Kind;

const SERVED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn crds_enforce_their_validation_rules() -> Result<()> {
    let testbed = Testbed::start("api-types", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let default = FeatureSet::Default;
    let definitions = definitions(default)?;
    let kinds = install(testbed, &definitions, default).await?;
    try_cases(testbed, &kinds, default).await?;
    refuses_the_preview(testbed, &kinds).await?;
    old_objects::keep_working(testbed, &definitions).await?;

    let preview = FeatureSet::TechPreviewNoUpgrade;
    let definitions = self::definitions(preview)?;
    let kinds = install(testbed, &definitions, preview).await?;
    try_cases(testbed, &kinds, preview).await
}

/// Installs definitions, and waits until they are in force.
async fn install(
    testbed: &Testbed,
    definitions: &[Value],
    features: FeatureSet,
) -> Result<Vec<Kind>> {
    let admin = &testbed.admin;
    let what = format!("installing the project's own CRDs ({features})");
    let step = testbed.progress.step(what);
    crds::install(admin, definitions).await?;
    let kinds: Vec<_> = definitions.iter().map(Kind::of).collect::<Result<_>>()?;
    for kind in &kinds {
        served(admin, kind).await?;
        let what = format!("{} to be as it is defined", kind.name);
        wait::until(&what, SERVED_WITHIN, async || {
            kind.is_as_defined(admin).await
        })
        .await?;
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
    Ok(kinds)
}

/// Tries the cases of a feature set.
async fn try_cases(testbed: &Testbed, kinds: &[Kind], features: FeatureSet) -> Result<()> {
    let admin = &testbed.admin;
    let cases = cases::of(features);
    let what = format!("trying the table of rules ({features})");
    let step = testbed.progress.step(what);
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
    Ok(())
}

/// A platform of the technology preview cannot be chosen, and another field of it is dropped.
async fn refuses_the_preview(testbed: &Testbed, kinds: &[Kind]) -> Result<()> {
    let admin = &testbed.admin;
    let step = testbed.progress.step("keeping the technology preview out");
    let is_pool = |kind: &&Kind| kind.name == old_objects::NODE_POOLS;
    let kind = kinds.iter().find(is_pool).context("no node pools")?;
    let mut pool = cases::base(&kind.name);
    pool["spec"]["platform"]["type"] = json!("GCP");
    let Err(refused) = admin.create(&kind.path_for(&pool), &pool).await else {
        bail!("a NodePool on Google Cloud is accepted");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains("Unsupported value"), "{refused}");

    let mut pool = cases::base(&kind.name);
    pool["spec"]["osImageStream"] = json!({ "name": "rhel-10" });
    let stored = admin.create(&kind.path_for(&pool), &pool).await?;
    admin.delete(&kind.path_of(&pool)).await?;
    let stream = &stored["spec"]["osImageStream"];
    ensure!(stream.is_null(), "osImageStream is stored: {stream}");
    step.done();
    Ok(())
}

/// The definitions of a feature set and those of hosted clusters, as they are committed.
fn definitions(features: FeatureSet) -> Result<Vec<Value>> {
    let mut definitions = read(match features {
        FeatureSet::Default => "crds",
        FeatureSet::TechPreviewNoUpgrade => "crds-tech-preview",
    })?;
    definitions.extend(read("crds-guest")?);
    Ok(definitions)
}

fn read(directory: &str) -> Result<Vec<Value>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../manifests")
        .join(directory);
    let mut definitions = Vec::new();
    for file in fs::read_dir(&directory).context("run `cargo xtask codegen` first")? {
        let path = file?.path();
        let text = fs::read_to_string(&path)?;
        let definition =
            serde_saphyr::from_str(&text).with_context(|| format!("{}", path.display()))?;
        definitions.push(definition);
    }
    ensure!(!definitions.is_empty(), "{} is empty", directory.display());
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
