//! The renewal of the webhook's certificate, by hypershift-operator alone: reads at a version that is not stored continue
//! without a failure, until long after the first certificate has expired.
//!
//! API servers find the webhook by its Service, which leads to this machine. The files of the certificate follow the
//! Secret, as a kubelet has them follow.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use conversion_certificates::{FIELD_MANAGER, Serving, WEBHOOK, secret_name, server_name};
use http::Request;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::operator::{self, Identity, Operator, SOON};
use testbed::progress::Progress;
use testbed::simulation::install_kinds;
use testbed::{crds, wait};
use tokio::task::JoinHandle;

use crate::conversion::backend::NAMESPACE as OPERATORS;
use crate::conversion::fixture::{Fixture, NAMESPACE};
use crate::conversion::load::Load;
use crate::conversion::replicas::{all_servers_use_the_new_certificate, calm};
use crate::conversion::stored::{NEW, OLD, cluster};

/// How long certificates are valid.
const LIFETIME: Duration = Duration::from_hours(1);
/// How long the first one still is: long enough for the overlap of a renewal.
const LEFT: Duration = Duration::from_mins(2);
/// Between two reads of the Secret.
const SYNC: Duration = Duration::from_millis(200);
const RENEWED_WITHIN: Duration = Duration::from_mins(2);
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const CLUSTERS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.hypershift.openshift.io";
const READ: &str = "read";

/// Everything that is there before the operator.
pub(crate) async fn start(progress: Progress) -> Result<Fixture> {
    Fixture::prepare("conversion-renewal", progress, |_, directory| {
        write_files(directory, &issue(LIFETIME)?.data())
    })
    .await
}

pub(crate) async fn scenario(fixture: &mut Fixture) -> Result<()> {
    install_kinds(&mut fixture.testbed).await?;
    let program = operator::build(&fixture.testbed.progress).await?;
    let admin = fixture.testbed.admin.clone();
    let first = issue(LEFT)?;
    write_files(fixture.certificates(), &first.data())?;
    is_shown(fixture, &first).await?;
    create_secret(&admin, &first).await?;
    install_crds(fixture, &first).await?;
    admin
        .create(
            &NEW.within(NAMESPACE),
            &cluster("v1beta2", READ, "KubeadmControlPlane"),
        )
        .await?;
    let mirror = Mirror::start(&admin, fixture.certificates());
    let load = Load::start(&admin, &OLD.named(NAMESPACE, READ));
    calm(&load).await?;

    let step = fixture.testbed.progress.step("the operator renews it");
    let identity = Identity::create(&fixture.testbed, Operator::Private, &program).await?;
    admin
        .apply(&may_patch(&fixture.all_versions(&json!({}))?))
        .await?;
    let mut replica = identity.replica(&fixture.testbed, "operator-1")?;
    replica.service.start().await?;
    let next = wait::until("a new certificate", RENEWED_WITHIN, async || {
        let secret = admin.get(&SECRETS.named(OPERATORS, &secret_name())).await?;
        let next = Serving::of(&secret).context("the Secret is damaged")?;
        ensure!(next.certificate() != first.certificate(), "not yet");
        Ok(next)
    })
    .await?;
    is_shown(fixture, &next).await?;
    trusts(&admin, &next).await?;
    step.done();

    let step = fixture
        .testbed
        .progress
        .step("the first certificate expires, and the API server connects again");
    let expired = |now| first.flaw(&server_name(OPERATORS), now).is_some();
    wait::until("its end", LEFT, async || {
        ensure!(expired(UnixTime::now()), "it is still valid");
        Ok(())
    })
    .await?;
    connect_again(&admin, &next).await?;
    calm(&load).await?;
    calm(&load).await?;
    let reads = load.end().await?.all_succeeded()?;
    drop(mirror);
    step.done_with(&format!("{reads} reads, none failed"));
    replica.service.check()?;
    fixture.backends.check()
}

/// A certificate that is valid for so long from now on.
fn issue(left: Duration) -> Result<Serving> {
    let now = Duration::from_secs(UnixTime::now().as_secs());
    let issued = UnixTime::since_unix_epoch((now + left).saturating_sub(LIFETIME));
    Ok(Serving::issue(
        &server_name(OPERATORS),
        "",
        LIFETIME,
        issued,
    )?)
}

/// Waits until the webhook and its backends show a certificate: the newest authority has issued it.
async fn is_shown(fixture: &Fixture, serving: &Serving) -> Result<()> {
    let authority = fixture.testbed.work_dir().join("newest.crt");
    fs::write(&authority, newest(serving.authorities())?)?;
    all_servers_use_the_new_certificate(fixture, &authority).await
}

