//! A cluster on OpenStack: it brings its credentials in a Secret, and boot images and servers are deleted before it.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::payload::OPENSTACK_DISK;

use crate::hosted_clusters_api::cluster::{Cluster, SECRETS};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::expect::{fields, is, is_copied, is_true, made, named};
use crate::hosted_clusters_api::fixture::NAMESPACE;
use crate::hosted_clusters_api::other_platforms::{CLUSTERS, destroyed};
use crate::hosted_clusters_preview::fixture::{Fixture, POOL_VERSION};
use crate::hosted_clusters_preview::pools;
use crate::hosted_clusters_preview::provider::{Provider, is_of_release};

const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io/v1beta1";
const STACK_CLUSTERS: Resource<'_> = Resource::new(INFRASTRUCTURE, "openstackclusters");
const TEMPLATES: Resource<'_> = Resource::new(INFRASTRUCTURE, "openstackmachinetemplates");
const SERVERS: Resource<'_> = Resource::new(
    "infrastructure.cluster.hypershift.openshift.io/v1alpha1",
    "openstackservers",
);
const IMAGES: Resource<'_> = Resource::new("openstack.k-orc.cloud/v1alpha1", "images");
/// The finalizer of the controllers of images, also on the Secrets that images refer to, and that of servers.
const IMAGE_FINALIZER: &str = "openstack.k-orc.cloud/image";
const SERVER_FINALIZER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";
/// The Secret of the user, and the cloud in it.
const CREDENTIALS: &str = "stack-cloud";
const CLOUD: &str = "openstack";
const CLOUDS: &str = "clouds: {openstack: {auth: {auth_url: https://cloud.example.com}}}";
const AUTHORITIES: &str = "certificates of the cloud";
const EXTERNAL_NETWORK: &str = "6f2b2c44-5d3b-4d3c-9b7f-0d2f6e1a7c11";
/// The range of the machines.
const MACHINES: &str = "10.0.0.0/16";
const ANY: &str = "0.0.0.0/0";

/// A rule of the security group of nodes: its name, a protocol, where traffic comes from, and the first and last port.
type Opening = (&'static str, &'static str, &'static str, Option<[u16; 2]>);
/// All of them.
const OPENINGS: [Opening; 13] = [
    ("esp", "esp", MACHINES, None),
    ("icmp", "icmp", MACHINES, None),
    ("router", "tcp", MACHINES, Some([1936, 1936])),
    ("ssh", "tcp", MACHINES, Some([22, 22])),
    ("vrrp", "vrrp", MACHINES, None),
    ("http", "tcp", ANY, Some([80, 80])),
    ("https", "tcp", ANY, Some([443, 443])),
    ("geneve", "udp", ANY, Some([6081, 6081])),
    ("ike", "udp", ANY, Some([500, 500])),
    ("ike-nat", "udp", ANY, Some([4500, 4500])),
    ("internal", "tcp", ANY, Some([9000, 9999])),
    ("internal-udp", "udp", ANY, Some([9000, 9999])),
    ("vxlan", "udp", ANY, Some([4789, 4789])),
];

/// The cluster, from what is refused to its end.
pub(crate) async fn lives(admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let cluster = &Cluster::private("stack");
    create(cluster, admin, fixture).await?;
    is_refused_until_corrected(cluster, admin)
        .await
        .context("what is refused")?;
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
    machines_are_made(cluster, admin)
        .await
        .context("machines")?;
    pools_are_refused(cluster, admin, fixture)
        .await
        .context("pools")?;
    is_deleted(cluster, admin).await.context("its deletion")
}

async fn create(cluster: &Cluster, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let platform = json!({ "type": "OpenStack", "openstack": {
        // The name could add a setting to the configuration of components.
        "identityRef": { "name": CREDENTIALS, "cloudName": "openstack\nca-file = /etc/passwd" },
        "managedSubnets": [{ "dnsNameservers": ["10.0.0.2"] }],
        "networkMTU": 1500,
        "externalNetwork": { "id": EXTERNAL_NETWORK },
        "tags": ["team=red"],
    } });
    let objects = cluster.desired_on(&fixture.release, &platform, &machines())?;
    let objects = fixture.with_older_pools(objects);
    admin.apply(&objects).await
}

/// The platform of the pool.
fn machines() -> Value {
    json!({ "type": "OpenStack", "openstack": {
        "flavor": "m1.large",
        "availabilityZone": "nova",
        "additionalPorts": [{
            "network": { "filter": { "name": "storage" } },
            "allowedAddressPairs": [{ "ipAddress": "10.9.0.1" }, { "ipAddress": "10.9.0.2" }],
            "vnicType": "direct",
            "portSecurityPolicy": "Disabled",
        }],
    } })
}

/// The Secret with the credentials, with these keys.
fn secret(keys: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": NAMESPACE, "name": CREDENTIALS },
        "stringData": keys,
    })
}

