//! The Cluster API kinds that the operator writes, in the groups of one [`CapiTypes`].
//!
//! The types are determined once per reconcile and passed down as a [`Capi`]: code that has one cannot write to the
//! groups of the other types.

use api::group::{self, CapiTypes};
use kube::api::ApiResource;

/// The version of Cluster API's own kinds: the one that stock controllers store.
const CORE_VERSION: &str = "v1beta2";
/// The group of the Agent provider is not a Cluster API group: it is the same for both types.
const AGENT_GROUP: &str = "capi-provider.agent-install.openshift.io";

/// The kinds of either standard or private types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capi {
    types: CapiTypes,
}

// === impl Capi ===

impl Capi {
    /// The kinds of these types.
    pub fn new(types: CapiTypes) -> Self {
        Self { types }
    }

    /// Standard or private.
    pub fn types(self) -> CapiTypes {
        self.types
    }

    /// `Cluster`.
    pub fn cluster(self) -> ApiResource {
        self.core("Cluster", "clusters")
    }

    /// `Machine`.
    pub fn machine(self) -> ApiResource {
        self.core("Machine", "machines")
    }

    /// `MachineDeployment`.
    pub fn machine_deployment(self) -> ApiResource {
        self.core("MachineDeployment", "machinedeployments")
    }

    /// `MachineSet`.
    pub fn machine_set(self) -> ApiResource {
        self.core("MachineSet", "machinesets")
    }

    /// `MachineHealthCheck`.
    pub fn machine_health_check(self) -> ApiResource {
        self.core("MachineHealthCheck", "machinehealthchecks")
    }

    /// The core kinds that this operator uses, all of which the core controllers watch.
    pub fn core_kinds(self) -> [ApiResource; 5] {
        [
            self.cluster(),
            self.machine(),
            self.machine_deployment(),
            self.machine_set(),
            self.machine_health_check(),
        ]
    }

    /// `AWSCluster`.
    pub fn aws_cluster(self) -> ApiResource {
        self.infrastructure("v1beta2", "AWSCluster", "awsclusters")
    }

    /// `AWSMachineTemplate`.
    pub fn aws_machine_template(self) -> ApiResource {
        self.infrastructure("v1beta2", "AWSMachineTemplate", "awsmachinetemplates")
    }

    /// `AWSMachine`.
    pub fn aws_machine(self) -> ApiResource {
        self.infrastructure("v1beta2", "AWSMachine", "awsmachines")
    }

    /// `KubevirtCluster`.
    pub fn kubevirt_cluster(self) -> ApiResource {
        self.infrastructure("v1alpha1", "KubevirtCluster", "kubevirtclusters")
    }

    /// `KubevirtMachineTemplate`.
    pub fn kubevirt_machine_template(self) -> ApiResource {
        let plural = "kubevirtmachinetemplates";
        self.infrastructure("v1alpha1", "KubevirtMachineTemplate", plural)
    }

    /// `KubevirtMachine`.
    pub fn kubevirt_machine(self) -> ApiResource {
        self.infrastructure("v1alpha1", "KubevirtMachine", "kubevirtmachines")
    }

    /// `AgentCluster`.
    pub fn agent_cluster(self) -> ApiResource {
        agent("AgentCluster", "agentclusters")
    }

    /// `AgentMachineTemplate`.
    pub fn agent_machine_template(self) -> ApiResource {
        agent("AgentMachineTemplate", "agentmachinetemplates")
    }

    /// `AgentMachine`.
    pub fn agent_machine(self) -> ApiResource {
        agent("AgentMachine", "agentmachines")
    }

    /// The API groups that controllers of these types reconcile, for their Roles.
    pub fn groups(self) -> Vec<String> {
        group::served(self.types)
    }

    fn core(self, kind: &str, plural: &str) -> ApiResource {
        resource(group::core(self.types), CORE_VERSION, kind, plural)
    }

    /// A kind of the group of infrastructures.
    pub(crate) fn infrastructure(self, version: &str, kind: &str, plural: &str) -> ApiResource {
        resource(group::infrastructure(self.types), version, kind, plural)
    }
}

fn agent(kind: &str, plural: &str) -> ApiResource {
    resource(AGENT_GROUP.to_owned(), "v1beta1", kind, plural)
}

fn resource(group: String, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use api::group::GroupTable;

    use super::*;

    fn all(capi: Capi) -> Vec<ApiResource> {
        vec![
            capi.cluster(),
            capi.machine(),
            capi.machine_deployment(),
            capi.machine_set(),
            capi.machine_health_check(),
            capi.aws_cluster(),
            capi.aws_machine_template(),
            capi.aws_machine(),
            capi.kubevirt_cluster(),
            capi.kubevirt_machine_template(),
            capi.kubevirt_machine(),
        ]
    }

    #[test]
    fn every_kind_is_in_the_group_of_its_types() {
        let table = GroupTable::default();
        for types in [CapiTypes::Standard, CapiTypes::Private] {
            for kind in all(Capi::new(types)) {
                let found = table.find(kind.group.as_bytes());
                assert_eq!(found.map(|(_, types)| types), Some(types), "{}", kind.kind);
            }
        }
    }

    #[test]
    fn private_and_standard_kinds_differ_in_the_group_only() {
        let table = GroupTable::default();
        let other = all(Capi::new(CapiTypes::Private));
        for (standard, private) in all(Capi::new(CapiTypes::Standard)).into_iter().zip(other) {
            assert_eq!(table.swap(standard.group.as_bytes()), Some(&*private.group));
            assert_eq!(standard.kind, private.kind);
            assert_eq!(standard.plural, private.plural);
            assert_eq!(standard.version, private.version);
        }
    }

    #[test]
    fn other_groups_are_the_same_for_both_types() {
        for types in [CapiTypes::Standard, CapiTypes::Private] {
            assert_eq!(Capi::new(types).agent_cluster().group, AGENT_GROUP);
        }
    }
}
