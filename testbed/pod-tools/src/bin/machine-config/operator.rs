//! `machine-config-operator bootstrap`: writes what the controller needs of the cluster.
//!
//! ```text
//! DEST/bootstrap/manifests/machineconfigcontroller-controllerconfig.yaml
//! DEST/bootstrap/manifests/machineconfigcontroller-pull-secret
//! DEST/bootstrap/manifests/{master,worker}.machineconfigpool.yaml
//! ```
//!
//! The pools select MachineConfigs of the role of their name. A hosted cluster replaces them by its own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Result;
use crate::controller_config::{ControllerConfig, Proxy, cluster_dns};
use crate::flags::{Flag, Flags, optional, required};
use crate::manifests::{API, Manifest, ROLE, document, object, read, text, write, write_object};
use crate::templates::ROLES;

/// The flags for releases from 4.14 on.
const FLAGS: [Flag; 15] = [
    required("additional-trust-bundle-config-file"),
    optional("cloud-config-file"),
    required("config-file"),
    required("dest-dir"),
    required("dns-config-file"),
    required("image-references"),
    required("infra-config-file"),
    required("kube-ca"),
    optional("mdns-publisher-image"),
    required("network-config-file"),
    required("payload-version"),
    required("proxy-config-file"),
    required("pull-secret"),
    required("release-image"),
    required("root-ca"),
];
/// Where the manifests are, below the destination.
pub(crate) const MANIFESTS: &str = "bootstrap/manifests";
/// Platforms whose nodes need the configuration of the cloud provider.
const WITH_CLOUD_CONFIG: [&str; 2] = ["Azure", "OpenStack"];
/// Images without which nodes cannot be configured.
const IMAGES: [&str; 2] = ["machine-config-operator", "rhel-coreos"];

/// Runs the command.
pub(crate) fn bootstrap(args: impl IntoIterator<Item = String>) -> Result<()> {
    let flags = Flags::parse(&FLAGS, args)?;
    let config = controller_config(&flags)?;
    let path = flags.path("pull-secret")?;
    pull_secret(&object(&path, "Secret")?)?;
    let directory = flags.path("dest-dir")?.join(MANIFESTS);
    let file = |name: &str| directory.join(name);
    write_object(
        &file("machineconfigcontroller-controllerconfig.yaml"),
        &config.manifest(),
    )?;
    write(&file("machineconfigcontroller-pull-secret"), &read(&path)?)?;
    for role in ROLES {
        write_object(
            &file(&format!("{role}.machineconfigpool.yaml")),
            &pool(role),
        )?;
    }
    println!(
        "machine-config-operator: wrote the manifests of release {} to {}",
        flags.text("payload-version")?,
        directory.display()
    );
    Ok(())
}

fn controller_config(flags: &Flags) -> Result<ControllerConfig> {
    let infrastructure = object(&flags.path("infra-config-file")?, "Infrastructure")?;
    let platform = infrastructure.text("/status/platformStatus/type");
    if platform.is_empty() {
        return Err(infrastructure.invalid("status.platformStatus.type", "missing: add it"));
    }
    // Their contents are of no consequence to a node of the testbed.
    document(&flags.path("config-file")?)?;
    object(&flags.path("dns-config-file")?, "DNS")?;
    Ok(ControllerConfig {
        platform: platform.to_owned(),
        cluster_dns: name_service(&object(&flags.path("network-config-file")?, "Network")?)?,
        cloud_config: cloud_config(platform, flags)?,
        proxy: proxy(&object(&flags.path("proxy-config-file")?, "Proxy")?)?,
        root_ca: authorities(&flags.path("root-ca")?)?,
        kube_ca: authorities(&flags.path("kube-ca")?)?,
        trust_bundle: trust_bundle(&flags.path("additional-trust-bundle-config-file")?)?,
        release_image: flags.text("release-image")?.to_owned(),
        images: images(&object(&flags.path("image-references")?, "ImageStream")?)?,
    })
}

fn name_service(network: &Manifest) -> Result<Vec<IpAddr>> {
    let in_status = network.status()["serviceNetwork"].as_array();
    let in_spec = network.spec()["serviceNetwork"].as_array();
    let networks = in_status.filter(|networks| !networks.is_empty());
    let networks = networks.or(in_spec).into_iter().flatten();
    let addresses: Vec<_> = networks
        .filter_map(|network| cluster_dns(network.as_str()?))
        .collect();
    if addresses.is_empty() {
        return Err(network.invalid("spec.serviceNetwork", "no range of addresses: add one"));
    }
    Ok(addresses)
}

/// The configuration of the cloud provider, where there is one.
fn cloud_config(platform: &str, flags: &Flags) -> Result<String> {
    if !WITH_CLOUD_CONFIG.contains(&platform) {
        return Ok(String::new());
    }
    let config = object(&flags.path("cloud-config-file")?, "ConfigMap")?;
    let values = config.data().as_object();
    let value = values.and_then(|values| values.values().next());
    value
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| config.invalid("data", "empty: add the configuration"))
}

