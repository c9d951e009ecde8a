//! APIs that run in the control plane: their registration, and Services with the control plane's addresses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, bare, with_spec};

const API: &str = "apiregistration.k8s.io/v1";
const NAMESPACE: &str = "default";
const OPENSHIFT: &str = "openshift-apiserver";
const OAUTH: &str = "openshift-oauth-apiserver";
const PACKAGE_SERVER: &str = "packageserver";
const PORT: u16 = 443;
const GROUPS: [&str; 9] = [
    "apps",
    "authorization",
    "build",
    "image",
    "quota",
    "route",
    "security",
    "template",
    "project",
];
const OAUTH_GROUPS: [&str; 2] = ["oauth", "user"];
const ROOT_CA: &str = "root-ca";

/// A server of APIs.
struct Server {
    service: &'static str,
    groups: Vec<String>,
    group_priority: u16,
}

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let names = |groups: &[&str]| {
        groups
            .iter()
            .map(|it| format!("{it}.openshift.io"))
            .collect()
    };
    let mut server = |service, groups| {
        add(
            input,
            desired,
            &Server {
                service,
                groups,
                group_priority: 9900,
            },
        );
    };
    server(OPENSHIFT, names(&GROUPS));
    if input.is_oauth_enabled() {
        server(OAUTH, names(&OAUTH_GROUPS));
    }
}

/// The API of packages that operators come in.
pub(super) fn package_server(input: &Input<'_>, desired: &mut Desired) {
    let server = Server {
        service: PACKAGE_SERVER,
        groups: vec!["packages.operators.coreos.com".to_owned()],
        group_priority: 2000,
    };
    add(input, desired, &server);
}

fn add(input: &Input<'_>, desired: &mut Desired, server: &Server) {
    match input.secret_value("APIServices", ROOT_CA, "ca.crt") {
        Ok(ca) => desired.extend(
            server
                .groups
                .iter()
                .map(|group| registration(server, group, &ca)),
        ),
        Err(error) => desired.errors.push(error),
    }
    let service = server.service;
    // Without a selector, the endpoints are those of this operator.
    let spec = json!({ "ports": [{ "name": "https", "port": PORT }] });
    desired.add(Object::merge(with_spec(
        "v1", "Service", NAMESPACE, service, spec,
    )));
    desired.attempt(endpoints(input, service));
}

fn registration(server: &Server, group: &str, ca: &[u8]) -> Object {
    let spec = json!({
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": server.group_priority,
        "versionPriority": 15,
        "caBundle": STANDARD.encode(ca),
        "service": { "name": server.service, "namespace": NAMESPACE, "port": PORT },
    });
    Object::enforce(with_spec(
        API,
        "APIService",
        "",
        &format!("v1.{group}"),
        spec,
    ))
}

/// The Service's address in the management cluster, which the API server reaches through konnectivity.
fn endpoints(input: &Input<'_>, service: &str) -> Result<Object, Error> {
    let object = format!("Endpoints {NAMESPACE}/{service}");
    let address = input.source(&object, "Service", service)?["spec"]["clusterIP"].as_str();
    let address = address.filter(|address| !address.is_empty() && *address != "None");
    let address = address
        .ok_or_else(|| Error::missing(&object, format!("the cluster IP of Service {service}")))?;
    let mut value = bare(&Key::new("v1", "Endpoints", NAMESPACE, service));
    value["subsets"] = json!([{
        "addresses": [{ "ip": address }],
        "ports": [{ "name": "https", "port": PORT, "protocol": "TCP" }],
    }]);
    Ok(Object::enforce(value))
}
