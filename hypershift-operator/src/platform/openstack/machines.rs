//! Machines on OpenStack.

use api::hypershift::v1beta1::node_pool::{
    OpenStackNodePoolPlatform, OpenStackPortSecurityPolicy, OpenStackPortSpec,
};
use api::hypershift::v1beta1::platform::openstack::OpenStackPlatformSpec;
use serde_json::{Value, json};

use super::image;
use crate::names::node_pool as names;
use crate::platform::machines::{Inputs, Machine, Note, Refused};

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let pool = inputs.pool.spec.platform.openstack.as_ref();
    let pool =
        pool.ok_or_else(|| Refused::invalid("spec.platform.openstack is required: set it"))?;
    let cluster = inputs.cluster.spec.platform.openstack.as_ref();
    let cluster = cluster.ok_or_else(|| Refused::elsewhere("OpenStack"))?;
    let (image, source) = image_of(inputs, pool)?;
    let mut spec = json!({ "flavor": pool.flavor, "image": image });
    if let Some(ports) = ports(inputs, pool, cluster) {
        spec["ports"] = ports;
    }
    Ok(Machine {
        template: super::machine_template(inputs.capi),
        made: super::machine(inputs.capi),
        spec,
        live: &[],
        notes: vec![Note::boot_image("OpenStack", &source)],
    })
}

/// What names the image, and its name.
fn image_of(
    inputs: &Inputs<'_>,
    pool: &OpenStackNodePoolPlatform,
) -> Result<(Value, String), Refused> {
    if let Some(name) = &pool.image_name {
        return Ok((json!({ "filter": { "name": name } }), name.clone()));
    }
    let arch = inputs.pool.spec.arch;
    let stream = inputs.release.boot_images.as_ref();
    let has_disk = stream.is_some_and(|it| it.openstack(arch).is_some());
    if let Some(name) = image::name(inputs).filter(|_| has_disk) {
        return Ok((json!({ "imageRef": { "name": name } }), name));
    }
    let version = &inputs.release.version;
    Err(Refused::no_image(format!(
        "release {version} has no image for {arch:?} on OpenStack: set spec.platform.openstack.imageName"
    )))
}

/// The ports of a machine, unless it has only the one that the provider creates. In subnets of the user there are no
/// others.
fn ports(
    inputs: &Inputs<'_>,
    pool: &OpenStackNodePoolPlatform,
    cluster: &OpenStackPlatformSpec,
) -> Option<Value> {
    if !cluster.subnets.is_empty() || pool.additional_ports.is_empty() {
        return None;
    }
    // The first is the one in the network of the cluster.
    let primary = json!({});
    let additional = pool.additional_ports.iter().map(|it| port(inputs, it));
    Some([primary].into_iter().chain(additional).collect())
}

fn port(inputs: &Inputs<'_>, given: &OpenStackPortSpec) -> Value {
    let OpenStackPortSpec {
        network,
        description,
        allowed_address_pairs,
        vnic_type,
        port_security_policy,
    } = given;
    let default = || {
        format!(
            "Additional port for Hypershift node pool {}",
            names::of(inputs.pool)
        )
    };
    let mut port = json!({ "description": description.clone().unwrap_or_else(default) });
    if let Some(network) = network {
        port["network"] = json!(network);
    }
    if !allowed_address_pairs.is_empty() {
        port["allowedAddressPairs"] = json!(allowed_address_pairs);
    }
    if let Some(type_) = vnic_type {
        port["vnicType"] = json!(type_);
    }
    match port_security_policy {
        Some(OpenStackPortSecurityPolicy::Disabled) => port["disablePortSecurity"] = json!(true),
        Some(OpenStackPortSecurityPolicy::Enabled) => port["disablePortSecurity"] = json!(false),
        Some(OpenStackPortSecurityPolicy::Unset) | None => {}
    }
    port
}

#[cfg(test)]
mod tests;