/// The computed addresses: those that the user set are not complete.
fn proxy(object: &Manifest) -> Result<Proxy> {
    let of = |section: &Value| match section {
        Value::Null => Ok(Proxy::default()),
        section => {
            Proxy::deserialize(section).map_err(|error| object.invalid("spec and status", error))
        }
    };
    let (desired, computed) = (of(object.spec())?, of(object.status())?);
    if desired.is_set() && !computed.is_set() {
        return Err(object.invalid("status", "the proxy of the spec is not in it: compute it"));
    }
    Ok(computed)
}

fn authorities(path: &Path) -> Result<String> {
    let bundle = read(path)?;
    if bundle.contains("-----BEGIN CERTIFICATE-----") {
        return Ok(bundle);
    }
    Err(format!("{}: no certificate in it", path.display()))
}

/// The further authorities. The file exists only in clusters that have some.
fn trust_bundle(path: &Path) -> Result<String> {
    if !path.exists() {
        return Ok(String::new());
    }
    let config = object(path, "ConfigMap")?;
    let bundle = text(config.data(), "/ca-bundle.crt");
    if bundle.is_empty() {
        return Err(config.invalid("data.ca-bundle.crt", "missing: add it"));
    }
    Ok(bundle.to_owned())
}

fn images(references: &Manifest) -> Result<BTreeMap<String, String>> {
    let tags = references.spec()["tags"].as_array().into_iter().flatten();
    let images: BTreeMap<_, _> = tags
        .map(|tag| {
            (
                text(tag, "/name").to_owned(),
                text(tag, "/from/name").to_owned(),
            )
        })
        .collect();
    match IMAGES.iter().find(|image| !images.contains_key(**image)) {
        None => Ok(images),
        Some(image) => {
            Err(references.invalid("spec.tags", format!("no tag {image}: use another release")))
        }
    }
}

/// The pull secret, if a Secret is one.
pub(crate) fn pull_secret(secret: &Manifest) -> Result<String> {
    let (kind, key) = ("kubernetes.io/dockerconfigjson", ".dockerconfigjson");
    if secret.text("/type") != kind {
        return Err(secret.invalid("type", format!("not a pull secret: use {kind}")));
    }
    let encoded = secret.data()[key].as_str().unwrap_or_default();
    let decoded = STANDARD.decode(encoded).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.filter(|decoded| !decoded.is_empty());
    // Its text is not quoted.
    decoded.ok_or_else(|| secret.invalid(&format!("data.{key}"), "not base64 of text"))
}

/// The pool of a role.
fn pool(role: &str) -> Value {
    json!({
        "apiVersion": API,
        "kind": "MachineConfigPool",
        "metadata": {
            "name": role,
            "labels": { "machineconfiguration.openshift.io/mco-built-in": "" },
        },
        "spec": { "machineConfigSelector": { "matchLabels": { ROLE: role } } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(kind: &str, object: Value) -> Manifest {
        let mut whole = json!({ "kind": kind, "metadata": { "name": "cluster" } });
        crate::merge::merge(&mut whole, object);
        Manifest::of(whole)
    }

    #[test]
    fn the_computed_proxy_is_used() {
        let proxied = json!({ "httpProxy": "http://p:1" });
        let computed = json!({ "httpProxy": "http://p:1", "noProxy": ".svc" });
        for (spec, status, expected) in [
            (json!({}), Value::Null, Ok("")),
            (
                proxied.clone(),
                computed,
                Ok("HTTP_PROXY=http://p:1\nNO_PROXY=.svc\n"),
            ),
            (proxied, json!({}), Err("Proxy cluster: status: ")),
            (
                json!({ "httpProxy": 1 }),
                json!({}),
                Err("Proxy cluster: spec and status: "),
            ),
        ] {
            let object = manifest("Proxy", json!({ "spec": spec, "status": status }));
            match (proxy(&object), expected) {
                (Ok(proxy), Ok(expected)) => assert_eq!(proxy.environment(), expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (found, _) => panic!("{found:?}"),
            }
        }
    }

    #[test]
    fn addresses_of_the_status_take_precedence() {
        let network = json!({
            "spec": { "serviceNetwork": ["172.31.0.0/16"] },
            "status": { "serviceNetwork": ["172.30.0.0/16", "fd02::/112"] },
        });
        let found = name_service(&manifest("Network", network)).unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["172.30.0.10", "fd02::a"]);
        let error = name_service(&manifest("Network", json!({}))).unwrap_err();
        assert!(
            error.starts_with("Network cluster: spec.serviceNetwork: "),
            "{error}"
        );
    }

    #[test]
    fn only_pull_secrets_are_pull_secrets() {
        let kind = "kubernetes.io/dockerconfigjson";
        for (kind, value, expected) in [
            (kind, "e30=", Ok("{}")),
            (kind, "", Err("Secret cluster: data..dockerconfigjson: ")),
            (kind, "{}", Err("Secret cluster: data..dockerconfigjson: ")),
            ("Opaque", "e30=", Err("Secret cluster: type: ")),
        ] {
            let secret = json!({ "type": kind, "data": { ".dockerconfigjson": value } });
            match (pull_secret(&manifest("Secret", secret)), expected) {
                (Ok(secret), Ok(expected)) => assert_eq!(secret, expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (found, _) => panic!("{found:?}"),
            }
        }
    }
}
