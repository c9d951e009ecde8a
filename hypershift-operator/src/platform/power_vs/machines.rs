//! Machines on IBM Power Virtual Server.

use api::hypershift::v1beta1::node_pool::{PowerVsNodePoolPlatform, PowerVsProcessorType};
use api::hypershift::v1beta1::platform::power_vs::PowerVsResourceReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::platform::machines::{Inputs, Machine, Refused};

/// The kind of the template.
pub(crate) fn template(capi: Capi) -> ApiResource {
    let plural = "ibmpowervsmachinetemplates";
    capi.infrastructure("v1beta2", "IBMPowerVSMachineTemplate", plural)
}

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let cluster = inputs.cluster.spec.platform.powervs.as_ref();
    let cluster = cluster.ok_or_else(|| {
        Refused::invalid("the HostedCluster is not on PowerVS: use a NodePool of its own platform")
    })?;
    let PowerVsNodePoolPlatform {
        system_type,
        processor_type,
        processors,
        memory_gib,
        image,
        storage_type: _,
        image_delete_policy: _,
    } = inputs
        .pool
        .spec
        .platform
        .powervs
        .clone()
        .unwrap_or_default();
    let image = image.ok_or_else(|| {
        Refused::no_image("no image is imported for the release: set spec.platform.powervs.image")
    })?;
    let processors = processors.unwrap_or_else(|| IntOrString::String("0.5".to_owned()));
    Ok(Machine {
        template: template(inputs.capi),
        made: inputs
            .capi
            .infrastructure("v1beta2", "IBMPowerVSMachine", "ibmpowervsmachines"),
        spec: json!({
            "image": reference(&image),
            "memoryGiB": memory_gib.unwrap_or(32),
            "network": reference(&cluster.subnet),
            "processorType": processor(processor_type.unwrap_or(PowerVsProcessorType::Shared)),
            "processors": processors,
            "serviceInstanceID": cluster.service_instance_id,
            "sshKey": "",
            "systemType": system_type.unwrap_or_else(|| "s922".to_owned()),
        }),
        live: &[],
        notes: Vec::new(),
    })
}

fn reference(reference: &PowerVsResourceReference) -> Value {
    match (&reference.id, &reference.name) {
        (Some(id), _) => json!({ "id": id }),
        (None, name) => json!({ "name": name }),
    }
}

fn processor(type_: PowerVsProcessorType) -> &'static str {
    match type_ {
        PowerVsProcessorType::Dedicated => "Dedicated",
        PowerVsProcessorType::Shared => "Shared",
        PowerVsProcessorType::Capped => "Capped",
    }
}
