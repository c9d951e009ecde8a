//! A cluster on Google Cloud: it has no secrets but files that name service accounts, and nodes need a service attachment in
//! its region.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::payload::GOOGLE_CLOUD_IMAGE;

use crate::hosted_clusters_api::cluster::{Cluster, SECRETS};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::expect::{fields, is, is_managed, is_true, named};
use crate::hosted_clusters_api::other_platforms::destroyed;
use crate::hosted_clusters_preview::fixture::{Fixture, REGION};
use crate::hosted_clusters_preview::provider::Provider;
use crate::hosted_clusters_preview::{etcd_backup, pools};

const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io/v1beta1";
const GOOGLE_CLUSTERS: Resource<'_> = Resource::new(INFRASTRUCTURE, "gcpclusters");
const TEMPLATES: Resource<'_> = Resource::new(INFRASTRUCTURE, "gcpmachinetemplates");
/// Another region than that of the operator.
const ELSEWHERE: &str = "europe-west1";
const ZONE: &str = "us-central1-a";
/// The key of the file in a Secret.
const FILE: &str = "application_default_credentials.json";
/// The token that is exchanged.
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";
const IDENTITY_POOL: &str = "projects/123456789012/locations/global/workloadIdentityPools/my-pool";
/// The Secrets of components, the fields with their service accounts, and the names of these.
const ACCOUNTS: [[&str; 3]; 6] = [
    ["node-management-creds", "nodePool", "node-pool"],
    [
        "control-plane-operator-creds",
        "controlPlane",
        "control-plane",
    ],
    [
        "cloud-controller-manager-creds",
        "cloudController",
        "cloud-controller",
    ],
    ["gcp-pd-cloud-credentials", "storage", "storage"],
    ["image-registry-creds", "imageRegistry", "image-registry"],
    [
        "cloud-network-config-controller-creds",
        "network",
        "network",
    ],
];
/// What processes on machines may do by default.
const SCOPES: [&str; 6] = [
    "devstorage.read_only",
    "logging.write",
    "monitoring.write",
    "servicecontrol",
    "service.management.readonly",
    "trace.append",
];

/// The cluster, from what is refused to its end.
pub(crate) async fn lives(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let cluster = &Cluster::private("google");
    create(cluster, admin, fixture, ELSEWHERE).await?;
    let problem = format!("this operator manages service attachments in {REGION} only");
    let refused = cluster.is_refused(admin, "SupportedHostedCluster", &problem);
    refused.await.context("in another region")?;
    destroyed(admin, cluster.name)
        .await
        .context("the deletion of the refused one")?;
    create(cluster, admin, fixture, REGION).await?;
    control_plane::comes_up(admin, cluster.name).await?;
    cluster_is_made(cluster, admin)
        .await
        .context("the cluster")?;
    credentials_are_made(cluster, admin)
        .await
        .context("credentials")?;
    provider_is_made(cluster, admin)
        .await
        .context("the provider")?;
    etcd_backup::are_made(cluster, admin)
        .await
        .context("backups")?;
    machines_are_made(cluster, admin)
        .await
        .context("machines")?;
    pools_are_refused(cluster, admin, fixture)
        .await
        .context("pools")?;
    destroyed(admin, cluster.name).await.context("its deletion")
}

async fn create(
    cluster: &Cluster,
    admin: &ApiClient,
    fixture: &Fixture,
    region: &str,
) -> Result<()> {
    let objects = cluster.desired_on(&fixture.release, &platform(region), &machines())?;
    let objects = fixture.with_older_pools(objects);
    admin.apply(&objects).await
}

fn platform(region: &str) -> Value {
    let mut emails = json!({});
    for [_, field, account] in ACCOUNTS {
        emails[field] = json!(email(account));
    }
    json!({ "type": "GCP", "gcp": {
        "project": "my-project",
        "region": region,
        "networkConfig": {
            "network": { "name": "my-network" },
            "privateServiceConnectSubnet": { "name": "psc" },
        },
        "resourceLabels": [{ "key": "team", "value": "red" }],
        "workloadIdentity": {
            "projectNumber": "123456789012",
            "poolID": "my-pool",
            "providerID": "my-provider",
            "serviceAccountsEmails": emails,
        },
    } })
}

/// The address of a service account.
fn email(account: &str) -> String {
    format!("{account}@my-project.iam.gserviceaccount.com")
}

/// The platform of the pool.
fn machines() -> Value {
    json!({ "type": "GCP", "gcp": {
        "machineType": "n2-standard-4",
        "zone": ZONE,
        "subnet": "nodes",
        "bootDisk": { "diskSizeGB": 128, "diskType": "pd-ssd" },
        "serviceAccount": { "email": email("workers") },
        "resourceLabels": [{ "key": "team", "value": "blue" }],
        "networkTags": ["web"],
        "provisioningModel": "Spot",
    } })
}

async fn cluster_is_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let infra = cluster.infra();
    let spec = json!({
        "additionalLabels": {
            "hypershift-openshift-io-cluster": cluster.name,
            "hypershift-openshift-io-infra-id": infra,
            "team": "red",
        },
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        // Fields that the operator does not set have the defaults of the API.
        "network": {
            "minPortsPerVm": 64,
            "mtu": 1460,
            "name": "my-network",
            "subnets": [{
                "name": "psc",
                "purpose": "PRIVATE_RFC_1918",
                "region": REGION,
                "stackType": "IPV4_ONLY",
            }],
        },
        "project": "my-project",
        "region": REGION,
    });
    is_managed(admin, cluster, (GOOGLE_CLUSTERS, "GCPCluster"), &spec).await?;
    is_true(admin, &cluster.path(), "SupportedHostedCluster").await?;
    is_true(admin, &cluster.path(), "PlatformCredentialsFound").await?;
    cluster.has_platform(admin).await
}

