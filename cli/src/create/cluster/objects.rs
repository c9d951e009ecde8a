//! The objects of a cluster, made of its options and its platform's parts: pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::args::name_of;
use super::options::Options;
use super::platform::{Parts, Pool};
use super::values::FeatureSet;
use crate::create::node_pool::{Pool as NodePoolOf, node_pool};

/// The version of our kinds.
const VERSION: &str = "hypershift.openshift.io/v1beta1";
/// Objects with this label are deleted with the cluster.
pub(crate) const DELETED_WITH_CLUSTER: &str = "hypershift.openshift.io/safe-to-delete-with-cluster";
/// The infrastructure that an object was made for.
pub(crate) const MADE_FOR: &str = "hypershift.openshift.io/auto-created-for-infra";

/// The usual ranges of both families.
const DUAL_CLUSTER: [&str; 2] = ["10.132.0.0/14", "fd01::/48"];
const DUAL_SERVICE: [&str; 2] = ["172.31.0.0/16", "fd02::/112"];

/// Everything, in the order in which it is created.
pub(super) fn objects(options: &Options, parts: &Parts) -> Vec<Value> {
    let mut objects = vec![namespace(options)];
    objects.extend(dependents(options, parts));
    let mut others = parts.objects.clone();
    for object in &mut others {
        label(object, options);
    }
    objects.extend(others);
    objects.push(hosted_cluster(options, parts));
    if options.args.node_pool_replicas >= 0 {
        let pools = parts.pools.iter().map(|pool| pool_of(options, pool));
        objects.extend(pools);
    }
    objects
}

fn namespace(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": options.args.namespace },
    })
}

/// What the HostedCluster refers to.
fn dependents(options: &Options, parts: &Parts) -> Vec<Value> {
    let mut pull = secret(
        options,
        "pull-secret",
        ".dockerconfigjson",
        &options.pull_secret,
    );
    pull["type"] = json!("kubernetes.io/dockerconfigjson");
    let mut dependents = vec![pull];
    if let Some(key) = &options.ssh_key {
        let mut ssh = secret(options, "ssh-key", "id_rsa.pub", key);
        if let Some(private) = &options.ssh_private_key {
            ssh["stringData"]["id_rsa"] = json!(private);
        }
        dependents.push(ssh);
    }
    if let Some(bundle) = &options.trust_bundle {
        dependents.push(trust_bundle(options, bundle));
    }
    if generates_key(parts) {
        let mut key = secret(options, "etcd-encryption-key", "key", "");
        key["stringData"] = Value::Null;
        key["data"] = json!({ "key": STANDARD.encode(&options.encryption_key) });
        if let Some(fields) = key.as_object_mut() {
            fields.remove("stringData");
        }
        dependents.push(key);
    }
    dependents
}

fn generates_key(parts: &Parts) -> bool {
    !parts
        .spec
        .iter()
        .any(|(field, _)| *field == "secretEncryption")
}

fn secret(options: &Options, suffix: &str, key: &str, text: &str) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": options.args.namespace,
            "name": format!("{}-{suffix}", options.args.name),
        },
        "type": "Opaque",
        "stringData": { key: text },
    });
    label(&mut secret, options);
    secret
}

fn trust_bundle(options: &Options, bundle: &str) -> Value {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": options.args.namespace,
            "name": format!("{}-user-ca-bundle", options.args.name),
        },
        "data": { "ca-bundle.crt": bundle },
    });
    label(&mut object, options);
    object
}

fn label(object: &mut Value, options: &Options) {
    object["metadata"]["labels"] =
        json!({ DELETED_WITH_CLUSTER: "true", MADE_FOR: options.infra_id });
}

fn hosted_cluster(options: &Options, parts: &Parts) -> Value {
    let args = &options.args;
    let mut metadata = json!({ "namespace": args.namespace, "name": args.name });
    let mut annotations = options.annotations.clone();
    for (key, value) in &parts.annotations {
        annotations
            .entry((*key).to_owned())
            .or_insert_with(|| value.clone());
    }
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut labels = options.labels.clone();
    labels.insert(MADE_FOR.to_owned(), options.infra_id.clone());
    metadata["labels"] = json!(labels);
    json!({
        "apiVersion": VERSION,
        "kind": "HostedCluster",
        "metadata": metadata,
        "spec": spec(options, parts),
    })
}

fn spec(options: &Options, parts: &Parts) -> Value {
    let args = &options.args;
    let named = |suffix: &str| json!({ "name": format!("{}-{suffix}", args.name) });
    let mut spec = json!({
        "release": { "image": options.release_image },
        "pullSecret": named("pull-secret"),
        "infraID": options.infra_id,
        "platform": parts.platform,
        "dns": dns(options, parts),
        "networking": networking(options, parts),
        "services": parts.services.list(&args.name),
        "etcd": etcd(options),
        "controllerAvailabilityPolicy": name_of(options.availability),
        "infrastructureAvailabilityPolicy": name_of(args.infra_availability_policy),
        "olmCatalogPlacement": name_of(args.control_plane.olm_catalog_placement),
        "fips": args.fips,
    });
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec[field] = value;
        }
    };
    set("sshKey", options.ssh_key.as_ref().map(|_| named("ssh-key")));
    set(
        "additionalTrustBundle",
        options
            .trust_bundle
            .as_ref()
            .map(|_| named("user-ca-bundle")),
    );
    set("imageContentSources", options.image_content_sources.clone());
    set(
        "kubeAPIServerDNSName",
        args.network.kas_dns_name.as_ref().map(|name| json!(name)),
    );
    set(
        "pausedUntil",
        args.paused_until.as_ref().map(|time| json!(time)),
    );
    set("nodeSelector", not_empty(json!(options.node_selector)));
    set("labels", not_empty(json!(options.pods_labels)));
    set("tolerations", not_empty(json!(options.tolerations)));
    set("capabilities", capabilities(options));
    set("configuration", configuration(options, parts));
    set("operatorConfiguration", operator_configuration(options));
    let generated =
        json!({ "type": "aescbc", "aescbc": { "activeKey": named("etcd-encryption-key") } });
    set(
        "secretEncryption",
        generates_key(parts).then_some(generated),
    );
    for (field, value) in &parts.spec {
        set(field, Some(value.clone()));
    }
    spec
}

