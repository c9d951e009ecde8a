//! A small client of AWS's APIs, as far as tests need them. The fake cloud checks no signature.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header, request};

use super::Network;
use crate::payload::BOOT_IMAGE;
use crate::raw::RawClient;

/// The service of instances and networks, and the version of its API.
pub const EC2: (&str, &str) = ("ec2", "2016-11-15");
/// The service of roles.
const IAM: (&str, &str) = ("iam", "2010-05-08");
/// Who may act for an instance.
const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;

/// The fake cloud's API in one region.
#[derive(Debug, Clone)]
pub struct Cloud {
    client: RawClient,
    region: &'static str,
}

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `i-` and digits.
    pub id: String,
    /// `running`, `terminated`, ...
    pub state: String,
    /// Its type: `m5.large`, ...
    pub instance_type: String,
    /// Its address in the network.
    pub address: String,
    /// Its host name.
    pub name: String,
    /// Where it is.
    pub zone: String,
}

// === impl Instance ===

impl Instance {
    /// Whether it is to be there.
    pub fn runs(&self) -> bool {
        self.state == "running"
    }
}

// === impl Cloud ===

impl Cloud {
    /// The API at a URL, in a region.
    pub fn new(url: &str, region: &'static str) -> Result<Self> {
        let client = RawClient::new(url, None)?;
        Ok(Self { client, region })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.client.server().to_owned()
    }

    /// All instances, those that have ended too, as long as the cloud remembers them.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        let response = self.ask(EC2, "DescribeInstances", &[]).await?;
        Ok(instances(&response))
    }

    /// The instances that the provider has made for a cluster, by its name there.
    pub async fn instances_of(&self, cluster: &str) -> Result<Vec<Instance>> {
        let tag = format!("sigs.k8s.io/cluster-api-provider-aws/cluster/{cluster}");
        let only = [("Filter.1.Name", "tag-key"), ("Filter.1.Value.1", &tag)];
        let response = self.ask(EC2, "DescribeInstances", &only).await?;
        Ok(instances(&response))
    }

    /// The instances that Karpenter has made for a cluster, by its name there.
    pub async fn instances_of_karpenter(&self, cluster: &str) -> Result<Vec<Instance>> {
        let only = [
            ("Filter.1.Name", "tag-key"),
            ("Filter.1.Value.1", "karpenter.sh/nodepool"),
            ("Filter.2.Name", "tag:eks:eks-cluster-name"),
            ("Filter.2.Value.1", cluster),
        ];
        let response = self.ask(EC2, "DescribeInstances", &only).await?;
        Ok(instances(&response))
    }

    /// The tags of an instance.
    pub async fn tags(&self, instance: &str) -> Result<BTreeMap<String, String>> {
        let only = [
            ("Filter.1.Name", "resource-id"),
            ("Filter.1.Value.1", instance),
        ];
        let response = self.ask(EC2, "DescribeTags", &only).await?;
        Ok(tags(&response))
    }

    /// The user data of an instance, for its first boot.
    pub async fn user_data(&self, instance: &str) -> Result<Vec<u8>> {
        let parameters = [("InstanceId", instance), ("Attribute", "userData")];
        let response = self
            .ask(EC2, "DescribeInstanceAttribute", &parameters)
            .await?;
        let encoded = inside(&response, "value").unwrap_or_default();
        STANDARD
            .decode(encoded.trim())
            .with_context(|| format!("the user data of {instance} are not in base64"))
    }

    /// Makes a network with one part for instances, and a rule that lets everything through.
    pub async fn create_network(&self, cidr: &str, part: &str, zone: &str) -> Result<Network> {
        let vpc = self
            .created("CreateVpc", &[("CidrBlock", cidr)], "vpcId")
            .await?;
        let parameters = [
            ("VpcId", vpc.as_str()),
            ("CidrBlock", part),
            ("AvailabilityZone", zone),
        ];
        let subnet = self
            .created("CreateSubnet", &parameters, "subnetId")
            .await?;
        let parameters = [
            ("VpcId", vpc.as_str()),
            ("GroupName", "workers"),
            ("GroupDescription", "workers"),
        ];
        let security_group = self
            .created("CreateSecurityGroup", &parameters, "groupId")
            .await?;
        Ok(Network {
            vpc,
            subnet,
            security_group,
            cidr: cidr.to_owned(),
        })
    }

    /// Starts an instance by hand, as the provider of a cluster would; gives its id.
    pub async fn run_instance(&self, network: &Network, user_data: &[u8]) -> Result<String> {
        let encoded = STANDARD.encode(user_data);
        let parameters = [
            ("ImageId", BOOT_IMAGE),
            ("InstanceType", "m5.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", network.subnet.as_str()),
            ("UserData", &encoded),
        ];
        self.created("RunInstances", &parameters, "instanceId")
            .await
    }

    /// Ends an instance.
    pub async fn terminate(&self, instance: &str) -> Result<()> {
        let parameters = [("InstanceId.1", instance)];
        self.ask(EC2, "TerminateInstances", &parameters).await?;
        Ok(())
    }

    /// Makes an instance profile with a role of the same name.
    pub async fn create_instance_profile(&self, name: &str) -> Result<()> {
        let role = [("RoleName", name), ("AssumeRolePolicyDocument", TRUST)];
        self.ask(IAM, "CreateRole", &role).await?;
        let profile = [("InstanceProfileName", name)];
        self.ask(IAM, "CreateInstanceProfile", &profile).await?;
        let both = [("InstanceProfileName", name), ("RoleName", name)];
        self.ask(IAM, "AddRoleToInstanceProfile", &both).await?;
        Ok(())
    }

    async fn created(
        &self,
        action: &str,
        parameters: &[(&str, &str)],
        field: &str,
    ) -> Result<String> {
        let response = self.ask(EC2, action, parameters).await?;
        inside(&response, field)
            .map(str::to_owned)
            .with_context(|| format!("{action} does not say its {field}: {response:.300}"))
    }

    /// Requests an action of a service with a query API; gives the response.
    pub async fn ask(
        &self,
        (service, version): (&str, &str),
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<String> {
        let mut body = format!("Action={action}&Version={version}");
        for (name, value) in parameters {
            let _ = write!(body, "&{name}={}", encoded(value));
        }
        let response = self.send(service, Request::post("/"), &body).await;
        response.with_context(|| action.to_owned())
    }

    /// Sends a request to a service; gives the response. An error status is an error.
    pub async fn send(
        &self,
        service: &str,
        request: request::Builder,
        body: &str,
    ) -> Result<String> {
        // By the scope of the signature, the cloud knows which service is meant.
        let scope = format!("testing/20260101/{}/{service}/aws4_request", self.region);
        let content_type = match service {
            "route53" => "application/xml",
            _ => "application/x-www-form-urlencoded; charset=utf-8",
        };
        let request = request
            .header(header::CONTENT_TYPE, content_type)
            .header(
                header::AUTHORIZATION,
                format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none"),
            )
            .body(body.as_bytes().to_vec())?;
        let response = self.client.send(request).await?;
        let status = response.status;
        let text = String::from_utf8_lossy(&response.bytes().await?).into_owned();
        ensure!(
            status.is_success(),
            "{service} returned {status}: {text:.500}"
        );
        Ok(text)
    }
}

