//! Platform KubeVirt: virtual machines on the management cluster or on another one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::{Parts, Platform, Pool};
use crate::Usage;
use crate::create::cluster::args::{CommonArgs, name_of};
use crate::create::cluster::services::Services;
use crate::create::text;

/// Flags of platform KubeVirt.
#[derive(Debug, Clone, Args)]
pub(crate) struct KubevirtArgs {
    /// Kubeconfig file of the cluster that runs the virtual machines, if it is not the management cluster
    #[arg(long, value_name = "FILE", requires = "infra_namespace")]
    infra_kubeconfig_file: Option<PathBuf>,

    /// Namespace of the virtual machines on that cluster
    #[arg(long, value_name = "NAME", requires = "infra_kubeconfig_file")]
    infra_namespace: Option<String>,

    /// Storage class of the infrastructure cluster and of the hosted cluster, for example fast/guest-fast. May be repeated
    #[arg(long, value_name = "INFRA/GUEST[,group=NAME]")]
    infra_storage_class_mapping: Vec<String>,

    /// Volume snapshot class of the infrastructure cluster and of the hosted cluster. May be repeated
    #[arg(long, value_name = "INFRA/GUEST[,group=NAME]")]
    infra_volumesnapshot_class_mapping: Vec<String>,

    /// How services are published
    #[arg(long, value_enum, default_value_t = Publishing::Ingress)]
    service_publishing_strategy: Publishing,

    /// Host name or IP address of the management cluster's nodes, for --service-publishing-strategy=NodePort [default: that
    /// of a node of the management cluster]
    #[arg(long, value_name = "ADDRESS")]
    api_server_address: Option<String>,

    #[command(flatten)]
    nodes: KubevirtNodeArgs,
}

/// Flags of its nodes.
#[derive(Debug, Clone, Args)]
pub(crate) struct KubevirtNodeArgs {
    /// Memory of each virtual machine
    #[arg(long, value_name = "SIZE", default_value = "4Gi")]
    memory: String,

    /// Processors of each virtual machine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    cores: u32,

    /// Quality of service of the virtual machines
    #[arg(long, value_enum, default_value_t = Qos::Burstable)]
    qos_class: Qos,

    /// Size of the root volumes: a number of GiB from 16 on, or a quantity such as 64Gi
    #[arg(long, value_name = "SIZE", default_value = "32", value_parser = volume_size)]
    root_volume_size: String,

    /// Storage class of the root volumes [default: the default storage class]
    #[arg(long, value_name = "NAME")]
    root_volume_storage_class: Option<String>,

    /// Access modes of the root volumes, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    root_volume_access_modes: Vec<AccessMode>,

    /// Volume mode of the root volumes [default: that of the storage class]
    #[arg(long, value_enum)]
    root_volume_volume_mode: Option<VolumeMode>,

    /// Cache strategy for the image of the root volumes [default: None]
    #[arg(long, value_enum)]
    root_volume_cache_strategy: Option<CacheStrategy>,

    /// Container image of the root volumes, in place of the release's
    #[arg(long, value_name = "IMAGE")]
    containerdisk: Option<String>,

    /// Multiqueue of the network interface [default: Enable]
    #[arg(long, value_enum)]
    network_multiqueue: Option<Multiqueue>,

    /// Additional network, as NAMESPACE/NAME or name:NAMESPACE/NAME of its definition. May be repeated
    #[arg(long, value_name = "NETWORK")]
    additional_network: Vec<String>,

    /// Whether machines are attached to the pod network, too; false needs --additional-network [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    attach_default_network: Option<bool>,

    /// Label of the nodes that virtual machines run on. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    vm_node_selector: Vec<String>,

    /// Device of the host for each machine, with a number of them. May be repeated
    #[arg(long, value_name = "NAME[,count:N]")]
    host_device_name: Vec<String>,
}

/// How services are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Publishing {
    /// The API server by a load balancer, the others by routes
    Ingress,
    /// On ports of nodes
    NodePort,
}

/// Quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Qos {
    /// Unused resources are shared
    Burstable,
    /// Requested resources are reserved
    Guaranteed,
}

