//! What components of a cluster may do: a service ID with policies each. Pure.

use serde_json::{Value, json};

/// The credentials of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    CloudController,
    NodeManagement,
    Ingress,
    Storage,
    ImageRegistry,
}

/// What policies are limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) account: String,
    /// Identifier of the resource group.
    pub(super) group: String,
    /// Identifier of the workspace.
    pub(super) workspace: String,
    /// Identifier of the instance of Internet Services.
    pub(super) internet_services: String,
}

/// Roles of the platform.
const VIEWER: &str = "role:Viewer";
const OPERATOR: &str = "role:Operator";
const EDITOR: &str = "role:Editor";
const ADMINISTRATOR: &str = "role:Administrator";
/// Roles of services.
const READER: &str = "serviceRole:Reader";
const MANAGER: &str = "serviceRole:Manager";

/// What a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The resource group itself.
    Group,
    /// VPCs of the resource group.
    Vpc,
    Workspace,
    /// The instance with the zone of the base domain.
    InternetServices,
    /// Cloud Object Storage of the resource group.
    ObjectStorage,
}

// === impl Credentials ===

impl Credentials {
    pub(crate) const ALL: [Self; 5] = [
        Self::CloudController,
        Self::NodeManagement,
        Self::Ingress,
        Self::Storage,
        Self::ImageRegistry,
    ];

    /// What follows the cluster's name in that of the Secret, and the name of the infrastructure in that of the service ID.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::CloudController => "cloud-controller-creds",
            Self::NodeManagement => "node-management-creds",
            Self::Ingress => "ingress-creds",
            Self::Storage => "storage-creds",
            Self::ImageRegistry => "image-registry-creds",
        }
    }

    /// The field of the file of `--infra-json`.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::CloudController => "KubeCloudControllerManager",
            Self::NodeManagement => "NodePoolManagement",
            Self::Ingress => "IngressOperator",
            Self::Storage => "StorageOperator",
            Self::ImageRegistry => "ImageRegistryOperator",
        }
    }

    fn grants(self) -> &'static [(Target, &'static [&'static str])] {
        match self {
            Self::CloudController => &[
                (Target::Group, &[VIEWER]),
                (Target::Vpc, &[EDITOR, OPERATOR, VIEWER]),
                (Target::Workspace, &[VIEWER, READER, MANAGER]),
            ],
            Self::NodeManagement => &[(Target::Workspace, &[MANAGER, EDITOR])],
            Self::Ingress => &[(Target::InternetServices, &[MANAGER, EDITOR])],
            Self::Storage => &[
                (Target::Workspace, &[MANAGER, EDITOR]),
                (Target::Group, &[VIEWER]),
            ],
            Self::ImageRegistry => &[
                (Target::ObjectStorage, &[ADMINISTRATOR, MANAGER]),
                (Target::Group, &[VIEWER]),
            ],
        }
    }

    /// The policies of a service ID, by its IAM ID.
    pub(super) fn policies(self, iam_id: &str, resources: &Resources) -> Vec<Value> {
        let policy = |(target, roles): &(Target, &[&str])| {
            let roles = roles.iter().map(|role| {
                let id = format!("crn:v1:bluemix:public:iam::::{role}");
                json!({ "role_id": id })
            });
            json!({
                "type": "access",
                "subjects": [{ "attributes": [attribute("iam_id", iam_id)] }],
                "roles": roles.collect::<Vec<_>>(),
                "resources": [{ "attributes": target.attributes(resources) }],
            })
        };
        self.grants().iter().map(policy).collect()
    }
}

// === impl Target ===

