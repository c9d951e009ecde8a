//! `hypershift doctor` before a real API server: ownership, findings, and that it changes nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes, GroupTable};
use cli::crds::source::cluster::Access;
use cli::doctor::command::diagnose;
use cli::doctor::{Detail, Report};
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::service_account::{ensure_control_plane_namespace, ensure_namespace};
use testbed::{crds, fixtures, progress::Progress, testbed::Testbed};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOSTED_CLUSTERS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedclusters");
const CLUSTERS: &str = "clusters";
const OPERATORS: &str = "hypershift";

#[tokio::test]
async fn doctor_reports_ownership_without_writes() -> Result<()> {
    let testbed = Testbed::start("doctor", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let step = testbed.progress.step("an empty cluster");
    let report = examine(testbed).await?;
    says(
        &report,
        &[(
            "CustomResourceDefinitions",
            "there is none of a private group",
        )],
    )?;
    says(
        &report,
        &[("Deployment hypershift/operator", "it does not exist")],
    )?;
    step.done();

    let step = testbed
        .progress
        .step("both types, and a legacy cluster without an operator");
    crds::install(
        &testbed.admin,
        &crds::cluster_api(CapiTypes::Private).await?,
    )
    .await?;
    crds::install(
        &testbed.admin,
        &platforms(crds::cluster_api(CapiTypes::Standard).await?),
    )
    .await?;
    let manifests = fixtures::install_manifests();
    let definition = manifests.join("../crds/hostedclusters.hypershift.openshift.io.yaml");
    crds::install(&testbed.admin, &fixtures::load(&definition)?).await?;
    for namespace in [CLUSTERS, OPERATORS] {
        ensure_namespace(&testbed.admin, namespace).await?;
    }
    ensure_control_plane_namespace(&testbed.admin, CLUSTERS, "old").await?;
    clusters(testbed).await?;
    let before = versions(testbed).await?;
    let report = examine(testbed).await?;
    ensure!(
        before == versions(testbed).await?,
        "the doctor has written a CRD"
    );
    owners(&report)?;
    says(
        &report,
        &[("Deployment hypershift/operator-legacy", "it does not exist")],
    )?;
    says(
        &report,
        &[("HostedCluster clusters/torn", "LegacyAndPrivate")],
    )?;
    says(&report, &[("service account operator", "it may not")])?;
    step.done_with(&format!(
        "{} CRDs, {} findings",
        report.crds.len(),
        report.findings.len()
    ));

    let step = testbed
        .progress
        .step("a conversion webhook without a Service");
    let broken = format!("{CRDS}/machines.{}", core(CapiTypes::Private)?);
    let webhook = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": { "service": { "namespace": OPERATORS, "name": "absent", "path": "/convert" } },
    } } } });
    testbed
        .admin
        .patch(&broken, testbed::client::Patch::Merge, &webhook)
        .await?;
    let report = examine(testbed).await?;
    let subject = format!("machines.{}", core(CapiTypes::Private)?);
    says(
        &report,
        &[
            (
                &subject,
                "its webhook's Service hypershift/absent is not there",
            ),
            (&subject, "its webhook has no caBundle"),
        ],
    )?;
    step.done();
    Ok(())
}

/// As the platform's own operator signs them.
fn platforms(mut crds: Vec<Value>) -> Vec<Value> {
    for crd in &mut crds {
        crd["metadata"]["annotations"]["include.release.openshift.io/self-managed"] = "true".into();
    }
    crds
}

async fn clusters(testbed: &Testbed) -> Result<()> {
    let examples =
        fixtures::load(&fixtures::install_manifests().join("../examples/hosted-cluster.yaml"))?;
    let example = examples
        .iter()
        .find(|object| object["kind"] == "HostedCluster");
    let example = example.context("the example has no HostedCluster")?;
    for (name, annotations) in [
        ("old", json!({})),
        (
            "torn",
            json!({
                "hypershift.openshift.io/private-capi-types": "true",
                "hypershift.openshift.io/scope": "legacy",
            }),
        ),
    ] {
        let mut object = example.clone();
        object["metadata"]["name"] = name.into();
        object["metadata"]["annotations"] = annotations;
        testbed
            .admin
            .create(&HOSTED_CLUSTERS.within(CLUSTERS), &object)
            .await?;
    }
    let standard = core(CapiTypes::Standard)?;
    let version = format!("{standard}/v1beta2");
    let infrastructure = json!({ "apiGroup": format!("infrastructure.{standard}"), "kind": "DevCluster", "name": "old" });
    let cluster = json!({
        "apiVersion": version,
        "kind": "Cluster",
        "metadata": { "name": "old", "namespace": "clusters-old" },
        "spec": { "infrastructureRef": infrastructure },
    });
    testbed
        .admin
        .create(
            &Resource::new(&version, "clusters").within("clusters-old"),
            &cluster,
        )
        .await?;
    Ok(())
}

fn owners(report: &Report) -> Result<()> {
    let crds: BTreeMap<&str, &str> = report
        .crds
        .iter()
        .map(|crd| (&*crd.name, &*crd.owner))
        .collect();
    let machines = |capi_types| Ok::<_, anyhow::Error>(format!("machines.{}", core(capi_types)?));
    ensure!(
        crds.get(&*machines(CapiTypes::Private)?) == Some(&"ours"),
        "{crds:?}"
    );
    ensure!(
        crds.get(&*machines(CapiTypes::Standard)?) == Some(&"platform"),
        "{crds:?}"
    );
    ensure!(
        crds.get("hostedclusters.hypershift.openshift.io") == Some(&"ours"),
        "{crds:?}"
    );
    let clusters: BTreeMap<&str, (&str, &str)> = report
        .clusters
        .iter()
        .map(|line| (&*line.name, (&*line.owner, &*line.because)))
        .collect();
    let old = (
        "operator-legacy",
        "not annotated; objects in standard groups",
    );
    ensure!(clusters.get("clusters/old") == Some(&old), "{clusters:?}");
    Ok(())
}

/// The report has a finding for each subject and beginning of a problem.
fn says(report: &Report, expected: &[(&str, &str)]) -> Result<()> {
    for (subject, problem) in expected {
        let found = report
            .findings
            .iter()
            .any(|finding| finding.subject == *subject && finding.problem.starts_with(problem));
        let text = report.text(Detail::Findings);
        ensure!(found, "no finding for {subject}: {problem}\n{text}");
    }
    Ok(())
}

async fn examine(testbed: &Testbed) -> Result<Report> {
    let access = Access {
        kubeconfig: Some(testbed.control_plane.admin_kubeconfig().to_owned()),
        context: None,
    };
    let report = diagnose(&access, OPERATORS, &GroupTable::default()).await?;
    // Programs read the same.
    serde_json::to_string(&report)?;
    Ok(report)
}

async fn versions(testbed: &Testbed) -> Result<Vec<Value>> {
    let crds = testbed.admin.list(CRDS).await?;
    Ok(crds
        .into_iter()
        .map(|crd| crd["metadata"]["resourceVersion"].clone())
        .collect())
}

fn core(capi_types: CapiTypes) -> Result<String> {
    let table = GroupTable::default();
    let pair = table.pairs().first().context("the table is empty")?;
    Ok(pair.name(capi_types).to_owned())
}
