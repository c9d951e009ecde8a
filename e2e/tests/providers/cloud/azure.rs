//! Azure Resource Manager, as far as a virtual machine with a network interface needs it, and the identity service that
//! issues tokens for it. Operations are done as soon as they are begun.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::server::{Answer, Api};

/// Where the identity service of the public cloud is.
const LOGIN: &str = "login.microsoftonline.com";
/// The hosts of the public cloud that it replaces: providers have no setting for others.
pub(super) const HOSTS: [&str; 2] = [LOGIN, "management.azure.com"];

/// Resources by ID.
#[derive(Debug, Default)]
pub(super) struct Azure {
    resources: BTreeMap<String, Value>,
}

// === impl Azure ===

impl Api for Azure {
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        match (method, path) {
            ("GET", ["common", "discovery", "instance"]) => Some(Answer::ok(instances())),
            ("GET", [tenant, "v2.0", ".well-known", "openid-configuration"]) => {
                Some(Answer::ok(endpoints(tenant)))
            }
            ("POST", [_, "oauth2", "v2.0", "token"]) => Some(Answer::ok(json!({
                "access_token": "testbed",
                "token_type": "Bearer",
                "expires_in": 3600,
                "ext_expires_in": 3600,
            }))),
            ("GET", ["subscriptions", _, "providers", "Microsoft.Compute", "skus"]) => {
                Some(Answer::ok(json!({ "value": skus() })))
            }
            (
                "GET",
                [
                    resource @ ..,
                    "providers",
                    "Microsoft.Resources",
                    "tags",
                    "default",
                ],
            ) => Some(self.tags(&id(resource))),
            (
                _,
                [
                    "subscriptions",
                    _,
                    "resourceGroups",
                    _,
                    "providers",
                    _,
                    _,
                    _,
                ],
            ) => self.resource(method, path, body),
            _ => None,
        }
    }
}

impl Azure {
    fn resource(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
        let [.., kind, name] = path else {
            return None;
        };
        let id = id(path);
        match (method, *kind) {
            ("GET", _) => {
                let found = self.resources.get(&id).cloned();
                Some(found.map_or_else(not_found, Answer::ok))
            }
            ("PUT", "networkInterfaces") => {
                let interface = with_address(provisioned(&id, name, body));
                Some(self.create(id, interface))
            }
            ("PUT", "virtualMachines") => {
                let disk = body["properties"]["storageProfile"]["osDisk"]["name"].as_str()?;
                self.create_disk(path, disk);
                let machine = provisioned(&id, name, body);
                Some(self.create(id, machine))
            }
            ("DELETE", "networkInterfaces" | "virtualMachines" | "disks") => {
                Some(match self.resources.remove(&id) {
                    Some(_) => Answer::new(StatusCode::OK, Value::Null),
                    None => Answer::empty(),
                })
            }
            _ => None,
        }
    }

    fn create(&mut self, id: String, resource: Value) -> Answer {
        self.resources.insert(id, resource.clone());
        Answer::new(StatusCode::CREATED, resource)
    }

    /// The disk of a virtual machine's operating system is created with it, in the same resource group. It stays when
    /// the virtual machine is deleted.
    fn create_disk(&mut self, machine: &[&str], name: &str) {
        let group = machine.iter().copied().take(4);
        let disk = ["providers", "Microsoft.Compute", "disks", name];
        let path: Vec<_> = group.chain(disk).collect();
        let id = id(&path);
        let disk = provisioned(&id, name, &json!({}));
        self.resources.insert(id, disk);
    }

    fn tags(&self, id: &str) -> Answer {
        let Some(resource) = self.resources.get(id) else {
            return not_found();
        };
        Answer::ok(json!({
            "id": format!("{id}/providers/Microsoft.Resources/tags/default"),
            "name": "default",
            "type": "Microsoft.Resources/tags",
            "properties": { "tags": resource["tags"] },
        }))
    }
}

fn id(path: &[&str]) -> String {
    format!("/{}", path.join("/"))
}

/// An error in the form of Azure Resource Manager.
fn not_found() -> Answer {
    let error = json!({ "error": { "code": "ResourceNotFound", "message": "not found" } });
    Answer::new(StatusCode::NOT_FOUND, error)
}

/// The resource that a request describes.
fn provisioned(id: &str, name: &str, body: &Value) -> Value {
    let mut resource = body.clone();
    resource["id"] = json!(id);
    resource["name"] = json!(name);
    resource["properties"]["provisioningState"] = json!("Succeeded");
    resource
}

fn with_address(mut interface: Value) -> Value {
    let configurations = interface["properties"]["ipConfigurations"].as_array_mut();
    for configuration in configurations.into_iter().flatten() {
        configuration["properties"]["privateIPAddress"] = json!("10.0.0.2");
    }
    interface
}