/// Nothing for what is empty.
fn not_empty(value: Value) -> Option<Value> {
    let empty = match &value {
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    (!empty).then_some(value)
}

fn dns(options: &Options, parts: &Parts) -> Value {
    let mut dns = json!({ "baseDomain": options.base_domain });
    match options.args.base_domain_prefix.as_deref() {
        None => {}
        Some("none") => dns["baseDomainPrefix"] = json!(""),
        Some(prefix) => dns["baseDomainPrefix"] = json!(prefix),
    }
    for (field, id) in &parts.zones {
        dns[*field] = json!(id);
    }
    dns
}

fn networking(options: &Options, parts: &Parts) -> Value {
    let network = &options.args.network;
    let usual = |given: &[String], dual: [&str; 2]| -> Vec<String> {
        let count = if network.default_dual { 2 } else { 1 };
        match given {
            [] => dual[..count].iter().map(|&cidr| cidr.to_owned()).collect(),
            given => given.to_vec(),
        }
    };
    let machine = match network.machine_cidr.as_slice() {
        [] => &parts.machine_cidrs,
        given => given,
    };
    let mut networking = json!({
        "networkType": name_of(network.network_type),
        "clusterNetwork": ranges(&usual(&network.cluster_cidr, DUAL_CLUSTER)),
        "serviceNetwork": ranges(&usual(&network.service_cidr, DUAL_SERVICE)),
    });
    if !machine.is_empty() {
        networking["machineNetwork"] = ranges(machine);
    }
    if network.allocate_node_cidrs {
        networking["allocateNodeCIDRs"] = json!("Enabled");
    }
    networking
}

fn ranges(cidrs: &[String]) -> Value {
    cidrs.iter().map(|cidr| json!({ "cidr": cidr })).collect()
}

fn etcd(options: &Options) -> Value {
    let control_plane = &options.args.control_plane;
    let mut volume = json!({ "size": control_plane.etcd_storage_size });
    if let Some(class) = &control_plane.etcd_storage_class {
        volume["storageClassName"] = json!(class);
    }
    json!({
        "managementType": "Managed",
        "managed": { "storage": { "type": "PersistentVolume", "persistentVolume": volume } },
    })
}

fn capabilities(options: &Options) -> Option<Value> {
    let control_plane = &options.args.control_plane;
    let mut fields = Map::new();
    for (field, names) in [
        ("enabled", &control_plane.enable_cluster_capabilities),
        ("disabled", &control_plane.disable_cluster_capabilities),
    ] {
        if !names.is_empty() {
            let names: Vec<_> = names.iter().copied().map(name_of).collect();
            fields.insert(field.to_owned(), json!(names));
        }
    }
    not_empty(Value::Object(fields))
}

fn configuration(options: &Options, parts: &Parts) -> Option<Value> {
    let mut configuration = Map::new();
    if let Some(proxy) = &parts.proxy {
        configuration.insert("proxy".to_owned(), proxy.clone());
    }
    let set = options.args.feature_set;
    if set != FeatureSet::Default {
        let gate = json!({ "featureSet": name_of(set) });
        configuration.insert("featureGate".to_owned(), gate);
    }
    if options.args.control_plane.olm_disable_default_sources {
        let hub = json!({ "disableAllDefaultSources": true });
        configuration.insert("operatorhub".to_owned(), hub);
    }
    not_empty(Value::Object(configuration))
}

fn operator_configuration(options: &Options) -> Option<Value> {
    let network = &options.args.network;
    let mut operator = Map::new();
    if network.disable_multi_network {
        operator.insert("disableMultiNetwork".to_owned(), json!(true));
    }
    if let Some(mtu) = network.ovn_kubernetes_mtu {
        operator.insert("ovnKubernetesConfig".to_owned(), json!({ "mtu": mtu }));
    }
    not_empty(Value::Object(operator)).map(|operator| json!({ "clusterNetworkOperator": operator }))
}

fn pool_of(options: &Options, pool: &Pool) -> Value {
    let args = &options.args;
    let name = match &pool.suffix {
        Some(suffix) => format!("{}-{suffix}", args.name),
        None => args.name.clone(),
    };
    node_pool(&NodePoolOf {
        namespace: &args.namespace,
        name: &name,
        cluster: &args.name,
        release: &options.release_image,
        replicas: args.node_pool_replicas,
        upgrade: options.upgrade,
        auto_repair: args.auto_repair,
        arch: args.arch,
        paused_until: args.paused_until.as_deref(),
        drain: args.node_drain_timeout,
        detach: args.node_volume_detach_timeout,
        platform: &pool.platform,
    })
}
