//! The hosted API server: two replicas with one etcd, each with the client CA bundle that its node has.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::binaries::{Binaries, Binary};
use testbed::certs::{Authority, Certificate};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::etcd::Etcd;
use testbed::ports;
use testbed::process::Launch;
use testbed::service::{Service, secure_health};
use testbed::site::Site;
use testbed::testbed::Testbed;
use testbed::work_dir::WorkDir;
use tokio::task::JoinHandle;

use crate::break_glass::client::Credentials;

const ISSUER: &str = "https://kubernetes.default.svc";
const PODS: Resource<'_> = Resource::new("v1", "pods");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// How long a changed bundle takes to each node: kubelets look at most once a minute.
const DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(6)];
const LOOK: Duration = Duration::from_millis(200);

/// Both replicas, and what copies the bundle to them.
pub(crate) struct Hosted {
    replicas: Vec<SocketAddr>,
    authority: Authority,
    copies: Vec<JoinHandle<()>>,
    _services: Vec<Service>,
    _etcd: Etcd,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        for copy in &self.copies {
            copy.abort();
        }
    }
}

// === impl Hosted ===

impl Hosted {
    pub(crate) async fn start(
        testbed: &Testbed,
        admin: &ApiClient,
        namespace: &str,
    ) -> Result<Self> {
        let step = testbed
            .progress
            .step("starting two replicas of a hosted API server");
        let work_dir = Arc::new(WorkDir::open("break-glass-hosted")?);
        let binaries = Binaries::ensure(&Binary::CONTROL_PLANE, &testbed.progress).await?;
        let authority = Authority::create(&work_dir.join("pki"))?;
        let mut etcd = Etcd::new(binaries.path(Binary::Etcd)?, Site::Loopback, &work_dir)?;
        etcd.service.start().await?;
        let port = ports::allocate()?;
        let replicas: Vec<_> = [2, 3]
            .map(|last| SocketAddr::from(([127, 0, 0, last], port)))
            .into();
        let hosts: Vec<_> = replicas
            .iter()
            .map(|replica| replica.ip().to_string())
            .collect();
        let names: Vec<_> = hosts
            .iter()
            .cloned()
            .chain(["kube-apiserver".to_owned()])
            .collect();
        let serving = authority.server_at("serving", &names)?;
        let key = authority.signing_key("service-account")?;
        let (mut services, mut copies) = (Vec::new(), Vec::new());
        for (index, (address, delay)) in replicas.iter().zip(DELAYS).enumerate() {
            let directory = work_dir.join(format!("replica-{index}"));
            std::fs::create_dir_all(&directory)?;
            let bundle = directory.join("ca.crt");
            let own = std::fs::read_to_string(authority.certificate())?;
            std::fs::write(&bundle, &own)?;
            let launch = Launch::new(
                format!("hosted-kube-apiserver-{index}"),
                binaries.path(Binary::KubeApiserver)?,
            )
            .flag("etcd-servers", etcd.url())
            .flag("bind-address", address.ip())
            .flag("advertise-address", address.ip())
            .flag("secure-port", address.port())
            .flag("service-cluster-ip-range", "10.96.0.0/16")
            .flag("endpoint-reconciler-type", "none")
            .path_flag("tls-cert-file", &serving.certificate)
            .path_flag("tls-private-key-file", &serving.key)
            .path_flag("client-ca-file", &bundle)
            .flag("service-account-issuer", ISSUER)
            .path_flag("service-account-key-file", &key.public)
            .path_flag("service-account-signing-key-file", &key.private)
            .flag("authorization-mode", "Node,RBAC")
            .flag("profiling", false);
            let health = secure_health(*address, &authority.certificate(), "/readyz")?;
            let mut service = Service::new(launch, &work_dir, health);
            service.start().await?;
            services.push(service);
            copies.push(tokio::spawn(copy(
                admin.clone(),
                namespace.to_owned(),
                own,
                bundle,
                delay,
            )));
        }
        let hosted = Self {
            replicas,
            authority,
            copies,
            _services: services,
            _etcd: etcd,
        };
        hosted.declare(admin, namespace).await?;
        step.done();
        Ok(hosted)
    }

