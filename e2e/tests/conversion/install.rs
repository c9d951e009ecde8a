//! `hypershift install --enable-conversion-webhook` before a real API server (C06): no CRD names the webhook before it
//! is there, or while it would not be trusted, and what prevents that is refused before anything is written.
//!
//! Nothing runs pods here: the test says itself when the webhook's Deployment is available.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use testbed::cargo::command_line;
use testbed::client::{Patch, Resource};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::conversion::backend::NAMESPACE;

const NAME: &str = "capi-conversion-webhook-shim";
const SECRET: &str = "capi-conversion-webhook-shim-serving";
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// A CRD of several versions whose kind a backend converts.
const CLUSTERS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.hypershift.openshift.io";
/// One of several versions whose kind has no backend here.
const KUBEADM: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kubeadmconfigs.bootstrap.cluster.hypershift.openshift.io";
const ARGUMENTS: [&str; 8] = [
    "install",
    "--private-capi-types",
    "--private-crds-from=module=sigs.k8s.io/cluster-api",
    "--capi-proxy-image=registry.example.com/capi-proxy:v1",
    "--hypershift-image=registry.example.com/hypershift-operator:v1",
    "--enable-conversion-webhook",
    "--conversion-backend=core=images.example.com/cluster-api-controller:v1",
    "--wait-until-available=false",
];

