//! Machines on KubeVirt: virtual machines in a Kubernetes cluster.

use api::annotations::node_pool::{KUBEVIRT_VM_JSONPATCH, PLATFORM_MACHINE_TEMPLATE};
use api::conditions::PoolCondition;
use api::hypershift::v1beta1::common::Quantity;
use api::hypershift::v1beta1::node_pool::{
    KubevirtAccessMode, KubevirtCaching, KubevirtMultiqueue, KubevirtNodePoolPlatform,
    KubevirtQosClass, KubevirtVolumeMode, NodePool,
};
use json_patch::Patch;
use serde_json::{Value, json};

use crate::names::node_pool as names;
use crate::platform::machines::{Inputs, Machine, Note, Refused};

/// The name of the disk, its volume and its `DataVolume`.
const DISK: &str = "rhcos";
/// Defaults of a machine.
const MEMORY: &str = "8Gi";
const CORES: i32 = 2;
const DISK_SIZE: &str = "32Gi";
/// Labels of the virtual machines.
pub(crate) const INFRA_ID_LABEL: &str = "hypershift.openshift.io/infra-id";
const POOL_LABEL: &str = "hypershift.openshift.io/nodepool-name";

/// What replaces `/` in the names of further interfaces, and what did in earlier versions.
const SLASH: char = '-';
const EARLIER_SLASH: char = '_';

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let kubevirt = inputs.pool.spec.platform.kubevirt.as_ref();
    let kubevirt =
        kubevirt.ok_or_else(|| Refused::invalid("spec.platform.kubevirt is required: set it"))?;
    if let Some(machine) = earlier_machine(inputs, kubevirt)? {
        return Ok(machine);
    }
    machine_with(inputs, kubevirt, SLASH)
}

/// The machine as an earlier version named its interfaces, if the pool has machines of this template: an upgrade of the
/// operator must not replace them.
fn earlier_machine(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
) -> Result<Option<Machine>, Refused> {
    let annotations = inputs.pool.metadata.annotations.as_ref();
    let current = annotations.and_then(|it| it.get(PLATFORM_MACHINE_TEMPLATE.key()));
    let Some(current) = current else {
        return Ok(None);
    };
    if kubevirt.additional_networks.is_empty() {
        return Ok(None);
    }
    let earlier = machine_with(inputs, kubevirt, EARLIER_SLASH)?;
    Ok(Some(earlier).filter(|it| it.template(inputs).name == *current))
}

fn machine_with(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
    slash: char,
) -> Result<Machine, Refused> {
    let labels = json!({ INFRA_ID_LABEL: inputs.infra_id, POOL_LABEL: names::of(inputs.pool) });
    let mut template = json!({
        "metadata": { "labels": labels, "namespace": vm_namespace(inputs) },
        "spec": {
            "dataVolumeTemplates": [{ "metadata": { "name": DISK }, "spec": data_volume(inputs, kubevirt)? }],
            "runStrategy": "Always",
            "template": { "metadata": { "labels": labels }, "spec": instance(inputs, kubevirt, slash) },
        },
    });
    for patch in patches(inputs)? {
        json_patch::patch(&mut template, &patch).map_err(|error| {
            Refused::invalid(format!(
                "annotation {} cannot be applied to the virtual machine: {error}",
                KUBEVIRT_VM_JSONPATCH.key()
            ))
        })?;
    }
    // The NetworkPolicy that isolates machines from the management cluster selects by it.
    template["metadata"]["labels"][INFRA_ID_LABEL] = json!(inputs.infra_id);
    template["spec"]["template"]["metadata"]["labels"][INFRA_ID_LABEL] = json!(inputs.infra_id);
    Ok(Machine {
        template: inputs.capi.kubevirt_machine_template(),
        made: inputs.capi.kubevirt_machine(),
        // The nodes cannot be reached by SSH from where the provider runs.
        spec: json!({ "virtualMachineBootstrapCheck": { "checkStrategy": "none" }, "virtualMachineTemplate": template }),
        live: &[],
        notes: [Some(migration(kubevirt)), caching(inputs.pool, kubevirt)]
            .into_iter()
            .flatten()
            .collect(),
    })
}

fn instance(inputs: &Inputs<'_>, kubevirt: &KubevirtNodePoolPlatform, slash: char) -> Value {
    let compute = kubevirt.compute.clone().unwrap_or_default();
    let memory = compute
        .memory
        .unwrap_or_else(|| Quantity(MEMORY.to_owned()));
    let cores = compute.cores.unwrap_or(CORES);
    let mut domain = json!({
        "cpu": { "cores": cores },
        "devices": devices(kubevirt, slash),
        "memory": { "guest": memory },
    });
    if compute.qos_class == Some(KubevirtQosClass::Guaranteed) {
        let resources = json!({ "cpu": cores.to_string(), "memory": memory });
        domain["resources"] = json!({ "requests": resources, "limits": resources });
    }
    let mut spec = json!({
        "affinity": apart(names::of(inputs.pool)),
        "domain": domain,
        // The provider drains the node first.
        "evictionStrategy": "External",
        "networks": networks(kubevirt, slash),
        "volumes": [{ "name": DISK, "dataVolume": { "name": DISK } }],
    });
    if !kubevirt.node_selector.is_empty() {
        spec["nodeSelector"] = json!(kubevirt.node_selector);
    }
    spec
}

