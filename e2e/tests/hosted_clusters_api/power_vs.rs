//! A cluster on Power Virtual Server: what the operator makes for Cluster API, field by field, and that nothing is left of it.
//!
//! Its provider does not run: what it would report is not waited for.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::operator::SOON;
use testbed::payload::POWER_VS_IMAGE;
use testbed::{conditions, wait};

use crate::hosted_clusters_api::cluster::{
    CONTROL_PLANES, Cluster, DEPLOYMENTS, NODE_POOLS, ROLES,
};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::expect::{is, is_copied, is_managed, named};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::other_platforms::{
    MACHINE_SETS, create, destroyed, ignition_is_published,
};

const NAME: &str = "power";
const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io/v1beta2";
const POWER_CLUSTERS: Resource<'_> = Resource::new(INFRASTRUCTURE, "ibmpowervsclusters");
const IMAGES: Resource<'_> = Resource::new(INFRASTRUCTURE, "ibmpowervsimages");
const TEMPLATES: Resource<'_> = Resource::new(INFRASTRUCTURE, "ibmpowervsmachinetemplates");
/// The workspace of the cluster.
const WORKSPACE: &str = "11111111-2222-3333-4444-555555555555";
/// The Secrets with API keys, by the fields that name them.
const CREDENTIALS: [(&str, &str); 5] = [
    ("kubeCloudControllerCreds", "power-cloud-controller"),
    ("nodePoolManagementCreds", "power-node-pool"),
    ("ingressOperatorCloudCreds", "power-ingress"),
    ("storageOperatorCloudCreds", "power-storage"),
    ("imageRegistryOperatorCloudCreds", "power-registry"),
];

/// One cluster, from its creation to its end.
pub(crate) async fn lives(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let pool = json!({
        "arch": "ppc64le",
        "platform": { "type": "PowerVS", "powervs": { "storageType": "tier3" } },
    });
    create(admin, &fixture.power, NAME, &platform(), &pool).await?;
    let lacks = "platform.powervs.kubeCloudControllerCreds names Secret clusters/power-cloud-controller, which does not";
    Cluster::private(NAME)
        .is_refused(admin, "ValidConfiguration", lacks)
        .await
        .context("without its Secrets")?;
    admin.apply(&credentials()).await?;
    let namespace = format!("{NAMESPACE}-{NAME}");
    let made = CONTROL_PLANES.named(&namespace, NAME);
    wait::until("the HostedControlPlane", SOON, async || {
        admin.get(&made).await.map(drop)
    })
    .await?;
    ignition_is_published(admin, &namespace).await?;
    control_plane::comes_up(admin, NAME).await?;
    cluster_is_made(admin, &namespace)
        .await
        .context("the cluster")?;
    provider_is_made(admin, &namespace)
        .await
        .context("the provider")?;
    machines_are_made(admin, &namespace)
        .await
        .context("machines")?;
    destroyed(admin, NAME).await
}

fn platform() -> Value {
    let mut power_vs = json!({
        "accountID": "account",
        "cisInstanceCRN": "crn:v1:bluemix:public:internet-svcs:global:a/1:2::",
        "resourceGroup": "group",
        "region": "osa",
        "zone": "osa21",
        "serviceInstanceID": WORKSPACE,
        "subnet": { "name": "nodes" },
        "vpc": { "name": "network", "region": "jp-osa" },
    });
    for (field, name) in CREDENTIALS {
        power_vs[field] = json!({ "name": name });
    }
    json!({ "type": "PowerVS", "powervs": power_vs })
}

fn credentials() -> Vec<Value> {
    let secrets = CREDENTIALS.iter().map(|(_, name)| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": NAMESPACE, "name": name },
            "stringData": {
                "ibmcloud_api_key": format!("key of {name}"),
                "ibm-credentials.env": format!("IBMCLOUD_APIKEY=key of {name}"),
            },
        })
    });
    secrets.collect()
}

