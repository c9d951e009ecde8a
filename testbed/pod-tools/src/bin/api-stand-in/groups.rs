//! The groups and kinds that each server has, and their discovery.
//!
//! Kinds that are custom resources in OpenShift (`SecurityContextConstraints`, `ClusterResourceQuota`,
//! `RoleBindingRestriction`), and kinds that are computed from others, are not here.

use serde_json::{Value, json};

/// The only version of all groups.
pub(crate) const VERSION: &str = "v1";
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// A program that this one stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    OpenShift,
    OAuth,
}

/// Where the objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespaced,
}

/// A group with its kinds.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) kinds: &'static [Kind],
}

/// A kind whose objects are stored.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "field names of the API")]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) scope: Scope,
}

const fn cluster(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        kind,
        plural,
        scope: Scope::Cluster,
    }
}

const fn namespaced(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        kind,
        plural,
        scope: Scope::Namespaced,
    }
}

const APPS: &str = "apps.openshift.io";
const BUILD: &str = "build.openshift.io";
const IMAGE: &str = "image.openshift.io";
pub(crate) const OAUTH: &str = "oauth.openshift.io";
const SECURITY: &str = "security.openshift.io";
const TEMPLATE: &str = "template.openshift.io";
pub(crate) const USER: &str = "user.openshift.io";

const OPENSHIFT_GROUPS: [Group; 9] = [
    Group {
        name: APPS,
        kinds: &[namespaced(APPS, "DeploymentConfig", "deploymentconfigs")],
    },
    // Its kinds are views of RBAC.
    Group {
        name: "authorization.openshift.io",
        kinds: &[],
    },
    Group {
        name: BUILD,
        kinds: &[
            namespaced(BUILD, "Build", "builds"),
            namespaced(BUILD, "BuildConfig", "buildconfigs"),
        ],
    },
    Group {
        name: IMAGE,
        kinds: &[
            cluster(IMAGE, "Image", "images"),
            namespaced(IMAGE, "ImageStream", "imagestreams"),
        ],
    },
    // Its stored kind is a custom resource.
    Group {
        name: "quota.openshift.io",
        kinds: &[],
    },
    Group {
        name: "route.openshift.io",
        kinds: &[namespaced("route.openshift.io", "Route", "routes")],
    },
    Group {
        name: SECURITY,
        kinds: &[cluster(SECURITY, "RangeAllocation", "rangeallocations")],
    },
    Group {
        name: TEMPLATE,
        kinds: &[
            cluster(
                TEMPLATE,
                "BrokerTemplateInstance",
                "brokertemplateinstances",
            ),
            namespaced(TEMPLATE, "Template", "templates"),
            namespaced(TEMPLATE, "TemplateInstance", "templateinstances"),
        ],
    },
    // Its kinds are views of namespaces.
    Group {
        name: "project.openshift.io",
        kinds: &[],
    },
];

const OAUTH_GROUPS: [Group; 2] = [
    Group {
        name: OAUTH,
        kinds: &[
            cluster(OAUTH, "OAuthAccessToken", "oauthaccesstokens"),
            cluster(OAUTH, "OAuthAuthorizeToken", "oauthauthorizetokens"),
            cluster(OAUTH, "OAuthClient", "oauthclients"),
            cluster(
                OAUTH,
                "OAuthClientAuthorization",
                "oauthclientauthorizations",
            ),
        ],
    },
    Group {
        name: USER,
        kinds: &[
            cluster(USER, "Group", "groups"),
            cluster(USER, "Identity", "identities"),
            cluster(USER, "User", "users"),
            cluster(USER, "UserIdentityMapping", "useridentitymappings"),
        ],
    },
];

// === impl Program ===

impl Program {
    /// The program that is started under a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        [Self::OpenShift, Self::OAuth]
            .into_iter()
            .find(|program| program.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenShift => "openshift-apiserver",
            Self::OAuth => "oauth-apiserver",
        }
    }

    pub(crate) fn groups(self) -> &'static [Group] {
        match self {
            Self::OpenShift => &OPENSHIFT_GROUPS,
            Self::OAuth => &OAUTH_GROUPS,
        }
    }

    /// A group by its name.
    pub(crate) fn group(self, name: &str) -> Option<&'static Group> {
        self.groups().iter().find(|group| group.name == name)
    }

    /// `/apis`
    pub(crate) fn group_list(self) -> Value {
        let groups: Vec<_> = self.groups().iter().map(Group::document).collect();
        json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
    }
}

// === impl Group ===

impl Group {
    /// `/apis/<group>`
    pub(crate) fn document(&self) -> Value {
        let version = json!({ "groupVersion": self.version(), "version": VERSION });
        json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": self.name,
            "versions": [version],
            "preferredVersion": version,
        })
    }

    /// `/apis/<group>/v1`
    pub(crate) fn resource_list(&self) -> Value {
        let mut resources: Vec<_> = self.kinds.iter().map(Kind::document).collect();
        if self.name == OAUTH {
            resources.push(json!({
                "name": "tokenreviews",
                "singularName": "tokenreview",
                "namespaced": false,
                "group": "authentication.k8s.io",
                "version": "v1",
                "kind": "TokenReview",
                "verbs": ["create"],
            }));
        }
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": self.version(),
            "resources": resources,
        })
    }

    fn version(&self) -> String {
        format!("{}/{VERSION}", self.name)
    }
}

// === impl Kind ===

impl Kind {
    /// Its group and version.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{VERSION}", self.group)
    }

    /// How messages name an object.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{}.{} \"{name}\"", self.plural, self.group)
    }

    fn document(&self) -> Value {
        json!({
            "name": self.plural,
            "singularName": self.kind.to_lowercase(),
            "namespaced": self.scope == Scope::Namespaced,
            "kind": self.kind,
            "verbs": VERBS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_names_the_group_that_it_is_in() {
        for program in [Program::OpenShift, Program::OAuth] {
            assert_eq!(Program::of(program.name()), Some(program));
            for group in program.groups() {
                assert!(group.kinds.iter().all(|kind| kind.group == group.name));
            }
        }
        assert_eq!(Program::of("api-stand-in"), None);
    }
}