fn devices(kubevirt: &KubevirtNodePoolPlatform, slash: char) -> Value {
    let mut devices = json!({
        "disks": [{ "name": DISK, "disk": { "bus": "virtio" } }],
        "interfaces": interfaces(kubevirt, slash),
    });
    if kubevirt.network_interface_multiqueue != Some(KubevirtMultiqueue::Disable) {
        devices["networkInterfaceMultiqueue"] = json!(true);
    }
    let mut host = Vec::new();
    for device in &kubevirt.host_devices {
        for index in 1..=device.count.unwrap_or(1) {
            let name = format!("{}-{index}", device.device_name.replace(['/', '.'], "-"));
            host.push(json!({ "name": name, "deviceName": device.device_name }));
        }
    }
    if !host.is_empty() {
        devices["hostDevices"] = json!(host);
    }
    devices
}

fn interfaces(kubevirt: &KubevirtNodePoolPlatform, slash: char) -> Vec<Value> {
    let pod = json!({ "name": "default", "bridge": {} });
    let further = further(kubevirt, slash).map(|(name, _)| json!({ "name": name, "bridge": {} }));
    attached(kubevirt)
        .then_some(pod)
        .into_iter()
        .chain(further)
        .collect()
}

fn networks(kubevirt: &KubevirtNodePoolPlatform, slash: char) -> Vec<Value> {
    let pod = json!({ "name": "default", "pod": {} });
    let further = further(kubevirt, slash)
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
    slash: char,
) -> impl Iterator<Item = (String, &str)> {
    let networks = kubevirt.additional_networks.iter().enumerate();
    networks.map(move |(index, network)| {
        let name = network.name.replace('/', &slash.to_string());
        (format!("iface{}_{name}", index + 1), network.name.as_str())
    })
}

/// Machines of one pool prefer different hosts.
fn apart(pool: &str) -> Value {
    let selector =
        json!({ "matchExpressions": [{ "key": POOL_LABEL, "operator": "In", "values": [pool] }] });
    let term = json!({ "labelSelector": selector, "topologyKey": "kubernetes.io/hostname" });
    json!({ "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "podAffinityTerm": term }],
    } })
}

fn data_volume(inputs: &Inputs<'_>, kubevirt: &KubevirtNodePoolPlatform) -> Result<Value, Refused> {
    let volume = kubevirt.root_volume.persistent.clone().unwrap_or_default();
    let size = volume
        .size
        .unwrap_or_else(|| Quantity(DISK_SIZE.to_owned()));
    let mut storage = json!({ "resources": { "requests": { "storage": size } } });
    if let Some(class) = &volume.storage_class {
        storage["storageClassName"] = json!(class);
    }
    if !volume.access_modes.is_empty() {
        storage["accessModes"] = json!(
            volume
                .access_modes
                .iter()
                .map(|it| access_mode(*it))
                .collect::<Vec<_>>()
        );
    }
    if let Some(mode) = volume.volume_mode {
        storage["volumeMode"] = json!(volume_mode(mode));
    }
    Ok(json!({ "source": source(inputs, kubevirt)?, "storage": storage }))
}

/// The source of the disk: a cached copy, or the image itself.
fn source(inputs: &Inputs<'_>, kubevirt: &KubevirtNodePoolPlatform) -> Result<Value, Refused> {
    let caching = kubevirt.root_volume.cache_strategy.as_ref();
    if caching.is_some_and(|it| it.type_ == KubevirtCaching::Pvc)
        && let Some(name) = cache_name(inputs.pool)
    {
        return Ok(json!({ "pvc": { "name": name, "namespace": vm_namespace(inputs) } }));
    }
    let image = image(inputs, kubevirt)?;
    Ok(json!({ "registry": { "url": format!("docker://{image}"), "pullMethod": "node" } }))
}

fn image<'a>(
    inputs: &Inputs<'a>,
    kubevirt: &'a KubevirtNodePoolPlatform,
) -> Result<&'a str, Refused> {
    let own = kubevirt.root_volume.disk_image.as_ref();
    if let Some(image) = own.and_then(|it| it.container_disk_image.as_deref()) {
        return Ok(image);
    }
    let stream = inputs.release.boot_images.as_ref();
    let found = stream.and_then(|it| it.kubevirt(inputs.pool.spec.arch));
    found.ok_or_else(|| {
        let version = &inputs.release.version;
        Refused::no_image(format!(
            "release {version} has no disk for KubeVirt: set spec.platform.kubevirt.rootVolume.diskImage"
        ))
    })
}

