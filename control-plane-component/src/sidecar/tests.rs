//! A Deployment with the sidecar against a golden file, and rejected Deployments.

use std::{fs, path::Path};

use k8s_openapi::api::core::v1::{ContainerPort, PodTemplateSpec};
use serde::{Serialize, de::DeserializeOwned};

use super::*;

/// A change that makes the sidecar unusable.
type Change = fn(&mut Deployment);

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sidecar");

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read_to_string(Path::new(DATA).join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it.
fn assert_golden(name: &str, object: &impl Serialize) {
    let path = Path::new(DATA).join(name);
    let text = serde_saphyr::to_string(object).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert_eq!(text, golden, "{name} differs: UPDATE_GOLDEN=1 rewrites it");
}

fn sidecar() -> Sidecar {
    Sidecar {
        image: "registry.example.com/capi-proxy:v1".to_owned(),
    }
}

fn with_sidecar() -> Deployment {
    let mut deployment = read("input.yaml");
    sidecar().add_to(&mut deployment).unwrap();
    deployment
}

fn pod(deployment: &mut Deployment) -> &mut PodSpec {
    deployment
        .spec
        .as_mut()
        .unwrap()
        .template
        .spec
        .as_mut()
        .unwrap()
}

#[test]
fn adds_the_proxy_and_sets_kubeconfig_in_all_containers() {
    assert_golden("deployment.yaml", &with_sidecar());
    assert_golden("configmap.yaml", &config_map("clusters-example"));
}

#[test]
fn adding_the_sidecar_again_is_idempotent() {
    let mut deployment = with_sidecar();
    sidecar().add_to(&mut deployment).unwrap();
    assert_eq!(deployment, with_sidecar());

    let newer = Sidecar {
        image: "registry.example.com/capi-proxy:v2".to_owned(),
    };
    newer.add_to(&mut deployment).unwrap();
    let mut expected = with_sidecar();
    pod(&mut expected).init_containers.as_mut().unwrap()[0].image = Some(newer.image);
    assert_eq!(deployment, expected);
}

#[test]
fn existing_default_container_annotation_is_kept() {
    let mut deployment: Deployment = read("input.yaml");
    let template: &mut PodTemplateSpec = &mut deployment.spec.as_mut().unwrap().template;
    let chosen = BTreeMap::from([(
        KUBECTL_DEFAULT_CONTAINER.to_owned(),
        "token-minter".to_owned(),
    )]);
    template.metadata.as_mut().unwrap().annotations = Some(chosen.clone());
    sidecar().add_to(&mut deployment).unwrap();
    let annotations = deployment
        .spec
        .unwrap()
        .template
        .metadata
        .unwrap()
        .annotations;
    assert_eq!(annotations, Some(chosen));
}

#[test]
fn rejects_deployments_that_conflict_with_the_proxy() {
    let container = || "manager".to_owned();
    let deployment = || "capi-provider".to_owned();
    let port_taken = |port| SidecarError::PortTaken {
        deployment: deployment(),
        container: container(),
        port,
    };
    let table: [(Change, SidecarError); 7] = [
        (
            |d| d.spec = None,
            SidecarError::NoTemplate {
                deployment: deployment(),
            },
        ),
        (
            |d| d.spec.as_mut().unwrap().template.spec = None,
            SidecarError::NoTemplate {
                deployment: deployment(),
            },
        ),
        (
            |d| pod(d).automount_service_account_token = Some(false),
            SidecarError::NoToken {
                deployment: deployment(),
            },
        ),
        (
            |d| {
                let variable = EnvVar {
                    name: "KUBECONFIG".to_owned(),
                    value: Some("/guest/kubeconfig".to_owned()),
                    value_from: None,
                };
                pod(d).containers[0]
                    .env
                    .get_or_insert_default()
                    .push(variable);
            },
            SidecarError::KubeconfigTaken {
                deployment: deployment(),
                container: container(),
            },
        ),
        (
            |d| {
                pod(d).containers[0].args =
                    Some(vec!["--metrics-bind-address=127.0.0.1:8080".to_owned()]);
            },
            port_taken(8080),
        ),
        (
            |d| {
                pod(d).containers[0].command =
                    Some(vec!["/manager".to_owned(), "--health=:9081".to_owned()]);
            },
            port_taken(9081),
        ),
        (
            |d| {
                pod(d).containers[0].ports = Some(vec![ContainerPort {
                    container_port: 8080,
                    ..ContainerPort::default()
                }]);
            },
            port_taken(8080),
        ),
    ];
    for (change, expected) in table {
        let mut input: Deployment = read("input.yaml");
        change(&mut input);
        let before = input.clone();
        assert_eq!(sidecar().add_to(&mut input), Err(expected));
        assert_eq!(input, before, "a rejected deployment is not changed");
    }
}