/// The instances of a response. Each begins with its id, and what is looked for is there only once in each.
fn instances(response: &str) -> Vec<Instance> {
    response
        .split("<instanceId>")
        .skip(1)
        .map(|part| Instance {
            id: part.split('<').next().unwrap_or_default().to_owned(),
            state: inside(part, "instanceState")
                .and_then(|state| inside(state, "name"))
                .unwrap_or_default()
                .to_owned(),
            instance_type: text(part, "instanceType"),
            address: text(part, "privateIpAddress"),
            name: text(part, "privateDnsName"),
            zone: text(part, "availabilityZone"),
        })
        .collect()
}

/// The tags of a response. The fields of each have any order, and an empty value is an element without content.
fn tags(response: &str) -> BTreeMap<String, String> {
    let parts = response.split("<item>").skip(1);
    parts
        .map(|part| (text(part, "key"), text(part, "value")))
        .collect()
}

/// What the first element of a name holds, or nothing.
pub(super) fn text(part: &str, field: &str) -> String {
    inside(part, field).unwrap_or_default().to_owned()
}

/// What the first element of a name holds.
fn inside<'a>(text: &'a str, element: &str) -> Option<&'a str> {
    let open = format!("<{element}>");
    let start = text.find(&open)? + open.len();
    let end = text[start..].find(&format!("</{element}>"))?;
    Some(&text[start..start + end])
}

fn encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_read_from_the_response() {
        let response = "<reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>\
            <instanceState><code>16</code><name>running</name></instanceState>\
            <privateDnsName>ip-198-18-4-130.ec2.internal</privateDnsName><instanceType>m5.large</instanceType>\
            <placement><availabilityZone>us-east-1a</availabilityZone></placement>\
            <privateIpAddress>198.18.4.130</privateIpAddress></item>\
            <item><instanceId>i-2</instanceId><instanceState><name>terminated</name></instanceState></item>";
        let found = instances(response);
        assert_eq!(found.len(), 2);
        assert!(found[0].runs() && !found[1].runs());
        assert_eq!(found[0].address, "198.18.4.130");
        assert_eq!(found[0].zone, "us-east-1a");
        assert_eq!(found[0].instance_type, "m5.large");
        assert_eq!(found[1].id, "i-2");
    }

    #[test]
    fn tags_are_read_from_the_response() {
        let response = "<tagSet><item><key>empty</key><resourceId>i-1</resourceId>\
            <resourceType>instance</resourceType><value/></item>\
            <item><key>cost</key><resourceId>i-1</resourceId><value>1</value></item>\
            <item><resourceId>i-1</resourceId><key>team</key><value>a</value></item></tagSet>";
        let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = [tag("cost", "1"), tag("empty", ""), tag("team", "a")];
        assert_eq!(tags(response), expected.into());
    }

    #[test]
    fn values_are_encoded() {
        assert_eq!(encoded("a b/{\"x\"}~"), "a%20b%2F%7B%22x%22%7D~");
    }
}