/// Nothing is made before all is corrected, and conditions report what is missing.
async fn is_refused_until_corrected(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let reference = format!(
        "spec.platform.openstack.identityRef names Secret {NAMESPACE}/{CREDENTIALS}, which"
    );
    let (configuration, credentials) = ("ValidConfiguration", "PlatformCredentialsFound");
    let problem = format!("{reference} does not exist: create it");
    cluster.is_refused(admin, configuration, &problem).await?;
    cluster.is_refused(admin, credentials, &problem).await?;
    let without_clouds = json!({ "cacert": AUTHORITIES });
    admin.apply(&[secret(&without_clouds)]).await?;
    cluster.is_looked_at(admin, "without clouds").await?;
    let problem = format!("{reference} lacks clouds.yaml: add it");
    cluster.is_refused(admin, configuration, &problem).await?;
    let complete = json!({ "cacert": AUTHORITIES, "clouds.yaml": CLOUDS });
    admin.apply(&[secret(&complete)]).await?;
    cluster.is_looked_at(admin, "with all keys").await?;
    cluster.reports(admin, credentials, "True", "").await?;
    let problem = "spec.platform.openstack.identityRef.cloudName";
    cluster.is_refused(admin, configuration, problem).await?;
    let corrected = json!({ "identityRef": { "cloudName": CLOUD } });
    let corrected = json!({ "platform": { "openstack": corrected } });
    cluster.change(admin, corrected).await?;
    cluster.reports(admin, configuration, "True", "").await
}

async fn cluster_is_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let (namespace, infra) = (cluster.namespace(), cluster.infra());
    let spec = json!({
        "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
        "disableAPIServerFloatingIP": true,
        "externalNetwork": { "id": EXTERNAL_NETWORK },
        "identityRef": { "cloudName": CLOUD, "name": CREDENTIALS, "type": "Secret" },
        "managedSecurityGroups": {
            "allNodesSecurityGroupRules": rules(),
            "allowAllInClusterTraffic": false,
        },
        "managedSubnets": [{ "cidr": MACHINES, "dnsNameservers": ["10.0.0.2"] }],
        "networkMTU": 1500,
        "tags": [format!("openshiftClusterID={infra}"), "team=red"],
    });
    let path = STACK_CLUSTERS.named(&namespace, cluster.name);
    let found = is(admin, &path, "/spec", &spec).await?;
    // Its provider, which is not here, reconciles it and reports it as ready: nothing else may.
    let managed_by = &found["metadata"]["annotations"]["cluster.x-k8s.io/managed-by"];
    ensure!(
        managed_by.is_null() && found["status"]["ready"].is_null(),
        "the operator takes the place of the provider: {found}"
    );
    let reference = json!({
        "apiGroup": "infrastructure.cluster.hypershift.openshift.io",
        "kind": "OpenStackCluster",
        "name": cluster.name,
    });
    let path = CLUSTERS.named(&namespace, &infra);
    is(admin, &path, "/spec/infrastructureRef", &reference).await?;
    cluster.has_platform(admin).await
}

fn rules() -> Vec<Value> {
    let rules = OPENINGS.iter().map(|&(name, protocol, from, ports)| {
        let mut rule = json!({
            "description": "Managed by the Hypershift Control Plane Operator",
            "direction": "ingress",
            "etherType": "IPv4",
            "name": format!("{name}-ingress"),
            "protocol": protocol,
            "remoteIPPrefix": from,
        });
        if let Some([first, last]) = ports {
            rule["portRangeMin"] = json!(first);
            rule["portRangeMax"] = json!(last);
        }
        rule
    });
    rules.collect()
}

