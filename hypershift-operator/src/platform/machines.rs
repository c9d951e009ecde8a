//! The machine template of a platform, named by its content, so that changed content is another object
//! and machines are replaced by Cluster API, and only then.

use api::annotations::node_pool::{NODE_POOL, TEMPLATE_HASH};
use api::conditions::PoolCondition;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use kube::api::ApiResource;
use payload::{Capabilities, Release};
use serde_json::{Map, Value, json};

use super::{agent, aws, azure, gcp, kubevirt, openstack, power_vs};
use crate::canonical;
use crate::capi::Capi;
use crate::names::node_pool as names;

/// The inputs of a machine template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) capi: Capi,
    pub(crate) pool: &'a NodePool,
    pub(crate) cluster: &'a HostedCluster,
    pub(crate) release: &'a Release,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) infra_id: &'a str,
    /// The control plane's namespace.
    pub(crate) namespace: &'a str,
}

/// A machine as the platform has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Machine {
    /// The kind of the template.
    pub(crate) template: ApiResource,
    /// The kind of the machines of this template.
    pub(crate) made: ApiResource,
    /// `spec.template.spec` of the template.
    pub(crate) spec: Value,
    /// Fields of it that are changed on machines that run: they are not in the template's name.
    pub(crate) live: &'static [&'static str],
    /// Conditions for the user about the machine.
    pub(crate) notes: Vec<Note>,
}

/// A condition of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) condition: PoolCondition,
    pub(crate) is_so: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Why there can be no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub(crate) condition: PoolCondition,
    pub(crate) reason: &'static str,
    /// The problem and how to fix it.
    pub(crate) message: String,
}

/// A desired template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// The machine of the pool's platform; nothing on platforms whose machines another controller creates.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Option<Machine>, Refused> {
    match inputs.pool.spec.platform.type_ {
        PlatformType::Aws => aws::machines::machine(inputs).map(Some),
        PlatformType::Azure => azure::machines::machine(inputs).map(Some),
        PlatformType::Gcp => gcp::machines::machine(inputs).map(Some),
        PlatformType::OpenStack => openstack::machines::machine(inputs).map(Some),
        PlatformType::KubeVirt => kubevirt::machines::machine(inputs).map(Some),
        PlatformType::Agent => Ok(Some(agent::machines::machine(inputs))),
        PlatformType::PowerVs => power_vs::machines::machine(inputs).map(Some),
        PlatformType::IbmCloud | PlatformType::None => Ok(None),
    }
}

/// The object that has the platform import the release's boot image, where there is such an object. Pools of one release
/// share it.
pub(crate) fn boot_image(inputs: &Inputs<'_>) -> Option<(ApiResource, Value)> {
    match inputs.pool.spec.platform.type_ {
        PlatformType::OpenStack => openstack::image::desired(inputs),
        PlatformType::PowerVs => power_vs::image::desired(inputs),
        PlatformType::Agent
        | PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None => None,
    }
}

/// The zone of a pool's machines, where it is not in their template.
pub(crate) fn failure_domain(pool: &NodePool) -> Option<&str> {
    let platform = &pool.spec.platform;
    match platform.type_ {
        PlatformType::Gcp => Some(platform.gcp.as_ref()?.zone.as_str()),
        PlatformType::OpenStack => platform.openstack.as_ref()?.availability_zone.as_deref(),
        PlatformType::Agent
        | PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::PowerVs => None,
    }
}

/// The kinds of template that a pool of this platform may have left behind.
pub(crate) fn template_kind(capi: Capi, platform: PlatformType) -> Option<ApiResource> {
    match platform {
        PlatformType::Aws => Some(capi.aws_machine_template()),
        PlatformType::Azure => Some(azure::machine_template(capi)),
        PlatformType::Gcp => Some(gcp::machine_template(capi)),
        PlatformType::KubeVirt => Some(capi.kubevirt_machine_template()),
        PlatformType::OpenStack => Some(openstack::machine_template(capi)),
        PlatformType::Agent => Some(capi.agent_machine_template()),
        PlatformType::PowerVs => Some(power_vs::machine_template(capi)),
        PlatformType::IbmCloud | PlatformType::None => None,
    }
}

// === impl Machine ===

impl Machine {
    /// The template of it for a pool, named by its content.
    pub(crate) fn template(&self, inputs: &Inputs<'_>) -> Template {
        let name = names::template(names::of(inputs.pool), &self.hash());
        self.named(inputs, &name, &self.spec)
    }

    /// A template that exists and stands for this machine. Machines are made from it under its name, so only what is
    /// changed on machines that run is changed in it.
    pub(crate) fn kept_template(
        &self,
        inputs: &Inputs<'_>,
        name: &str,
        found: &Map<String, Value>,
    ) -> Template {
        let mut spec = found.clone();
        for field in self.live {
            match self.spec.get(*field) {
                Some(value) => drop(spec.insert((*field).to_owned(), value.clone())),
                None => drop(spec.remove(*field)),
            }
        }
        self.named(inputs, name, &Value::Object(spec))
    }

    /// Identifies the machine by everything in its name.
    pub(crate) fn hash(&self) -> String {
        names::hash(canonical::text(&self.lasting()).as_bytes())
    }

    /// The specification without the fields that are changed on machines that run.
    fn lasting(&self) -> Value {
        let mut spec = self.spec.clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|field, _| !self.live.contains(&field.as_str()));
        }
        spec
    }

    fn named(&self, inputs: &Inputs<'_>, name: &str, spec: &Value) -> Template {
        let object = json!({
            "metadata": {
                "namespace": inputs.namespace,
                "name": name,
                "annotations": {
                    NODE_POOL.key(): names::reference(inputs.pool),
                    TEMPLATE_HASH.key(): self.hash(),
                },
            },
            "spec": { "template": { "spec": spec } },
        });
        Template {
            name: name.to_owned(),
            object,
        }
    }
}

// === impl Note ===

impl Note {
    /// The boot image of the machines, by ID or name.
    pub(crate) fn boot_image(platform: &str, image: &str) -> Self {
        Self {
            condition: PoolCondition::ValidPlatformImage,
            is_so: true,
            reason: "AsExpected",
            message: format!("Bootstrap {platform} Image is {image:?}"),
        }
    }
}

// === impl Refused ===

impl Refused {
    /// The platform section of the specification is missing or invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            condition: PoolCondition::ValidMachineTemplate,
            reason: "InvalidConfiguration",
            message: message.into(),
        }
    }

    /// The cluster is not on the pool's platform.
    pub(crate) fn elsewhere(platform: &str) -> Self {
        Self::invalid(format!(
            "the HostedCluster is not on {platform}: use a NodePool of its own platform"
        ))
    }

    /// There is no boot image.
    pub(crate) fn no_image(message: impl Into<String>) -> Self {
        Self {
            condition: PoolCondition::ValidPlatformImage,
            reason: "InvalidImage",
            message: message.into(),
        }
    }
}
