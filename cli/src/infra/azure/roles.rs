//! Which roles the identities of components have, and in which resource groups. Pure.

use std::collections::BTreeSet;

use serde_json::json;
use uuid::Uuid;

use super::assign_roles::RolesRequest;
use super::network::Desired;
use super::resource::AUTHORIZATION;
use super::scope::Scope;

/// The role Contributor.
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
/// The narrow role for managing virtual machines, whose identifier has to be looked up.
pub(super) const NODE_POOL_MANAGEMENT: &str = "Azure Red Hat OpenShift NodePool Management Role";
const CONTROL_PLANE_OPERATOR: &str = "7d8bb4e4-6fa7-4545-96cf-20fce11b705d";
const FILE: &str = "0d7aedc0-15fd-4a67-a412-efad370c947e";
const DISK: &str = "5b7237c5-45e1-49d6-bc18-a1f62f400748";
const IMAGE_REGISTRY: &str = "8b32b316-c2f5-4ddf-b05b-83dacd2d08b5";

/// The role of a component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Role {
    /// The component in names of role assignments.
    component: &'static str,
    /// The field of its identity in files.
    pub(super) field: &'static str,
    definition: &'static str,
    narrow: Narrow,
    places: &'static [Place],
}

/// What a component has instead of a role that permits more than it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrow {
    /// The same role.
    Same,
    Definition(&'static str),
    /// The one that is called [`NODE_POOL_MANAGEMENT`].
    NodePoolManagement,
}

/// A resource group, by what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Main,
    SecurityGroup,
    Network,
    Dns,
}

/// Which roles are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleSet {
    /// Contributor, for components that manage virtual machines and private connections.
    Usual,
    /// Roles made for the components.
    Custom,
}

/// IDs of resource groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) main: String,
    pub(crate) security_group: String,
    pub(crate) network: String,
    /// `None` if it is unknown.
    pub(crate) dns: Option<String>,
}

/// Roles of components of the control plane.
pub(super) static ROLES: [Role; 8] = [
    Role {
        component: "capz",
        field: "nodePoolManagement",
        definition: CONTRIBUTOR,
        narrow: Narrow::NodePoolManagement,
        places: &[Place::Main, Place::Network],
    },
    Role {
        component: "cloud-provider",
        field: "cloudProvider",
        definition: "a1f96423-95ce-4224-ab27-4e3dc72facd4",
        narrow: Narrow::Same,
        places: &[Place::Main, Place::SecurityGroup, Place::Network],
    },
    Role {
        component: "ingress",
        field: "ingress",
        definition: "0336e1d3-7a87-462b-b6db-342b63f7802c",
        narrow: Narrow::Same,
        places: &[Place::Main, Place::Network, Place::Dns],
    },
    Role {
        component: "cpo",
        field: "controlPlaneOperator",
        definition: CONTRIBUTOR,
        narrow: Narrow::Definition(CONTROL_PLANE_OPERATOR),
        places: &[Place::Main, Place::SecurityGroup, Place::Network],
    },
    Role {
        component: "azure-file",
        field: "file",
        definition: FILE,
        narrow: Narrow::Same,
        places: &[Place::Main, Place::SecurityGroup, Place::Network],
    },
    Role {
        component: "azure-disk",
        field: "disk",
        definition: DISK,
        narrow: Narrow::Same,
        places: &[Place::Main],
    },
    Role {
        component: "cncc",
        field: "network",
        definition: "be7a6435-15ae-4171-8f30-4a343eff9e8f",
        narrow: Narrow::Same,
        places: &[Place::Main, Place::Network],
    },
    Role {
        component: "ciro",
        field: "imageRegistry",
        definition: IMAGE_REGISTRY,
        narrow: Narrow::Same,
        places: &[Place::Main],
    },
];