/// Each component has a file of its own, by which it acts as its service account.
async fn credentials_are_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let accounts = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts";
    for [secret, _, account] in ACCOUNTS {
        let email = email(account);
        let expected = json!({
            "type": "external_account",
            "audience": format!("//iam.googleapis.com/{IDENTITY_POOL}/providers/my-provider"),
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": "https://sts.googleapis.com/v1/token",
            "service_account_impersonation_url": format!("{accounts}/{email}:generateAccessToken"),
            "credential_source": { "file": TOKEN, "format": { "type": "text" } },
        });
        let path = SECRETS.named(&cluster.namespace(), secret);
        let found = admin.secret_value(&path, FILE).await?;
        let found: Value = serde_json::from_slice(&found).with_context(|| path.clone())?;
        ensure!(found == expected, "{path} has {found}");
    }
    Ok(())
}

/// It exchanges tokens of a service account of the hosted cluster, which a sidecar requests.
async fn provider_is_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let provider = Provider {
        image: "gcp-cluster-api-controllers",
        args: json!([
            "--namespace=$(MY_NAMESPACE)",
            "--leader-elect=true",
            "--feature-gates=MachinePool=false",
            "--v=2",
        ]),
        requests: ["10m", "128Mi"],
        environment: &[
            (
                "GOOGLE_APPLICATION_CREDENTIALS",
                "/home/.gcp/application_default_credentials.json",
            ),
            ("GOOGLE_CLOUD_PROJECT", "my-project"),
        ],
        credentials: Some(("node-management-creds", "/home/.gcp")),
        rules: Vec::new(),
    };
    let pod = provider.is_made(cluster, admin).await?;
    let manager = named(&pod["containers"], "manager").context("it has no manager")?;
    let restricted = json!({ "securityContext": {
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "runAsNonRoot": true,
    } });
    fields("manager", manager, &restricted)?;
    let mount = named(&manager["volumeMounts"], "cloud-token");
    let mount = mount.context("it has no token")?;
    ensure!(
        mount["mountPath"] == "/var/run/secrets/openshift/serviceaccount",
        "{mount}"
    );
    let minter = named(&pod["initContainers"], "cloud-token-minter");
    let minter = minter.context("nothing requests a token")?;
    let namespace = cluster.namespace();
    let args = json!([
        "--token-audience=openshift",
        "--service-account-namespace=kube-system",
        "--service-account-name=capi-gcp-controller-manager",
        format!("--token-file={TOKEN}"),
        format!("--kubeconfig-secret-namespace={namespace}"),
        "--kubeconfig-secret-name=service-network-admin-kubeconfig",
    ]);
    fields("minter", minter, &json!({ "args": args }))
}

async fn machines_are_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let (namespace, infra) = (cluster.namespace(), cluster.infra());
    let pool = pools::pool(cluster, admin);
    let template = pools::template(&pool, "GCPMachineTemplate", ZONE).await?;
    let [project, image] = GOOGLE_CLOUD_IMAGE;
    let scopes = SCOPES.map(|scope| format!("https://www.googleapis.com/auth/{scope}"));
    let spec = json!({
        "additionalLabels": {
            "hypershift-openshift-io-cluster": cluster.name,
            "hypershift-openshift-io-infra-id": infra,
            "team": "blue",
        },
        "additionalMetadata": [
            { "key": "hypershift-cluster", "value": cluster.name },
            { "key": "hypershift-infra-id", "value": infra },
            { "key": "hypershift-nodepool", "value": pool.name },
        ],
        "additionalNetworkTags": ["web", format!("{infra}-worker")],
        "image": format!("projects/{project}/global/images/{image}"),
        "instanceType": "n2-standard-4",
        // The default of the API.
        "ipForwarding": "Enabled",
        "onHostMaintenance": "Terminate",
        "provisioningModel": "Spot",
        "rootDeviceSize": 128,
        "rootDeviceType": "pd-ssd",
        "serviceAccounts": { "email": email("workers"), "scopes": scopes },
        "subnet": "nodes",
    });
    let path = TEMPLATES.named(&namespace, &template);
    is(admin, &path, "/spec/template/spec", &spec).await?;
    for kind in ["ValidPlatformImage", "ValidMachineTemplate"] {
        is_true(admin, &pool.path(), kind).await?;
    }
    Ok(())
}

async fn pools_are_refused(cluster: &Cluster, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let pool = pools::pool(cluster, admin);
    let problem =
        "release 4.21.10 has no image for Amd64 on Google Cloud: set spec.platform.gcp.image";
    let own = "projects/my-project/global/images/own";
    let correction = json!({ "platform": { "gcp": { "image": own } } });
    pools::goes_on_without_image(
        &pool,
        &fixture.bare,
        (problem, &correction),
        (&TEMPLATES, "/spec/template/spec/image", &json!(own)),
    )
    .await?;
    let refused = (&machines(), "amd64, arm64");
    pools::other_architectures_are_refused(cluster, admin, fixture, refused).await
}