    /// Creates the Deployment, the pods and the CA of the replicas, as a control plane has them.
    async fn declare(&self, admin: &ApiClient, namespace: &str) -> Result<()> {
        let root = std::fs::read_to_string(self.authority.certificate())?;
        let labels = json!({ "app": "kube-apiserver" });
        let port = self.replicas.first().context("no replica")?.port();
        let containers = json!([{
            "name": "kube-apiserver", "image": "kube-apiserver",
            "ports": [{ "name": "client", "containerPort": port }],
        }]);
        let config_map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": "root-ca" }, "data": { "ca.crt": root },
        });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": namespace, "name": "kube-apiserver" },
            "spec": {
                "replicas": self.replicas.len(),
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
            },
        });
        admin.apply(&[config_map, deployment]).await?;
        for (index, replica) in self.replicas.iter().enumerate() {
            let name = format!("kube-apiserver-{index}");
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "namespace": namespace, "name": name, "labels": labels },
                "spec": { "containers": containers, "automountServiceAccountToken": false },
            });
            admin.create(&PODS.within(namespace), &pod).await?;
            let address = replica.ip().to_string();
            let status = json!({ "status": {
                "podIP": address,
                "podIPs": [{ "ip": address }],
                "conditions": [{ "type": "Ready", "status": "True" }],
            }});
            let path = format!("{}/status", PODS.named(namespace, &name));
            admin.patch(&path, Patch::Merge, &status).await?;
        }
        Ok(())
    }

    /// A user whose authority is none of the operator's.
    pub(crate) fn administrator(&self) -> Result<Credentials> {
        let Certificate { certificate, key } =
            self.authority
                .client("admin", "admin", Some("system:masters"))?;
        Ok(Credentials {
            certificate: std::fs::read(certificate)?,
            key: std::fs::read(key)?,
        })
    }

    /// The status code of each replica, on a new connection.
    pub(crate) async fn answers(&self, credentials: &Credentials) -> Result<Vec<u16>> {
        let mut codes = Vec::new();
        for replica in &self.replicas {
            codes.push(self.ask(credentials, *replica).await?.0);
        }
        Ok(codes)
    }

    /// What each replica takes the user for.
    pub(crate) async fn reviews(&self, credentials: &Credentials) -> Result<Vec<Value>> {
        let mut reviews = Vec::new();
        for replica in &self.replicas {
            let (code, review) = self.ask(credentials, *replica).await?;
            ensure!(code == 201, "{replica} answers {code}: {review}");
            reviews.push(review);
        }
        Ok(reviews)
    }

    async fn ask(&self, credentials: &Credentials, replica: SocketAddr) -> Result<(u16, Value)> {
        let client = credentials.client(replica, &self.authority.certificate())?;
        let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let request = http::Request::post(REVIEWS)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())?;
        match client.request::<Value>(request).await {
            Ok(review) => Ok((201, review)),
            Err(kube::Error::Api(status)) => Ok((status.code, json!(status.message))),
            Err(error) => Err(error).context("no answer"),
        }
    }
}

/// What CPO and a kubelet do: the node's bundle is the own authority and the operator's, some time later.
async fn copy(admin: ApiClient, namespace: String, own: String, bundle: PathBuf, delay: Duration) {
    let mut written = own.clone();
    loop {
        tokio::time::sleep(LOOK).await;
        let found = admin
            .find(&CONFIG_MAPS.named(&namespace, "total-client-ca"))
            .await;
        let Ok(Some(found)) = found else {
            continue;
        };
        let total = found["data"]["ca-bundle.crt"].as_str().unwrap_or_default();
        let desired = format!("{own}{total}");
        if desired != written {
            tokio::time::sleep(delay).await;
            if replace(&bundle, &desired).is_ok() {
                written = desired;
            }
        }
    }
}

/// Atomically, as the kubelet does.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let next = path.with_extension("next");
    std::fs::write(&next, text)?;
    std::fs::rename(next, path)
}