/// Access mode of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccessMode {
    /// By one node
    #[value(name = "ReadWriteOnce")]
    OneNode,
    /// By several nodes, as live migration needs it
    #[value(name = "ReadWriteMany")]
    ManyNodes,
    /// By several nodes, for reading
    #[value(name = "ReadOnly")]
    Reading,
    /// By one pod
    #[value(name = "ReadWriteOncePod")]
    OnePod,
}

/// Mode of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum VolumeMode {
    /// A file system
    Filesystem,
    /// A device
    Block,
}

/// How the image of root volumes is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CacheStrategy {
    /// Each machine imports it
    #[value(name = "None")]
    None,
    /// It is imported once, and cloned
    #[value(name = "PVC")]
    Pvc,
}

/// Several queues of a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Multiqueue {
    /// One for each processor
    Enable,
    /// One
    Disable,
}

impl Platform for KubevirtArgs {
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts> {
        let mut kubevirt = json!({});
        let mut objects = Vec::new();
        if let (Some(file), Some(namespace)) = (&self.infra_kubeconfig_file, &self.infra_namespace)
        {
            let secret = format!("{}-infra-credentials", common.name);
            kubevirt["credentials"] = json!({
                "infraKubeConfigSecret": { "name": secret, "key": "kubeconfig" },
                "infraNamespace": namespace,
            });
            let kubeconfig = text::file("--infra-kubeconfig-file", file)?;
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "namespace": common.namespace, "name": secret },
                "type": "Opaque",
                "stringData": { "kubeconfig": kubeconfig },
            }));
        }
        if let Some(driver) = self.storage_driver()? {
            kubevirt["storageDriver"] = driver;
        }
        let platform = json!({ "type": "KubeVirt", "kubevirt": kubevirt });
        let pools = Pool::only(self.nodes.platform()?);
        Ok(Parts {
            objects,
            ..Parts::new(platform, self.services(common)?, pools)
        })
    }
}

// === impl KubevirtArgs ===

impl KubevirtArgs {
    fn services(&self, common: &CommonArgs) -> Result<Services, Usage> {
        match (self.service_publishing_strategy, &self.api_server_address) {
            (Publishing::Ingress, None) => {
                Ok(Services::ingress(common.external_dns_domain.as_deref()))
            }
            (Publishing::NodePort, address) => {
                common.refuse_domain("leave out --service-publishing-strategy")?;
                Ok(Services::node_ports(address.clone()))
            }
            (Publishing::Ingress, Some(_)) => Err(Usage::new(
                &"--api-server-address needs --service-publishing-strategy=NodePort",
            )),
        }
    }

    fn storage_driver(&self) -> Result<Option<Value>, Usage> {
        let storage = mappings(
            "--infra-storage-class-mapping",
            &self.infra_storage_class_mapping,
            ["infraStorageClassName", "guestStorageClassName"],
        )?;
        let snapshot = mappings(
            "--infra-volumesnapshot-class-mapping",
            &self.infra_volumesnapshot_class_mapping,
            [
                "infraVolumeSnapshotClassName",
                "guestVolumeSnapshotClassName",
            ],
        )?;
        let mut manual = Map::new();
        for (field, list) in [
            ("storageClassMapping", storage),
            ("volumeSnapshotClassMapping", snapshot),
        ] {
            if !list.is_empty() {
                manual.insert(field.to_owned(), Value::Array(list));
            }
        }
        Ok((!manual.is_empty()).then(|| json!({ "type": "Manual", "manual": manual })))
    }
}

/// Mappings of the form `INFRA/GUEST[,group=NAME]`.
fn mappings(flag: &str, given: &[String], [infra, guest]: [&str; 2]) -> Result<Vec<Value>, Usage> {
    let read = |text: &String| {
        let wrong = || Usage::new(&format!("{flag} {text:?}: write INFRA/GUEST[,group=NAME]"));
        let (classes, group) = match text.split_once(",group=") {
            Some((classes, group)) => (classes, Some(group)),
            None => (text.as_str(), None),
        };
        let (from, to) = classes.split_once('/').ok_or_else(wrong)?;
        if from.is_empty() || to.is_empty() || to.contains(['/', ',']) {
            return Err(wrong());
        }
        let mut mapping = json!({ infra: from, guest: to });
        if let Some(group) = group {
            mapping["group"] = json!(group);
        }
        Ok(mapping)
    };
    given.iter().map(read).collect()
}

