//! Which test uses which right, and which rights no test can use.

use super::right::Right;

/// The test that uses all rights that [`ELSEWHERE`] does not name.
pub const USUAL: &str = "ownership_follows_observed_api_groups";

/// Rights that another test uses, with the test's name. All verbs of a resource, or all resources of a group (`*`), go
/// in one row.
pub const ELSEWHERE: &[Elsewhere] = &[
    hosted("hypershift.openshift.io", "hostedcontrolplanes"),
    hosted("hypershift.openshift.io", "hostedcontrolplanes/status"),
    hosted("hypershift.openshift.io", "controlplanecomponents"),
    hosted("hypershift.openshift.io", "nodepools"),
    hosted("hypershift.openshift.io", "nodepools/status"),
    hosted("hypershift.openshift.io", "awsendpointservices"),
    hosted("hypershift.openshift.io", "awsendpointservices/status"),
    hosted("", "namespaces"),
    hosted("", "serviceaccounts"),
    hosted("", "secrets"),
    hosted("", "configmaps"),
    hosted("", "services"),
    hosted("", "endpoints"),
    hosted("apps", "deployments"),
    hosted("networking.k8s.io", "networkpolicies"),
    hosted(RBAC, "roles"),
    hosted(RBAC, "rolebindings"),
    hosted(RBAC, "clusterrolebindings"),
    hosted(RBAC, "clusterroles"),
    hosted(CERTIFICATES, "signers"),
    hosted("apiextensions.k8s.io", "customresourcedefinitions"),
    hosted("route.openshift.io", "routes"),
    hosted("cluster.hypershift.openshift.io", "clusters"),
    hosted("cluster.hypershift.openshift.io", "machinedeployments"),
    hosted("cluster.hypershift.openshift.io", "machinehealthchecks"),
    hosted("cluster.hypershift.openshift.io", "machines"),
    hosted("cluster.hypershift.openshift.io", "machinesets"),
    hosted("cluster.x-k8s.io", "clusters"),
    hosted("cluster.x-k8s.io", "machinedeployments"),
    hosted("cluster.x-k8s.io", "machinehealthchecks"),
    hosted("cluster.x-k8s.io", "machines"),
    hosted("cluster.x-k8s.io", "machinesets"),
    hosted(PRIVATE, "awsclusters"),
    hosted(PRIVATE, "awsclusters/status"),
    hosted(PRIVATE, "awsmachines"),
    hosted(PRIVATE, "awsmachinetemplates"),
    hosted(PRIVATE, "azureclusteridentities"),
    hosted(PRIVATE, "azureclusters"),
    hosted(PRIVATE, "azureclusters/status"),
    hosted(PRIVATE, "azuremachinetemplates"),
    hosted(PRIVATE, "ibmpowervsclusters"),
    hosted(PRIVATE, "ibmpowervsclusters/status"),
    hosted(PRIVATE, "ibmpowervsimages"),
    hosted(PRIVATE, "ibmpowervsmachinetemplates"),
    hosted(STANDARD, "awsclusters"),
    hosted(STANDARD, "awsclusters/status"),
    hosted(STANDARD, "awsmachines"),
    hosted(STANDARD, "awsmachinetemplates"),
    hosted(STANDARD, "azureclusteridentities"),
    hosted(STANDARD, "azureclusters"),
    hosted(STANDARD, "azureclusters/status"),
    hosted(STANDARD, "azuremachinetemplates"),
    hosted(STANDARD, "ibmpowervsclusters"),
    hosted(STANDARD, "ibmpowervsclusters/status"),
    hosted(STANDARD, "ibmpowervsimages"),
    hosted(STANDARD, "ibmpowervsmachinetemplates"),
    hosted("secrets-store.csi.x-k8s.io", "secretproviderclasses"),
    hosted(AGENT, "agents"),
    hosted(AGENT_PROVIDER, "agentclusters"),
    hosted(AGENT_PROVIDER, "agentmachinetemplates"),
    preview(PRIVATE, "gcpclusters"),
    preview(PRIVATE, "gcpclusters/status"),
    preview(PRIVATE, "gcpmachinetemplates"),
    preview(PRIVATE, "ibmvpcclusters"),
    preview(PRIVATE, "ibmvpcclusters/status"),
    preview(PRIVATE, "openstackclusters"),
    preview(PRIVATE, "openstackmachinetemplates"),
    preview(PRIVATE, "openstackservers"),
    preview(STANDARD, "gcpclusters"),
    preview(STANDARD, "gcpclusters/status"),
    preview(STANDARD, "gcpmachinetemplates"),
    preview(STANDARD, "ibmvpcclusters"),
    preview(STANDARD, "ibmvpcclusters/status"),
    preview(STANDARD, "openstackclusters"),
    preview(STANDARD, "openstackmachinetemplates"),
    preview(STANDARD, "openstackservers"),
    preview("openstack.k-orc.cloud", "images"),
    preview("hypershift.openshift.io", "hcpetcdbackups"),
    preview("hypershift.openshift.io", "hcpetcdbackups/status"),
    preview("apps", "statefulsets"),
    preview("batch", "jobs"),
    preview("", "pods"),
];