/// Roles of components on nodes, with managed identities.
pub(super) static DATA_PLANE: [Role; 3] = [
    Role {
        component: "ciroWI",
        field: "imageRegistryMSIClientID",
        definition: IMAGE_REGISTRY,
        narrow: Narrow::Same,
        places: &[Place::Main],
    },
    Role {
        component: "azure-diskWI",
        field: "diskMSIClientID",
        definition: DISK,
        narrow: Narrow::Same,
        places: &[Place::Main],
    },
    Role {
        component: "azure-fileWI",
        field: "fileMSIClientID",
        definition: FILE,
        narrow: Narrow::Same,
        places: &[Place::Main],
    },
];

// === impl Role ===

impl Role {
    /// Whether it is for the image registry, which clusters can do without.
    pub(super) fn is_of_registry(&self) -> bool {
        self.definition == IMAGE_REGISTRY
    }

    fn definition_id(&self, scope: &Scope, request: &RolesRequest) -> String {
        let definition = match (request.set, self.narrow) {
            (RoleSet::Custom, Narrow::Definition(narrow)) => narrow,
            (RoleSet::Custom, Narrow::NodePoolManagement) => match &request.node_pool_management {
                Some(id) => return id.clone(),
                None => self.definition,
            },
            (RoleSet::Usual, _) | (RoleSet::Custom, Narrow::Same) => self.definition,
        };
        let subscription = &scope.subscription;
        let provider = "providers/Microsoft.Authorization/roleDefinitions";
        format!("/subscriptions/{subscription}/{provider}/{definition}")
    }

    /// The IDs of its assignments. Their names are made of what they are for, so that a second run finds them.
    fn assignments(&self, scope: &Scope, groups: &Groups) -> Vec<String> {
        let mut ids = Vec::new();
        for place in self.places {
            let Some(group) = groups.get(*place) else {
                continue;
            };
            let text = format!("{}-{}-{group}", scope.infra_id, self.component);
            let name = Uuid::new_v5(&Uuid::NAMESPACE_DNS, text.as_bytes());
            let id = format!("{group}/providers/Microsoft.Authorization/roleAssignments/{name}");
            // One group may have several things in it.
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }
}

// === impl Groups ===

impl Groups {
    /// Those that are created for a cluster.
    pub(crate) fn created(scope: &Scope, dns: Option<&str>) -> Self {
        Self {
            main: scope.group_id(&scope.main_name()),
            security_group: scope.group_id(&scope.named("nsg")),
            network: scope.group_id(&scope.named("vnet")),
            dns: dns.map(|group| scope.group_id(group)),
        }
    }

    /// One for everything.
    pub(crate) fn given(scope: &Scope, group: &str, dns: Option<&str>) -> Self {
        let main = scope.group_id(group);
        Self {
            security_group: main.clone(),
            network: main.clone(),
            dns: dns.map(|group| scope.group_id(group)),
            main,
        }
    }

    fn get(&self, place: Place) -> Option<&String> {
        match place {
            Place::Main => Some(&self.main),
            Place::SecurityGroup => Some(&self.security_group),
            Place::Network => Some(&self.network),
            Place::Dns => self.dns.as_ref(),
        }
    }
}

/// The role assignments of a cluster.
pub(super) fn assignments(scope: &Scope, groups: &Groups, request: &RolesRequest) -> Vec<Desired> {
    let mut desired = Vec::new();
    for assignee in &request.assignees {
        let definition = assignee.role.definition_id(scope, request);
        for id in assignee.role.assignments(scope, groups) {
            desired.push(Desired {
                noun: "role assignment",
                id,
                version: AUTHORIZATION,
                body: json!({
                    "properties": {
                        "roleDefinitionId": definition,
                        "principalId": assignee.principal,
                        // Principals are not known everywhere at once: without it, a new one would be refused.
                        "principalType": "ServicePrincipal",
                    },
                }),
            });
        }
    }
    desired
}

/// The IDs of all role assignments that a cluster may have.
pub(super) fn possible_assignments(scope: &Scope, groups: &[Groups]) -> BTreeSet<String> {
    let roles = ROLES.iter().chain(&DATA_PLANE);
    roles
        .flat_map(|role| groups.iter().map(move |groups| (role, groups)))
        .flat_map(|(role, groups)| role.assignments(scope, groups))
        .collect()
}
