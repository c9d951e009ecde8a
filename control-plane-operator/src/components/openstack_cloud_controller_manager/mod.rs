//! openstack-cloud-controller-manager: nodes and load balancers on OpenStack.
//!
//! The platform is part of the API's technology preview.

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::openstack::{AUTHORITIES, AUTHORITIES_FILE, CloudConfig};
use control_plane_component::{Component, Context, Error, Result, Workload, assets};
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};
use serde::Deserialize;
use serde_json::json;

use super::{cloud, edit, flags};

/// The field with the settings.
const FIELD: &str = "openstack";

/// The settings `spec.platform.openstack`, as far as this component reads them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OpenStack {
    identity_ref: IdentityRef,
    external_network: ExternalNetwork,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IdentityRef {
    name: String,
    cloud_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExternalNetwork {
    id: Option<String>,
}

/// The user's Secret, as far as this component reads it.
#[derive(Default)]
struct Credentials {
    /// CA certificates of the cloud.
    authorities: Option<String>,
    /// Beginning of the configuration file: further settings of the user for the own cloud.
    config: String,
}

pub(super) fn component() -> Component {
    Component::new(
        "openstack-cloud-controller-manager",
        assets!("config.yaml", "deployment.yaml", "trusted-ca.yaml"),
    )
    .zone_spread()
    .enabled_if(|context| context.is_on(PlatformType::OpenStack))
    .manifest("config.yaml", config)
    .manifest("trusted-ca.yaml", trusted_ca)
    .adapt(adapt)
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let openstack: OpenStack = cloud::settings(context, FIELD)?;
    let credentials = Credentials::read(context, &openstack)?;
    let pod = edit::pod(workload);
    let manager = edit::container(pod, cloud::MANAGER)?;
    let infra_id = context.spec().infra_id.as_str();
    edit::env(manager, "OCP_INFRASTRUCTURE_NAME", infra_id);
    edit::args(manager, flags::tls(context));
    adapt_volumes(pod, &openstack.identity_ref.name, &credentials)
}

/// Sets the name of the user's Secret, and mounts the CA certificates.
fn adapt_volumes(pod: &mut PodSpec, secret: &str, credentials: &Credentials) -> Result<()> {
    let mut volumes = pod.volumes.iter_mut().flatten();
    let volume = volumes.find(|volume| volume.name == "secret-occm");
    let source = volume.and_then(|volume| volume.secret.as_mut());
    let source = source.ok_or_else(|| Error::missing("volume secret-occm", "in the manifest"))?;
    source.secret_name = Some(secret.to_owned());
    if credentials.authorities.is_none() {
        return Ok(());
    }
    let (directory, file) = (AUTHORITIES, AUTHORITIES_FILE);
    let manager = edit::container(pod, cloud::MANAGER)?;
    let mounts = manager.volume_mounts.get_or_insert_default();
    mounts.push(edit::from_json(
        json!({ "name": "trusted-ca", "mountPath": directory, "readOnly": true }),
    ));
    let volumes = pod.volumes.get_or_insert_default();
    volumes.push(edit::from_json(
        json!({ "name": "trusted-ca", "configMap": {
            "name": "openstack-trusted-ca", "items": [{ "key": file, "path": file }],
        } }),
    ));
    Ok(())
}

fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let openstack: OpenStack = cloud::settings(context, FIELD)?;
    let credentials = Credentials::read(context, &openstack)?;
    let networking = context.networking();
    let machines = networking.map(|networking| &networking.machine_network);
    let machines = machines.into_iter().flatten();
    let machines: Vec<_> = machines.map(|network| network.cidr.0.as_str()).collect();
    let file = config_file(&openstack, &credentials, &machines)?;
    cloud::put(config_map, "cloud.conf", file);
    if let Some(authorities) = credentials.authorities {
        cloud::put(config_map, AUTHORITIES_FILE, authorities);
    }
    Ok(())
}

fn trusted_ca(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let openstack: OpenStack = cloud::settings(context, FIELD)?;
    let authorities = Credentials::read(context, &openstack)?.authorities;
    cloud::put(
        config_map,
        AUTHORITIES_FILE,
        authorities.unwrap_or_default(),
    );
    Ok(())
}

fn config_file(
    openstack: &OpenStack,
    credentials: &Credentials,
    machines: &[&str],
) -> Result<String> {
    let config = CloudConfig {
        own: &credentials.config,
        cloud: &openstack.identity_ref.cloud_name,
        external_network: openstack.external_network.id.as_deref(),
        machines,
        has_authorities: credentials.authorities.is_some(),
    };
    config.text()
}

