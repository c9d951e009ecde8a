//! Private clusters of two tenants on AWS, in a fake cloud: each gets a VPC endpoint service of its own, nothing that one of them
//! writes changes that of the other, and nothing is left of them.
//!
//! No control-plane-operator runs: the test creates the AWSEndpointServices, and Services with load balancers.

use anyhow::{Context, Result, ensure};
use http::{Request, header};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::operator::SOON;
use testbed::raw::RawClient;
use testbed::{conditions, simulation, wait};

use crate::hosted_clusters_api::cluster::{CONTROL_PLANES, HOSTED_CLUSTERS};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::other_platforms::destroyed;

/// The region of the operators. Other clusters are elsewhere.
pub(crate) const REGION: &str = "eu-central-1";
/// The variable of the operators with the URL of load balancers; EC2 has one of its own.
pub(crate) const BALANCERS_VARIABLE: &str = "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2";
const LINKS: Resource<'_> = Resource::new("hypershift.openshift.io/v1beta1", "awsendpointservices");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const ROUTER: &str = "private-router";
const EC2: (&str, &str) = ("ec2", "2016-11-15");
const BALANCERS: (&str, &str) = ("elasticloadbalancing", "2015-12-01");
const DESCRIBE: &str = "DescribeVpcEndpointServiceConfigurations";

/// Both clusters, from their creation to their end. The cloud has this URL.
pub(crate) async fn live(admin: &ApiClient, fixture: &Fixture, url: &str) -> Result<()> {
    let cloud = Cloud(RawClient::new(url, None)?);
    let subnet = cloud
        .subnet()
        .await
        .context("a network in the fake cloud")?;
    let [one, two] = ["secluded", "hostile"];
    for name in [one, two] {
        create(admin, fixture, name).await?;
        let balancer = [
            ("Name", name),
            ("Type", "network"),
            ("Scheme", "internal"),
            ("Subnets.member.1", subnet.as_str()),
        ];
        cloud
            .ask(BALANCERS, "CreateLoadBalancer", &balancer)
            .await?;
        publish(admin, name).await?;
    }
    admin.apply(&[link(one, one)]).await?;
    let service = is_linked(admin, one).await?;
    reports(admin, one, "True", "All is well").await?;
    let principals = [("ServiceId", id(&service))];
    let principals = cloud
        .ask(EC2, "DescribeVpcEndpointServicePermissions", &principals)
        .await?;
    ensure!(principals.contains(":role/"), "{principals}");

    // The other tenant names the load balancer and the endpoint service of the first one.
    admin.apply(&[link(two, one)]).await?;
    let path = LINKS.named(&namespace(two), ROUTER);
    let stolen = json!({ "status": { "endpointServiceName": service } });
    admin
        .patch(&format!("{path}/status"), Patch::Merge, &stolen)
        .await?;
    reports(admin, two, "False", "is not the one of the Service").await?;
    admin.delete(&path).await?;
    is_gone(admin, &path).await?;
    let left = cloud.ask(EC2, DESCRIBE, &[]).await?;
    ensure!(left.contains(&service), "it is deleted: {left}");
    let link_of_one = admin.get(&LINKS.named(&namespace(one), ROUTER)).await?;
    ensure!(link_of_one["status"]["endpointServiceName"] == *service);

    // Its own load balancer leads to an endpoint service of its own.
    admin.apply(&[link(two, two)]).await?;
    let own = is_linked(admin, two).await?;
    ensure!(own != service, "both have {own}");
    for name in [one, two] {
        destroyed(admin, name).await.context(name)?;
    }
    let left = cloud.ask(EC2, DESCRIBE, &[]).await?;
    ensure!(!left.contains("vpce-svc-"), "something is left: {left}");
    Ok(())
}

fn namespace(name: &str) -> String {
    format!("{NAMESPACE}-{name}")
}

/// The ID of an endpoint service.
fn id(service: &str) -> &str {
    service.rsplit('.').next().unwrap_or_default()
}

async fn create(admin: &ApiClient, fixture: &Fixture, name: &str) -> Result<()> {
    let mut objects = simulation::desired(name, &fixture.release)?;
    for object in &mut objects {
        if object["kind"] == "HostedCluster" {
            let aws = &mut object["spec"]["platform"]["aws"];
            aws["region"] = json!(REGION);
            aws["endpointAccess"] = json!("Private");
        }
    }
    admin.apply(&objects).await?;
    let made = CONTROL_PLANES.named(&namespace(name), name);
    wait::until("the HostedControlPlane", SOON, async || {
        admin.get(&made).await.map(drop)
    })
    .await
}

