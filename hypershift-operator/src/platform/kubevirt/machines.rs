//! Machines on KubeVirt: virtual machines in a Kubernetes cluster.

use api::annotations::node_pool::PLATFORM_MACHINE_TEMPLATE;
use api::conditions::PoolCondition;
use api::hypershift::v1beta1::common::Quantity;
use api::hypershift::v1beta1::node_pool::{
    KubevirtAccessMode, KubevirtMultiqueue, KubevirtNodePoolPlatform, KubevirtQosClass,
    KubevirtVolumeType, NodePool,
};
use serde_json::{Value, json};

use super::{disk, patches, placement};
use crate::names::node_pool as names;
use crate::platform::machines::{Inputs, Machine, Note, Refused};

/// Defaults of a machine.
const MEMORY: &str = "8Gi";
const CORES: i32 = 2;
/// Devices of its host that a machine may have, however many a pool asks for: each is an entry of the template.
const MAX_DEVICES: usize = 128;
/// Labels of the virtual machines.
pub(crate) const INFRA_ID_LABEL: &str = "hypershift.openshift.io/infra-id";
pub(super) const POOL_LABEL: &str = "hypershift.openshift.io/nodepool-name";
/// Annotation of pods whose machine may move to another host although it has the address of the pod.
const LIVE_MIGRATION: &str = "kubevirt.io/allow-pod-bridge-network-live-migration";
/// Annotation of pods: the volumes that do not keep the autoscaler of the infrastructure cluster from evicting them. All of
/// them are KubeVirt's own.
const EVICTABLE: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
const VOLUMES: &str = "private,public,sockets,virt-bin-share-dir,libvirt-runtime,ephemeral-disks,container-disks,\
                       hotplug-disks";

/// How a template is rendered. Another template replaces machines, so those that an earlier version of this operator made
/// keep theirs until something else changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Earlier,
    Current,
}

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let kubevirt = inputs.pool.spec.platform.kubevirt.as_ref();
    let kubevirt =
        kubevirt.ok_or_else(|| invalid("spec.platform.kubevirt is required: set it".to_owned()))?;
    if let Some(problem) = problem_of(kubevirt) {
        return Err(invalid(problem));
    }
    let annotations = inputs.pool.metadata.annotations.as_ref();
    let current = annotations.and_then(|it| it.get(PLATFORM_MACHINE_TEMPLATE.key()));
    if let Some(current) = current
        && let Some(earlier) = earlier(inputs)
        && earlier.template(inputs).name == *current
    {
        return Ok(earlier);
    }
    render(inputs, kubevirt, Form::Current)
}

/// The machine of a pool as earlier versions of this operator rendered it.
pub(crate) fn earlier(inputs: &Inputs<'_>) -> Option<Machine> {
    let kubevirt = inputs.pool.spec.platform.kubevirt.as_ref()?;
    render(inputs, kubevirt, Form::Earlier).ok()
}

/// A combination of settings that no virtual machine can have.
pub(crate) fn problem(pool: &NodePool) -> Option<String> {
    problem_of(pool.spec.platform.kubevirt.as_ref()?)
}

fn problem_of(kubevirt: &KubevirtNodePoolPlatform) -> Option<String> {
    let field = "spec.platform.kubevirt";
    let volume = &kubevirt.root_volume;
    if volume.type_ == Some(KubevirtVolumeType::Persistent) && volume.persistent.is_none() {
        return Some(format!(
            "{field}.rootVolume.persistent is required by type Persistent: set it"
        ));
    }
    if !attached(kubevirt) && kubevirt.additional_networks.is_empty() {
        return Some(format!(
            "{field}.attachDefaultNetwork is false, and machines would have no network: list one in \
             additionalNetworks, or set it to true"
        ));
    }
    let counts = kubevirt.host_devices.iter().map(|it| it.count.unwrap_or(1));
    if let Some(device) = counts.clone().position(|count| count < 1) {
        return Some(format!(
            "{field}.hostDevices[{device}].count must be at least 1"
        ));
    }
    let devices: i64 = counts.map(i64::from).sum();
    (usize::try_from(devices).unwrap_or(usize::MAX) > MAX_DEVICES).then(|| {
        format!(
            "{field}.hostDevices has {devices} devices: a machine may have at most {MAX_DEVICES}"
        )
    })
}

