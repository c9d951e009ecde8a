//! The control-plane-operator of a hosted cluster, run as its Deployment says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::certs::write;
use crate::client::{ApiClient, Resource};
use crate::kubeconfig::{Credentials, write_kubeconfig};
use crate::operator::{Server, Times, as_pod};
use crate::ports;
use crate::process::Launch;
use crate::service::{Service, plain_health};
use crate::testbed::Testbed;
use crate::work_dir::WorkDir;

/// The Deployment, the account and the container have one name.
const NAME: &str = "control-plane-operator";
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const ACCOUNTS: Resource<'_> = Resource::new("v1", "serviceaccounts");
/// How long its token lives, in seconds: longer than any test.
const LIFETIME: u32 = 4 * 3600;

/// A control-plane-operator that does not run yet: its namespace, and its program.
#[derive(Debug, Clone)]
pub struct ControlPlaneOperator {
    /// Namespace of the hosted control plane.
    pub namespace: String,
    /// What its image would hold.
    pub program: PathBuf,
}

/// One that was started.
#[derive(Debug)]
pub struct Launched {
    /// The process.
    pub service: Service,
    /// The variables that it was started with.
    pub environment: Vec<(String, String)>,
}

// === impl ControlPlaneOperator ===

impl ControlPlaneOperator {
    /// The environment variables in its Deployment, if there is one that is not being deleted and has replicas.
    pub async fn expected_env(&self, admin: &ApiClient) -> Result<Option<Vec<(String, String)>>> {
        let found = admin
            .find(&DEPLOYMENTS.named(&self.namespace, NAME))
            .await?;
        let stays = found.filter(|it| {
            it["metadata"]["deletionTimestamp"].is_null() && it["spec"]["replicas"] != 0
        });
        Ok(stays.map(|it| literals(&it)))
    }

    /// The user name that the API server knows it by.
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{NAME}", self.namespace)
    }

    /// Starts it with these variables, as the account that its pod would have. `pod` is its pod's name.
    pub async fn start(
        &self,
        testbed: &Testbed,
        pod: &str,
        environment: Vec<(String, String)>,
        server: Server<'_>,
        times: Times,
    ) -> Result<Launched> {
        let token = self.token(&testbed.admin, testbed.work_dir(), pod).await?;
        let kubeconfig = testbed.work_dir().join(format!("{pod}.kubeconfig"));
        let credentials = Credentials::TokenFile(&token);
        write_kubeconfig(&kubeconfig, server.url, server.authority, credentials)?;
        let port = ports::allocate()?;
        let launch = Launch::new(pod, &self.program);
        let mut launch = as_pod(launch, pod, &self.namespace, port, &kubeconfig, times);
        for (name, value) in &environment {
            launch = launch.environment(name, value.clone());
        }
        let mut service = Service::new(launch, testbed.work_dir(), plain_health(port, "/livez")?);
        service.start().await?;
        Ok(Launched {
            service,
            environment,
        })
    }

    async fn token(&self, admin: &ApiClient, work_dir: &WorkDir, pod: &str) -> Result<PathBuf> {
        let path = format!("{}/token", ACCOUNTS.named(&self.namespace, NAME));
        let desired = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": LIFETIME },
        });
        let response = admin.create(&path, &desired).await?;
        let token = response["status"]["token"].as_str();
        let file = work_dir.join(format!("{pod}.token"));
        save(&file, token.context("the response has no token")?)?;
        Ok(file)
    }
}

fn save(file: &Path, token: &str) -> Result<()> {
    write(file, token)
}

/// The variables of its container that have a value of their own.
fn literals(deployment: &Value) -> Vec<(String, String)> {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_array().into_iter().flatten();
    let pairs = variables.filter_map(|it| {
        let value = it["value"].as_str()?;
        Some((it["name"].as_str()?.to_owned(), value.to_owned()))
    });
    pairs.collect()
}