/// The Secret of the user, and those of components, which also have the configuration of the cloud provider.
async fn credentials_are_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = cluster.namespace();
    is_copied(admin, &namespace, CREDENTIALS).await?;
    let config = format!(
        "[Global]\nuse-clouds = true\nclouds-file = /etc/openstack/secret/clouds.yaml\ncloud = {CLOUD}\n\
         ca-file = /etc/pki/ca-trust/extracted/pem/ca-bundle.pem\n\n\
         [LoadBalancer]\nmax-shared-lb = 1\nmanage-security-groups = true\nfloating-network-id = {EXTERNAL_NETWORK}\n\n\
         [Networking]\naddress-sort-order = {MACHINES}"
    );
    for name in [
        "cloud-network-config-controller-creds",
        "manila-cloud-credentials",
        "openstack-cloud-credentials",
    ] {
        let path = SECRETS.named(&namespace, name);
        let expected = [
            ("clouds.yaml", CLOUDS),
            ("cloud.conf", config.as_str()),
            ("cacert", AUTHORITIES),
            ("ca-bundle.pem", AUTHORITIES),
        ];
        for (key, expected) in expected {
            let found = String::from_utf8(admin.secret_value(&path, key).await?)?;
            ensure!(found == expected, "{key} of {path} is {found}");
        }
        let found = admin.get(&path).await?;
        let keys = found["data"].as_object().map_or(0, serde_json::Map::len);
        ensure!(keys == expected.len(), "{path} has {keys} keys");
    }
    Ok(())
}

/// It reads credentials by the API. The controllers of images run beside it.
async fn provider_is_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let provider = Provider {
        image: "openstack-cluster-api-controllers",
        args: json!([
            "--namespace=$(MY_NAMESPACE)",
            "--leader-elect",
            "--v=2",
            "--skip-crd-migration-phases=StorageVersionMigration",
            "--skip-crd-migration-phases=CleanupManagedFields",
        ]),
        requests: ["10m", "10Mi"],
        environment: &[],
        credentials: None,
        rules: vec![json!({
            "apiGroups": ["openstack.k-orc.cloud"], "resources": ["*"], "verbs": ["*"],
        })],
    };
    let pod = provider.is_made(cluster, admin).await?;
    let of_images = named(&pod["containers"], "orc-manager");
    let of_images = of_images.context("it has no controllers of images")?;
    is_of_release(of_images, "openstack-resource-controller")?;
    let expected = json!({
        "command": ["/manager"],
        "args": [
            "--namespace=$(MY_NAMESPACE)",
            "--leader-elect",
            "--health-probe-bind-address=:8081",
            "--zap-log-level=4",
        ],
        "livenessProbe": {
            "httpGet": { "path": "/healthz" }, "initialDelaySeconds": 15, "periodSeconds": 20,
        },
        "readinessProbe": {
            "httpGet": { "path": "/readyz" }, "initialDelaySeconds": 5, "periodSeconds": 10,
        },
        "resources": {
            "limits": { "cpu": "500m", "memory": "128Mi" },
            "requests": { "cpu": "10m", "memory": "64Mi" },
        },
    });
    fields("orc-manager", of_images, &expected)
}

/// The name of the object that imports the boot image of the pool's release.
fn image() -> String {
    format!("rhcos-{POOL_VERSION}-testbed")
}

