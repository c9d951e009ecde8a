//! APIs that run in the control plane: their registration, and Services with the control plane's addresses.
//!
//! A registration without a server makes discovery incomplete, and then the deletion of namespaces waits. So an API is
//! registered once its Service has an address and its server is available, and stays registered as long as the server
//! belongs to the control plane.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

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
/// Label of registrations that the API server keeps as its definitions ask for.
const MANAGED_BY_SERVER: &str = "kube-aggregator.kubernetes.io/automanaged";
const ROOT_CA: &str = "root-ca";
/// Deployments of the control plane whose APIs are registered.
pub const SERVERS: [&str; 3] = [OPENSHIFT, OAUTH, PACKAGE_SERVER];

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
    } else {
        let groups: Vec<String> = names(&OAUTH_GROUPS);
        desired.extend(groups.iter().map(|group| Object::delete(&key(group))));
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
    let service = server.service;
    // Without a selector, the endpoints are those of this operator.
    let spec = json!({ "ports": [{ "name": "https", "port": PORT }] });
    let object = with_spec("v1", "Service", NAMESPACE, service, spec);
    desired.add(Object::merge(object).chained(service));
    match endpoints(input, service) {
        Ok(endpoints) => desired.add(endpoints.chained(service)),
        Err(error) => {
            desired.errors.push(error);
            return;
        }
    }
    match input.secret_value("APIServices", ROOT_CA, "ca.crt") {
        Ok(ca) => desired.extend(
            server
                .groups
                .iter()
                .filter(|group| is_available(input, service) || is_registered(input, group))
                .map(|group| registration(server, group, &ca).chained(service)),
        ),
        Err(error) => desired.errors.push(error),
    }
}

/// Whether a pod of the server answers.
fn is_available(input: &Input<'_>, server: &str) -> bool {
    let deployment = input.sources.get("apps", "Deployment", server);
    let available = deployment.map(|found| &found["status"]["availableReplicas"]);
    available.and_then(Value::as_u64).unwrap_or_default() > 0
}

fn is_registered(input: &Input<'_>, group: &str) -> bool {
    input.guest.get(&key(group)).is_some()
}

fn key(group: &str) -> Key {
    Key::new(API, "APIService", "", &format!("v1.{group}"))
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
    let mut value = bare(&key(group));
    value["spec"] = spec;
    // The release has definitions in some of these groups, for which the API server would take the registration back.
    value["metadata"]["labels"][MANAGED_BY_SERVER] = Value::Null;
    Object::enforce(value)
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