/// The volume with the copy, once it is filled.
fn cache_name(pool: &NodePool) -> Option<&str> {
    let kubevirt = pool
        .status
        .as_ref()?
        .platform
        .as_ref()?
        .kube_virt
        .as_ref()?;
    kubevirt.cache_name.as_deref()
}

/// The namespace of the virtual machines: that of the control plane, or of the infrastructure cluster.
fn vm_namespace<'a>(inputs: &Inputs<'a>) -> &'a str {
    let kubevirt = inputs.cluster.spec.platform.kubevirt.as_ref();
    let credentials = kubevirt.and_then(|it| it.credentials.as_ref());
    credentials.map_or(inputs.namespace, |it| it.infra_namespace.as_str())
}

fn patches(inputs: &Inputs<'_>) -> Result<Vec<Patch>, Refused> {
    let of_cluster = inputs
        .cluster
        .metadata
        .annotations
        .clone()
        .unwrap_or_default();
    let of_pool = inputs.pool.metadata.annotations.clone().unwrap_or_default();
    let mut patches = Vec::new();
    for annotations in [of_cluster, of_pool] {
        let Ok(Some(text)) = KUBEVIRT_VM_JSONPATCH.get(&annotations) else {
            continue;
        };
        let patch = serde_json::from_str(&text).map_err(|error| {
            Refused::invalid(format!(
                "annotation {} is not a valid JSON patch: {error}",
                KUBEVIRT_VM_JSONPATCH.key()
            ))
        })?;
        patches.push(patch);
    }
    Ok(patches)
}

/// No controller creates the copy of the boot image that `cacheStrategy: PVC` requests.
fn caching(pool: &NodePool, kubevirt: &KubevirtNodePoolPlatform) -> Option<Note> {
    let strategy = kubevirt.root_volume.cache_strategy.as_ref()?;
    let is_ignored = strategy.type_ == KubevirtCaching::Pvc && cache_name(pool).is_none();
    is_ignored.then(|| Note {
        condition: PoolCondition::ValidPlatformConfig,
        is_so: false,
        reason: "CacheStrategyNotSupported",
        message: "spec.platform.kubevirt.rootVolume.cacheStrategy is PVC, and this version does not keep a copy of the \
                  boot image: each machine imports it from the registry. Set the type to None"
            .to_owned(),
    })
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

fn access_mode(mode: KubevirtAccessMode) -> &'static str {
    match mode {
        KubevirtAccessMode::ReadWriteOnce => "ReadWriteOnce",
        KubevirtAccessMode::ReadWriteMany => "ReadWriteMany",
        KubevirtAccessMode::ReadOnly => "ReadOnlyMany",
        KubevirtAccessMode::ReadWriteOncePod => "ReadWriteOncePod",
    }
}

fn volume_mode(mode: KubevirtVolumeMode) -> &'static str {
    match mode {
        KubevirtVolumeMode::Filesystem => "Filesystem",
        KubevirtVolumeMode::Block => "Block",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check F05: a cache of the boot image that this version does not keep is reported by field and way out.
    #[test]
    fn a_cache_strategy_without_effect_is_reported() {
        for (strategy, cache, expected) in [
            (Value::Null, Value::Null, false),
            (json!({ "type": "None" }), Value::Null, false),
            (json!({ "type": "PVC" }), Value::Null, true),
            (json!({ "type": "PVC" }), json!("copy"), false),
        ] {
            let mut kubevirt = json!({ "rootVolume": { "type": "Persistent" } });
            if !strategy.is_null() {
                kubevirt["rootVolume"]["cacheStrategy"] = strategy.clone();
            }
            let mut pool = json!({
                "apiVersion": "hypershift.openshift.io/v1beta1",
                "kind": "NodePool",
                "metadata": { "namespace": "clusters", "name": "pool" },
                "spec": {
                    "clusterName": "one",
                    "release": { "image": "quay.example.com/release:4.20" },
                    "management": { "upgradeType": "Replace" },
                    "platform": { "type": "KubeVirt", "kubevirt": kubevirt },
                },
            });
            if !cache.is_null() {
                pool["status"] = json!({ "platform": { "kubeVirt": { "cacheName": cache } } });
            }
            let pool: NodePool = serde_json::from_value(pool).unwrap();
            let kubevirt = pool.spec.platform.kubevirt.as_ref().unwrap();
            let Some(note) = caching(&pool, kubevirt) else {
                assert!(!expected, "{strategy} {cache}");
                continue;
            };
            assert!(expected, "{strategy} {cache}: {}", note.message);
            assert!(!note.is_so && note.reason == "CacheStrategyNotSupported");
            assert_eq!(note.condition, PoolCondition::ValidPlatformConfig);
            for part in ["rootVolume.cacheStrategy", "Set the type to None"] {
                assert!(note.message.contains(part), "{part}: {}", note.message);
            }
        }
    }
}