/// Who installs, and where.
struct Installer<'t> {
    testbed: &'t Testbed,
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// Check C06.
#[tokio::test]
async fn crds_reference_only_available_and_trusted_webhooks() -> Result<()> {
    let testbed = Testbed::start("conversion-install", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let installer = Installer::new(testbed).await?;
    installer.a_foreign_secret_is_not_taken_over().await?;
    installer.before_it_is_there().await?;
    installer.once_it_is_there().await?;
    installer.changes_by_others_are_refused().await?;
    installer.a_damaged_certificate_is_replaced().await
}

// === impl Installer ===

impl<'t> Installer<'t> {
    async fn new(testbed: &'t Testbed) -> Result<Self> {
        let program = command_line(&testbed.progress).await?;
        let kubeconfig = testbed.kubeconfig_of("installer", Some("system:masters"))?;
        Ok(Self {
            testbed,
            program,
            kubeconfig,
        })
    }

    /// What it said, if it succeeded; otherwise that is the error.
    async fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .output()
            .await
            .context("cannot run hypershift")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{}: {said}", output.status);
        Ok(said)
    }

    async fn install(&self, more: &[&str]) -> Result<String> {
        let arguments: Vec<&str> = ARGUMENTS.iter().chain(more).copied().collect();
        self.run(&arguments).await
    }

    /// Fails unless an installation is refused with a message that has these texts, and changes nothing.
    async fn is_refused(&self, words: &[&str]) -> Result<()> {
        let before = self.revisions().await?;
        let Err(error) = self.install(&[]).await else {
            anyhow::bail!("it is not refused with {words:?}");
        };
        let said = error.to_string();
        for word in words.iter().chain(&["nothing was changed"]) {
            ensure!(
                said.contains(word),
                "{word:?} is not in the refusal: {said}"
            );
        }
        self.is_unchanged(&before).await
    }

    /// The revision of each key's last change, of what an installation writes.
    async fn revisions(&self) -> Result<BTreeMap<String, u64>> {
        let stored = self.testbed.control_plane.etcd.stored("/registry/").await?;
        // What the API server writes by itself, some of it only seconds after it is ready.
        let of_the_server = [
            "leases/",
            "masterleases/",
            "events/",
            "apiregistration.k8s.io/",
            "ipaddresses/",
            "services/specs/default/kubernetes",
            "services/endpoints/default/kubernetes",
            "endpointslices/default/kubernetes",
        ];
        let written = stored.into_iter().filter(|one| {
            let key = one.key.trim_start_matches("/registry/");
            !of_the_server.iter().any(|prefix| key.starts_with(prefix))
        });
        Ok(written.map(|one| (one.key, one.revision)).collect())
    }

    async fn is_unchanged(&self, before: &BTreeMap<String, u64>) -> Result<()> {
        let after = self.revisions().await?;
        let changed: Vec<_> = after
            .iter()
            .filter(|(key, revision)| before.get(*key) != Some(revision))
            .collect();
        let is_whole = before.keys().all(|key| after.contains_key(key));
        ensure!(changed.is_empty() && is_whole, "changed: {changed:?}");
        Ok(())
    }

    async fn crd(&self, path: &str) -> Result<Crd> {
        self.testbed.admin.get(path).await.map(Crd)
    }

    async fn secret(&self) -> Result<Value> {
        let path = SECRETS.named(NAMESPACE, SECRET);
        self.testbed.admin.get(&path).await
    }

    /// It is not ours, so its certificate is neither used nor overwritten.
    async fn a_foreign_secret_is_not_taken_over(&self) -> Result<()> {
        let admin = &self.testbed.admin;
        testbed::service_account::ensure_namespace(admin, NAMESPACE).await?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"namespace": NAMESPACE, "name": SECRET},
            "stringData": {"tls.crt": "theirs", "tls.key": "theirs", "ca.crt": "theirs"},
        });
        admin.create(&SECRETS.within(NAMESPACE), &theirs).await?;
        self.is_refused(&[SECRET, "--take-over"]).await?;
        admin.delete(&SECRETS.named(NAMESPACE, SECRET)).await
    }

    /// Installed once and again, CRDs serve the stored version, which needs no conversion.
    async fn before_it_is_there(&self) -> Result<()> {
        let said = self.install(&[]).await?;
        ensure!(said.contains("serve their stored version only"), "{said}");
        let held_back = async || {
            let crd = self.crd(CLUSTERS).await?;
            ensure!(crd.versions() == ["v1beta2"], "{:?}", crd.versions());
            crd.names_no_webhook()
        };
        held_back().await?;
        self.crd(KUBEADM).await?.names_no_webhook()?;
        let before = self.revisions().await?;
        self.install(&[]).await?;
        self.is_unchanged(&before).await?;
        held_back().await
    }

    /// Then they serve all versions, and trust who issued the webhook's certificate; without a backend they do not.
    async fn once_it_is_there(&self) -> Result<()> {
        self.becomes_available().await?;
        let without = self.revisions().await?;
        self.install(&["--dry-run"]).await?;
        self.is_unchanged(&without).await?;
        self.install(&[]).await?;
        let crd = self.crd(CLUSTERS).await?;
        ensure!(crd.versions().len() > 1, "{:?}", crd.versions());
        ensure!(crd.trusts(&self.secret().await?), "{}", crd.client());
        let service = &crd.client()["service"];
        let expected =
            json!({"namespace": NAMESPACE, "name": NAME, "path": "/convert", "port": 443});
        ensure!(*service == expected, "the service is {service}");
        self.testbed
            .admin
            .get(&SERVICES.named(NAMESPACE, NAME))
            .await?;
        let kubeadm = self.crd(KUBEADM).await?;
        kubeadm.names_no_webhook()?;
        ensure!(kubeadm.versions().len() == 1, "{:?}", kubeadm.versions());
        let before = self.revisions().await?;
        self.install(&[]).await?;
        self.is_unchanged(&before).await
    }

    /// As the controller of Deployments would say it.
    async fn becomes_available(&self) -> Result<()> {
        let path = DEPLOYMENTS.named(NAMESPACE, NAME);
        let admin = &self.testbed.admin;
        let deployment = admin.get(&path).await?;
        let replicas = &deployment["spec"]["replicas"];
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        });
        let status = json!({"status": status});
        let path = format!("{path}/status");
        admin.patch(&path, Patch::Merge, &status).await.map(drop)
    }

    /// A stanza that was removed, and one that trusts another authority: refused, and fixed on request.
    async fn changes_by_others_are_refused(&self) -> Result<()> {
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        let others = STANDARD.encode(std::fs::read(
            &self.testbed.control_plane.endpoint().authority,
        )?);
        let client = json!({"caBundle": others});
        let other = json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}});
        for (broken, field) in [(none, ".spec.conversion"), (other, "caBundle")] {
            let admin = &self.testbed.admin;
            admin.patch(CLUSTERS, Patch::Merge, &broken).await?;
            let words = [
                "clusters.cluster.hypershift.openshift.io",
                field,
                "--take-over",
            ];
            self.is_refused(&words).await.context(field)?;
            self.install(&["--take-over"]).await.context(field)?;
            let crd = self.crd(CLUSTERS).await?;
            ensure!(
                crd.trusts(&self.secret().await?),
                "{field}: {}",
                crd.client()
            );
        }
        Ok(())
    }

    /// With a new one, which CRDs trust before it is shown.
    async fn a_damaged_certificate_is_replaced(&self) -> Result<()> {
        let path = SECRETS.named(NAMESPACE, SECRET);
        let before = self.secret().await?;
        let damage = json!({"data": {"tls.crt": STANDARD.encode("damaged")}});
        self.testbed
            .admin
            .patch(&path, Patch::Merge, &damage)
            .await?;
        self.install(&["--take-over"]).await?;
        let after = self.secret().await?;
        ensure!(
            after["data"]["tls.key"] != before["data"]["tls.key"],
            "the key is the same"
        );
        let crd = self.crd(CLUSTERS).await?;
        ensure!(crd.trusts(&after), "{}", crd.client());
        ensure!(
            authorities(&after)?.len() == 2,
            "the authority of before is not trusted"
        );
        let revisions = self.revisions().await?;
        let last = |words: [&str; 2]| {
            let found = revisions
                .iter()
                .filter(|(key, _)| words.iter().all(|word| key.contains(word)));
            found.map(|(_, revision)| *revision).max().unwrap_or(0)
        };
        let (trusted, shown) = (
            last(["customresourcedefinitions/", "clusters.cluster.hypershift"]),
            last(["secrets/", SECRET]),
        );
        ensure!(
            0 < trusted && trusted < shown,
            "it is shown at {shown} and trusted at {trusted}"
        );
        Ok(())
    }
}

/// A CRD as it is served.
struct Crd(Value);

// === impl Crd ===

impl Crd {
    fn versions(&self) -> Vec<&str> {
        let versions = self.0["spec"]["versions"].as_array().into_iter().flatten();
        versions
            .filter_map(|version| version["name"].as_str())
            .collect()
    }

    fn client(&self) -> &Value {
        &self.0["spec"]["conversion"]["webhook"]["clientConfig"]
    }

    fn names_no_webhook(&self) -> Result<()> {
        let conversion = &self.0["spec"]["conversion"];
        ensure!(conversion["strategy"] == "None", "it is {conversion}");
        Ok(())
    }

    /// Whether it trusts exactly the authorities that the Secret names.
    fn trusts(&self, secret: &Value) -> bool {
        let bundle = &self.client()["caBundle"];
        bundle.is_string() && *bundle == secret["data"]["ca.crt"]
    }
}

fn authorities(secret: &Value) -> Result<Vec<CertificateDer<'static>>> {
    let encoded = secret["data"]["ca.crt"].as_str().context("no authority")?;
    let pem = STANDARD.decode(encoded)?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>();
    all.context("an authority that is none")
}