// === impl KubevirtNodeArgs ===

impl KubevirtNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self) -> anyhow::Result<Value> {
        let mut kubevirt = json!({
            "rootVolume": self.root_volume(),
            "compute": {
                "memory": self.memory,
                "cores": self.cores,
                "qosClass": name_of(self.qos_class),
            },
        });
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                kubevirt[field] = value;
            }
        };
        set(
            "networkInterfaceMultiqueue",
            self.network_multiqueue.map(|given| json!(name_of(given))),
        );
        let networks = self.additional_network.iter().map(|text| network(text));
        let networks = networks.collect::<Result<Vec<_>, _>>()?;
        if networks.is_empty() && self.attach_default_network == Some(false) {
            return Err(Usage::new(
                &"--attach-default-network=false leaves machines without a network: add one with --additional-network",
            )
            .into());
        }
        set(
            "attachDefaultNetwork",
            self.attach_default_network.map(|given| json!(given)),
        );
        set(
            "additionalNetworks",
            (!networks.is_empty()).then_some(json!(networks)),
        );
        let selector = text::pairs("--vm-node-selector", &self.vm_node_selector)?;
        set(
            "nodeSelector",
            (!selector.is_empty()).then_some(json!(selector)),
        );
        let devices = self.host_device_name.iter().map(|text| device(text));
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        set(
            "hostDevices",
            (!devices.is_empty()).then_some(json!(devices)),
        );
        Ok(json!({ "type": "KubeVirt", "kubevirt": kubevirt }))
    }

    fn root_volume(&self) -> Value {
        let mut persistent = json!({ "size": self.root_volume_size });
        if let Some(class) = &self.root_volume_storage_class {
            persistent["storageClass"] = json!(class);
        }
        if !self.root_volume_access_modes.is_empty() {
            let modes = self.root_volume_access_modes.iter().copied();
            persistent["accessModes"] = modes.map(name_of).collect();
        }
        if let Some(mode) = self.root_volume_volume_mode {
            persistent["volumeMode"] = json!(name_of(mode));
        }
        let mut volume = json!({ "type": "Persistent", "persistent": persistent });
        if let Some(strategy) = self.root_volume_cache_strategy {
            volume["cacheStrategy"] = json!({ "type": name_of(strategy) });
        }
        if let Some(image) = &self.containerdisk {
            volume["diskImage"] = json!({ "containerDiskImage": image });
        }
        volume
    }
}

/// A size in GiB, or with a unit.
fn volume_size(text: &str) -> Result<String, String> {
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    match text.parse::<u32>() {
        Ok(size) if size >= 16 => Ok(format!("{size}Gi")),
        Ok(_) => Err("a root volume has at least 16 GiB".to_owned()),
        Err(_) if has_unit && text.starts_with(|c: char| c.is_ascii_digit()) => Ok(text.to_owned()),
        Err(_) => Err("write a number of GiB, or a quantity such as 64Gi".to_owned()),
    }
}

/// A network of the form `[name:]NAMESPACE/NAME`.
fn network(text: &str) -> Result<Value, Usage> {
    let name = text.strip_prefix("name:").unwrap_or(text);
    match name.split_once('/') {
        Some((namespace, rest)) if !namespace.is_empty() && !rest.is_empty() => {
            Ok(json!({ "name": name }))
        }
        _ => Err(Usage::new(&format!(
            "--additional-network {text:?}: write NAMESPACE/NAME"
        ))),
    }
}

/// A device of the form `NAME[,count:N]`.
fn device(text: &str) -> Result<Value, Usage> {
    let Some((name, count)) = text.split_once(",count:") else {
        return Ok(json!({ "deviceName": text }));
    };
    let count: u32 = count.parse().map_err(|_| {
        Usage::new(&format!(
            "--host-device-name {text:?}: write NAME[,count:N]"
        ))
    })?;
    Ok(json!({ "deviceName": name, "count": count }))
}