/// Rights that nothing on the testbed uses, with the reason.
pub const UNPROVEN: &[Unproven] = &[
    // Asked by the tenant policy, of which the audit log has no request.
    verbs(&["override"], "hostedclusters"),
    verbs(&["override"], "nodepools"),
    // Owner references that have an owner wait are judged by an admission plugin that OpenShift turns on.
    unproven("hypershift.openshift.io", "hostedclusters/finalizers"),
    unproven("hypershift.openshift.io", "nodepools/finalizers"),
    // OpenShift's own networks, which a management cluster of Kubernetes does not serve.
    unproven("config.openshift.io", "networks"),
    unproven("config.openshift.io", "infrastructures"),
    // Kinds of a Prometheus operator, which is not here.
    unproven("monitoring.coreos.com", "podmonitors"),
    // Private links of clouds that are not here.
    unproven("hypershift.openshift.io", "azureprivatelinkservices"),
    unproven("hypershift.openshift.io", "azureprivatelinkservices/status"),
    unproven("hypershift.openshift.io", "gcpprivateserviceconnects"),
    unproven(
        "hypershift.openshift.io",
        "gcpprivateserviceconnects/status",
    ),
    // Platforms whose kinds are not here.
    unproven("", "kubevirtclusters"),
    unproven("", "kubevirtclusters/status"),
    unproven("", "kubevirtmachines"),
    unproven("", "kubevirtmachinetemplates"),
    unproven("cdi.kubevirt.io", "datavolumes"),
    unproven("", "nodes"),
    // It is granted to storage drivers on KubeVirt.
    unproven("", "persistentvolumes"),
    verbs(&["create", "delete"], "routes"),
    // Pools with other settings: upgrades where nodes are, and health checks of machines that have start.
    verbs(&["create", "patch", "delete"], "machinehealthchecks"),
    verbs(&["create", "patch", "delete"], "machinesets"),
    verbs(&["get", "patch"], "machines"),
    verbs(&["get", "patch"], "awsmachines"),
    verbs(&["patch"], "azuremachines"),
    verbs(&["get"], "azuremachinetemplates"),
    verbs(&["get"], "ibmpowervsmachinetemplates"),
    verbs(&["delete"], "configmaps"),
    // Clusters without machine management, with private links, or with an infrastructure that is elsewhere.
    verbs(&["get", "delete"], "awsendpointservices"),
    verbs(&["delete"], "awsclusters"),
    verbs(&["get", "delete"], "azureclusteridentities"),
    verbs(&["delete"], "azureclusters"),
    verbs(&["delete"], "gcpclusters"),
    verbs(&["delete"], "ibmpowervsclusters"),
    verbs(&["delete"], "ibmvpcclusters"),
    verbs(&["delete"], "openstackclusters"),
    // Its provider creates them.
    verbs(&["get", "create", "patch"], "openstackservers"),
    verbs(&["delete"], "deployments"),
    verbs(&["delete"], "networkpolicies"),
    verbs(&["delete"], "rolebindings"),
    verbs(&["delete"], "roles"),
    // Read only while its watch is not in sync.
    verbs(&["get"], "clusters"),
    // Read only if it exists already: a response was lost.
    verbs(&["get"], "jobs"),
    // Migrations: the role that the operator gives itself for the time of one.
    Unproven {
        name: Some("private-capi-migration"),
        ..verbs(&["bind", "escalate"], "roles")
    },
];

/// The test that uses the rights of hosted clusters and node pools.
pub const HOSTED: &str = "hosted_clusters_are_created_reconciled_and_deleted";
/// The test that uses those of the platforms in the technology preview, and of IBM Cloud.
pub const PREVIEW: &str = "clusters_on_openstack_gcp_and_ibm_cloud_come_and_go";

/// All resources of a group.
pub(super) const ANY: &str = "*";
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
pub(super) const CERTIFICATES: &str = "certificates.k8s.io";
/// The group of Agents, and that of their provider.
pub(super) const AGENT: &str = "agent-install.openshift.io";
const AGENT_PROVIDER: &str = "capi-provider.agent-install.openshift.io";
/// The groups of the clouds' providers.
const PRIVATE: &str = "infrastructure.cluster.hypershift.openshift.io";
const STANDARD: &str = "infrastructure.cluster.x-k8s.io";

/// Rights that one test uses.
#[derive(Debug)]
pub struct Elsewhere {
    /// The group.
    pub group: &'static str,
    /// The resource with its subresource, or `*`.
    pub resource: &'static str,
    /// The test's name.
    pub test: &'static str,
}

const fn hosted(group: &'static str, resource: &'static str) -> Elsewhere {
    Elsewhere {
        group,
        resource,
        test: HOSTED,
    }
}

const fn preview(group: &'static str, resource: &'static str) -> Elsewhere {
    Elsewhere {
        test: PREVIEW,
        ..hosted(group, resource)
    }
}

/// Rights that no test can use.
#[derive(Debug)]
pub struct Unproven {
    /// The group; empty for any.
    pub group: &'static str,
    /// The resource with its subresource, or `*`.
    pub resource: &'static str,
    /// The verbs; none for all.
    pub verbs: &'static [&'static str],
    /// The only name that the right is for, if it has to have one.
    pub name: Option<&'static str>,
}

const fn unproven(group: &'static str, resource: &'static str) -> Unproven {
    let verbs = &[];
    Unproven {
        group,
        resource,
        verbs,
        name: None,
    }
}

/// Some verbs only.
const fn verbs(verbs: &'static [&'static str], resource: &'static str) -> Unproven {
    Unproven {
        group: "",
        resource,
        verbs,
        name: None,
    }
}

// === impl Elsewhere ===

impl Elsewhere {
    pub(super) fn is_about(&self, right: &Right) -> bool {
        self.group == right.group && [ANY, right.resource.as_str()].contains(&self.resource)
    }
}

// === impl Unproven ===

impl Unproven {
    pub(super) fn is_about(&self, right: &Right) -> bool {
        let group = self.group.is_empty() || self.group == right.group;
        let verb = self.verbs.is_empty() || self.verbs.contains(&right.verb.as_str());
        let name = self.name.is_none_or(|name| right.names == [name]);
        group && verb && name && [ANY, right.resource.as_str()].contains(&self.resource)
    }
}
