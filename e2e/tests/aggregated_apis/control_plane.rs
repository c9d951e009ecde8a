//! A control plane whose certificates PKI has issued, and its two aggregated API servers.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use api::group::CapiTypes;
use control_plane_component::facts::Infra;
use control_plane_component::settings::Settings;
use control_plane_component::{Context, Objects, Predicates, Release};
use control_plane_operator::components;
use control_plane_operator::hosted_cluster_config::resources::desired::{self, Guest, STEPS};
use control_plane_operator::pki::{self, CertificateSet};
use control_plane_operator::render::Input;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::client::ApiClient;
use testbed::images::{StaticProgram, build_static};
use testbed::progress::Progress;
use testbed::site::Site;
use testbed::work_dir::WorkDir;

use super::server::{Pair, Server};

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../control-plane-component/tests/data/base"
);
/// What components read besides certificates.
const OBJECTS: [&str; 2] = ["configmap-feature-gate.yaml", "secret-pull-secret.yaml"];
/// The certificate by which the API server is recognized.
const FRONT_PROXY: &str = "kas-aggregator-crt";

/// The control plane.
pub(crate) struct ControlPlane {
    // In the order in which they are to end.
    pub(crate) oauth: Server,
    pub(crate) openshift: Server,
    pub(crate) testbed: testbed::control_plane::ControlPlane,
    pub(crate) progress: Progress,
    pub(crate) work_dir: Arc<WorkDir>,
    admin: ApiClient,
    objects: Objects,
    hcp: Value,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Issues certificates, and starts the API server and both others.
    pub(crate) async fn start(name: &str, progress: Progress) -> Result<Self> {
        let work_dir = Arc::new(WorkDir::open(name)?);
        let binaries = Binaries::ensure(&Binary::CONTROL_PLANE, &progress).await?;
        let program = build_static(
            &StaticProgram {
                package: "pod-tools",
                name: "api-stand-in",
            },
            &progress,
        )
        .await?;
        let step = progress.step("issuing certificates, starting the API server");
        let input = input()?;
        let mut testbed =
            testbed::control_plane::ControlPlane::new(&binaries, Site::Loopback, &work_dir)?;
        let front_proxy = work_dir.join("front-proxy");
        fs::create_dir_all(&front_proxy)?;
        let (certificate, key) = pair(&input.objects, FRONT_PROXY)?;
        for (flag, file, bytes) in [
            ("proxy-client-cert-file", "tls.crt", certificate),
            ("proxy-client-key-file", "tls.key", key),
        ] {
            let path = front_proxy.join(file);
            fs::write(&path, bytes)?;
            testbed.api_server.add_flag(flag, path.display());
        }
        testbed.start().await?;
        let openshift = server(
            "openshift-apiserver",
            "openshift-apiserver",
            &program,
            &input,
            &work_dir,
        );
        let oauth = server(
            "openshift-oauth-apiserver",
            "oauth-apiserver",
            &program,
            &input,
            &work_dir,
        );
        let (openshift, oauth) = (openshift.await?, oauth.await?);
        step.done();
        Ok(Self {
            oauth,
            openshift,
            admin: testbed.admin().await?,
            testbed,
            progress,
            work_dir,
            hcp: serde_json::to_value(&input.hosted_control_plane)?,
            objects: input.objects,
        })
    }

    pub(crate) fn admin(&self) -> &ApiClient {
        &self.admin
    }

    /// The certificate of a Secret.
    pub(crate) fn credentials(&self, secret: &str) -> Result<Pair> {
        pair(&self.objects, secret)
    }

    pub(crate) async fn start_controller_manager(&mut self) -> Result<()> {
        self.testbed.controller_manager.start().await
    }