/// There can be no template.
pub(super) fn invalid(message: String) -> Refused {
    Refused {
        condition: PoolCondition::ValidMachineTemplate,
        reason: "InvalidKubevirtMachineTemplate",
        message,
    }
}

fn render(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
    form: Form,
) -> Result<Machine, Refused> {
    let labels = json!({ INFRA_ID_LABEL: inputs.infra_id, POOL_LABEL: names::of(inputs.pool) });
    let mut metadata = json!({ "labels": labels });
    if form == Form::Current {
        metadata["annotations"] = pod_annotations(kubevirt);
    }
    let mut template = json!({
        "metadata": { "labels": labels },
        "spec": {
            "dataVolumeTemplates": [disk::data_volume(inputs, kubevirt, form)?],
            "runStrategy": "Always",
            "template": { "metadata": metadata, "spec": instance(inputs, kubevirt, form) },
        },
    });
    for annotations in [
        &inputs.cluster.metadata.annotations,
        &inputs.pool.metadata.annotations,
    ] {
        let annotations = annotations.as_ref();
        annotations
            .map_or(Ok(()), |it| patches::apply(&mut template, it))
            .map_err(invalid)?;
    }
    identify(&mut template, inputs, form)?;
    Ok(Machine {
        template: inputs.capi.kubevirt_machine_template(),
        made: inputs.capi.kubevirt_machine(),
        // The nodes cannot be reached by SSH from where the provider runs.
        spec: json!({ "virtualMachineBootstrapCheck": { "checkStrategy": "none" }, "virtualMachineTemplate": template }),
        live: &[],
        notes: vec![migration(kubevirt)],
    })
}

/// Sets what no patch may change: where the machines are, and the label by which the NetworkPolicy selects that isolates
/// them from the management cluster.
fn identify(template: &mut Value, inputs: &Inputs<'_>, form: Form) -> Result<(), Refused> {
    for pointer in ["/metadata", "/spec/template/metadata"] {
        let metadata = template.pointer_mut(pointer);
        let labels = metadata.and_then(|it| {
            let labels = it.as_object_mut()?.entry("labels");
            labels.or_insert_with(|| json!({})).as_object_mut()
        });
        let labels = labels.ok_or_else(|| {
            invalid(format!(
                "the JSON patch of the virtual machine leaves no labels at {pointer}: correct it"
            ))
        })?;
        labels.insert(INFRA_ID_LABEL.to_owned(), json!(inputs.infra_id));
    }
    if let Some(metadata) = template["metadata"].as_object_mut() {
        metadata.remove("namespace");
        if form == Form::Earlier || is_external(inputs) {
            metadata.insert("namespace".to_owned(), json!(vm_namespace(inputs)));
        }
    }
    Ok(())
}

fn pod_annotations(kubevirt: &KubevirtNodePoolPlatform) -> Value {
    let mut annotations = json!({ EVICTABLE: VOLUMES });
    if attached(kubevirt) {
        annotations[LIVE_MIGRATION] = json!("");
    }
    annotations
}

fn instance(inputs: &Inputs<'_>, kubevirt: &KubevirtNodePoolPlatform, form: Form) -> Value {
    let mut spec = json!({
        "domain": domain(kubevirt, form),
        // The provider drains the node first.
        "evictionStrategy": "External",
        "networks": networks(kubevirt, form),
        "volumes": [{ "name": disk::NAME, "dataVolume": { "name": disk::NAME } }],
    });
    let version = inputs.release.version.to_string();
    let is_spread = form == Form::Current && placement::is_spread(inputs.pool, &version);
    placement::place(&mut spec, inputs.pool, is_spread);
    if !kubevirt.node_selector.is_empty() {
        spec["nodeSelector"] = json!(kubevirt.node_selector);
    }
    spec
}

/// Memory and processors: a machine that has them for itself has them as resources of its pod, and no others.
fn domain(kubevirt: &KubevirtNodePoolPlatform, form: Form) -> Value {
    let compute = kubevirt.compute.clone().unwrap_or_default();
    let memory = compute
        .memory
        .unwrap_or_else(|| Quantity(MEMORY.to_owned()));
    let cores = compute.cores.unwrap_or(CORES);
    let is_guaranteed = compute.qos_class == Some(KubevirtQosClass::Guaranteed);
    let mut domain = json!({ "devices": devices(kubevirt, form) });
    if is_guaranteed {
        let resources = json!({ "cpu": cores.to_string(), "memory": memory });
        domain["resources"] = json!({ "requests": resources, "limits": resources });
    }
    if !is_guaranteed || form == Form::Earlier {
        domain["cpu"] = json!({ "cores": cores });
        domain["memory"] = json!({ "guest": memory });
    }
    domain
}

