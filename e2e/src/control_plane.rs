//! The Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager, each startable and killable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;

use crate::audit::AuditLog;
use crate::binaries::{Binaries, Binary};
use crate::certs::{Authority, Certificate, SigningKey, write};
use crate::client::ApiClient;
use crate::etcd::Etcd;
use crate::home::Home;
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::ports;
use crate::process::Launch;
use crate::service::{Service, secure_health};

/// The issuer of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The three components, and what is needed to reach them.
#[derive(Debug)]
pub struct ControlPlane {
    /// Garbage collection and the other built-in controllers.
    pub controller_manager: Service,
    /// The API server.
    pub api_server: Service,
    /// What is stored.
    pub etcd: Etcd,
    /// What was asked.
    pub audit: AuditLog,
    /// Issues further client certificates.
    pub authority: Authority,
    port: u16,
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
    pub fn new(binaries: &Binaries, home: &Arc<Home>) -> Result<Self> {
        let authority = Authority::create(&home.join("pki"))?;
        let etcd = Etcd::new(binaries.path(Binary::Etcd)?, home)?;
        let port = ports::allocate()?;
        let files = Files::write(home, &authority)?;
        let api_server = Service::new(
            api_server(
                binaries.path(Binary::KubeApiserver)?,
                &files,
                port,
                &etcd.url(),
            ),
            home,
            secure_health(port, &files.authority, "/readyz")?,
        );
        let manager_port = ports::allocate()?;
        let manager_kubeconfig = home.join("kube-controller-manager.kubeconfig");
        write_kubeconfig(
            &manager_kubeconfig,
            &format!("https://127.0.0.1:{port}"),
            Some(&files.authority),
            Credentials::Certificate(&authority.client(
                "kube-controller-manager",
                "system:kube-controller-manager",
                None,
            )?),
        )?;
        let controller_manager = Service::new(
            controller_manager(
                binaries.path(Binary::KubeControllerManager)?,
                &files,
                manager_port,
                &manager_kubeconfig,
            ),
            home,
            secure_health(manager_port, &files.authority, "/healthz")?,
        );
        let admin_kubeconfig = home.join("admin.kubeconfig");
        write_kubeconfig(
            &admin_kubeconfig,
            &format!("https://127.0.0.1:{port}"),
            Some(&files.authority),
            Credentials::Certificate(&authority.client(
                "admin",
                "testbed-admin",
                Some("system:masters"),
            )?),
        )?;
        Ok(Self {
            controller_manager,
            api_server,
            etcd,
            audit: AuditLog::new(files.audit_log),
            authority,
            port,
            admin_kubeconfig,
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
            server: format!("https://127.0.0.1:{}", self.port),
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
    serving: Certificate,
    token_key: SigningKey,
    audit_policy: PathBuf,
    audit_log: PathBuf,
}

impl Files {
    fn write(home: &Home, authority: &Authority) -> Result<Self> {
        let files = Self {
            authority: authority.certificate(),
            serving: authority.server("serving")?,
            token_key: authority.signing_key("service-account")?,
            audit_policy: home.join("audit-policy.json"),
            audit_log: home.log("audit"),
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

fn api_server(program: &Path, files: &Files, port: u16, etcd: &str) -> Launch {
    Launch::new("kube-apiserver", program)
        .flag("etcd-servers", etcd)
        .flag("bind-address", "127.0.0.1")
        .flag("advertise-address", "127.0.0.1")
        .flag("endpoint-reconciler-type", "none")
        .flag("secure-port", port)
        .path_flag("tls-cert-file", &files.serving.certificate)
        .path_flag("tls-private-key-file", &files.serving.key)
        .path_flag("client-ca-file", &files.authority)
        // Without it the controller manager complains all day; no aggregated API server is behind it.
        .path_flag("requestheader-client-ca-file", &files.authority)
        .flag("requestheader-allowed-names", "front-proxy")
        .flag("requestheader-username-headers", "X-Remote-User")
        .flag("requestheader-group-headers", "X-Remote-Group")
        .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .flag("service-account-issuer", ISSUER)
        .path_flag("service-account-key-file", &files.token_key.public)
        .path_flag("service-account-signing-key-file", &files.token_key.private)
        .flag("service-cluster-ip-range", "10.96.0.0/16")
        .flag("authorization-mode", "Node,RBAC")
        .flag(
            "enable-admission-plugins",
            "NodeRestriction,OwnerReferencesPermissionEnforcement",
        )
        .path_flag("audit-policy-file", &files.audit_policy)
        .path_flag("audit-log-path", &files.audit_log)
        // In MB: one file, never rotated while it is read.
        .flag("audit-log-maxsize", 10_000)
        .flag("profiling", false)
}

fn controller_manager(program: &Path, files: &Files, port: u16, kubeconfig: &Path) -> Launch {
    Launch::new("kube-controller-manager", program)
        .path_flag("kubeconfig", kubeconfig)
        .path_flag("authentication-kubeconfig", kubeconfig)
        .path_flag("authorization-kubeconfig", kubeconfig)
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", port)
        .path_flag("tls-cert-file", &files.serving.certificate)
        .path_flag("tls-private-key-file", &files.serving.key)
        .path_flag("service-account-private-key-file", &files.token_key.private)
        .path_flag("root-ca-file", &files.authority)
        .arg("--use-service-account-credentials")
        // One instance, so no lease, so no writes at rest.
        .flag("leader-elect", false)
        .flag("profiling", false)
}
