//! The Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager, each startable and killable.

mod backup;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::audit::AuditLog;
use crate::binaries::{Binaries, Binary};
use crate::certs::{Authority, Certificate, SigningKey, write};
use crate::client::ApiClient;
use crate::etcd::Etcd;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::process::Launch;
use crate::service::{Service, secure_health};
use crate::site::Site;
use crate::work_dir::WorkDir;

/// The issuer of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The user as whom the API server connects to kubelets.
pub(crate) const KUBELET_CLIENT: &str = "kube-apiserver-kubelet-client";

/// The three components, and what is needed to reach them.
#[derive(Debug)]
pub struct ControlPlane {
    /// Garbage collection and the other built-in controllers.
    pub controller_manager: Service,
    /// The API server.
    pub api_server: Service,
    /// What is stored.
    pub etcd: Etcd,
    /// What was requested.
    pub audit: AuditLog,
    /// Issues further client certificates.
    pub authority: Authority,
    address: SocketAddr,
    admin_kubeconfig: PathBuf,
}

/// How the API server is reached.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its URL.
    pub server: String,
    /// The authority of its certificate.
    pub authority: PathBuf,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Prepares a control plane in the testbed's directory. Nothing runs yet.
    pub fn new(binaries: &Binaries, site: Site<'_>, work_dir: &Arc<WorkDir>) -> Result<Self> {
        let authority = Authority::create(&work_dir.join("pki"))?;
        let etcd = Etcd::new(binaries.path(Binary::Etcd)?, site, work_dir)?;
        let files = Files::write(work_dir, &authority, site)?;
        let address = site.address(6443)?;
        let server = format!("https://{address}");
        let api_server = api_server(
            binaries.path(Binary::KubeApiserver)?,
            &files,
            site,
            address,
            &etcd.url(),
        );
        let user = |name, user, group| {
            let path = work_dir.join(format!("{name}.kubeconfig"));
            let certificate = authority.client(name, user, group)?;
            let credentials = Credentials::Certificate(&certificate);
            write_kubeconfig(&path, &server, Some(&files.authority), credentials)?;
            anyhow::Ok(path)
        };
        let manager_kubeconfig = user(
            "kube-controller-manager",
            "system:kube-controller-manager",
            None,
        )?;
        let manager_address = site.address(10257)?;
        let controller_manager = controller_manager(
            binaries.path(Binary::KubeControllerManager)?,
            &files,
            site,
            manager_address,
            &manager_kubeconfig,
        );
        let service = |launch, address, path| {
            let health = secure_health(address, &files.authority, path)?;
            anyhow::Ok(Service::new(site.place(launch), work_dir, health))
        };
        Ok(Self {
            controller_manager: service(controller_manager, manager_address, "/healthz")?,
            api_server: service(api_server, address, "/readyz")?,
            etcd,
            audit: AuditLog::new(files.audit_log.clone()),
            admin_kubeconfig: user("admin", "testbed-admin", Some("system:masters"))?,
            authority,
            address,
        })
    }

    /// Starts etcd and the API server. The controller manager is better started once the CRDs are there: its garbage
    /// collector looks for new kinds only every 30 seconds.
    pub async fn start(&mut self) -> Result<()> {
        self.etcd.service.start().await?;
        self.api_server.start().await
    }

    /// How the API server is reached.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            server: format!("https://{}", self.address),
            authority: self.authority.certificate(),
        }
    }

    /// The kubeconfig of the testbed's administrator (`system:masters`), who is for looking and preparing, never for
    /// what is under test.
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    /// A client for the administrator.
    pub async fn admin(&self) -> Result<ApiClient> {
        ApiClient::from_kubeconfig(&self.admin_kubeconfig).await
    }

    /// The PIDs of what runs, by component.
    pub fn pids(&self) -> Vec<(String, u32)> {
        [
            &self.etcd.service,
            &self.api_server,
            &self.controller_manager,
        ]
        .into_iter()
        .filter_map(|service| Some((service.name().to_owned(), service.pid()?)))
        .collect()
    }
}

/// The files that both Kubernetes components are given.
#[derive(Debug)]
struct Files {
    authority: PathBuf,
    authority_key: PathBuf,
    serving: Certificate,
    kubelet_client: Certificate,
    token_key: SigningKey,
    audit_policy: PathBuf,
    audit_log: PathBuf,
}