async fn cluster_is_made(admin: &ApiClient, namespace: &str) -> Result<()> {
    let spec = json!({
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        "network": {},
        "serviceInstanceID": WORKSPACE,
    });
    let cluster = Cluster::private(NAME);
    is_managed(
        admin,
        &cluster,
        (POWER_CLUSTERS, "IBMPowerVSCluster"),
        &spec,
    )
    .await?;
    for (_, name) in CREDENTIALS {
        is_copied(admin, namespace, name).await?;
    }
    Ok(())
}

async fn provider_is_made(admin: &ApiClient, namespace: &str) -> Result<()> {
    let path = DEPLOYMENTS.named(namespace, "capi-provider");
    let args = json!([
        "--namespace=$(MY_NAMESPACE)",
        "--v=4",
        "--leader-elect=true",
        "--provider-id-fmt=v2",
    ]);
    let pointer = "/spec/template/spec/containers/0/args";
    let found = is(admin, &path, pointer, &args).await?;
    let pod = &found["spec"]["template"]["spec"];
    let image = pod["containers"][0]["image"].as_str().unwrap_or_default();
    ensure!(
        image.contains("/ibmcloud-cluster-api-controllers@"),
        "the provider has image {image}"
    );
    let secret = named(&pod["volumes"], "credentials");
    let secret = secret.context("the provider has no credentials")?;
    ensure!(
        secret["secret"]["secretName"] == "power-node-pool",
        "{secret}"
    );
    ensure!(
        named(&pod["initContainers"], "kube-apiserver-proxy").is_some(),
        "the provider does not speak to the API server through the proxy"
    );
    let role = admin.get(&ROLES.named(namespace, "capi-provider")).await?;
    let rules = role["rules"].to_string();
    ensure!(
        rules.contains("infrastructure.cluster.hypershift.openshift.io"),
        "{rules}"
    );
    Ok(())
}

async fn machines_are_made(admin: &ApiClient, namespace: &str) -> Result<()> {
    let [region, bucket, object] = POWER_VS_IMAGE;
    let image = "4-22-0-testbed";
    let spec = json!({
        "bucket": bucket,
        "clusterName": NAME,
        "deletePolicy": "delete",
        "object": object,
        "region": region,
        "serviceInstanceID": WORKSPACE,
        "storageType": "tier3",
    });
    let path = IMAGES.named(namespace, image);
    let found = is(admin, &path, "/spec", &spec).await?;
    let annotations = &found["metadata"]["annotations"];
    ensure!(
        annotations["cluster.x-k8s.io/cluster-name"] == format!("{NAME}-x7k2p"),
        "{annotations}"
    );
    let path = MACHINE_SETS.named(namespace, &format!("{NAME}-workers"));
    let reference = "/spec/template/spec/infrastructureRef/kind";
    let kind = json!("IBMPowerVSMachineTemplate");
    let machines = is(admin, &path, reference, &kind).await?;
    let template = &machines["spec"]["template"]["spec"]["infrastructureRef"]["name"];
    let template = template.as_str().context("the machines have no template")?;
    let spec = json!({
        "imageRef": { "name": image },
        "memoryGiB": 32,
        "network": { "name": "nodes" },
        "processorType": "Shared",
        "processors": "0.5",
        "serviceInstanceID": WORKSPACE,
        "systemType": "s922",
    });
    let path = TEMPLATES.named(namespace, template);
    is(admin, &path, "/spec/template/spec", &spec).await?;
    let pool = NODE_POOLS.named(NAMESPACE, &format!("{NAME}-workers"));
    // The status is written after the objects.
    wait::until("the image to be reported", SOON, async || {
        let pool = admin.get(&pool).await?;
        let condition = conditions::find(&pool, "ValidPlatformImage");
        let condition = condition.context("no condition says which image the machines have")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("Bootstrap PowerVS Image is") && message.contains(image),
            "{condition}"
        );
        Ok(())
    })
    .await?;
    Ok(())
}