// === impl Credentials ===

impl Credentials {
    fn read(context: &Context<'_>, openstack: &OpenStack) -> Result<Self> {
        let name = &openstack.identity_ref.name;
        // There are no settings where all components are rendered, whatever the platform.
        if name.is_empty() {
            return Ok(Self::default());
        }
        let secret = context.objects.secret(name);
        let secret =
            secret.ok_or_else(|| Error::missing(format!("Secret {name}"), "key clouds.yaml"))?;
        let mut data = secret.data.unwrap_or_default();
        let mut text = |key: &str| {
            let value = data.remove(key)?;
            Some(String::from_utf8_lossy(&value.0).into_owned())
        };
        Ok(Self {
            authorities: text("cacert"),
            config: text("cloud.conf").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn openstack(settings: Value) -> OpenStack {
        serde_json::from_value(settings).unwrap()
    }

    fn with_authorities() -> Credentials {
        Credentials {
            authorities: Some("certificates".to_owned()),
            config: String::new(),
        }
    }

    #[test]
    fn config_has_the_cloud_and_its_network() {
        let start = "[Global]\nuse-clouds = true\nclouds-file = /etc/openstack/secret/clouds.yaml\ncloud = lab\n";
        let load_balancer = "\n[LoadBalancer]\nmax-shared-lb = 1\nmanage-security-groups = true\n";
        let lab = json!({ "name": "a", "cloudName": "lab" });
        let network = json!({ "id": "0d5c" });
        for (settings, credentials, machines, expected) in [
            (
                json!({ "identityRef": lab }),
                Credentials::default(),
                &["10.0.0.0/16", "10.1.0.0/16"][..],
                format!(
                    "{start}{load_balancer}\n[Networking]\naddress-sort-order = 10.0.0.0/16,10.1.0.0/16"
                ),
            ),
            (
                json!({ "identityRef": lab, "externalNetwork": network }),
                Credentials::default(),
                &[],
                format!(
                    "{start}{load_balancer}floating-network-id = 0d5c\n\n[Networking]\naddress-sort-order = "
                ),
            ),
            (
                json!({ "identityRef": lab }),
                with_authorities(),
                &[],
                format!(
                    "{start}ca-file = /etc/pki/ca-trust/extracted/pem/ca-bundle.pem\n{load_balancer}\n\
                     [Networking]\naddress-sort-order = "
                ),
            ),
            (
                json!({ "identityRef": lab }),
                Credentials {
                    authorities: None,
                    config: "[Metadata]\nsearch-order = configDrive".to_owned(),
                },
                &[],
                format!(
                    "[Metadata]\nsearch-order = configDrive\n{start}{load_balancer}\n[Networking]\n\
                     address-sort-order = "
                ),
            ),
        ] {
            let file = config_file(&openstack(settings), &credentials, machines).unwrap();
            assert_eq!(file, expected);
        }
    }

    /// Check T16.
    #[test]
    fn config_rejects_injected_settings() {
        let injected = "a\nca-file = /etc/passwd";
        for (settings, machines, field) in [
            (
                json!({ "identityRef": { "cloudName": injected } }),
                &[][..],
                "identityRef.cloudName",
            ),
            (
                json!({ "externalNetwork": { "id": injected } }),
                &[],
                "externalNetwork.id",
            ),
            (json!({}), &[injected], "spec.networking.machineNetwork"),
        ] {
            let file = config_file(&openstack(settings), &Credentials::default(), machines);
            let error = file.unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn pods_mount_the_secret_and_the_ca_certificates() {
        let pod = || -> PodSpec {
            edit::from_json(json!({
                "containers": [{ "name": cloud::MANAGER }],
                "volumes": [{ "name": "secret-occm", "secret": {} }],
            }))
        };
        let mut without = pod();
        adapt_volumes(&mut without, "clouds", &Credentials::default()).unwrap();
        let expected = json!([{ "name": "secret-occm", "secret": { "secretName": "clouds" } }]);
        assert_eq!(json!(without.volumes), expected);
        let mut with = pod();
        adapt_volumes(&mut with, "clouds", &with_authorities()).unwrap();
        let volumes = json!(with.volumes);
        assert_eq!(volumes[1]["configMap"]["name"], "openstack-trusted-ca");
        let mounts = json!(with.containers[0].volume_mounts);
        assert_eq!(mounts[0]["mountPath"], "/etc/pki/ca-trust/extracted/pem");
        assert_eq!(mounts[0]["readOnly"], true);
    }
}