fn devices(kubevirt: &KubevirtNodePoolPlatform, form: Form) -> Value {
    let mut devices = json!({
        "disks": [{ "name": disk::NAME, "disk": { "bus": "virtio" } }],
        "interfaces": interfaces(kubevirt, form),
    });
    if kubevirt.network_interface_multiqueue != Some(KubevirtMultiqueue::Disable) {
        devices["networkInterfaceMultiqueue"] = json!(true);
    }
    let mut host = Vec::new();
    for device in &kubevirt.host_devices {
        for index in 1..=device.count.unwrap_or(1) {
            let name = match form {
                Form::Earlier => {
                    format!("{}-{index}", device.device_name.replace(['/', '.'], "-"))
                }
                Form::Current => format!("hostdevice-{}", host.len() + 1),
            };
            host.push(json!({ "name": name, "deviceName": device.device_name }));
        }
    }
    if !host.is_empty() {
        devices["hostDevices"] = json!(host);
    }
    devices
}

fn interfaces(kubevirt: &KubevirtNodePoolPlatform, form: Form) -> Vec<Value> {
    let pod = json!({ "name": "default", "bridge": {} });
    let further = further(kubevirt, form).map(|(name, _)| json!({ "name": name, "bridge": {} }));
    attached(kubevirt)
        .then_some(pod)
        .into_iter()
        .chain(further)
        .collect()
}

fn networks(kubevirt: &KubevirtNodePoolPlatform, form: Form) -> Vec<Value> {
    let pod = json!({ "name": "default", "pod": {} });
    let further = further(kubevirt, form)
        .map(|(name, network)| json!({ "name": name, "multus": { "networkName": network } }));
    attached(kubevirt)
        .then_some(pod)
        .into_iter()
        .chain(further)
        .collect()
}

fn attached(kubevirt: &KubevirtNodePoolPlatform) -> bool {
    kubevirt.attach_default_network.unwrap_or(true)
}

/// The further networks: the name of the interface, and of the network.
fn further(
    kubevirt: &KubevirtNodePoolPlatform,
    form: Form,
) -> impl Iterator<Item = (String, &str)> {
    let slash = match form {
        Form::Earlier => "_",
        Form::Current => "-",
    };
    let networks = kubevirt.additional_networks.iter().enumerate();
    networks.map(move |(index, network)| {
        let name = network.name.replace('/', slash);
        (format!("iface{}_{name}", index + 1), network.name.as_str())
    })
}

/// The namespace of the virtual machines: that of the control plane, or of the infrastructure cluster.
pub(super) fn vm_namespace<'a>(inputs: &Inputs<'a>) -> &'a str {
    let kubevirt = inputs.cluster.spec.platform.kubevirt.as_ref();
    let credentials = kubevirt.and_then(|it| it.credentials.as_ref());
    credentials.map_or(inputs.namespace, |it| it.infra_namespace.as_str())
}

fn is_external(inputs: &Inputs<'_>) -> bool {
    let kubevirt = inputs.cluster.spec.platform.kubevirt.as_ref();
    kubevirt.is_some_and(|it| it.credentials.is_some())
}

/// Disks without `ReadWriteMany` prevent live migration.
fn migration(kubevirt: &KubevirtNodePoolPlatform) -> Note {
    let volume = kubevirt.root_volume.persistent.clone().unwrap_or_default();
    let modes = &volume.access_modes;
    let shared = modes.is_empty() || modes.contains(&KubevirtAccessMode::ReadWriteMany);
    Note {
        condition: PoolCondition::KubeVirtNodesLiveMigratable,
        is_so: shared,
        reason: if shared {
            "AsExpected"
        } else {
            "DisksNotLiveMigratable"
        },
        message: if shared {
            "virtual machines can be live-migrated".to_owned()
        } else {
            "the access modes of the disks prevent live migration: add ReadWriteMany to \
             spec.platform.kubevirt.rootVolume.persistent.accessModes if the storage class can"
                .to_owned()
        },
    }
}

#[cfg(test)]
mod tests;