/// The size of the machine, and the kind of availability set that the provider looks up for each machine.
fn skus() -> Value {
    json!([
        {
            "resourceType": "virtualMachines",
            "name": "Standard_D4s_v5",
            "locations": ["eastus"],
            "capabilities": [
                { "name": "vCPUs", "value": "4" },
                { "name": "MemoryGB", "value": "16" },
                { "name": "CpuArchitectureType", "value": "x64" },
                { "name": "AcceleratedNetworkingEnabled", "value": "True" },
            ],
        },
        {
            "resourceType": "availabilitySets",
            "name": "Aligned",
            "locations": ["eastus"],
            "capabilities": [{ "name": "MaximumPlatformFaultDomainCount", "value": "3" }],
        },
    ])
}

/// The names of the cloud's identity service.
fn instances() -> Value {
    json!({
        "tenant_discovery_endpoint":
            format!("https://{LOGIN}/common/v2.0/.well-known/openid-configuration"),
        "api-version": "1.1",
        "metadata": [{
            "preferred_network": LOGIN,
            "preferred_cache": LOGIN,
            "aliases": [LOGIN],
        }],
    })
}

/// Where a tenant's tokens are issued.
fn endpoints(tenant: &str) -> Value {
    let url = format!("https://{LOGIN}/{tenant}");
    json!({
        "issuer": format!("{url}/v2.0"),
        "authorization_endpoint": format!("{url}/oauth2/v2.0/authorize"),
        "token_endpoint": format!("{url}/oauth2/v2.0/token"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "/subscriptions/testbed/resourceGroups/testbed/providers";
    const MACHINE: &str = "Microsoft.Compute/virtualMachines/worker";
    const INTERFACE: &str = "Microsoft.Network/networkInterfaces/worker-nic";
    const DISK: &str = "Microsoft.Compute/disks/worker_OSDisk";

    fn ask(azure: &mut Azure, method: &str, path: &str, body: &Value) -> Answer {
        let segments: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        azure.answer(method, &segments, body).unwrap()
    }

    fn machine() -> Value {
        let interface = format!("{GROUP}/{INTERFACE}");
        json!({
            "tags": { "Name": "worker" },
            "properties": {
                "storageProfile": { "osDisk": { "name": "worker_OSDisk" } },
                "networkProfile": { "networkInterfaces": [{ "id": interface }] },
            },
        })
    }

    #[test]
    fn machines_are_created_with_a_disk_and_deleted_by_parts() {
        let interface = json!({
            "properties": { "ipConfigurations": [{ "name": "pipConfig", "properties": {} }] },
        });
        let mut azure = Azure::default();
        for (method, path, body, status) in [
            ("GET", INTERFACE, Value::Null, StatusCode::NOT_FOUND),
            ("PUT", INTERFACE, interface, StatusCode::CREATED),
            ("GET", MACHINE, Value::Null, StatusCode::NOT_FOUND),
            ("PUT", MACHINE, machine(), StatusCode::CREATED),
            ("GET", INTERFACE, Value::Null, StatusCode::OK),
            ("GET", DISK, Value::Null, StatusCode::OK),
            ("GET", MACHINE, Value::Null, StatusCode::OK),
            ("DELETE", MACHINE, Value::Null, StatusCode::OK),
            ("DELETE", MACHINE, Value::Null, StatusCode::NO_CONTENT),
            ("DELETE", DISK, Value::Null, StatusCode::OK),
            ("DELETE", INTERFACE, Value::Null, StatusCode::OK),
            ("GET", MACHINE, Value::Null, StatusCode::NOT_FOUND),
        ] {
            let answer = ask(&mut azure, method, &format!("{GROUP}/{path}"), &body);
            assert_eq!(answer.status, status, "{method} {path}");
        }
        assert!(azure.resources.is_empty(), "{azure:?}");
    }

    #[test]
    fn resources_are_provisioned_with_id_address_and_tags() {
        let mut azure = Azure::default();
        let path = format!("{GROUP}/{INTERFACE}");
        let body = json!({ "properties": { "ipConfigurations": [{}] } });
        let interface = ask(&mut azure, "PUT", &path, &body).body;
        let properties = &interface["properties"];
        let address = &properties["ipConfigurations"][0]["properties"]["privateIPAddress"];
        assert_eq!(*address, "10.0.0.2", "{interface}");

        let path = format!("{GROUP}/{MACHINE}");
        let created = ask(&mut azure, "PUT", &path, &machine()).body;
        assert_eq!(created["id"], path);
        assert_eq!(created["name"], "worker");
        assert_eq!(created["properties"]["provisioningState"], "Succeeded");

        let tags = format!("{path}/providers/Microsoft.Resources/tags/default");
        let tags = ask(&mut azure, "GET", &tags, &Value::Null).body;
        assert_eq!(tags["properties"]["tags"], json!({ "Name": "worker" }));
    }

    #[test]
    fn tokens_are_issued_where_the_tenant_says() {
        let mut azure = Azure::default();
        let path = "/tenant/v2.0/.well-known/openid-configuration";
        let found = ask(&mut azure, "GET", path, &Value::Null).body;
        let endpoint = found["token_endpoint"].as_str().unwrap();
        let path = endpoint.strip_prefix("https://login.microsoftonline.com");
        let token = ask(&mut azure, "POST", path.unwrap(), &Value::Null).body;
        assert_eq!(token["access_token"], "testbed");
    }
}