impl Target {
    fn attributes(self, resources: &Resources) -> Vec<Value> {
        let Resources {
            account,
            group,
            workspace,
            internet_services,
        } = resources;
        let mut attributes = vec![attribute("accountId", account)];
        attributes.extend(match self {
            Self::Group => [
                attribute("resourceType", "resource-group"),
                attribute("resource", group),
            ],
            Self::Vpc => [
                attribute("serviceName", "is"),
                attribute("resourceGroupId", group),
            ],
            Self::Workspace => [
                attribute("serviceName", "power-iaas"),
                attribute("serviceInstance", workspace),
            ],
            Self::InternetServices => [
                attribute("serviceName", "internet-svcs"),
                attribute("serviceInstance", internet_services),
            ],
            Self::ObjectStorage => [
                attribute("serviceName", "cloud-object-storage"),
                attribute("resourceGroupId", group),
            ],
        });
        attributes
    }
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "name": name, "operator": "stringEquals", "value": value })
}

/// Whether a policy that exists grants the same. Services add fields, and may change the order.
pub(super) fn grants_same(found: &Value, expected: &Value) -> bool {
    let texts = |policy: &Value, list: &str, pointer: &str, fields: [&str; 2]| {
        let items = policy[list].as_array().into_iter().flatten();
        let items = items.flat_map(|it| match pointer {
            "" => vec![it.clone()],
            field => it[field].as_array().cloned().unwrap_or_default(),
        });
        let mut texts: Vec<_> = items
            .map(|it| fields.map(|field| it[field].as_str().unwrap_or_default().to_owned()))
            .collect();
        texts.sort();
        texts
    };
    let of = |policy: &Value| {
        let roles = texts(policy, "roles", "", ["role_id", ""]);
        let resources = texts(policy, "resources", "attributes", ["name", "value"]);
        (roles, resources)
    };
    of(found) == of(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources() -> Resources {
        Resources {
            account: "account".to_owned(),
            group: "group".to_owned(),
            workspace: "workspace".to_owned(),
            internet_services: "dns".to_owned(),
        }
    }

    /// The table of the roles of each component.
    #[test]
    fn components_may_do_what_they_need_where_they_need_it() {
        let line = |policy: &Value| {
            let attributes = policy["resources"][0]["attributes"].as_array().unwrap();
            let attributes = attributes.iter().map(|it| it["value"].as_str().unwrap());
            let roles = policy["roles"].as_array().unwrap();
            let roles = roles.iter().map(|it| {
                let id = it["role_id"].as_str().unwrap();
                id.rsplit(':').next().unwrap()
            });
            let attributes: Vec<_> = attributes.collect();
            let roles: Vec<_> = roles.collect();
            format!("{}: {}", attributes.join(" "), roles.join(" "))
        };
        let mut found = Vec::new();
        for credentials in Credentials::ALL {
            for policy in credentials.policies("iam", &resources()) {
                found.push(format!("{} {}", credentials.suffix(), line(&policy)));
            }
        }
        let expected = [
            "cloud-controller-creds account resource-group group: Viewer",
            "cloud-controller-creds account is group: Editor Operator Viewer",
            "cloud-controller-creds account power-iaas workspace: Viewer Reader Manager",
            "node-management-creds account power-iaas workspace: Manager Editor",
            "ingress-creds account internet-svcs dns: Manager Editor",
            "storage-creds account power-iaas workspace: Manager Editor",
            "storage-creds account resource-group group: Viewer",
            "image-registry-creds account cloud-object-storage group: Administrator Manager",
            "image-registry-creds account resource-group group: Viewer",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn policies_are_recognized_in_another_order_and_with_more_fields() {
        let policies = Credentials::CloudController.policies("iam", &resources());
        let mut found = policies[1].clone();
        found["id"] = json!("p");
        found["roles"].as_array_mut().unwrap().reverse();
        found["roles"][0]["display_name"] = json!("Viewer");
        let attributes = found["resources"][0]["attributes"].as_array_mut();
        attributes.unwrap().reverse();
        assert!(grants_same(&found, &policies[1]));
        assert!(!grants_same(&found, &policies[0]));
        found["roles"].as_array_mut().unwrap().pop();
        assert!(!grants_same(&found, &policies[1]));
    }
}