impl Files {
    fn write(work_dir: &WorkDir, authority: &Authority, site: Site<'_>) -> Result<Self> {
        let files = Self {
            authority: authority.certificate(),
            authority_key: authority.private_key(),
            serving: authority.server_at("serving", &site.names())?,
            kubelet_client: authority.client(
                "kube-apiserver-kubelet-client",
                KUBELET_CLIENT,
                None,
            )?,
            token_key: authority.signing_key("service-account")?,
            audit_policy: work_dir.join("audit-policy.json"),
            audit_log: work_dir.log("audit"),
        };
        // Who did what to which object, once per request; never a body, so no secret reaches it.
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{ "level": "Metadata" }],
        });
        write(&files.audit_policy, &policy.to_string()).context("the audit policy")?;
        Ok(files)
    }
}

fn api_server(
    program: &Path,
    files: &Files,
    site: Site<'_>,
    address: SocketAddr,
    etcd: &str,
) -> Launch {
    let launch = Launch::new("kube-apiserver", program)
        .flag("etcd-servers", etcd)
        .flag("bind-address", address.ip())
        .flag("advertise-address", address.ip())
        .flag("secure-port", address.port())
        .flag("service-cluster-ip-range", site.services())
        .path_flag("tls-cert-file", &files.serving.certificate)
        .path_flag("tls-private-key-file", &files.serving.key)
        .path_flag("client-ca-file", &files.authority)
        // Without it the controller manager complains all day; no aggregated API server is behind it.
        .path_flag("requestheader-client-ca-file", &files.authority)
        .flag("requestheader-allowed-names", "front-proxy")
        .flag("requestheader-username-headers", "X-Remote-User")
        .flag("requestheader-group-headers", "X-Remote-Group")
        .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        // Hosted clusters have DaemonSets that need it.
        .flag("allow-privileged", true)
        .flag("service-account-issuer", ISSUER)
        .path_flag("service-account-key-file", &files.token_key.public)
        .path_flag("service-account-signing-key-file", &files.token_key.private)
        .flag("authorization-mode", "Node,RBAC")
        .flag(
            "enable-admission-plugins",
            "NodeRestriction,OwnerReferencesPermissionEnforcement",
        )
        .path_flag("audit-policy-file", &files.audit_policy)
        .path_flag("audit-log-path", &files.audit_log)
        // In MB: one file, never rotated while it is read.
        .flag("audit-log-maxsize", 10_000)
        .flag("profiling", false);
    match site {
        // No test uses the API server's own Service.
        Site::Loopback => launch.flag("endpoint-reconciler-type", "none"),
        Site::Namespaces(_) => launch
            .arg("--enable-bootstrap-token-auth")
            .flag("kubelet-preferred-address-types", "InternalIP")
            .path_flag("kubelet-certificate-authority", &files.authority)
            .path_flag(
                "kubelet-client-certificate",
                &files.kubelet_client.certificate,
            )
            .path_flag("kubelet-client-key", &files.kubelet_client.key),
    }
}

fn controller_manager(
    program: &Path,
    files: &Files,
    site: Site<'_>,
    address: SocketAddr,
    kubeconfig: &Path,
) -> Launch {
    let launch = Launch::new("kube-controller-manager", program)
        .path_flag("kubeconfig", kubeconfig)
        .path_flag("authentication-kubeconfig", kubeconfig)
        .path_flag("authorization-kubeconfig", kubeconfig)
        .flag("bind-address", address.ip())
        .flag("secure-port", address.port())
        .path_flag("tls-cert-file", &files.serving.certificate)
        .path_flag("tls-private-key-file", &files.serving.key)
        .path_flag("service-account-private-key-file", &files.token_key.private)
        .path_flag("root-ca-file", &files.authority)
        .arg("--use-service-account-credentials")
        // One instance, so no lease, so no writes at rest.
        .flag("leader-elect", false)
        .flag("profiling", false);
    match site {
        Site::Loopback => launch,
        Site::Namespaces(_) => launch
            .flag("controllers", "*,bootstrapsigner,tokencleaner")
            .path_flag("cluster-signing-cert-file", &files.authority)
            .path_flag("cluster-signing-key-file", &files.authority_key)
            // The default keeps a Deployment of many pods waiting for its controller and not for its nodes.
            .flag("kube-api-qps", 200)
            .flag("kube-api-burst", 400),
    }
}
