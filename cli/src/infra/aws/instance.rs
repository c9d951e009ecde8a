//! Instances that commands start: what calls are like, and what is read of responses. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Element;

use super::call::Call;
use super::scope::{Scope, tags};

/// The beginning and the end of the names of images of Amazon Linux 2023. Minimal ones and those of ECS have other names.
const IMAGE: [&str; 2] = ["al2023-ami-2023.", "-x86_64"];
/// Where EC2 looks up the image if none is listed.
const IMAGE_PARAMETER: &str =
    "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";
/// States of instances that are of no use any more.
const GONE: [&str; 2] = ["shutting-down", "terminated"];

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(super) state: String,
    /// Its public address; empty as long as it has none.
    pub(crate) address: String,
    /// Its address in the VPC.
    pub(super) private: String,
}

/// What a new instance is made of.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) name: &'a str,
    pub(super) instance_type: &'a str,
    pub(super) subnet: &'a str,
    /// The security group.
    pub(super) group: &'a str,
    /// The name of a key pair.
    pub(super) key: Option<&'a str>,
    /// What is another one after each destruction, for the token by which there are not two instances.
    pub(super) token: &'a str,
    /// A script that runs when it starts.
    pub(super) script: Option<&'a str>,
}

/// Looks for the instances with a name.
pub(super) fn describe(scope: &Scope, name: &str) -> Call {
    Call::ec2("DescribeInstances")
        .filter(&format!("tag:{}", scope.cluster_tag()), "owned")
        .filter("tag:Name", name)
}

/// Looks for one instance.
pub(super) fn one(id: &str) -> Call {
    Call::ec2("DescribeInstances").list("InstanceId", [id])
}

/// Looks for images.
pub(super) fn images() -> Call {
    Call::ec2("DescribeImages")
        .list("Owner", ["amazon"])
        .filter("name", &IMAGE.join("*"))
        .filter("state", "available")
}

/// Starts an instance. EC2 starts one for each token, so that there are not two after a lost response. `generation` is how many
/// with the token have been terminated.
pub(super) fn run(scope: &Scope, launch: &Launch<'_>, image: &str, generation: u32) -> Call {
    let Launch {
        name,
        instance_type,
        subnet,
        group,
        key,
        token,
        script,
    } = launch;
    let mut call = Call::ec2("RunInstances")
        .with("ImageId", image)
        .with("InstanceType", *instance_type)
        .with("MinCount", "1")
        .with("MaxCount", "1");
    if let Some(key) = key {
        call = call.with("KeyName", *key);
    }
    call = call
        .with("ClientToken", format!("{token}-{generation}"))
        .with("MetadataOptions.HttpTokens", "required")
        .with("NetworkInterface.1.DeviceIndex", "0")
        .with("NetworkInterface.1.AssociatePublicIpAddress", "true")
        .with("NetworkInterface.1.SubnetId", *subnet)
        .with("NetworkInterface.1.SecurityGroupId.1", *group);
    if let Some(script) = script {
        call = call.with("UserData", STANDARD.encode(script));
    }
    call.tagged("instance", &scope.tags(name))
}

/// The newest image of a response.
pub(super) fn newest(response: &Element) -> String {
    let [start, end] = IMAGE;
    // Services may ignore filters that they do not know.
    let is_it = |it: &&Element| {
        let name = it.text_at("name");
        name.starts_with(start) && name.ends_with(end)
    };
    let images = response.items("imagesSet").iter().filter(is_it);
    let newest = images.max_by(|a, b| a.text_at("creationDate").cmp(b.text_at("creationDate")));
    newest
        .map_or(IMAGE_PARAMETER, |it| it.text_at("imageId"))
        .to_owned()
}

/// All instances of a response.
fn items(response: &Element) -> impl Iterator<Item = &Element> {
    let reservations = response.items("reservationSet").iter();
    reservations.flat_map(|it| it.items("instancesSet"))
}

