//! AWS as it is asked: requests of EC2 and of load balancers.

use std::collections::BTreeSet;

use support::aws::{Client, EC2, ELB_V2, Element, Error};
use support::ec2::{self, Call, Tags};

use super::cloud::{By, Cloud, Connection, Deleted, EndpointService, LoadBalancer};

impl Cloud for Client {
    async fn load_balancer(&self, name: &str) -> Result<Option<LoadBalancer>, Error> {
        let call = Call::new("DescribeLoadBalancers").list("Names.member", [name]);
        let response = match call.read(self, &ELB_V2).await {
            Err(error) if error.code() == "LoadBalancerNotFound" => return Ok(None),
            response => response?,
        };
        let found = response.at("DescribeLoadBalancersResult/LoadBalancers/member");
        Ok(found.map(|it| LoadBalancer {
            arn: it.text_at("LoadBalancerArn").to_owned(),
            host: it.text_at("DNSName").to_owned(),
            is_active: it.text_at("State/Code") == "active",
        }))
    }

    async fn services(&self, by: By<'_>) -> Result<Vec<EndpointService>, Error> {
        let call = Call::new("DescribeVpcEndpointServiceConfigurations");
        let call = match by {
            By::Name(name) => call.filter("service-name", name),
            By::Tag(key, value) => call.filter(&format!("tag:{key}"), value),
            By::Any => call,
        };
        let items = call.items(self, "serviceConfigurationSet").await?;
        Ok(items.iter().map(service).collect())
    }

    async fn create(&self, balancer: &str, tags: &Tags) -> Result<EndpointService, Error> {
        let call = Call::new("CreateVpcEndpointServiceConfiguration")
            .with("AcceptanceRequired", "false")
            .list("NetworkLoadBalancerArn", [balancer])
            .tagged("vpc-endpoint-service", tags);
        let response = call.write(self, &EC2).await?;
        let made = response.at("serviceConfiguration").map(service);
        made.filter(|it| !it.name.is_empty())
            .ok_or_else(|| call.unexpected("it has no name of an endpoint service"))
    }

    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Error> {
        let call = Call::new("CreateTags").list("ResourceId", [id]);
        call.tags("Tag", tags).read(self, &EC2).await.map(drop)
    }

    async fn principals(&self, id: &str) -> Result<BTreeSet<String>, Error> {
        let call = Call::new("DescribeVpcEndpointServicePermissions").with("ServiceId", id);
        let items = call.items(self, "allowedPrincipals").await?;
        let principals = items.iter().map(|it| it.text_at("principal").to_owned());
        Ok(principals.collect())
    }

    async fn permit(&self, id: &str, added: &[String], removed: &[String]) -> Result<(), Error> {
        let call = Call::new("ModifyVpcEndpointServicePermissions")
            .with("ServiceId", id)
            .list("AddAllowedPrincipals", added)
            .list("RemoveAllowedPrincipals", removed);
        call.read(self, &EC2).await.map(drop)
    }

    async fn connections(&self, id: &str) -> Result<Vec<Connection>, Error> {
        let call = Call::new("DescribeVpcEndpointConnections").filter("service-id", id);
        let items = call.items(self, "vpcEndpointConnectionSet").await?;
        let own = items.iter().filter(|it| it.text_at("serviceId") == id);
        let connections = own.map(|it| Connection {
            endpoint: it.text_at("vpcEndpointId").to_owned(),
            state: it.text_at("vpcEndpointState").to_owned(),
        });
        Ok(connections.collect())
    }

    async fn reject(&self, id: &str, endpoints: &[String]) -> Result<(), Error> {
        let call = Call::new("RejectVpcEndpointConnections")
            .with("ServiceId", id)
            .list("VpcEndpointId", endpoints);
        call.read(self, &EC2).await.map(drop)
    }

    async fn delete(&self, id: &str) -> Result<Deleted, Error> {
        let call = Call::new("DeleteVpcEndpointServiceConfigurations").list("ServiceId", [id]);
        let response = match call.read(self, &EC2).await {
            Err(error) if is_gone(error.code()) => return Ok(Deleted::Gone),
            response => response?,
        };
        match call.refused(id, &response) {
            None => Ok(Deleted::Gone),
            Some(error) if is_gone(error.code()) => Ok(Deleted::Gone),
            Some(error) if error.code() == "ExistingVpcEndpointConnections" => {
                Ok(Deleted::Connected)
            }
            Some(error) => Err(error),
        }
    }
}

fn is_gone(code: &str) -> bool {
    [
        "InvalidVpcEndpointService.NotFound",
        "InvalidVpcEndpointServiceId.NotFound",
    ]
    .contains(&code)
}

fn service(item: &Element) -> EndpointService {
    EndpointService {
        id: item.text_at("serviceId").to_owned(),
        name: item.text_at("serviceName").to_owned(),
        balancers: ec2::texts(item, "networkLoadBalancerArnSet", ""),
        tags: ec2::tags(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_services_are_read() {
        let item = "<item><serviceId>vpce-svc-1</serviceId><serviceName>com.amazonaws.vpce.us-east-1.vpce-svc-1\
                    </serviceName><networkLoadBalancerArnSet><item>arn:1</item></networkLoadBalancerArnSet><tagSet>\
                    <item><key>a</key><value>b</value></item></tagSet></item>";
        let found = service(&Element::parse(item).unwrap());
        assert_eq!(
            found,
            EndpointService {
                id: "vpce-svc-1".to_owned(),
                name: "com.amazonaws.vpce.us-east-1.vpce-svc-1".to_owned(),
                balancers: vec!["arn:1".to_owned()],
                tags: Tags::from([("a".to_owned(), "b".to_owned())]),
            }
        );
    }
}
