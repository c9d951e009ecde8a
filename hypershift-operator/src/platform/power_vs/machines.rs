//! Machines on IBM Power Virtual Server.

use api::hypershift::v1beta1::node_pool::{PowerVsNodePoolPlatform, PowerVsProcessorType};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::{image, reference};
use crate::platform::machines::{Inputs, Machine, Note, Refused};

/// Defaults of a machine.
const SYSTEM: &str = "s922";
const PROCESSORS: &str = "0.5";
const MEMORY: i32 = 32;
/// The least memory of a machine, in GiB.
const LEAST_MEMORY: i32 = 2;

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let cluster = inputs.cluster.spec.platform.powervs.as_ref();
    let cluster = cluster.ok_or_else(|| Refused::elsewhere("PowerVS"))?;
    let pool = inputs.pool.spec.platform.powervs.clone();
    let pool = pool.unwrap_or_default();
    if let Some(problem) = problem(&pool) {
        return Err(Refused::invalid(problem));
    }
    let network = reference(&cluster.subnet).ok_or_else(|| {
        Refused::invalid(
            "the HostedCluster has neither id nor name in spec.platform.powervs.subnet: set one of them there",
        )
    })?;
    let mut spec = json!({
        "memoryGiB": pool.memory_gib.unwrap_or(MEMORY),
        "network": network,
        "processorType": processor_type(of(&pool)),
        "processors": processors(&pool),
        "serviceInstanceID": cluster.service_instance_id,
        "systemType": pool.system_type.as_deref().unwrap_or(SYSTEM),
    });
    let source = if let Some(image) = &pool.image {
        let image = reference(image).ok_or_else(|| {
                Refused::no_image(
                    "spec.platform.powervs.image has neither id nor name: set one of them, or remove it",
                )
            })?;
        let source = image["id"].as_str().or(image["name"].as_str());
        let source = source.unwrap_or_default().to_owned();
        spec["image"] = image;
        source
    } else {
        let name = imported(inputs, &cluster.region)?;
        spec["imageRef"] = json!({ "name": name });
        name
    };
    Ok(Machine {
        template: super::machine_template(inputs.capi),
        made: super::machine(inputs.capi),
        spec,
        live: &[],
        notes: vec![Note::boot_image("PowerVS", &source)],
    })
}

/// The name of the object that imports the release's image.
fn imported(inputs: &Inputs<'_>, region: &str) -> Result<String, Refused> {
    image::of_release(inputs).map(image::name).ok_or_else(|| {
        let version = &inputs.release.version;
        let storage = image::storage_region(region);
        Refused::no_image(format!(
            "release {version} has no ppc64le image in region {storage} of Cloud Object Storage, which region \
             {region} of Power Virtual Server uses: set spec.platform.powervs.image"
        ))
    })
}

/// Settings that no machine can have.
fn problem(pool: &PowerVsNodePoolPlatform) -> Option<String> {
    let field = "spec.platform.powervs";
    if pool.system_type.as_ref().is_some_and(String::is_empty) {
        return Some(format!(
            "{field}.systemType is empty: name a system (for example {SYSTEM}), or remove the field"
        ));
    }
    let memory = pool.memory_gib.unwrap_or(MEMORY);
    if memory < LEAST_MEMORY {
        return Some(format!(
            "{field}.memoryGiB is {memory}: a machine has at least {LEAST_MEMORY} GiB"
        ));
    }
    let processors = match processors(pool) {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text,
    };
    let number: Option<f64> = processors.parse().ok();
    let number = number.filter(|it| it.is_finite());
    let is_valid = |number: f64| match of(pool) {
        PowerVsProcessorType::Dedicated => number >= 1.0 && number.fract().abs() < f64::EPSILON,
        PowerVsProcessorType::Shared | PowerVsProcessorType::Capped => number >= 0.25,
    };
    let needed = match of(pool) {
        PowerVsProcessorType::Dedicated => "dedicated processors are whole numbers from 1",
        PowerVsProcessorType::Shared | PowerVsProcessorType::Capped => {
            "shared and capped processors are numbers from 0.25 (for example 0.5)"
        }
    };
    (!number.is_some_and(is_valid))
        .then(|| format!("{field}.processors is {processors:?}: {needed}"))
}

fn processors(pool: &PowerVsNodePoolPlatform) -> IntOrString {
    let given = pool.processors.clone();
    given.unwrap_or_else(|| IntOrString::String(PROCESSORS.to_owned()))
}

fn of(pool: &PowerVsNodePoolPlatform) -> PowerVsProcessorType {
    pool.processor_type.unwrap_or(PowerVsProcessorType::Shared)
}

fn processor_type(type_: PowerVsProcessorType) -> &'static str {
    match type_ {
        PowerVsProcessorType::Dedicated => "Dedicated",
        PowerVsProcessorType::Shared => "Shared",
        PowerVsProcessorType::Capped => "Capped",
    }
}

#[cfg(test)]
mod tests;
