//! The fixture of the tests: an API server with private CRDs of every version, backends, and two replicas of the webhook.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use api::group::GroupTable;
use base64::{Engine, engine::general_purpose::STANDARD};
use cli::crds::source::module;
use cli::crds::{Batch, Derivation, Versions};
use serde_json::{Value, json};
use testbed::certs::Authority;
use testbed::crds;
use testbed::modules::Module;
use testbed::progress::Progress;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::work_dir::WorkDir;

use crate::conversion::backend::Backends;
use crate::conversion::reviews::Webhook;
use crate::conversion::shims::Shims;

/// Namespace of the objects.
pub(crate) const NAMESPACE: &str = "conversion";
/// Go modules of the installed CRDs. Kinds of the second are referenced, and never converted.
const MODULES: [&str; 2] = ["sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test"];

/// All of it.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) shims: Shims,
    pub(crate) backends: Backends,
    pub(crate) testbed: Testbed,
    /// The standard CRDs, as upstream has them.
    pub(crate) standard: Vec<Value>,
    batches: Vec<Batch>,
    certificates: PathBuf,
}

// === impl Fixture ===

impl Fixture {
    /// In the order in which the product is installed: CRDs of one version, the webhook, CRDs of all versions.
    pub(crate) async fn start(progress: Progress) -> Result<Self> {
        let fixture = Self::prepare("conversion", progress, |work_dir, directory| {
            issue(directory, &work_dir.join("authority"), None)
        })
        .await?;
        let step = fixture
            .testbed
            .progress
            .step("installing CRDs of all versions");
        fixture.serve_all_versions().await?;
        step.done();
        Ok(fixture)
    }

    /// All of it but the CRDs of all versions. `issue` writes the first certificate into a directory.
    pub(crate) async fn prepare(
        name: &str,
        progress: Progress,
        issue: impl FnOnce(&WorkDir, &Path) -> Result<()>,
    ) -> Result<Self> {
        let mut testbed = Testbed::start(name, progress).await?;
        let batches = tokio::task::spawn_blocking(read).await??;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let mut one_version = Derivation::new(GroupTable::default());
        one_version.versions = Some(Versions::Storage);
        let step = testbed.progress.step("installing CRDs of one version");
        crds::install(&testbed.admin, &one_version.run(batches.clone())?.crds).await?;
        step.done();

        let work_dir = Arc::clone(testbed.work_dir());
        let certificates = work_dir.join("webhook");
        fs::create_dir_all(&certificates)?;
        issue(&work_dir, &certificates)?;
        let step = testbed
            .progress
            .step("starting the stock managers as backends");
        let backends = Backends::start(&mut testbed, &work_dir, &certificates).await?;
        step.done();
        let step = testbed.progress.step("starting the webhook");
        let program = testbed.upstream().await?.program;
        let shims = Shims::start(&program, &work_dir, &certificates, &backends.routes()).await?;
        step.done();
        let documents = batches.iter().flat_map(|batch| &batch.documents);
        Ok(Self {
            standard: documents.map(|document| document.value.clone()).collect(),
            shims,
            backends,
            testbed,
            batches,
            certificates,
        })
    }

    /// Points the private CRDs at the webhook. There is no Service here, so it is by URL.
    pub(crate) async fn serve_all_versions(&self) -> Result<()> {
        let authority = fs::read(self.authority())?;
        let client = json!({
            "url": self.shims.url(),
            "caBundle": STANDARD.encode(&authority),
        });
        crds::install(&self.testbed.admin, &self.all_versions(&client)?).await
    }

    /// The private CRDs of all versions, which find the webhook so.
    pub(crate) fn all_versions(&self, client: &Value) -> Result<Vec<Value>> {
        let mut all = Derivation::new(GroupTable::default());
        all.conversion = "webhook=hypershift/capi-conversion-webhook-shim".parse()?;
        let mut crds = all.run(self.batches.clone())?.crds;
        for crd in &mut crds {
            crd["spec"]["conversion"]["webhook"]["clientConfig"] = client.clone();
        }
        Ok(crds)
    }

    /// The directory of the certificate that is shown.
    pub(crate) fn certificates(&self) -> &Path {
        &self.certificates
    }

    /// The authorities of the webhook and of the backends.
    pub(crate) fn authority(&self) -> PathBuf {
        self.certificates.join("ca.crt")
    }

    /// The first replica, without the Service.
    pub(crate) fn shim(&self) -> Result<Webhook> {
        Webhook::new(&self.shims.replicas[0].server(), &self.authority())
    }

    /// A new authority and a new certificate, in the order in which the product changes them: trust first.
    pub(crate) async fn rotate(&self) -> Result<()> {
        let work_dir = self.testbed.work_dir();
        let before = fs::read_to_string(self.authority())?;
        let next = work_dir.join("next");
        issue(&next, &work_dir.join("next-authority"), Some(&before))?;
        fs::copy(next.join("ca.crt"), self.authority())?;
        self.serve_all_versions().await?;
        for name in ["tls.key", "tls.crt"] {
            fs::copy(next.join(name), self.certificates.join(name))?;
        }
        Ok(())
    }

    /// The authority of the second certificate alone.
    pub(crate) fn next_authority(&self) -> PathBuf {
        self.testbed.work_dir().join("next-authority/ca.crt")
    }
}

/// Makes the three files of a serving certificate in `directory`; `trusted` is trusted beside the new authority.
fn issue(directory: &Path, authority: &Path, trusted: Option<&str>) -> Result<()> {
    let issuer = Authority::create(authority)?;
    let certificate = issuer.server("webhook")?;
    fs::create_dir_all(directory)?;
    fs::copy(&certificate.certificate, directory.join("tls.crt"))?;
    fs::copy(&certificate.key, directory.join("tls.key"))?;
    let mut authorities = fs::read_to_string(issuer.certificate())?;
    authorities.push_str(trusted.unwrap_or_default());
    fs::write(directory.join("ca.crt"), authorities)?;
    Ok(())
}

fn read() -> Result<Vec<Batch>> {
    MODULES
        .iter()
        .map(|path| {
            let version = Module::ClusterApi.version_of(path)?;
            let module: module::Module = format!("{path}@{version}").parse()?;
            module::read(&module).with_context(|| module.to_string())
        })
        .collect()
}
