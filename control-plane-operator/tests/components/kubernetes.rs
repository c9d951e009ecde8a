//! How inputs change the Kubernetes components and the servers that machines reach: one row for each statement.

/// Path of an argument in the API server's configuration; each has a list of values.
macro_rules! argument {
    ($name:literal) => {
        concat!("/data/config.json/apiServerArguments/", $name)
    };
}

/// Path of a container of a Deployment.
macro_rules! container {
    ($name:literal, $rest:literal) => {
        concat!("/spec/template/spec/containers/", $name, $rest)
    };
}

pub(crate) mod addresses;
pub(crate) mod api_server;
pub(crate) mod azure;
pub(crate) mod controllers;
pub(crate) mod etcd;
pub(crate) mod machines;
pub(crate) mod operators;

use control_plane_component::proxy::OwnProxy;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

const SERVER: &str = "kube-apiserver";
const CONFIG: &str = "ConfigMap/kas-config";
const SERVER_PODS: &str = "Deployment/kube-apiserver";
const MANAGER: &str = "kube-controller-manager";
const MANAGER_PODS: &str = "Deployment/kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";
const ETCD: &str = "etcd";
const MEMBERS: &str = "StatefulSet/etcd";
const IGNITION: &str = "ignition-server";
const NETWORKING: &str = "/spec/networking";

fn platform(name: &str) -> [(&'static str, Value); 1] {
    [("/spec/platform/type", json!(name))]
}

fn annotation(key: &str, value: &str) -> [(&'static str, Value); 1] {
    [("/metadata/annotations", json!({ key: value }))]
}

fn configuration(section: &str, value: &Value) -> [(&'static str, Value); 1] {
    [("/spec/configuration", json!({ section: value }))]
}

fn networks(pods: &[&str], services: &[&str]) -> [(&'static str, Value); 1] {
    let cidrs = |all: &[&str]| {
        all.iter()
            .map(|it| json!({ "cidr": it }))
            .collect::<Value>()
    };
    let networking = json!({
        "networkType": "Other",
        "clusterNetwork": cidrs(pods),
        "serviceNetwork": cidrs(services),
    });
    [(NETWORKING, networking)]
}

fn with_proxy(input: &mut Input) {
    input.settings.proxy = OwnProxy {
        http: None,
        https: Some("http://proxy.example.com:3128".to_owned()),
        exempt: vec![".internal".to_owned()],
    };
}