/// The Secret as `hypershift install` writes it.
async fn create_secret(admin: &ApiClient, serving: &Serving) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {
            "namespace": OPERATORS,
            "name": secret_name(),
            "labels": { "app.kubernetes.io/managed-by": "hypershift-install" },
        },
        "data": serving.data(),
    });
    let path = SECRETS.named(OPERATORS, &secret_name());
    let request = Request::patch(format!("{path}?fieldManager={FIELD_MANAGER}"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(secret.to_string().into_bytes())?;
    let _written: Value = admin.kube().request(request).await?;
    Ok(())
}

/// The CRDs of all versions, which find the webhook by its Service, and the Service.
async fn install_crds(fixture: &Fixture, first: &Serving) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": OPERATORS, "name": WEBHOOK },
        "spec": { "type": "ExternalName", "externalName": "localhost" },
    });
    admin.create(&SERVICES.within(OPERATORS), &service).await?;
    let mut crds = fixture.all_versions(&json!({
        "service": {
            "namespace": OPERATORS,
            "name": WEBHOOK,
            "path": "/convert",
            "port": fixture.shims.port(),
        },
        "caBundle": STANDARD.encode(first.authorities()),
    }))?;
    for crd in &mut crds {
        crd["metadata"]["labels"]["app.kubernetes.io/part-of"] = json!("hypershift");
    }
    crds::install(admin, &crds).await
}

/// What `hypershift install` grants the operator for renewals, and no more.
fn may_patch(crds: &[Value]) -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let names: Vec<_> = crds.iter().map(|crd| &crd["metadata"]["name"]).collect();
    let metadata = json!({ "name": "conversion-renewal" });
    [
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": names,
                "verbs": ["patch"],
            }],
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "conversion-renewal" },
            "subjects": [{
                "kind": "ServiceAccount",
                "namespace": OPERATORS,
                "name": Operator::Private.name(),
            }],
        }),
    ]
}

/// A CRD trusts the authorities of the new certificate.
async fn trusts(admin: &ApiClient, next: &Serving) -> Result<()> {
    wait::until("the CRDs to trust it", SOON, async || {
        let crd = admin.get(CLUSTERS).await?;
        let bundle = &crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        ensure!(
            *bundle == STANDARD.encode(next.authorities()),
            "they trust others"
        );
        Ok(())
    })
    .await
}

/// Has the API server open new connections: it does for a CRD whose authorities are others than before. These are the
/// same in another order.
async fn connect_again(admin: &ApiClient, next: &Serving) -> Result<()> {
    let first = newest(next.authorities())?;
    let rest = next.authorities().replacen(&first, "", 1);
    ensure!(!rest.is_empty(), "the authority of before is not trusted");
    let bundle = STANDARD.encode(rest + &first);
    let client = json!({ "clientConfig": { "caBundle": bundle } });
    let patch = json!({ "spec": { "conversion": { "webhook": client } } });
    admin.patch(CLUSTERS, Patch::Merge, &patch).await.map(drop)
}

/// The first certificate of a bundle, PEM.
fn newest(bundle: &str) -> Result<String> {
    let end = "-----END CERTIFICATE-----\n";
    let at = bundle.find(end).context("there is no certificate")?;
    let pem = &bundle[..at + end.len()];
    CertificateDer::from_pem_slice(pem.as_bytes())?;
    Ok(pem.to_owned())
}

/// Files that follow the Secret, until this is dropped.
struct Mirror(JoinHandle<()>);

// === impl Mirror ===

impl Mirror {
    fn start(admin: &ApiClient, files: &Path) -> Self {
        let (admin, files) = (admin.clone(), files.to_owned());
        Self(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(SYNC);
            let mut known = Value::Null;
            loop {
                ticks.tick().await;
                let secret = admin.get(&SECRETS.named(OPERATORS, &secret_name())).await;
                let Ok(secret) = secret else { continue };
                if secret["data"] != known && write_files(&files, &secret["data"]).is_ok() {
                    known = secret["data"].clone();
                }
            }
        }))
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes the values of a Secret to files, each in one step.
fn write_files(directory: &Path, data: &Value) -> Result<()> {
    for key in ["ca.crt", "tls.key", "tls.crt"] {
        let value = STANDARD.decode(data[key].as_str().unwrap_or_default())?;
        let unfinished = directory.join(format!("{key}.new"));
        fs::write(&unfinished, value)?;
        fs::rename(&unfinished, directory.join(key))?;
    }
    Ok(())
}
