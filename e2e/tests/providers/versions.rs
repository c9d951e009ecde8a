//! Every version of Cluster API's kinds, because some providers use `v1beta1`, which is not the stored one.
//!
//! Stock managers convert both sets of types: those under standard names directly, the private ones behind the product's
//! webhook.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{self, CapiTypes, GroupTable};
use base64::{Engine, engine::general_purpose::STANDARD};
use cli::crds::{Batch, Derivation};
use serde_json::{Value, json};
use testbed::client::ApiClient;
use testbed::testbed::Testbed;
use testbed::{crds, wait};

use crate::conversion::backend::Backends;
use crate::conversion::shims::Shims;

/// How long the API server may take to serve the versions.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// What converts.
#[derive(Debug)]
pub(crate) struct Conversion {
    backends: Backends,
    _shims: Shims,
    certificates: PathBuf,
}

// === impl Conversion ===

impl Conversion {
    /// Has all versions of both sets of types served. CRDs of the stored version are there already.
    pub(crate) async fn start(testbed: &mut Testbed) -> Result<Self> {
        let work_dir = Arc::clone(testbed.work_dir());
        let certificates = work_dir.join("webhook");
        issue(testbed, &certificates)?;
        let backends = Backends::start(testbed, &work_dir, &certificates).await?;
        let program = testbed.upstream().await?.program;
        let shims = Shims::start(&program, &work_dir, &certificates, &backends.routes()).await?;
        let authority = fs::read(certificates.join("ca.crt"))?;
        let client = |url: &str| json!({ "url": url, "caBundle": STANDARD.encode(&authority) });

        let mut standard = crds::cluster_api(CapiTypes::Standard).await?;
        standard.retain(|crd| backends.of(group_of(crd)).is_ok());
        let private = private(&standard, &client(&shims.url()))?;
        for crd in &mut standard {
            let url = format!("{}/convert", backends.of(group_of(crd))?.url());
            crd["spec"]["conversion"] = json!({
                "strategy": "Webhook",
                "webhook": { "clientConfig": client(&url), "conversionReviewVersions": ["v1"] },
            });
        }
        for (capi_types, definitions) in [
            (CapiTypes::Standard, &standard),
            (CapiTypes::Private, &private),
        ] {
            crds::install(&testbed.admin, definitions).await?;
            are_served(&testbed.admin, capi_types).await?;
        }
        Ok(Self {
            backends,
            _shims: shims,
            certificates,
        })
    }

    /// A directory with a server certificate, for other webhook servers.
    pub(crate) fn certificates(&self) -> &Path {
        &self.certificates
    }

    /// Fails when a backend has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.backends.check()
    }
}

/// Writes a certificate, and who has signed it, as webhook servers expect them.
fn issue(testbed: &Testbed, directory: &Path) -> Result<()> {
    let authority = &testbed.control_plane.authority;
    let issued = authority.server("conversion-webhook")?;
    fs::create_dir_all(directory)?;
    for (from, to) in [
        (issued.certificate, "tls.crt"),
        (issued.key, "tls.key"),
        (authority.certificate(), "ca.crt"),
    ] {
        let to = directory.join(to);
        fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn private(standard: &[Value], client: &Value) -> Result<Vec<Value>> {
    let mut all = Derivation::new(GroupTable::default());
    all.conversion = "webhook=hypershift/capi-conversion-webhook-shim".parse()?;
    let batch = Batch::of_values("Cluster API", standard.to_vec());
    let mut crds = all.run(vec![batch])?.crds;
    for crd in &mut crds {
        crd["spec"]["conversion"]["webhook"]["clientConfig"] = client.clone();
    }
    Ok(crds)
}

fn group_of(crd: &Value) -> &str {
    crd["spec"]["group"].as_str().unwrap_or_default()
}

/// The version that a provider uses is discovered: without it, the provider would end.
async fn are_served(admin: &ApiClient, capi_types: CapiTypes) -> Result<()> {
    let path = format!("/apis/{}/v1beta1", group::core(capi_types));
    wait::until(&format!("{path} to be served"), SERVED_WITHIN, async || {
        let list = admin.get(&path).await?;
        let kinds = list["resources"].as_array().into_iter().flatten();
        let mut names = kinds.filter_map(|one| one["name"].as_str());
        ensure!(names.any(|name| name == "machines"), "it has no machines");
        Ok(())
    })
    .await
}