/// The Service of the router, with the load balancer of the cloud.
async fn publish(admin: &ApiClient, name: &str) -> Result<()> {
    let namespace = namespace(name);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": namespace, "name": ROUTER },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "https", "port": 443 }] },
    });
    admin.apply(&[service]).await?;
    let host = format!("{name}-1.{REGION}.elb.amazonaws.com");
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "hostname": host }] } } });
    let path = format!("{}/status", SERVICES.named(&namespace, ROUTER));
    admin.patch(&path, Patch::Merge, &status).await.map(drop)
}

fn link(name: &str, balancer: &str) -> Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "AWSEndpointService",
        "metadata": { "namespace": namespace(name), "name": ROUTER },
        "spec": { "networkLoadBalancerName": balancer },
    })
}

/// Waits for the name of the endpoint service, and for the subnets of the pool.
async fn is_linked(admin: &ApiClient, name: &str) -> Result<String> {
    let path = LINKS.named(&namespace(name), ROUTER);
    wait::until("a VPC endpoint service", SOON, async || {
        let found = admin.get(&path).await?;
        let condition = conditions::find(&found, "AWSEndpointServiceAvailable");
        let condition = condition.with_context(|| format!("no condition in {found}"))?;
        ensure!(condition["status"] == "True", "{condition}");
        let subnets = &found["spec"]["subnetIDs"];
        ensure!(*subnets == json!(["subnet-1"]), "its subnets are {subnets}");
        let service = found["status"]["endpointServiceName"].as_str();
        service.map(str::to_owned).context("it has no name")
    })
    .await
}

/// Waits for the condition of the HostedCluster.
async fn reports(admin: &ApiClient, name: &str, status: &str, about: &str) -> Result<()> {
    let path = HOSTED_CLUSTERS.named(NAMESPACE, name);
    wait::until("the condition of the HostedCluster", SOON, async || {
        let cluster = admin.get(&path).await?;
        let found = conditions::find(&cluster, "AWSEndpointServiceAvailable");
        let found = found.context("there is none")?;
        let message = found["message"].as_str().unwrap_or_default();
        ensure!(
            found["status"] == status && message.contains(about),
            "{found}"
        );
        Ok(())
    })
    .await
}

async fn is_gone(admin: &ApiClient, path: &str) -> Result<()> {
    wait::until(&format!("{path} to be gone"), SOON, async || {
        let left = admin.find(path).await?;
        ensure!(left.is_none(), "it is there: {left:?}");
        Ok(())
    })
    .await
}

/// The fake cloud, in the region of the operators. It checks no signature.
struct Cloud(RawClient);

impl Cloud {
    async fn subnet(&self) -> Result<String> {
        let vpc = self
            .ask(EC2, "CreateVpc", &[("CidrBlock", "10.8.0.0/16")])
            .await?;
        let vpc = inside(&vpc, "vpcId").context("no VPC")?;
        let subnet = [("VpcId", vpc), ("CidrBlock", "10.8.0.0/24")];
        let subnet = self.ask(EC2, "CreateSubnet", &subnet).await?;
        let subnet = inside(&subnet, "subnetId").context("no subnet")?;
        Ok(subnet.to_owned())
    }

    async fn ask(
        &self,
        (service, version): (&str, &str),
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<String> {
        // No value has a character that a form encodes, but for the slash.
        let parameters = parameters.iter();
        let parameters =
            parameters.map(|(name, value)| format!("&{name}={}", value.replace('/', "%2F")));
        let body = format!(
            "Action={action}&Version={version}{}",
            parameters.collect::<String>()
        );
        let scope = format!("testing/20260101/{REGION}/{service}/aws4_request");
        let request = Request::post("/")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(
                header::AUTHORIZATION,
                format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none"),
            )
            .body(body.into_bytes())?;
        let response = self.0.send(request).await?;
        let status = response.status;
        let text = String::from_utf8_lossy(&response.bytes().await?).into_owned();
        ensure!(status.is_success(), "{action} got {status}: {text}");
        Ok(text)
    }
}

/// The text of the first element of a name.
fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(inside, _)| inside)
}
