//! Private clusters of two tenants on AWS, in a fake cloud: each gets a VPC endpoint service of its own, nothing that one of them
//! writes changes that of the other, and nothing is left of them.
//!
//! No control-plane-operator runs: the test creates the AWSEndpointServices, and Services with load balancers.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::cloud::{Cloud, EC2};
use testbed::operator::SOON;
use testbed::{conditions, simulation, wait};

use crate::hosted_clusters_api::cluster::{CONTROL_PLANES, Cluster, gone};
use crate::hosted_clusters_api::fixture::Fixture;
use crate::hosted_clusters_api::other_platforms::destroyed;

/// The region of the operators. Other clusters are elsewhere.
pub(crate) const REGION: &str = "eu-central-1";
const ZONE: &str = "eu-central-1a";
/// The variable of the operators with the URL of load balancers; EC2 has one of its own.
pub(crate) const BALANCERS_VARIABLE: &str = "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2";
const LINKS: Resource<'_> = Resource::new("hypershift.openshift.io/v1beta1", "awsendpointservices");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const ROUTER: &str = "private-router";
/// The condition of endpoint services, and of clusters that have them.
const AVAILABLE: &str = "AWSEndpointServiceAvailable";
const BALANCERS: (&str, &str) = ("elasticloadbalancing", "2015-12-01");
const DESCRIBE: &str = "DescribeVpcEndpointServiceConfigurations";

/// Both clusters, from their creation to their end. The cloud has this URL.
pub(crate) async fn live(admin: &ApiClient, fixture: &Fixture, url: &str) -> Result<()> {
    let cloud = Cloud::new(url, REGION)?;
    let network = cloud
        .create_network("10.8.0.0/16", "10.8.0.0/24", ZONE)
        .await
        .context("a network in the fake cloud")?;
    let [one, two] = &["secluded", "hostile"].map(Cluster::private);
    for cluster in [one, two] {
        create(admin, fixture, cluster).await?;
        let balancer = [
            ("Name", cluster.name),
            ("Type", "network"),
            ("Scheme", "internal"),
            ("Subnets.member.1", network.subnet.as_str()),
        ];
        cloud
            .ask(BALANCERS, "CreateLoadBalancer", &balancer)
            .await?;
        publish(admin, cluster).await?;
    }
    admin.apply(&[link(one, one.name)]).await?;
    let service = is_linked(admin, one).await?;
    one.reports(admin, AVAILABLE, "True", "All is well").await?;
    let principals = [("ServiceId", id(&service))];
    let principals = cloud
        .ask(EC2, "DescribeVpcEndpointServicePermissions", &principals)
        .await?;
    ensure!(principals.contains(":role/"), "{principals}");

    // The other tenant names the load balancer and the endpoint service of the first one.
    admin.apply(&[link(two, one.name)]).await?;
    let path = LINKS.named(&two.namespace(), ROUTER);
    let stolen = json!({ "status": { "endpointServiceName": service } });
    admin
        .patch(&format!("{path}/status"), Patch::Merge, &stolen)
        .await?;
    two.reports(admin, AVAILABLE, "False", "is not the one of the Service")
        .await?;
    admin.delete(&path).await?;
    gone(admin, [path]).await?;
    let left = cloud.ask(EC2, DESCRIBE, &[]).await?;
    ensure!(left.contains(&service), "it is deleted: {left}");
    let link_of_one = admin.get(&LINKS.named(&one.namespace(), ROUTER)).await?;
    ensure!(link_of_one["status"]["endpointServiceName"] == *service);

    // Its own load balancer leads to an endpoint service of its own.
    admin.apply(&[link(two, two.name)]).await?;
    let own = is_linked(admin, two).await?;
    ensure!(own != service, "both have {own}");
    for Cluster { name, .. } in [one, two] {
        destroyed(admin, name).await.context(*name)?;
    }
    let left = cloud.ask(EC2, DESCRIBE, &[]).await?;
    ensure!(!left.contains("vpce-svc-"), "something is left: {left}");
    Ok(())
}

/// The ID of an endpoint service.
fn id(service: &str) -> &str {
    service.rsplit('.').next().unwrap_or_default()
}

async fn create(admin: &ApiClient, fixture: &Fixture, cluster: &Cluster) -> Result<()> {
    let mut objects = simulation::desired(cluster.name, &fixture.release)?;
    for object in &mut objects {
        if object["kind"] == "HostedCluster" {
            let aws = &mut object["spec"]["platform"]["aws"];
            aws["region"] = json!(REGION);
            aws["endpointAccess"] = json!("Private");
        }
    }
    admin.apply(&objects).await?;
    let made = CONTROL_PLANES.named(&cluster.namespace(), cluster.name);
    wait::until("the HostedControlPlane", SOON, async || {
        admin.get(&made).await.map(drop)
    })
    .await
}

/// The Service of the router, with the load balancer of the cloud.
async fn publish(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace();
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": namespace, "name": ROUTER },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "https", "port": 443 }] },
    });
    admin.apply(&[service]).await?;
    let host = format!("{}-1.{REGION}.elb.amazonaws.com", cluster.name);
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "hostname": host }] } } });
    let path = format!("{}/status", SERVICES.named(&namespace, ROUTER));
    admin.patch(&path, Patch::Merge, &status).await.map(drop)
}

fn link(cluster: &Cluster, balancer: &str) -> Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "AWSEndpointService",
        "metadata": { "namespace": cluster.namespace(), "name": ROUTER },
        "spec": { "networkLoadBalancerName": balancer },
    })
}

/// Waits for the name of the endpoint service, and for the subnets of the pool.
async fn is_linked(admin: &ApiClient, cluster: &Cluster) -> Result<String> {
    let path = LINKS.named(&cluster.namespace(), ROUTER);
    wait::until("a VPC endpoint service", SOON, async || {
        let found = admin.get(&path).await?;
        let condition = conditions::find(&found, AVAILABLE);
        let condition = condition.with_context(|| format!("no condition in {found}"))?;
        ensure!(condition["status"] == "True", "{condition}");
        let subnets = &found["spec"]["subnetIDs"];
        ensure!(*subnets == json!(["subnet-1"]), "its subnets are {subnets}");
        let service = found["status"]["endpointServiceName"].as_str();
        service.map(str::to_owned).context("it has no name")
    })
    .await
}