/// The instances of a response with a name, in a fixed order, without those that are terminated.
pub(super) fn instances(scope: &Scope, name: &str, response: &Element) -> Vec<Instance> {
    let is_it = |it: &&Element| {
        let tags = tags(it.items("tagSet"));
        scope.owns(&tags) && tags.get("Name").is_some_and(|it| it == name)
    };
    let mut found: Vec<_> = items(response).filter(is_it).map(Instance::read).collect();
    found.retain(|it| it.state != "terminated");
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// The only instance of a response.
pub(super) fn instance(response: &Element) -> Option<Instance> {
    items(response).next().map(Instance::read)
}

// === impl Instance ===

impl Instance {
    fn read(item: &Element) -> Self {
        Self {
            id: item.text_at("instanceId").to_owned(),
            state: item.text_at("instanceState/name").to_owned(),
            address: item.text_at("ipAddress").to_owned(),
            private: item.text_at("privateIpAddress").to_owned(),
        }
    }

    /// One that was created just now.
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            state: "pending".to_owned(),
            address: String::new(),
            private: String::new(),
        }
    }

    /// Whether it is or will be of use.
    pub(super) fn is_alive(&self) -> bool {
        !GONE.contains(&self.state.as_str())
    }

    /// Whether others in the VPC reach it, as far as EC2 knows.
    pub(super) fn is_reachable(&self) -> bool {
        self.state == "running" && !self.private.is_empty()
    }

    /// Whether users can log in, as far as EC2 knows.
    pub(super) fn is_ready(&self) -> bool {
        self.state == "running" && !self.address.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Tags;
    use super::*;

    fn parse(text: &str) -> Element {
        Element::parse(text).unwrap()
    }

    #[test]
    fn the_newest_image_of_amazon_linux_is_used() {
        let image = |id: &str, name: &str, date: &str| {
            format!(
                "<item><imageId>{id}</imageId><name>{name}</name><creationDate>{date}</creationDate></item>"
            )
        };
        let of = |images: &[String]| {
            newest(&parse(&format!(
                "<R><imagesSet>{}</imagesSet></R>",
                images.concat()
            )))
        };
        let images = [
            image(
                "ami-1",
                "al2023-ami-2023.8.1-kernel-6.1-x86_64",
                "2026-01-02T00:00:00.000Z",
            ),
            image(
                "ami-2",
                "al2023-ami-2023.9.1-kernel-6.1-x86_64",
                "2026-03-02T00:00:00.000Z",
            ),
            image(
                "ami-3",
                "al2023-ami-2023.9.1-kernel-6.1-arm64",
                "2026-04-02T00:00:00.000Z",
            ),
            image(
                "ami-4",
                "al2023-ami-minimal-2023.9.1-x86_64",
                "2026-04-02T00:00:00.000Z",
            ),
        ];
        assert_eq!(of(&images), "ami-2");
        assert_eq!(of(&[]), IMAGE_PARAMETER);
    }

    #[test]
    fn instances_of_others_are_left_out() {
        let scope = Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap();
        let instance = |id: &str, state: &str, cluster: &str, name: &str| {
            format!(
                "<item><instanceId>{id}</instanceId><instanceState><name>{state}</name></instanceState><tagSet>\
                 <item><key>kubernetes.io/cluster/{cluster}</key><value>owned</value></item>\
                 <item><key>Name</key><value>{name}</value></item></tagSet></item>"
            )
        };
        let all = [
            instance("i-2", "running", "a-x1", "a-x1-bastion"),
            instance("i-1", "shutting-down", "a-x1", "a-x1-bastion"),
            instance("i-3", "terminated", "a-x1", "a-x1-bastion"),
            instance("i-4", "running", "a-x1", "a-x1-worker"),
            instance("i-5", "running", "b-x2", "a-x1-bastion"),
        ];
        let response = format!(
            "<R><reservationSet><item><instancesSet>{}</instancesSet></item></reservationSet></R>",
            all.concat()
        );
        let found = instances(&scope, "a-x1-bastion", &parse(&response));
        let ids: Vec<_> = found
            .iter()
            .map(|it| (it.id.as_str(), it.is_alive()))
            .collect();
        assert_eq!(ids, [("i-1", false), ("i-2", true)]);
    }
}