    /// Writes the objects of the step "aggregated APIs"; returns the names of the APIServices.
    ///
    /// Endpoints may not be on loopback, so the Services lead to the servers by a name. In hosted control planes, the API
    /// server uses the Endpoints.
    pub(crate) async fn register(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for mut object in self.registrations()? {
            match object["kind"].as_str() {
                Some("Service") => {
                    object["spec"] = json!({ "type": "ExternalName", "externalName": "localhost" });
                }
                Some("APIService") => {
                    let service = &mut object["spec"]["service"];
                    let servers = [&self.openshift, &self.oauth];
                    let server = servers.into_iter().find(|it| service["name"] == it.name);
                    service["port"] = json!(server.context("another server")?.port);
                    names.push(
                        object["metadata"]["name"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                    );
                }
                _ => continue,
            }
            self.admin.apply(&[object]).await?;
        }
        Ok(names)
    }

    fn registrations(&self) -> Result<Vec<Value>> {
        let mut sources = self.objects.clone();
        for server in [&self.openshift, &self.oauth] {
            let metadata = json!({ "name": server.name });
            sources.insert(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": { "clusterIP": "10.0.0.1" },
            }));
            sources.insert(json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "status": { "availableReplicas": 1 },
            }));
        }
        let step = STEPS.iter().find(|step| step.name == "aggregated APIs");
        let built = step.context("no step")?.build(&desired::Input {
            hcp: &self.hcp,
            release: &Release::default(),
            sources: &sources,
            guest: &Guest::default(),
            settings: &desired::Settings::default(),
            random: &[0; 96],
            now: Timestamp::now(),
        });
        ensure!(built.errors.is_empty(), "{:?}", built.errors);
        Ok(built
            .objects
            .into_iter()
            .map(|object| object.value)
            .collect())
    }

    /// Ends everything; keeps the logs of a failure.
    pub(crate) fn finish(mut self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.work_dir.keep();
        }
        outcome?;
        self.oauth.check()?;
        self.openshift.check()
    }
}

async fn server(
    name: &'static str,
    as_name: &str,
    program: &std::path::Path,
    input: &Input,
    work_dir: &Arc<WorkDir>,
) -> Result<Server> {
    let component = components::all().iter().find(|it| it.name == name);
    let rendered = input.component(component.context("no component")?)?;
    let rendered: Vec<Value> = rendered.into_iter().map(|file| file.object).collect();
    Server::start(name, as_name, program, &rendered, &input.objects, work_dir).await
}

/// A hosted control plane with all its certificates.
fn input() -> Result<Input> {
    let read = |path: PathBuf| {
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let data = PathBuf::from(DATA);
    let hcp = read(data.join("hosted-control-plane.yaml"))?;
    let images = read(data.join("images.txt"))?;
    let images = images
        .lines()
        .map(|name| (name.to_owned(), name.to_owned()));
    let mut settings = Settings::new("own");
    settings.capi_types = CapiTypes::Private;
    let mut input = Input {
        hosted_control_plane: serde_saphyr::from_str(&hcp)?,
        release: Release::default().with_overrides("own", &images.collect()),
        objects: Objects::default(),
        settings,
        predicates: Predicates::Evaluated,
    };
    for file in OBJECTS {
        let object = read(data.join("objects").join(file))?;
        input.objects.insert(serde_saphyr::from_str(&object)?);
    }
    let context = Context {
        hcp: &input.hosted_control_plane,
        release: &input.release,
        user_release: &input.release,
        infra: &Infra::default(),
        objects: &input.objects,
        settings: &input.settings,
        predicates: input.predicates,
    };
    let issued = pki::objects(
        components::declared(),
        &context,
        CertificateSet::All,
        Timestamp::now(),
    )?;
    for object in issued {
        input.objects.insert(object);
    }
    Ok(input)
}

fn pair(objects: &Objects, secret: &str) -> Result<Pair> {
    let value = |key| {
        let value = objects.secret_value(secret, key);
        value.with_context(|| format!("Secret {secret} has no {key}"))
    };
    Ok((value("tls.crt")?, value("tls.key")?))
}