async fn machines_are_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = cluster.namespace();
    let pool = pools::pool(cluster, admin);
    let template = pools::template(&pool, "OpenStackMachineTemplate", "nova").await?;
    let image = image();
    let spec = json!({
        "flavor": "m1.large",
        "image": { "imageRef": { "name": image } },
        "ports": [{}, {
            "allowedAddressPairs": [{ "ipAddress": "10.9.0.1" }, { "ipAddress": "10.9.0.2" }],
            "description": format!("Additional port for Hypershift node pool {}", pool.name),
            "disablePortSecurity": true,
            "network": { "filter": { "name": "storage" } },
            "vnicType": "direct",
        }],
    });
    let path = TEMPLATES.named(&namespace, &template);
    is(admin, &path, "/spec/template/spec", &spec).await?;
    let [location, sha256] = OPENSTACK_DISK;
    let imported = json!({
        "cloudCredentialsRef": { "cloudName": CLOUD, "secretName": CREDENTIALS },
        "managementPolicy": "managed",
        "resource": {
            "name": format!("{}-{image}", cluster.name),
            "content": {
                "containerFormat": "bare",
                "diskFormat": "qcow2",
                "download": {
                    "decompress": "gz",
                    "hash": { "algorithm": "sha256", "value": sha256 },
                    "url": location,
                },
            },
        },
    });
    made(admin, &IMAGES.named(&namespace, &image), &imported).await?;
    let about = ["Bootstrap OpenStack Image is", image.as_str()];
    pool.reports("ValidPlatformImage", ("True", "AsExpected"), &about)
        .await?;
    is_true(admin, &pool.path(), "ValidMachineTemplate").await
}

async fn pools_are_refused(cluster: &Cluster, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
    let pool = pools::pool(cluster, admin);
    let problem = "release 4.21.10 has no image for Amd64 on OpenStack: set spec.platform.openstack.imageName";
    let correction = json!({ "platform": { "openstack": { "imageName": "rhcos-own" } } });
    let expected = json!({ "filter": { "name": "rhcos-own" } });
    pools::goes_on_without_image(
        &pool,
        &fixture.bare,
        (problem, &correction),
        (&TEMPLATES, "/spec/template/spec/image", &expected),
    )
    .await?;
    let machines = machines();
    pools::other_architectures_are_refused(cluster, admin, fixture, (&machines, "amd64")).await
}

/// The deletion waits for images, and then for servers: the provider still runs, and has credentials. After that, the
/// finalizer that is left on the Secret holds up nothing.
async fn is_deleted(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = cluster.namespace();
    let image = IMAGES.named(&namespace, &image());
    let server = SERVERS.named(&namespace, "stack-1");
    let of_provider = json!({
        "apiVersion": SERVERS.api_version,
        "kind": "OpenStackServer",
        "metadata": { "namespace": namespace, "name": "stack-1" },
        "spec": {
            "flavor": "m1.large",
            "identityRef": { "cloudName": CLOUD, "name": CREDENTIALS },
            "image": { "filter": { "name": "rhcos-own" } },
            "ports": [],
            "sshKeyName": "",
        },
    });
    admin.apply(&[of_provider]).await?;
    let secret = SECRETS.named(&namespace, CREDENTIALS);
    for (path, finalizer) in [
        (&image, IMAGE_FINALIZER),
        (&server, SERVER_FINALIZER),
        (&secret, IMAGE_FINALIZER),
    ] {
        has_finalizers(admin, path, &json!([finalizer])).await?;
    }
    admin.delete(&cluster.path()).await?;
    for (path, kind) in [(&image, "Image"), (&server, "OpenStackServer")] {
        let waits = format!("Waiting for {kind} ");
        cluster
            .reports(admin, "HostedClusterDestroyed", "False", &waits)
            .await?;
        let holder = "Deployment capi-provider, which removes it, is not available";
        cluster
            .reports(admin, "HostedClusterDestroyed", "False", holder)
            .await?;
        let found = admin
            .get(&format!("/api/v1/namespaces/{namespace}"))
            .await?;
        let deleted = &found["metadata"]["deletionTimestamp"];
        ensure!(deleted.is_null(), "its namespace is deleted before {path}");
        let held = admin.get(&secret).await?;
        let finalizers = &held["metadata"]["finalizers"];
        let is_held = *finalizers == json!([IMAGE_FINALIZER]);
        ensure!(is_held, "the credentials are given up before {path}");
        has_finalizers(admin, path, &Value::Null).await?;
    }
    destroyed(admin, cluster.name).await
}

/// Gives an object these finalizers only.
async fn has_finalizers(admin: &ApiClient, path: &str, finalizers: &Value) -> Result<()> {
    let change = json!({ "metadata": { "finalizers": finalizers } });
    admin.patch(path, Patch::Merge, &change).await.map(drop)
}
