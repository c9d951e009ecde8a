//! Instances and images of the fake.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Error;

use super::{Account, State, refused, tags_xml, xml};
use crate::infra::aws::call::{Call, Tags};

/// An instance.
#[derive(Debug, Clone)]
pub(in crate::infra::aws) struct Instance {
    pub(in crate::infra::aws) account: Account,
    pub(in crate::infra::aws) state: &'static str,
    pub(in crate::infra::aws) tags: Tags,
    pub(in crate::infra::aws) image: String,
    /// Identifiers of what it uses: VPC, subnet, security group.
    uses: [String; 3],
    /// The name of its key pair.
    pub(in crate::infra::aws) key: String,
    /// What runs when it starts, in base64.
    script: String,
    token: String,
}

impl Instance {
    /// Whether it uses anything.
    pub(super) fn is_there(&self) -> bool {
        self.state != "terminated"
    }

    fn matches(&self, name: &str, value: &str) -> bool {
        let key = name.strip_prefix("tag:");
        key.is_some_and(|key| self.tags.get(key).is_some_and(|it| it == value))
    }

    fn xml(&self, id: &str) -> String {
        let mut text = xml("instanceId", id);
        text.push_str(&xml("instanceState", &xml("name", self.state)));
        text.push_str(&xml("privateIpAddress", "10.0.0.9"));
        if self.state == "running" {
            text.push_str(&xml("ipAddress", "192.0.2.1"));
        }
        let tags = tags_xml(&self.tags, "item", "key", "value");
        text.push_str(&xml("tagSet", &tags));
        xml("item", &xml("instancesSet", &xml("item", &text)))
    }
}

impl State {
    pub(super) fn pass_time_of_instances(&mut self) {
        for instance in self.instances.values_mut() {
            instance.state = match instance.state {
                "pending" => "running",
                "shutting-down" => "terminated",
                state => state,
            };
        }
    }

    /// Whether instances use something.
    pub(super) fn has_instances(&self, id: &str) -> bool {
        let mut there = self.instances.values().filter(|it| it.is_there());
        there.any(|it| it.uses.iter().any(|used| used == id))
    }

    /// Calls about instances; others have an empty response.
    pub(super) fn instance_call(&mut self, call: &Call) -> Result<String, Error> {
        match call.action {
            "DescribeInstances" => self.describe_instances(call),
            "DescribeImages" => {
                let name = xml("name", "al2023-ami-2023.9.1-kernel-6.1-x86_64");
                let image = format!("{}{name}", xml("imageId", "ami-1"));
                Ok(xml("imagesSet", &xml("item", &image)))
            }
            "DescribeInstanceAttribute" => {
                let script = self.instance(call)?.script.clone();
                Ok(xml("userData", &xml("value", &script)))
            }
            "GetConsoleOutput" => {
                let instance = self.instance(call)?;
                let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
                let ca = format!("proxy-ca:{}\n", STANDARD.encode(pem));
                let console = match instance.state {
                    "running" => format!("boot\n{ca}"),
                    _ => "boot\n".to_owned(),
                };
                Ok(xml("output", &STANDARD.encode(console)))
            }
            "RunInstances" => self.run_instance(call),
            "StartInstances" => self.set_state(call, "pending"),
            "TerminateInstances" => self.set_state(call, "shutting-down"),
            _ => Ok(String::new()),
        }
    }

    /// The instance of a call.
    fn instance(&self, call: &Call) -> Result<&Instance, Error> {
        let found = self.instances.get(call.get("InstanceId"));
        let found = found.filter(|it| it.account == self.caller);
        found.ok_or_else(|| refused(call, 400, "InvalidInstanceID.NotFound"))
    }

    fn describe_instances(&self, call: &Call) -> Result<String, Error> {
        let ids = call.values("InstanceId");
        if ids.iter().any(|id| !self.instances.contains_key(*id)) {
            return Err(refused(call, 400, "InvalidInstanceID.NotFound"));
        }
        let filters: Vec<_> = (1..=call.parameters.len())
            .map(|at| {
                let name = call.get(&format!("Filter.{at}.Name"));
                (name, call.get(&format!("Filter.{at}.Value.1")))
            })
            .take_while(|(name, _)| !name.is_empty())
            .collect();
        let found = self.instances.iter().filter(|(id, instance)| {
            let is_asked_for = ids.is_empty() || ids.contains(&id.as_str());
            let mut filters = filters.iter();
            let is_visible = instance.account == self.caller;
            is_asked_for && is_visible && filters.all(|(name, value)| instance.matches(name, value))
        });
        let text: String = found.map(|(id, instance)| instance.xml(id)).collect();
        Ok(xml("reservationSet", &text))
    }

    fn run_instance(&mut self, call: &Call) -> Result<String, Error> {
        let created = |id: &str| xml("instancesSet", &xml("item", &xml("instanceId", id)));
        let token = call.get("ClientToken").to_owned();
        let mut instances = self.instances.iter();
        if let Some((id, earlier)) = instances.find(|(_, it)| it.token == token) {
            if earlier.is_there() {
                return Ok(created(id));
            }
            return Err(refused(call, 400, "IdempotentInstanceTerminated"));
        }
        let subnet = call.get("NetworkInterface.1.SubnetId");
        let group = call.get("NetworkInterface.1.SecurityGroupId.1");
        if let Some(absent) = [subnet, group]
            .iter()
            .find(|id| !self.items.contains_key(**id))
        {
            return Err(refused(call, 400, &format!("Invalid{absent}.NotFound")));
        }
        let instance = Instance {
            account: self.caller,
            state: "pending",
            tags: call.tags_of("TagSpecification.1.Tag"),
            image: call.get("ImageId").to_owned(),
            uses: [self.vpc_of(subnet), subnet.to_owned(), group.to_owned()],
            key: call.get("KeyName").to_owned(),
            script: call.get("UserData").to_owned(),
            token,
        };
        let id = self.id("i");
        self.instances.insert(id.clone(), instance);
        Ok(created(&id))
    }

    fn set_state(&mut self, call: &Call, state: &'static str) -> Result<String, Error> {
        for id in call.values("InstanceId") {
            let instance = self.instances.get_mut(id);
            let absent = || refused(call, 400, "InvalidInstanceID.NotFound");
            let instance = instance.ok_or_else(absent)?;
            if instance.is_there() {
                instance.state = state;
            }
        }
        Ok(String::new())
    }
}
