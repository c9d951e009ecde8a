//! The management cluster of the test: control plane namespaces of two tenants, and the operator of one.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::cargo::Program;
use testbed::client::{ApiClient, Resource};
use testbed::kubeconfig::{Credentials as Login, write_kubeconfig};
use testbed::ports;
use testbed::process::Launch;
use testbed::service::{Health, Service};
use testbed::service_account::ServiceAccount;
use testbed::testbed::Testbed;
use testbed::{crds, fixtures};

use crate::break_glass::client::Credentials;
use crate::break_glass::hosted::Hosted;

/// The namespace of the tenant whose operator runs. Golden files have it, too.
pub(crate) const NAMESPACE: &str = "clusters-one";
/// The namespace of another tenant.
pub(crate) const OTHER: &str = "clusters-two";
const CLUSTER: &str = "one";
const OPERATOR: &str = "control-plane-pki-operator";
/// Namespace of the objects in the component's golden files.
const GOLDEN: &str = "hcp-namespace";

pub(crate) const REVOCATIONS: Resource<'_> = Resource::new(
    "certificates.hypershift.openshift.io/v1alpha1",
    "certificaterevocationrequests",
);
const HOSTED_CONTROL_PLANES: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedcontrolplanes");
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
/// What is granted outside of the namespace.
const CLUSTER_WIDE: [&str; 2] = ["ClusterRole", "ClusterRoleBinding"];
const INSTALLED_ROLE: &str = "hypershift-control-plane-pki-operator";

/// Everything that runs.
pub(crate) struct Fixture {
    pub(crate) operator: Service,
    pub(crate) hosted: Arc<Hosted>,
    pub(crate) admin: ApiClient,
    /// A client with the operator's own permissions.
    pub(crate) own: ApiClient,
    _account: ServiceAccount,
}

// === impl Fixture ===

impl Fixture {
    pub(crate) async fn start(testbed: &Testbed) -> Result<Self> {
        let admin = testbed.admin.clone();
        install(&admin).await?;
        for namespace in [NAMESPACE, OTHER] {
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            admin.apply(&[object]).await?;
        }
        // Without a controller manager, pods have no default account.
        let default = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "namespace": NAMESPACE, "name": "default" },
        });
        admin.apply(&[default]).await?;
        let account =
            ServiceAccount::create(&admin, testbed.work_dir(), NAMESPACE, OPERATOR).await?;
        admin.apply(&permissions()?).await?;
        let golden = golden("hosted-cluster")?;
        let hcp = golden
            .iter()
            .find(|object| object["kind"] == "HostedControlPlane");
        let mut hcp = hcp.context("no HostedControlPlane")?.clone();
        if let Some(object) = hcp.as_object_mut() {
            object.remove("status");
        }
        admin
            .create(&HOSTED_CONTROL_PLANES.within(NAMESPACE), &hcp)
            .await?;
        let hosted = Arc::new(Hosted::start(testbed, &admin, NAMESPACE).await?);
        let kubeconfig = testbed.path().join("pki-operator.kubeconfig");
        let endpoint = testbed.control_plane.endpoint();
        let login = Login::TokenFile(account.token_file());
        write_kubeconfig(
            &kubeconfig,
            &endpoint.server,
            Some(&endpoint.authority),
            login,
        )?;
        let mut operator = operator(testbed, &kubeconfig).await?;
        operator.start().await?;
        Ok(Self {
            operator,
            hosted,
            admin,
            own: ApiClient::from_kubeconfig(&kubeconfig).await?,
            _account: account,
        })
    }

    /// The certificate of a Secret.
    pub(crate) async fn credentials(&self, secret: &str) -> Result<Credentials> {
        let path = SECRETS.named(NAMESPACE, secret);
        Ok(Credentials {
            certificate: self.admin.secret_value(&path, "tls.crt").await?,
            key: self.admin.secret_value(&path, "tls.key").await?,
        })
    }
}

async fn install(admin: &ApiClient) -> Result<()> {
    let directory = fixtures::install_manifests().join("../crds");
    for name in [
        "hostedcontrolplanes.hypershift.openshift.io",
        "certificaterevocationrequests.certificates.hypershift.openshift.io",
        "certificatesigningrequestapprovals.certificates.hypershift.openshift.io",
    ] {
        let file = directory.join(format!("{name}.yaml"));
        crds::install(admin, &fixtures::load(&file)?).await?;
    }
    Ok(())
}

/// What the component, hypershift-operator and the installer grant.
fn permissions() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    let is_own = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        CLUSTER_WIDE.iter().any(|kind| object["kind"] == *kind)
            && (name.starts_with(INSTALLED_ROLE) || name.contains("-csr-"))
    };
    all.extend(golden("installation")?.into_iter().filter(is_own));
    all.extend(golden("hosted-cluster")?.into_iter().filter(is_own));
    let golden = root().join(format!("control-plane-operator/tests/golden/{OPERATOR}"));
    for file in ["role", "rolebinding"] {
        let path = golden.join(format!("{file}-{OPERATOR}.yaml"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let object: Value = serde_saphyr::from_str(&text.replace(GOLDEN, NAMESPACE))?;
        all.push(object);
    }
    for object in &mut all {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
        }
    }
    anyhow::ensure!(all.len() == 8, "{all:#?}");
    Ok(all)
}

fn golden(which: &str) -> Result<Vec<Value>> {
    let path = match which {
        "installation" => "cli/tests/golden/install/private.yaml",
        _ => "hypershift-operator/tests/golden/hosted-cluster/none-private.yaml",
    };
    fixtures::load(&root().join(path))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The operator, started as its component does, by the name of its program.
async fn operator(testbed: &Testbed, kubeconfig: &Path) -> Result<Service> {
    let program = Program::dev("control-plane-operator", "control-plane-operator");
    let program = program
        .find("HYPERSHIFT_CONTROL_PLANE_OPERATOR", &testbed.progress)
        .await?;
    let link = testbed.path().join(OPERATOR);
    std::os::unix::fs::symlink(&program, &link)?;
    let port = ports::allocate()?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let config = testbed.path().join("config.yaml");
    let text = format!(
        "apiVersion: config.openshift.io/v1\nkind: GenericControllerConfig\n\
         servingInfo: {{ bindAddress: '{address}', bindNetwork: tcp4, minTLSVersion: VersionTLS12 }}\n"
    );
    std::fs::write(&config, text)?;
    let launch = Launch::new(OPERATOR, &link)
        .arg("operator")
        .arg("--namespace")
        .arg(NAMESPACE)
        .path_flag("config", &config)
        .path_flag("terminate-on-files", &config)
        .path_flag("kubeconfig", kubeconfig)
        .flag("log-format", "text")
        .flag("log-level", "debug")
        .environment("HOSTED_CONTROL_PLANE_NAME", CLUSTER)
        .environment("CERT_ROTATION_SCALE", "0s");
    let health = Health {
        client: ApiClient::unverified(address)?,
        path: "/readyz",
    };
    Ok(Service::new(launch, testbed.work_dir(), health))
}
